/**
 * Stake that comes, moves and goes (x/staking `keeper/delegation.go`). Coins of all delegators lie
 * on the staking account; a delegation is a number of shares of its validator's tokens, and a slash
 * makes every share worth less. What leaves a validator stays answerable for its faults until the
 * unbonding time is over: an entry of the queue bears the slashes that came meanwhile when it is
 * touched or ends, so that a slash itself touches no entries.
 */
import { type Address, operatorText } from "../../../chain/address.js";
import { accountText, amountText } from "../../../chain/abci-event.js";
import { MAX_TOTAL_POWER } from "../../../chain/consensus/validator-set.js";
import { SDK_CODE, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import { DECIMAL_ONE, decimalText } from "../../../chain/encoding/decimal.js";
import type { Atoken } from "../../../chain/units.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import { bookRewards } from "../distribution/rewards.js";
import { MessageFailure, type ModuleContext } from "../module-context.js";
import { moduleParam } from "../module-params.js";
import { MODULE_ACCOUNTS } from "../system-storage.js";
import { Delegations, ENTRY_KIND, type QueueEntry } from "./delegation-record.js";
import {
  addShares,
  assertStake,
  removeIfEmpty,
  takeShares,
  takeStake,
  tokensOf,
} from "./shares.js";
import { noEntryFailure, stakingFailure, uncountableFailure } from "./staking-failure.js";
import { timeText } from "./staking-texts.js";
import {
  ATOKEN_PER_POWER,
  BOND_STATUS,
  type SlashEvent,
  type ValidatorRecord,
  Validators,
} from "./validator-record.js";

/** Entries of one account together, all of which each touch looks at; the SDK's bound is by pair. */
const MAX_ENTRIES_OF_ACCOUNT = 100;

/** All of it may be votes one day. */
const MOST_STAKE_ATOKEN = MAX_TOTAL_POWER * ATOKEN_PER_POWER;

/** The validator of an operator. Throws `MessageFailure` for a stranger's. */
export function validatorOf(context: ModuleContext, operator: Address): ValidatorRecord {
  const validator = new Validators(context.state).of(operator);
  if (!validator.exists) throw stakingFailure("noValidator");
  return validator;
}

/**
 * An account's coins become stake.
 * @param amountAtoken greater than zero
 * @returns shares that it got, 10^-18. Throws `MessageFailure`
 */
export function delegate(
  context: ModuleContext,
  delegator: Address,
  validator: ValidatorRecord,
  amountAtoken: Atoken,
): bigint {
  const { state } = context;
  state.withLocked(() => {
    context.moveCoins("DELEGATE", delegator, MODULE_ACCOUNTS.staking, amountAtoken);
  });
  const allAtoken = state.accountNow(MODULE_ACCOUNTS.staking)?.balanceAtoken ?? 0n;
  if (allAtoken > MOST_STAKE_ATOKEN) throw uncountableFailure();
  state.locks?.delegated(delegator, amountAtoken);
  const shares = addShares(context, validator, delegator, amountAtoken);
  context.emit("delegate", {
    delegator: accountText(delegator),
    validator: operatorText(validator.operator),
    amount: amountText(amountAtoken),
    new_shares: decimalText(shares),
  });
  return shares;
}

/** What left a delegation. */
export interface LeftStake {
  /** When it is over, Unix milliseconds. */
  readonly endMs: number;
  /** What was taken: what was asked for, or less by what rounding keeps and by slashes that were owed. */
  readonly amountAtoken: Atoken;
}

/**
 * Stake begins to leave; its coins come at the end of the unbonding time.
 * Throws `MessageFailure`
 */
export function undelegate(
  context: ModuleContext,
  delegator: Address,
  validator: ValidatorRecord,
  amountAtoken: Atoken,
): LeftStake {
  const delegations = new Delegations(context.state);
  const taken = takeOwing(context, validator, delegator, amountAtoken);
  const { operator } = validator;
  const isOfPair = ({ kind, source }: QueueEntry) => {
    return kind === ENTRY_KIND.unbonding && source === operator;
  };
  assertRoom(context, delegator, isOfPair, "tooManyUnbondings");
  const begun = {
    kind: ENTRY_KIND.unbonding,
    delegator,
    source: operator,
    destination: operator,
    amountAtoken: taken,
    initialAtoken: taken,
    destinationShares: 0n,
    height: context.height,
    endMs: context.timeMs + unbondingTimeMs(context),
    borneSlashes: validator.slashCount,
  };
  const entry = delegations.add(begun, context.appVersion);
  context.emit("unbond", {
    delegator: accountText(delegator),
    validator: operatorText(operator),
    amount: amountText(taken),
    completion_time: timeText(entry.endMs),
  });
  removeIfEmpty(context, validator);
  return { endMs: entry.endMs, amountAtoken: taken };
}

/**
 * Stake moves to another validator at once, and answers for the first one's faults until the
 * unbonding time is over. Throws `MessageFailure`
 */
export function redelegate(
  context: ModuleContext,
  delegator: Address,
  route: { readonly source: ValidatorRecord; readonly destination: ValidatorRecord },
  amountAtoken: Atoken,
): LeftStake {
  const { source, destination } = route;
  if (source.operator === destination.operator) throw stakingFailure("selfRedelegation");
  const delegations = new Delegations(context.state);
  const isRedelegation = (one: QueueEntry) => one.kind === ENTRY_KIND.redelegation;
  const own = delegations.entriesOf(delegator).filter(isRedelegation);
  if (own.some((one) => one.destination === source.operator)) throw stakingFailure("transitive");
  assertRoom(
    context,
    delegator,
    (one) =>
      isRedelegation(one) &&
      one.source === source.operator &&
      one.destination === destination.operator,
    "tooManyRedelegations",
  );
  const answers = source.status !== BOND_STATUS.unbonded;
  const borneSlashes = source.slashCount;
  const taken = takeStake(context, source, delegator, amountAtoken);
  const { height, timeMs, appVersion } = context;
  if (taken === 0n && appVersion >= SDK_REFUSALS_VERSION) throw stakingFailure("tinyRedelegation");
  const shares = addShares(context, destination, delegator, taken);
  const begun = () => ({
    kind: ENTRY_KIND.redelegation,
    delegator,
    source: source.operator,
    destination: destination.operator,
    amountAtoken: taken,
    initialAtoken: taken,
    destinationShares: shares,
    height,
    endMs: timeMs + unbondingTimeMs(context),
    borneSlashes,
  });
  const endMs = answers ? delegations.add(begun(), appVersion).endMs : timeMs;
  context.emit("redelegate", {
    delegator: accountText(delegator),
    source_validator: operatorText(source.operator),
    destination_validator: operatorText(destination.operator),
    amount: amountText(taken),
    completion_time: timeText(endMs),
  });
  removeIfEmpty(context, source);
  return { endMs, amountAtoken: taken };
}

/**
 * Stake that began to leave at a height stays after all. Throws `MessageFailure`
 * @param amountAtoken at most what is left of the entries of that height
 */
export function cancelUnbonding(
  context: ModuleContext,
  delegator: Address,
  validator: ValidatorRecord,
  { amountAtoken, height }: { readonly amountAtoken: Atoken; readonly height: number },
): void {
  if (validator.isJailed) throw stakingFailure("jailed");
  const delegations = new Delegations(context.state);
  const entries = delegations.entriesOf(delegator).filter((one) => {
    const { kind, source } = one;
    return kind === ENTRY_KIND.unbonding && source === validator.operator && one.height === height;
  });
  if (entries.length === 0) throw noEntryFailure(context, height);
  let leftAtoken = amountAtoken;
  for (const entry of entries) {
    const restAtoken = bearSlashesOf(context, entry);
    const backAtoken = restAtoken < leftAtoken ? restAtoken : leftAtoken;
    leftAtoken -= backAtoken;
    if (backAtoken === restAtoken) delegations.remove(entry);
    else {
      const rest = { ...entry, amountAtoken: restAtoken, borneSlashes: validator.slashCount };
      delegations.takeBack(rest, backAtoken, context.appVersion);
    }
  }
  if (leftAtoken > 0n) {
    const text = "amount is greater than the unbonding delegation entry balance";
    throw new MessageFailure(sdkFault(SDK_CODE.invalidRequest, text));
  }
  addShares(context, validator, delegator, amountAtoken);
  context.emit("cancel_unbonding_delegation", {
    amount: amountText(amountAtoken),
    validator: operatorText(validator.operator),
    delegator: accountText(delegator),
    creation_height: height.toString(),
  });
}

/**
 * Takes an amount off a delegation once it has borne what it owes. Of what covered the amount before,
 * what is left is taken: nobody is shown how much that is, and a refusal would take the bearing back.
 * @returns atoken. Throws `MessageFailure`
 */
function takeOwing(
  context: ModuleContext,
  validator: ValidatorRecord,
  delegator: Address,
  amountAtoken: Atoken,
): bigint {
  const { operator } = validator;
  const isFirst = context.appVersion < SDK_REFUSALS_VERSION;
  if (!isFirst) assertStake(context, validator, delegator, amountAtoken);
  bearSlashes(context, delegator, operator);
  if (isFirst) return takeStake(context, validator, delegator, amountAtoken);
  const owned = new Delegations(context.state).shares(operator, delegator);
  // With the atoken that a rounding hides, so that no shares stay behind.
  const mostAtoken = tokensOf(validator, owned) + 1n;
  return takeStake(context, validator, delegator, least(amountAtoken, mostAtoken));
}

/** Reads a slash of a validator; whoever acts in a transaction pays for each time. */
export type SlashReader = (source: ValidatorRecord, index: number) => SlashEvent;

const readSlash: SlashReader = (source, index) => source.slashAt(index);

/**
 * Bears what an account's redelegations to a validator have to bear, before its stake there moves.
 * @param options.youngest the last redelegation that counts; all without it
 * @returns how many entries were looked at
 */
export function bearSlashes(
  context: ModuleContext,
  delegator: Address,
  destination: Address,
  options: { readonly youngest?: bigint; readonly slashOf?: SlashReader } = {},
): number {
  const { youngest, slashOf } = options;
  const entries = new Delegations(context.state).entriesOf(delegator);
  for (const entry of entries) {
    const isOfPair = entry.kind === ENTRY_KIND.redelegation && entry.destination === destination;
    const counts = youngest === undefined || entry.id <= youngest;
    if (isOfPair && counts) bearSlashesOf(context, entry, slashOf);
  }
  return entries.length;
}

/** Bears the slashes that an entry has not borne. @returns what is left of it, atoken */
export function bearSlashesOf(
  context: ModuleContext,
  entry: QueueEntry,
  slashOf: SlashReader = readSlash,
): bigint {
  const source = new Validators(context.state).of(entry.source);
  const { slashCount } = source;
  let leftAtoken = entry.amountAtoken;
  const missing: Missing[] = [];
  for (let index = entry.borneSlashes; index < slashCount; index++) {
    const slash = slashOf(source, index);
    if (!answersFor(entry, slash)) continue;
    if (entry.kind === ENTRY_KIND.redelegation) {
      const missingAtoken = slashDestination(context, entry, slash.fraction);
      if (missingAtoken > 0n) missing.push({ slash, missingAtoken });
    } else leftAtoken -= burn(context, slashPart(entry, leftAtoken, slash));
  }
  // Of all slashes together: it looks at all that the account has under way.
  if (missing.length > 0) slashLeaving(context, entry, missing);
  if (slashCount > entry.borneSlashes) {
    const next = { amountAtoken: leftAtoken, borneSlashes: slashCount };
    new Delegations(context.state).update(entry, next);
  }
  return leftAtoken;
}

/**
 * What is left of an unbonding when the slashes that came meanwhile are borne, atoken: what its end
 * would pay now.
 */
export function unbondingLeft(source: ValidatorRecord, entry: QueueEntry): bigint {
  let leftAtoken = entry.amountAtoken;
  for (let index = entry.borneSlashes; index < source.slashCount; index++) {
    const slash = source.slashAt(index);
    if (answersFor(entry, slash)) leftAtoken -= slashPart(entry, leftAtoken, slash);
  }
  return leftAtoken;
}

/**
 * Whether a slash is an entry's, too: it left no sooner than the fault, and was not over yet, though it
 * may still wait for a block that has room for its end.
 */
function answersFor(
  { height, endMs }: QueueEntry,
  { infractionHeight, timeMs }: SlashEvent,
): boolean {
  return height >= infractionHeight && timeMs < endMs;
}

/** What a slash takes of an unbonding: a part of what it began with, at most what is left. */
function slashPart(
  { initialAtoken }: QueueEntry,
  leftAtoken: Atoken,
  { fraction }: Pick<SlashEvent, "fraction">,
): bigint {
  return least((initialAtoken * fraction) / DECIMAL_ONE, leftAtoken);
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function burn(context: ModuleContext, burnAtoken: Atoken): bigint {
  if (burnAtoken > 0n) {
    context.moveCoins("SLASH", MODULE_ACCOUNTS.staking, undefined, burnAtoken);
  }
  return burnAtoken;
}

/**
 * Takes what a redelegation owes for its source's fault off the delegation that it became.
 * @returns what is no longer there, atoken: it is taken off what has begun to leave since, otherwise
 * stake escapes by leaving twice
 */
function slashDestination(context: ModuleContext, entry: QueueEntry, fraction: bigint): bigint {
  const { destination, delegator, destinationShares } = entry;
  const owned = new Delegations(context.state).shares(destination, delegator);
  const due = (destinationShares * fraction) / DECIMAL_ONE;
  const taken = due < owned ? due : owned;
  if (taken > 0n) {
    const validator = new Validators(context.state).of(destination);
    const worthAtoken = takeShares(context, validator, delegator, taken);
    burn(context, worthAtoken);
    removeIfEmpty(context, validator);
  }
  if (due === taken) return 0n;
  const dueAtoken = (entry.initialAtoken * fraction) / DECIMAL_ONE;
  return (dueAtoken * (due - taken)) / due;
}

/** What a slash did not find of a redelegation at its destination any more. */
interface Missing {
  readonly slash: SlashEvent;
  missingAtoken: Atoken;
}

/**
 * Burns what is missing of what an account has taken off a redelegation's destination since, oldest first.
 */
function slashLeaving(
  context: ModuleContext,
  entry: QueueEntry,
  missing: readonly Missing[],
): void {
  const delegations = new Delegations(context.state);
  const isFirst = context.appVersion < SDK_REFUSALS_VERSION;
  const leaving = delegations
    .entriesOf(entry.delegator)
    .filter((one) => one.kind === ENTRY_KIND.unbonding && one.source === entry.destination)
    .filter(({ id }) => id > entry.id)
    .toSorted((left, right) => (left.id < right.id ? -1 : 1));
  for (const listed of leaving) {
    const one = isFirst ? listed : borne(context, listed);
    let { amountAtoken } = one;
    for (const due of missing) {
      if (!answersFor(one, due.slash)) continue;
      const partAtoken = least(amountAtoken, due.missingAtoken);
      due.missingAtoken -= partAtoken;
      amountAtoken -= partAtoken;
    }
    burn(context, one.amountAtoken - amountAtoken);
    delegations.update(one, { amountAtoken, borneSlashes: one.borneSlashes });
  }
}

/** An unbonding once it has borne what its own validator has lost: that is no longer there for others. */
function borne(context: ModuleContext, entry: QueueEntry): QueueEntry {
  bearSlashesOf(context, entry);
  return new Delegations(context.state).entry(entry.id);
}

/**
 * A validator and its delegators lose a part of their stake.
 * @param fault.stakeAtoken its stake when it did wrong, of no more than which a part is burned here. What has
 *   left since bears a part besides, and is not taken off: what came in its place is asked for, too (ADR 35)
 */
export function slashValidator(
  context: ModuleContext,
  validator: ValidatorRecord,
  fault: { readonly infractionHeight: number; readonly stakeAtoken: Atoken },
  fraction: bigint,
): bigint {
  if (validator.status === BOND_STATUS.unbonded || fraction === 0n) return 0n;
  const { tokens, shares } = validator;
  const heldAtoken = tokens < fault.stakeAtoken ? tokens : fault.stakeAtoken;
  const burnAtoken = (heldAtoken * fraction) / DECIMAL_ONE;
  bookRewards(context.state, validator);
  validator.setStake(tokens - burnAtoken, shares);
  if (burnAtoken > 0n) {
    context.moveCoins("SLASH", MODULE_ACCOUNTS.staking, undefined, burnAtoken);
  }
  const { infractionHeight } = fault;
  const { height, appVersion } = context;
  const timeMs = appVersion < SDK_REFUSALS_VERSION ? 0 : context.timeMs;
  validator.addSlash({ height, timeMs, infractionHeight, fraction });
  return burnAtoken;
}

function assertRoom(
  context: ModuleContext,
  delegator: Address,
  isOfPair: (entry: QueueEntry) => boolean,
  failure: "tooManyUnbondings" | "tooManyRedelegations",
): void {
  const entries = new Delegations(context.state).entriesOf(delegator);
  const most = Number(moduleParam(context.state, "staking", "max_entries"));
  const isFull = entries.filter(isOfPair).length >= most;
  if (isFull || entries.length >= MAX_ENTRIES_OF_ACCOUNT) throw stakingFailure(failure);
}

/** The unbonding time, milliseconds. */
export function unbondingTimeMs({ state }: ModuleContext): number {
  return Number(moduleParam(state, "staking", "unbonding_time"));
}
