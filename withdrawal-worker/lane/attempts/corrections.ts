/** After a refusal for good: the next attempt on the same nonce, or the way out of it. */
import type { Atoken } from "../../../chain/units.js";
import type { LiveSlot } from "../../../ledger/withdrawals/slot-rows.js";
import {
  estimateOf,
  FeeRoom,
  isCovered,
  isOfPausedToken,
  MAX_ATTEMPTS,
  MAX_PAYMENT_ATTEMPTS,
  type PlannedAttempt,
  planCancel,
  planPayment,
  signReplacements,
} from "./attempts.js";
import { giveUpTogether, pausedExit } from "./joint-exits.js";
import {
  type AttemptGas,
  cancelGasMax,
  cancelPriceCap,
  estimateCeiling,
  lower,
  raiseGasLimit,
  raisePrice,
  withMargin,
} from "../../gas.js";
import { gasOf, type LaneContext, type Round } from "../lane-context.js";
import type { EstimateMeaning, SendMeaning } from "../../withdrawal-state.js";

/** A slot whose latest attempt was refused for good. */
export interface RefusedAttempt {
  readonly slot: LiveSlot;
  readonly meaning: SendMeaning;
  /** For how long its bytes have been sent. */
  readonly triedMs: number;
}

/**
 * Signs the next attempt of slots whose latest one was refused for its price or gas. A payment that
 * no allowed gas can mend gives its nonce up at once; one that is too cheap for now waits, as many
 * prices as were signed for it: no customer is to blame for what a node wants to be paid.
 */
export async function correctAttempts(
  context: LaneContext,
  round: Round,
  refused: readonly RefusedAttempt[],
): Promise<void> {
  if (refused.length === 0) return;
  const cancels = refused.filter(({ slot }) => slot.status === "cancelling");
  const wanted = refused.filter(({ slot }) => slot.status !== "cancelling");
  const payments = wanted.filter(({ slot }) => !isOfPausedToken(slot));
  const paused = wanted.map(({ slot }) => slot).filter(isOfPausedToken);
  const attempts = cancels.flatMap((entry) => correctCancel(context, round, entry));
  const mended = await correctPayments(context, round, payments);
  await signReplacements(context, round, [...attempts, ...mended.attempts]);
  await giveUp(context, round, mended.hopeless);
  // No other gas or price is signed for these.
  await giveUpTogether(context, round, paused.map(pausedExit));
}

/** The next price or gas of a cancelling transfer; none when the cap forbids it. */
function correctCancel(
  context: LaneContext,
  round: Round,
  { slot, meaning, triedMs }: RefusedAttempt,
): PlannedAttempt[] {
  const latest = slot.attempts.at(-1);
  if (latest === undefined || slot.attempts.length >= MAX_ATTEMPTS) return [];
  const gas = gasOf(context, round);
  const settings = { ...gas, limitMax: cancelGasMax(gas.limitMax) };
  const cap = cancelPriceCap(gas.priceCapAtoken);
  // Both limits may have been lowered since.
  const gasLimit = lower(latest.gasLimit, settings.limitMax);
  const gasPriceAtoken = lower(latest.gasPriceAtoken, cap);
  if (meaning.kind === "gas-too-low") {
    const wanted = { estimate: gasLimit, needed: meaning.neededGas };
    const raised = raiseGasLimit(gasLimit, wanted, settings);
    if (raised === undefined) return [];
    return [planCancel(context, slot, { gasLimit: raised, gasPriceAtoken })];
  }
  const neededAtoken = meaning.kind === "price-too-low" ? meaning.neededPriceAtoken : undefined;
  const wanted = { suggestedAtoken: round.view.suggestedPriceAtoken, neededAtoken };
  // A pool that holds another one of this nonce takes what is dear enough, and names no price.
  const isHeld = meaning.kind === "conflict";
  if (!isHeld && !mayRaise(context, gasPriceAtoken, { ...wanted, triedMs })) return [];
  const raised = raisePrice(gasPriceAtoken, wanted, cap);
  if (raised === undefined || raised <= latest.gasPriceAtoken) return [];
  return [planCancel(context, slot, { gasLimit, gasPriceAtoken: raised })];
}

async function correctPayments(
  context: LaneContext,
  round: Round,
  refused: readonly RefusedAttempt[],
): Promise<{ attempts: PlannedAttempt[]; hopeless: RefusedAttempt[] }> {
  const attempts: PlannedAttempt[] = [];
  const hopeless: RefusedAttempt[] = [];
  if (refused.length === 0) return { attempts, hopeless };
  const ceiling = estimateCeiling(gasOf(context, round));
  const asked = refused.map(({ slot }) => {
    const { gasPriceAtoken } = slot.attempts.at(-1) ?? slot;
    return estimateOf(context, round, slot, gasPriceAtoken);
  });
  const estimates = await context.node.estimate(context.signer.address, asked, {
    signal: round.signal,
    at: round.view.height,
  });
  const room = await FeeRoom.read(context);
  const mayReplace = (slot: LiveSlot, gas: AttemptGas) =>
    isCovered(round, slot, gas) && room.take(slot, gas);
  refused.forEach((entry, index) => {
    const isShort = (asked[index]?.gasMax ?? 0n) < ceiling;
    const correction = correctedGas(context, round, { ...entry, isShort }, estimates[index]);
    const isFull = entry.slot.attempts.length >= MAX_PAYMENT_ATTEMPTS;
    if (correction === "hopeless" || isFull || isTried(entry.slot, correction)) {
      if (entry.meaning.kind !== "price-too-low") hopeless.push(entry);
    } else if (correction !== undefined && mayReplace(entry.slot, correction)) {
      attempts.push(planPayment(context, entry.slot, correction));
    }
  });
  return { attempts, hopeless };
}

/**
 * Whether a price that was too low is raised now: to what the node names, else a tenth in the time of a
 * better price. One that finds all too cheap for a moment would have it rise round by round.
 */
function mayRaise(
  { settings }: LaneContext,
  formerAtoken: Atoken,
  refusal: {
    readonly suggestedAtoken: Atoken;
    readonly neededAtoken: Atoken | undefined;
    readonly triedMs: number;
  },
): boolean {
  const { suggestedAtoken, neededAtoken = 0n, triedMs } = refusal;
  const isNamed = suggestedAtoken > formerAtoken || neededAtoken > formerAtoken;
  return isNamed || triedMs >= settings.stall.repriceAfterMs;
}

/** The same bytes again would be refused again. */
function isTried({ attempts }: LiveSlot, gas: AttemptGas | undefined): boolean {
  return attempts.some(
    ({ kind, gasLimit, gasPriceAtoken }) =>
      kind === "payment" && gasLimit === gas?.gasLimit && gasPriceAtoken === gas.gasPriceAtoken,
  );
}

/**
 * Gas and price of the next attempt; `hopeless` when the node takes no gas with which the payment
 * works; undefined when waiting may help.
 */
function correctedGas(
  context: LaneContext,
  round: Round,
  { slot, meaning, triedMs, isShort }: RefusedAttempt & { readonly isShort: boolean },
  estimate: EstimateMeaning | undefined,
): AttemptGas | "hopeless" | undefined {
  const gas = gasOf(context, round);
  const latest = slot.attempts.at(-1) ?? slot;
  const { gasLimit } = latest;
  // Either limit may have been lowered since.
  const gasPriceAtoken = lower(latest.gasPriceAtoken, gas.priceCapAtoken);
  const estimated = estimate?.kind === "payable" ? estimate.gas : undefined;
  if (meaning.kind === "price-too-low") {
    const suggestedAtoken = round.view.suggestedPriceAtoken;
    const wanted = { suggestedAtoken, neededAtoken: meaning.neededPriceAtoken };
    if (!mayRaise(context, latest.gasPriceAtoken, { ...wanted, triedMs })) return undefined;
    const raised = raisePrice(latest.gasPriceAtoken, wanted, gas.priceCapAtoken);
    const needed = estimated === undefined ? gasLimit : withMargin(estimated, gas);
    const next = gasLimit <= gas.limitMax ? gasLimit : needed;
    if (raised === undefined || next > gas.limitMax) return undefined;
    return { gasLimit: next, gasPriceAtoken: raised };
  }
  if (meaning.kind === "gas-too-low") {
    const wanted = { estimate: estimated ?? gasLimit, needed: meaning.neededGas };
    const raised = raiseGasLimit(gasLimit, wanted, gas);
    return raised === undefined ? "hopeless" : { gasLimit: raised, gasPriceAtoken };
  }
  if (estimated !== undefined && estimated < gasLimit) {
    return { gasLimit: estimated, gasPriceAtoken };
  }
  // With more coins it might work; and the node's silence about the estimate says nothing yet.
  if (isShort || estimate === undefined) return undefined;
  return estimate.kind === "unknown" || estimate.kind === "no-funds" ? undefined : "hopeless";
}

async function giveUp(
  context: LaneContext,
  { lease }: Round,
  hopeless: readonly RefusedAttempt[],
): Promise<void> {
  if (hopeless.length === 0) return;
  await context.ledger.beginCancelling(
    lease,
    hopeless.map(({ slot, meaning }) => ({
      id: slot.withdrawalId,
      cause: "refused",
      reason: `the node refuses its payment for good (${meaning.kind})`,
    })),
  );
  context.log.warn(
    { nonces: hopeless.map(({ slot }) => slot.nonce.toString()) },
    "payments are refused for good: transfers of nothing take their nonces",
  );
}
