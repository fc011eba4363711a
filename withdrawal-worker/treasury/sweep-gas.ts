/**
 * Gas of tokens' sweeps: what an address is given before its sweep is signed, and again where the price
 * rose behind the signature beyond what it can pay. A hot wallet pays it, within the policy's bounds.
 */
import type { HashedPolicy } from "../../ledger/policy/policy.js";
import { countOpenTopUps, openMove } from "../../ledger/treasury/moves.js";
import { readySweep, type Sweep, voidSweep } from "../../ledger/treasury/sweeps.js";
import type { AcceptRefusal } from "../../ledger/withdrawals/withdrawals.js";
import { feeOf } from "../../ledger/withdrawals/slot-choice.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import { choosePrice, lower, raisePrice } from "../gas.js";
import { unlisted } from "../signers/signer-port.js";
import { isUntaken, type SeenSweep, type SigningRound } from "./sweep-attempts.js";
import { missingGas, topUpOf } from "./sweep-plan.js";
import { type TreasuryContext, TREASURY_FAILPOINTS } from "./treasury-context.js";

/** A sweep that cannot go on, by its gas, the price or the policy, waits so long for them to change. */
export const PATIENCE_MS = 600_000;

/** An address whose sweep was given up is looked at again after it. */
export const GIVEN_UP_DELAY_MS = 600_000;

/** What holds for all sweeps of a round: its policy, and whether anything may be signed in it. */
export interface GasRound extends SigningRound {
  readonly policy: HashedPolicy;
  readonly maySign: boolean;
  readonly isStopped: boolean;
  readonly signal: AbortSignal;
}

/**
 * Sweeps that may wait for gas at once. The coins that pay for it may lie on deposit addresses themselves:
 * they get by.
 */
export function gasPlaces(sweepsAtOnce: number): number {
  return Math.ceil(sweepsAtOnce / 2);
}

/**
 * Of each sweep that needs it asks for gas once, waits for it, and goes on when there is enough. One whose
 * tokens are gone is given up: behind a ledger that was put back its transfer may have been mined before.
 * Of a token whose balances fall by themselves it would be begun and given up in every round: it waits, too.
 */
export async function attendGas(
  context: TreasuryContext,
  seen: readonly SeenSweep[],
  round: GasRound,
): Promise<void> {
  const needing = seen.filter(({ sweep: { state } }) => state === "needs-gas");
  const units = await unitsOf(context, needing, round);
  let { isStopped } = round;
  for (const each of needing) {
    const { id, address, asset, topUp, amountUnits } = each.sweep;
    if (topUp === "open" || (units.get(id) ?? amountUnits) >= amountUnits) {
      // The ledger may have been told to stop since the round began: the first refusal is that of all.
      const refusal = await attend(context, each, { ...round, isStopped });
      if (refusal === "WITHDRAWALS_STOPPED") isStopped = true;
      continue;
    }
    const reason = "its address has less of the token than it was meant for";
    if (await voidSweep(context.database, id, { reason, delayMs: GIVEN_UP_DELAY_MS })) {
      context.log.warn({ sweep: id, address, asset, reason }, "a sweep is given up");
    }
  }
}

/** What addresses have of the tokens that are to be swept, by sweep; none where the contract does not say. */
async function unitsOf(
  { evm }: TreasuryContext,
  seen: readonly SeenSweep[],
  { view, signal }: GasRound,
): Promise<ReadonlyMap<number, bigint | undefined>> {
  const tokens = seen.flatMap(({ sweep: { id, contract: token, address: account } }) =>
    token === undefined ? [] : [{ id, token, account, at: view.blockHash }],
  );
  const balances = await evm.tokenBalances(tokens, { signal });
  return new Map(tokens.map(({ id }, index) => [id, balances[index]]));
}

/** @returns why it was refused gas; undefined where it was not, or asked for none */
async function attend(
  context: TreasuryContext,
  { sweep, state }: SeenSweep,
  round: GasRound,
): Promise<AcceptRefusal | undefined> {
  const { database, settings, signer } = context;
  const { id, asset, contract, gasLimit, topUp, ageMs, nextNonce, isPaused } = sweep;
  const gasPriceAtoken = choosePrice(round.view.suggestedPriceAtoken, settings.gas);
  const gas = { gasLimit, gasPriceAtoken };
  const max = round.rules.assets.get(asset)?.sweepFeeMaxAtoken ?? 0n;
  const isDear = feeOf(gas) > max;
  const givenAtoken = topUpOf(state.balanceAtoken, gas);
  if (topUp === "void" || topUp === "stranded") {
    // What is mined after all is there for the next one of its address.
    const reason =
      topUp === "void" ? "its gas was not paid" : "its gas has a nonce of a retired wallet";
    await voidSweep(database, id, { reason, delayMs: GIVEN_UP_DELAY_MS });
  } else if (topUp === "open" || isUnseen(sweep, round)) {
    // A hot wallet pays it, or the move ends; what came is there at the next look.
  } else if (isPaused || !signer.isListed(asset, contract)) {
    if (ageMs <= PATIENCE_MS) return undefined;
    // An intent may be older than the list that this process was started with.
    const reason = isPaused ? "its token is paused" : unlisted(asset);
    await voidSweep(database, id, { reason, delayMs: GIVEN_UP_DELAY_MS });
  } else if (state.nonce < nextNonce) {
    // What the chain has lost of this address is made again first.
    if (ageMs <= PATIENCE_MS) return undefined;
    const reason = "an earlier sweep of its address is not made again";
    await voidSweep(database, id, { reason, delayMs: GIVEN_UP_DELAY_MS });
  } else if (!isDear && missingGas(state.balanceAtoken, gas) === 0n) {
    if (state.pendingNonce !== state.nonce) return undefined;
    const { nonce } = state;
    await readySweep(database, id, { nonce, gasPriceAtoken });
    failpoint(TREASURY_FAILPOINTS.afterReady);
  } else if (topUp === "none" && !isDear && givenAtoken <= round.rules.topUpMaxAtoken) {
    return giveFirst(context, { sweep, amountUnits: givenAtoken }, round);
  } else if (ageMs > PATIENCE_MS) {
    // What it was given stays there for the next one.
    const reason = "its fee rose above what it was given, or may be given";
    await voidSweep(database, id, { reason, delayMs: isDear ? GIVEN_UP_DELAY_MS : 0 });
  }
  return undefined;
}

/**
 * Asks for more where a price that no block takes is all that an address can pay: of the late ones, as many
 * at once as may wait for gas, each within what the policy gives one sweep.
 */
export async function giveMore(
  context: TreasuryContext,
  seen: readonly SeenSweep[],
  round: GasRound,
): Promise<void> {
  const short = seen.flatMap(({ sweep, state }) => {
    const amountUnits = moreGas(context, { sweep, state }, round);
    return amountUnits > 0n ? [{ sweep, amountUnits }] : [];
  });
  if (short.length === 0 || !mayGive(round)) return;
  const room = gasPlaces(context.settings.sweepsAtOnce) - (await countOpenTopUps(context.database));
  for (const each of short.slice(0, Math.max(0, room))) {
    const refusal = await give(context, each, round);
    if (refusal === "WITHDRAWALS_STOPPED") return;
  }
}

/** Whether its gas arrived above the block that was looked at. */
function isUnseen({ gasHeight }: Sweep, { view }: GasRound): boolean {
  return gasHeight > view.height;
}

/** What a late sweep lacks to be signed at the price that is suggested; 0 where that is not what it needs. */
function moreGas(
  { settings, signer }: TreasuryContext,
  { sweep, state }: SeenSweep,
  round: GasRound,
): bigint {
  const { rules, view } = round;
  const { asset, gas, gasLimit, contract, attempts, topUp, givenAtoken } = sweep;
  const formerAtoken = attempts.at(-1)?.gasPriceAtoken;
  if (gas === undefined || contract === undefined || formerAtoken === undefined) return 0n;
  if (!isUntaken({ sweep, state }) || topUp === "open") return 0n;
  if (sweep.isPaused || !signer.isListed(asset, contract) || isUnseen(sweep, round)) return 0n;
  const { suggestedPriceAtoken: suggestedAtoken } = view;
  if (suggestedAtoken <= formerAtoken) return 0n;
  const max = rules.assets.get(asset)?.sweepFeeMaxAtoken ?? 0n;
  const dearestAtoken = lower(settings.gas.priceCapAtoken, max / gasLimit);
  const gasPriceAtoken = raisePrice(formerAtoken, { suggestedAtoken }, dearestAtoken);
  if (gasPriceAtoken === undefined || gasPriceAtoken < suggestedAtoken) return 0n;
  const wanted = { gasLimit, gasPriceAtoken };
  const missingAtoken = missingGas(state.balanceAtoken, wanted);
  if (missingAtoken === 0n) return 0n;
  const leftAtoken = rules.topUpMaxAtoken - givenAtoken;
  return missingAtoken <= leftAtoken ? lower(topUpOf(state.balanceAtoken, wanted), leftAtoken) : 0n;
}

/** Gas that is asked for. */
interface Gift {
  readonly sweep: Sweep;
  readonly amountUnits: bigint;
}

/** Where no wallet takes the sweep, its gas would be for nothing; who pays it is one of these, too. */
function mayGive({ maySign, isStopped, wallets }: GasRound): boolean {
  return maySign && !isStopped && wallets.length > 0;
}

async function giveFirst(context: TreasuryContext, gift: Gift, round: GasRound) {
  if (!mayGive(round)) return undefined;
  const refusal = await give(context, gift, round);
  if (refusal === undefined || refusal === "WITHDRAWALS_STOPPED") return refusal;
  const reason = `its gas was refused: ${refusal}`;
  await voidSweep(context.database, gift.sweep.id, { reason, delayMs: GIVEN_UP_DELAY_MS });
  return refusal;
}

async function give(
  { database, log }: TreasuryContext,
  { sweep, amountUnits }: Gift,
  { policy, isStopped }: GasRound,
) {
  const { id: sweepId, address: destination, topUpId: afterId } = sweep;
  const refusal = await openMove(
    database,
    { kind: "top-up", sweepId, destination, amountUnits, afterId },
    { minimumAtoken: 0n, policy, isStopped },
  );
  failpoint(TREASURY_FAILPOINTS.afterTopUp);
  if (refusal !== undefined) {
    log.warn({ sweep: sweepId, refusal }, "gas for a deposit address is refused");
  }
  return refusal;
}
