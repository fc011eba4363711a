/**
 * Parameters of the modules: names, kinds, bounds and first values, as genesis and
 * `--param <module>.<name>=<value>` take them. They lie in the state of their module.
 */
import { DECIMAL_ONE, decimalText, parseUnsigned } from "../../chain/encoding/decimal.js";
import { AppError } from "../../chain/errors.js";
import { ATOKEN_PER_TOKEN } from "../../chain/units.js";

/** Codes of faults in parameters. */
export type ModuleParamErrorCode = "MODULE_PARAM_INVALID";

/** A parameter that does not exist, or a value that it cannot have. */
export class ModuleParamError extends AppError<ModuleParamErrorCode> {}

/** What a parameter's number means. */
type ParamKind =
  /** Milliseconds. */
  | "duration"
  /** Things, or blocks. */
  | "count"
  /** 10^-18 of the whole, at most 1. */
  | "fraction"
  /** Atoken. */
  | "amount"
  /** 1 for true, 0 for false. */
  | "flag"
  /** The 20 bytes of its address; 0 for none. */
  | "account";

interface ParamRule {
  readonly kind: ParamKind;
  readonly first: bigint;
  readonly least: bigint;
  readonly most: bigint;
}

const SECOND = 1_000n;
const DAY = 86_400n * SECOND;
const YEAR = 365n * DAY;

const duration = (first: bigint): ParamRule => {
  return { kind: "duration", first, least: SECOND, most: 10n * YEAR };
};
const count = (first: bigint, least: bigint, most: bigint): ParamRule => {
  return { kind: "count", first, least, most };
};
const fraction = (first: bigint, least = 0n): ParamRule => {
  return { kind: "fraction", first, least, most: DECIMAL_ONE };
};
const amount = (first: bigint): ParamRule => {
  return { kind: "amount", first, least: 0n, most: 10n ** 30n };
};
const flag = (first: boolean): ParamRule => {
  return { kind: "flag", first: first ? 1n : 0n, least: 0n, most: 1n };
};

/**
 * All parameters; the place of a name among those of its module is its place in the module's
 * storage, so new ones are added at the end of their module.
 */
export const MODULE_PARAM_RULES = {
  staking: {
    unbonding_time: duration(21n * DAY),
    /** Every set signs every block; a proposal must fit the votes of all. */
    max_validators: count(100n, 1n, 500n),
    /** Unbondings, and redelegations, that one account has with one validator at a time. */
    max_entries: count(7n, 1n, 100n),
    min_commission_rate: fraction(0n),
    /** What registering a validator burns (D15). */
    burn_amount: amount(ATOKEN_PER_TOKEN),
  },
  distribution: {
    /** Share of the validators' mint that goes to the community pool; D13 gives them all of it. */
    community_tax: fraction(0n),
  },
  slashing: {
    /**
     * Hours of blocks: who restarts a machine, or has a fast chain for tests, is not out of the set
     * for it. The SDK's 100 would be ten seconds of blocks every 200 ms.
     */
    signed_blocks_window: count(10_000n, 1n, 100_000n),
    min_signed_per_window: fraction(DECIMAL_ONE / 2n),
    downtime_jail_duration: duration(600n * SECOND),
    slash_fraction_double_sign: fraction(DECIMAL_ONE / 20n),
    slash_fraction_downtime: fraction(DECIMAL_ONE / 100n),
  },
  /** As in the SDK (x/gov `types/params.go`); TOKEN in place of a million units. */
  gov: {
    min_deposit: amount(10n * ATOKEN_PER_TOKEN),
    max_deposit_period: duration(2n * DAY),
    voting_period: duration(2n * DAY),
    /** Part of the bonded stake that has to vote. */
    quorum: fraction((DECIMAL_ONE * 334n) / 1_000n),
    /** Yes, of all but abstentions. */
    threshold: fraction(DECIMAL_ONE / 2n),
    /** Vetoes, of all votes. */
    veto_threshold: fraction((DECIMAL_ONE * 334n) / 1_000n),
    min_initial_deposit_ratio: fraction(0n),
    /** Share of the deposits that a cancelled proposal costs. */
    proposal_cancel_ratio: fraction(DECIMAL_ONE / 2n),
    /** Who gets that share; 0x0: it is burned. */
    proposal_cancel_dest: { kind: "account", first: 0n, least: 0n, most: (1n << 160n) - 1n },
    expedited_voting_period: duration(DAY),
    expedited_threshold: fraction((DECIMAL_ONE * 667n) / 1_000n),
    expedited_min_deposit: amount(50n * ATOKEN_PER_TOKEN),
    burn_vote_quorum: flag(false),
    burn_proposal_deposit_prevote: flag(false),
    burn_vote_veto: flag(true),
    /** Of the least deposit, that a single deposit must have: it bounds how many there are. */
    min_deposit_ratio: fraction(DECIMAL_ONE / 100n, DECIMAL_ONE / 1_000n),
  },
} as const satisfies Record<string, Record<string, ParamRule>>;

type Rules = typeof MODULE_PARAM_RULES;

/** Values by module and name. */
export type ModuleParams = {
  readonly [Module in keyof Rules]: { readonly [Name in keyof Rules[Module]]: bigint };
};

/** The values that a genesis without others has. */
export function firstModuleParams(): ModuleParams {
  return mapRules((rule) => rule.first);
}

/**
 * The first values with some of them changed.
 * @param texts values by `<module>.<name>`: durations `120s` (ms, s, m, h, d), whole numbers,
 * fractions as decimals, `true` and `false`, accounts as 0x and 40 digits
 * @throws MODULE_PARAM_INVALID with every fault
 */
export function parseModuleParams(texts: Readonly<Record<string, string>>): ModuleParams {
  const left = new Set(Object.keys(texts));
  const faults: string[] = [];
  const params = mapRules((rule, name) => {
    const text = texts[name];
    left.delete(name);
    const value = text === undefined ? rule.first : parseValue(rule, name, text);
    if (typeof value === "bigint") return value;
    faults.push(value);
    return rule.first;
  });
  if (left.size > 0) {
    const unknown = [...left].map((name) => name.slice(0, 60)).join(", ");
    faults.push(`there is no parameter ${unknown}: take one of ${names().join(", ")}`);
  }
  if (faults.length > 0) throw invalid(faults.join("; "));
  return params;
}

/** Texts of all values, by `<module>.<name>`. */
export function moduleParamTexts(params: ModuleParams): Record<string, string> {
  const texts: Record<string, string> = {};
  mapRules((rule, name, module, key) => {
    const value = (params[module] as Readonly<Record<string, bigint>>)[key] ?? 0n;
    texts[name] = textOf(rule.kind, value);
    return value;
  });
  return texts;
}

function mapRules(
  valueOf: (rule: ParamRule, name: string, module: keyof Rules, key: string) => bigint,
): ModuleParams {
  const modules = Object.entries(MODULE_PARAM_RULES).map(([module, rules]) => {
    const values = Object.entries(rules).map(([key, rule]) => {
      return [key, valueOf(rule, `${module}.${key}`, module as keyof Rules, key)] as const;
    });
    return [module, Object.fromEntries(values)] as const;
  });
  return Object.fromEntries(modules) as ModuleParams;
}

function names(): string[] {
  const found: string[] = [];
  mapRules((_rule, name) => BigInt(found.push(name)));
  return found;
}

const UNITS: Readonly<Record<string, bigint>> = {
  ms: 1n,
  s: SECOND,
  m: 60n * SECOND,
  h: 3_600n * SECOND,
  d: DAY,
};

/** The value, or what is wrong with its text. */
function parseValue({ kind, least, most }: ParamRule, name: string, text: string): bigint | string {
  const value = PARSERS[kind](text);
  if (value === undefined) return `${name} is no ${kind}: ${text.slice(0, 60)}`;
  if (value >= least && value <= most) return value;
  return `${name} is out of range: take ${textOf(kind, least)} to ${textOf(kind, most)}`;
}

const PARSERS: Readonly<Record<ParamKind, (text: string) => bigint | undefined>> = {
  duration(text) {
    const [, digits, unit = ""] = /^([0-9]{1,15})(ms|s|m|h|d)$/.exec(text) ?? [];
    return digits === undefined ? undefined : BigInt(digits) * (UNITS[unit] ?? 1n);
  },
  count: wholeNumber,
  amount: wholeNumber,
  flag: (text) => (text === "true" ? 1n : text === "false" ? 0n : undefined),
  account: (text) => (/^0x[0-9a-fA-F]{40}$/.test(text) ? BigInt(text) : undefined),
  fraction: (text) => parseUnsigned(text, 3),
};

function wholeNumber(text: string): bigint | undefined {
  return /^[0-9]{1,40}$/.test(text) ? BigInt(text) : undefined;
}

/** A value as `parseModuleParams` takes it. */
function textOf(kind: ParamKind, value: bigint): string {
  if (kind === "duration") return value % SECOND === 0n ? `${value / SECOND}s` : `${value}ms`;
  if (kind === "flag") return value === 1n ? "true" : "false";
  if (kind === "account") return `0x${value.toString(16).padStart(40, "0")}`;
  return kind === "fraction" ? decimalText(value) : value.toString();
}

/** Why a parameter cannot have a value; undefined for one that keeps to its rule. */
export function moduleParamFault(
  module: keyof Rules,
  name: string,
  value: bigint,
): string | undefined {
  const rules: Readonly<Record<string, ParamRule>> = MODULE_PARAM_RULES[module];
  const rule = rules[name];
  if (rule === undefined) return `there is no parameter ${module}.${name}`;
  const { kind, least, most } = rule;
  if (value >= least && value <= most) return undefined;
  return `${module}.${name} is out of range: take ${textOf(kind, least)} to ${textOf(kind, most)}`;
}

function invalid(message: string): ModuleParamError {
  return new ModuleParamError("MODULE_PARAM_INVALID", message);
}
