/**
 * Parameters by subspace and key with values in amino JSON, as proposals of gov v1beta1 change them
 * and releases before 0.47 showed them: 64-bit numbers and fractions as texts, times in nanoseconds
 * (x/params; `types/params.go` of each module). What cannot be changed is here too, and has one value.
 */
import { textOf } from "../../../chain/cosmos/cosmos-transaction.js";
import type { ProtoMessage } from "../../../chain/cosmos/field-schema.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { decimalText } from "../../../chain/encoding/decimal.js";
import { BASE_DENOM } from "../../../chain/units.js";
import type { JournaledState } from "../../state/journaled-state.js";
import type { MODULE_PARAM_RULES } from "../../settings/module-params.js";
import { fractionOfText, messageFailure } from "../message-fields.js";
import { type ModuleContext, moduleFailure } from "../module-context.js";
import { moduleParam } from "../module-params.js";
import { FIXED_PARAMS, paramValuesFault, setModuleParams } from "./param-changes.js";

type Module = keyof typeof MODULE_PARAM_RULES;

/** Values by name, of one module. */
type Values = Readonly<Record<string, bigint>>;

/** One parameter of a subspace. */
interface LegacyParam {
  /** Its value as JSON has it. */
  read(state: JournaledState): unknown;
  /** What such a value sets. Throws `MessageFailure`. */
  parse(json: unknown): Values;
}

/** A change that can be made. */
interface LegacyChange {
  readonly module: Module;
  readonly values: Values;
}

const NS_PER_MS = 1_000_000n;

/** Codes of x/params. */
const PARAMS_CODE = { unknownSubspace: 2, setting: 3, empty: 4 } as const;

function refuse(text: string) {
  return moduleFailure("params", PARAMS_CODE.setting, `${text}: failed to set parameter`);
}

/** How one value is written. */
interface Form {
  write(value: bigint): unknown;
  read(json: unknown, key: string): bigint;
}

const WHOLE = /^[0-9]{1,30}$/;

const DURATION: Form = {
  write: (valueMs) => `${valueMs * NS_PER_MS}`,
  read(json, key) {
    if (typeof json !== "string" || !WHOLE.test(json)) {
      throw refuse(`${key} is no time in nanoseconds, in quotes`);
    }
    if (BigInt(json) % NS_PER_MS !== 0n) throw refuse(`${key} is no whole number of milliseconds`);
    return BigInt(json) / NS_PER_MS;
  },
};

const FRACTION: Form = {
  write: decimalText,
  read(json, key) {
    if (typeof json === "string") return fractionOfText(json, key);
    throw refuse(`${key} is no decimal in quotes`);
  },
};

/** 64-bit numbers. */
const LONG_COUNT: Form = {
  write: (value) => `${value}`,
  read(json, key) {
    if (typeof json === "string" && WHOLE.test(json)) return BigInt(json);
    throw refuse(`${key} is no whole number in quotes`);
  },
};

/** Numbers of at most 32 bits. */
const COUNT: Form = {
  write: Number,
  read(json, key) {
    if (typeof json === "number" && Number.isSafeInteger(json) && json >= 0) return BigInt(json);
    throw refuse(`${key} is no whole number`);
  },
};

const COINS: Form = {
  write: (amount) => [{ denom: BASE_DENOM, amount: `${amount}` }],
  read(json, key) {
    const [coin, ...others] = Array.isArray(json) ? (json as readonly unknown[]) : [];
    const { denom, amount } = recordOf(coin);
    const isOurs = denom === BASE_DENOM && others.length === 0;
    if (isOurs && typeof amount === "string" && WHOLE.test(amount)) return BigInt(amount);
    throw refuse(`${key} is no list of one coin of ${BASE_DENOM}`);
  },
};

function single<Name extends Module>(
  module: Name,
  name: keyof (typeof MODULE_PARAM_RULES)[Name] & string,
  form: Form,
): LegacyParam {
  return {
    read: (state) => form.write(moduleParam(state, module, name)),
    parse: (json) => ({ [name]: form.read(json, name) }),
  };
}

/** Several parameters in one object; those that a change does not name stay as they are. */
function group<Name extends Module>(
  module: Name,
  forms: { readonly [Key in keyof (typeof MODULE_PARAM_RULES)[Name] & string]?: Form },
): LegacyParam {
  const entries = Object.entries(forms) as [
    keyof (typeof MODULE_PARAM_RULES)[Name] & string,
    Form,
  ][];
  return {
    read: (state) =>
      Object.fromEntries(
        entries.map(([name, form]) => [name, form.write(moduleParam(state, module, name))]),
      ),
    parse(json) {
      const given = recordOf(json);
      const unknown = Object.keys(given).find((key) => !Object.hasOwn(forms, key));
      if (unknown !== undefined) throw refuse(`there is no field ${unknown.slice(0, 60)}`);
      const values: Record<string, bigint> = {};
      for (const [name, form] of entries) {
        if (Object.hasOwn(given, name)) values[name] = form.read(given[name], name);
      }
      return values;
    },
  };
}

/**
 * A parameter that has one value. What was proposed is compared, never written again: that would go as
 * deep as the JSON does, and nodes with less of a stack left would come to another end.
 */
function fixed(value: string | boolean): LegacyParam {
  return {
    read: () => value,
    parse(json) {
      if (json === value) return {};
      throw refuse(`the value is ${JSON.stringify(value)} and cannot be changed`);
    },
  };
}

function recordOf(json: unknown): Readonly<Record<string, unknown>> {
  return typeof json === "object" && json !== null && !Array.isArray(json) ? { ...json } : {};
}

/** Parameters by key, by subspace: the module of the same name has them. */
const SUBSPACES = {
  staking: {
    UnbondingTime: single("staking", "unbonding_time", DURATION),
    MaxValidators: single("staking", "max_validators", COUNT),
    KeyMaxEntries: single("staking", "max_entries", COUNT),
    BondDenom: fixed(BASE_DENOM),
    MinCommissionRate: single("staking", "min_commission_rate", FRACTION),
  },
  slashing: {
    SignedBlocksWindow: single("slashing", "signed_blocks_window", LONG_COUNT),
    MinSignedPerWindow: single("slashing", "min_signed_per_window", FRACTION),
    DowntimeJailDuration: single("slashing", "downtime_jail_duration", DURATION),
    SlashFractionDoubleSign: single("slashing", "slash_fraction_double_sign", FRACTION),
    SlashFractionDowntime: single("slashing", "slash_fraction_downtime", FRACTION),
  },
  distribution: {
    communitytax: single("distribution", "community_tax", FRACTION),
    baseproposerreward: fixed(decimalText(0n)),
    bonusproposerreward: fixed(decimalText(0n)),
    withdrawaddrenabled: fixed(true),
  },
  gov: {
    depositparams: group("gov", { min_deposit: COINS, max_deposit_period: DURATION }),
    votingparams: group("gov", { voting_period: DURATION }),
    tallyparams: group("gov", { quorum: FRACTION, threshold: FRACTION, veto_threshold: FRACTION }),
  },
} as const satisfies { readonly [Name in Module]: Readonly<Record<string, LegacyParam>> };

/** Names of the subspaces with their keys. */
export function legacySubspaces(): { readonly subspace: string; readonly keys: string[] }[] {
  return Object.entries(SUBSPACES).map(([subspace, params]) => {
    return { subspace, keys: Object.keys(params) };
  });
}

/** A parameter's value as JSON; undefined where there is none of that name. */
export function readLegacyParam(
  state: JournaledState,
  { subspace, key }: { readonly subspace: string; readonly key: string },
): string | undefined {
  const param = isLegacySubspace(subspace) ? paramOf(subspace, key) : undefined;
  return param === undefined ? undefined : JSON.stringify(param.read(state));
}

/** Whether there is a subspace of that name. */
export function isLegacySubspace(name: string): name is Module {
  return Object.hasOwn(SUBSPACES, name);
}

function paramOf(subspace: Module, key: string): LegacyParam | undefined {
  const params: Readonly<Record<string, LegacyParam>> = SUBSPACES[subspace];
  return Object.hasOwn(params, key) ? params[key] : undefined;
}

/**
 * The changes that a proposal of v1beta1 names.
 * @param changes `ParamChange` messages
 * @throws MessageFailure where one of them cannot be made at any time
 */
export function legacyChanges(
  version: Pick<ModuleContext, "appVersion">,
  changes: readonly ProtoMessage[],
): readonly LegacyChange[] {
  if (changes.length === 0) {
    throw moduleFailure("params", PARAMS_CODE.empty, "submitted parameter changes are empty");
  }
  return changes.map((change) => {
    const [subspace, key] = [textOf(change, "subspace"), textOf(change, "key")];
    const reason = FIXED_PARAMS.get(subspace);
    if (reason !== undefined) throw messageFailure(SDK_CODE.notSupported, reason);
    if (!isLegacySubspace(subspace)) {
      const text = `${subspace.slice(0, 60)}: unknown subspace`;
      throw moduleFailure("params", PARAMS_CODE.unknownSubspace, text);
    }
    const param = paramOf(subspace, key);
    if (param === undefined) throw refuse(`${subspace} has no parameter ${key.slice(0, 60)}`);
    const values = param.parse(jsonOf(textOf(change, "value"), key));
    const fault = paramValuesFault(version, subspace, values);
    if (fault !== undefined) throw refuse(fault);
    return { module: subspace, values };
  });
}

/** Makes the changes of a proposal, in their order. Throws `MessageFailure`. */
export function changeLegacyParams(context: ModuleContext, changes: readonly ProtoMessage[]): void {
  for (const { module, values } of legacyChanges(context, changes)) {
    setModuleParams(context, module, values);
  }
}

function jsonOf(text: string, key: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refuse(`the value of ${key} is no JSON`);
  }
}
