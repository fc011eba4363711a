/**
 * What only governance may do: parameters of the modules, coins of the community pool, upgrades.
 * Everybody else's message is refused with the gov module's code 13.
 */
import { coinsOf, listOf, textOf } from "../../chain/cosmos/cosmos-transaction.js";
import {
  type AnyMessage,
  durationNs,
  isAny,
  type ProtoMessage,
  type ProtoValue,
} from "../../chain/cosmos/field-schema.js";
import { SDK_CODE } from "../../chain/cosmos/sdk-fault.js";
import { FIRST_SECOND } from "../../chain/protobuf/json-texts.js";
import { BASE_DENOM } from "../../chain/units.js";
import { assertPoolHolds, spendCommunityPool } from "./distribution/rewards.js";
import { assertAuthority, govFailure } from "./gov/gov-failure.js";
import type { MessageHandler } from "./message-context.js";
import {
  addressOf,
  amountIn,
  amountOfCoins,
  fractionOfText,
  messageFailure,
  nested,
  NO_RESPONSE,
} from "./message-fields.js";
import { MessageFailure, type ModuleContext } from "./module-context.js";
import { changeLegacyParams, legacyChanges } from "./params/legacy-params.js";
import { FIXED_PARAMS, setModuleParams } from "./params/param-changes.js";
import { stakedHandler } from "./staked-handler.js";
import { addressWord } from "./system-storage.js";
import {
  assertPlannable,
  cancelUpgrade,
  scheduleUpgrade,
  type UpgradePlan,
} from "./upgrade/plan.js";

/** Gas of messages beside bytes and signature. */
const GAS = { params: 100_000n, spend: 50_000n, plan: 100_000n } as const;

/** Name of the message around a proposal of v1beta1. */
export const EXEC_LEGACY_CONTENT = "cosmos.gov.v1.MsgExecLegacyContent";

type Act = (message: ProtoMessage, context: ModuleContext) => void;

/** A handler that refuses everybody but the gov account. */
function of(
  module: string,
  name: string,
  gas: bigint,
  act: Act,
): [name: string, handler: MessageHandler] {
  const version = module === "gov" ? "v1" : "v1beta1";
  const handler = stakedHandler({ module, name, gas }, (message, context) => {
    assertAuthority(addressOf(textOf(message, "authority"), "authority"));
    act(message, context);
    return NO_RESPONSE;
  });
  return [`cosmos.${module}.${version}.${name}`, handler];
}

/** Handlers by message. */
export const GOVERNED_HANDLERS: readonly (readonly [string, MessageHandler])[] = [
  of("staking", "MsgUpdateParams", GAS.params, updateStaking),
  of("distribution", "MsgUpdateParams", GAS.params, updateDistribution),
  of("slashing", "MsgUpdateParams", GAS.params, updateSlashing),
  of("gov", "MsgUpdateParams", GAS.params, updateGov),
  ...[...FIXED_PARAMS].map(([module, reason]) =>
    of(module, "MsgUpdateParams", GAS.params, () => {
      throw messageFailure(SDK_CODE.notSupported, reason);
    }),
  ),
  of("distribution", "MsgCommunityPoolSpend", GAS.spend, spend),
  of("upgrade", "MsgSoftwareUpgrade", GAS.plan, plan),
  of("upgrade", "MsgCancelUpgrade", GAS.plan, (_message, context) => cancelUpgrade(context)),
  legacyHandler(),
];

/** Content of v1beta1 with parameters by subspace and key. */
const PARAM_CHANGES = "/cosmos.params.v1beta1.ParameterChangeProposal";

/** What a content of v1beta1 does, and whether it could do so in a state, which changes nothing. */
interface LegacyContent {
  /** Throws `MessageFailure` where `act` would. */
  readonly rehearse: Act;
  readonly act: Act;
}

/** What proposals of v1beta1 do, by the types of their contents. */
const LEGACY: ReadonlyMap<string, LegacyContent> = new Map<string, LegacyContent>([
  ["/cosmos.gov.v1beta1.TextProposal", { rehearse: () => undefined, act: () => undefined }],
  [
    "/cosmos.distribution.v1beta1.CommunityPoolSpendProposal",
    {
      rehearse: (content, context) =>
        assertPoolHolds(context, spendingIn(content, context).amountAtoken),
      act: spend,
    },
  ],
  [
    "/cosmos.upgrade.v1beta1.SoftwareUpgradeProposal",
    { rehearse: (content, context) => assertPlannable(context, planIn(content)), act: plan },
  ],
  [
    "/cosmos.upgrade.v1beta1.CancelSoftwareUpgradeProposal",
    { rehearse: () => undefined, act: (_content, context) => cancelUpgrade(context) },
  ],
  [
    PARAM_CHANGES,
    {
      rehearse: ({ changes }, context) => void legacyChanges(context, listOf(changes)),
      act: ({ changes }, context) => changeLegacyParams(context, listOf(changes)),
    },
  ],
]);

/** The message around a content of v1beta1: x/gov looks at it alone before it is proposed. */
function legacyHandler(): [name: string, handler: MessageHandler] {
  const [name, handler] = of("gov", "MsgExecLegacyContent", GAS.plan, ({ content }, context) => {
    if (!isAny(content)) throw messageFailure(SDK_CODE.invalidRequest, MISSING_CONTENT);
    legacyOf(content).act(content.message, context);
  });
  const rehearse = ({ content }: ProtoMessage, context: ModuleContext) => {
    if (!isAny(content)) throw govFailure("invalidContent", MISSING_CONTENT);
    const legacy = legacyOf(content);
    refusingContent(() => legacy.rehearse(content.message, context));
  };
  return [name, { ...handler, rehearse }];
}

/** What is said of a proposal of v1beta1 that proposes nothing. */
export const MISSING_CONTENT = "missing content";

function legacyOf({ typeUrl }: AnyMessage): LegacyContent {
  const legacy = LEGACY.get(typeUrl);
  if (legacy === undefined) throw govFailure("noHandler", typeUrl);
  return legacy;
}

/**
 * By the first rules, which looked at changes of parameters alone, and before the first deposit:
 * throws `MessageFailure` for a content that can never be executed.
 */
export function assertLegacyContentFirst(
  version: Pick<ModuleContext, "appVersion">,
  content: AnyMessage,
): void {
  legacyOf(content);
  if (content.typeUrl !== PARAM_CHANGES) return;
  refusingContent(() => void legacyChanges(version, listOf(content.message["changes"])));
}

function refusingContent(look: () => void): void {
  try {
    look();
  } catch (error) {
    if (!(error instanceof MessageFailure)) throw error;
    throw govFailure("invalidContent", error.fault.log);
  }
}

/** Who is to get how much of the community pool. Throws `MessageFailure` where nobody can. */
function spendingIn(message: ProtoMessage, context: ModuleContext) {
  const recipientText = textOf(message, "recipient");
  const recipient = addressOf(recipientText, "recipient");
  if (context.isBlocked(recipient)) {
    const text = `${recipientText} is not allowed to receive external funds`;
    throw messageFailure(SDK_CODE.unauthorized, text);
  }
  return { recipient, amountAtoken: amountIn(message, "amount") };
}

function spend(message: ProtoMessage, context: ModuleContext): void {
  const { recipient, amountAtoken } = spendingIn(message, context);
  spendCommunityPool(context, recipient, amountAtoken);
}

/** The plan in a message. Throws `MessageFailure`. */
function planIn(message: ProtoMessage): UpgradePlan {
  const { name, height, info, time } = nested(message["plan"]);
  // Go's zero time, which the SDK's clients write, is year 1; those of protobuf write 0.
  const { seconds = FIRST_SECOND, nanos = 0 } = nested(time);
  if ((seconds !== FIRST_SECOND && seconds !== 0n) || nanos !== 0) {
    const text = "time-based upgrades have been deprecated in the SDK";
    throw messageFailure(SDK_CODE.invalidRequest, text);
  }
  const at = typeof height === "bigint" ? height : 0n;
  if (at > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw messageFailure(SDK_CODE.invalidRequest, `height ${at} is never reached`);
  }
  return {
    name: typeof name === "string" ? name : "",
    height: Number(at),
    info: typeof info === "string" ? info : "",
  };
}

function plan(message: ProtoMessage, context: ModuleContext): void {
  scheduleUpgrade(context, planIn(message));
}

function paramsOf(message: ProtoMessage): ProtoMessage {
  if (message["params"] === undefined) {
    throw messageFailure(SDK_CODE.invalidRequest, "params are missing");
  }
  return nested(message["params"]);
}

/** `historical_entries` has no effect here; what a registration burns is not in this message. */
function updateStaking(message: ProtoMessage, context: ModuleContext): void {
  const params = paramsOf(message);
  if (params["bond_denom"] !== BASE_DENOM) {
    const text = `the bond denomination is ${BASE_DENOM} and cannot be changed`;
    throw messageFailure(SDK_CODE.invalidRequest, text);
  }
  setModuleParams(context, "staking", {
    unbonding_time: durationMs(params, "unbonding_time"),
    max_validators: countOf(params["max_validators"]),
    max_entries: countOf(params["max_entries"]),
    min_commission_rate: unitsOf(params, "min_commission_rate"),
  });
}

function updateDistribution(message: ProtoMessage, context: ModuleContext): void {
  const params = paramsOf(message);
  const isDeprecated =
    unitsOf(params, "base_proposer_reward") !== 0n ||
    unitsOf(params, "bonus_proposer_reward") !== 0n;
  if (isDeprecated) {
    const text = "cannot update base or bonus proposer reward because these are deprecated fields";
    throw messageFailure(SDK_CODE.invalidRequest, text);
  }
  if (params["withdraw_addr_enabled"] !== true) {
    const text = "withdraw_addr_enabled is true and cannot be changed";
    throw messageFailure(SDK_CODE.invalidRequest, text);
  }
  setModuleParams(context, "distribution", { community_tax: unitsOf(params, "community_tax") });
}

function updateSlashing(message: ProtoMessage, context: ModuleContext): void {
  const params = paramsOf(message);
  setModuleParams(context, "slashing", {
    signed_blocks_window: countOf(params["signed_blocks_window"]),
    min_signed_per_window: unitsOf(params, "min_signed_per_window"),
    downtime_jail_duration: durationMs(params, "downtime_jail_duration"),
    slash_fraction_double_sign: unitsOf(params, "slash_fraction_double_sign"),
    slash_fraction_downtime: unitsOf(params, "slash_fraction_downtime"),
  });
}

function updateGov(message: ProtoMessage, context: ModuleContext): void {
  const params = paramsOf(message);
  const fraction = (name: string) => fractionOfText(textOf(params, name), name);
  const flag = (name: string) => (params[name] === true ? 1n : 0n);
  const dest = textOf(params, "proposal_cancel_dest");
  const values = {
    min_deposit: amountOfCoins(coinsOf(params["min_deposit"])),
    max_deposit_period: durationMs(params, "max_deposit_period"),
    voting_period: durationMs(params, "voting_period"),
    quorum: fraction("quorum"),
    threshold: fraction("threshold"),
    veto_threshold: fraction("veto_threshold"),
    min_initial_deposit_ratio: fraction("min_initial_deposit_ratio"),
    proposal_cancel_ratio: fraction("proposal_cancel_ratio"),
    proposal_cancel_dest: dest === "" ? 0n : addressWord(cancelDest(dest, context)),
    expedited_voting_period: durationMs(params, "expedited_voting_period"),
    expedited_threshold: fraction("expedited_threshold"),
    expedited_min_deposit: amountOfCoins(coinsOf(params["expedited_min_deposit"])),
    burn_vote_quorum: flag("burn_vote_quorum"),
    burn_proposal_deposit_prevote: flag("burn_proposal_deposit_prevote"),
    burn_vote_veto: flag("burn_vote_veto"),
    min_deposit_ratio: fraction("min_deposit_ratio"),
  };
  const isWeaker =
    values.expedited_voting_period > values.voting_period ||
    values.expedited_threshold < values.threshold ||
    values.expedited_min_deposit < values.min_deposit;
  if (isWeaker) {
    const text =
      "the expedited way has at most the voting period, and at least the threshold and the " +
      "deposit, of the plain one";
    throw messageFailure(SDK_CODE.invalidRequest, text);
  }
  setModuleParams(context, "gov", values);
}

function cancelDest(text: string, context: ModuleContext) {
  const address = addressOf(text, "proposal_cancel_dest");
  if (!context.isBlocked(address)) return address;
  throw messageFailure(SDK_CODE.unauthorized, `${text} is not allowed to receive external funds`);
}

function durationMs(params: ProtoMessage, field: string): bigint {
  return durationNs(nested(params[field])) / 1_000_000n;
}

function countOf(value: ProtoValue): bigint {
  if (typeof value === "bigint") return value;
  return typeof value === "number" ? BigInt(value) : 0n;
}

/** A decimal: an integer text of 10^-18; nothing is 0. */
function unitsOf(params: ProtoMessage, field: string): bigint {
  const text = textOf(params, field);
  if (text === "") return 0n;
  if (/^[0-9]{1,40}$/.test(text)) return BigInt(text);
  throw messageFailure(SDK_CODE.invalidRequest, `${field} is no decimal: ${text.slice(0, 60)}`);
}
