/**
 * What is signed for a sweep, on the one nonce that it has: what was intended, a dearer one when that is
 * not mined in time, one to another wallet when the one it goes to may be given nothing any more, and one
 * of less coins when a chain has lost deposits that it was to bring.
 */
import type { Address } from "../../chain/address.js";
import { encodeTransfer } from "../../chain/evm/erc20.js";
import { type Height, hexToBytes } from "../../chain/hex.js";
import { decodeTransaction } from "../../chain/transaction.js";
import type { Atoken } from "../../chain/units.js";
import type { TreasuryRules } from "../../ledger/policy/policy.js";
import type { NewSweepAttempt, SweepAttempt } from "../../ledger/treasury/sweep-attempt-rows.js";
import { storeSweepAttempts, type Sweep } from "../../ledger/treasury/sweeps.js";
import { feeOf } from "../../ledger/withdrawals/slot-choice.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { lower, raisePrice } from "../gas.js";
import { isPassedOver } from "../lane/attempts/stalled-slot.js";
import type { WalletView } from "../lane/wallet-node.js";
import type { AddressState } from "./sweep-node.js";
import { valueAt } from "./sweep-plan.js";
import { type TreasuryContext, TREASURY_FAILPOINTS } from "./treasury-context.js";

/** What signing needs to know of a round. */
export interface SigningRound {
  readonly rules: TreasuryRules;
  readonly view: Pick<WalletView, "height" | "blockHash" | "suggestedPriceAtoken">;
  /** Wallets of this home that may be given coins now. */
  readonly wallets: readonly Address[];
  /** The chain is looked at no earlier than where the ledger is: all that is booked is there. */
  readonly isAsBooked: boolean;
}

/** A sweep that is open, or whose block is lost, with its address on the chain. */
export interface SeenSweep {
  readonly sweep: Sweep;
  readonly state: AddressState;
}

/**
 * Whether no block takes it at its price: it is late, and its nonce the address' next. One whose nonce is
 * used is mined, and waits for the watcher; one behind a lower nonce waits for that.
 */
export function isUntaken({ sweep: { isLate, gas }, state }: SeenSweep): boolean {
  return isLate && state.nonce === gas?.nonce;
}

/**
 * What was intended: the same bytes after a crash, unless its wallet may be given nothing any more. What
 * was not stored was never sent, so that another wallet in its place is no second sweep.
 */
export function firstAttempt(
  context: TreasuryContext,
  seen: SeenSweep,
  round: SigningRound,
): NewSweepAttempt | undefined {
  const { sweep, state } = seen;
  const { wallets } = round;
  const { gas } = sweep;
  if (gas === undefined || state.nonce !== gas.nonce || sweep.isPaused) return undefined;
  const wallet = wallets.find((each) => each === sweep.wallet) ?? wallets[0];
  if (wallet === undefined) return undefined;
  return attempt(context, seen, round, { n: 0, wallet, gasPriceAtoken: gas.gasPriceAtoken });
}

/**
 * What may have been signed for an intent before anything else was, with each wallet of this home: the same
 * bytes, whenever they are signed. Whether the chain has one of them says whose its nonce is.
 */
export function intendedAttempts(
  context: TreasuryContext,
  seen: SeenSweep,
  round: SigningRound,
): readonly NewSweepAttempt[] {
  const { gas } = seen.sweep;
  if (gas === undefined) return [];
  // By the coins that were there: what the address has now is what is left behind it.
  const then = { ...round, isAsBooked: false };
  return context.wallets().flatMap((wallet) => {
    return attempt(context, seen, then, { n: 0, wallet, ...gas }) ?? [];
  });
}

/**
 * What is not mined in time, goes to the wrong wallet, or is more than there is, is replaced on the same
 * nonce.
 * @param seen.sinceHeight height at which its newest attempt was first seen
 */
export function nextAttempt(
  context: TreasuryContext,
  seen: SeenSweep & { readonly sinceHeight: Height },
  round: SigningRound,
): NewSweepAttempt | undefined {
  const last = replaceableOf(seen);
  if (last === undefined) return undefined;
  if (isShort(seen, round)) return replacement(context, seen, round);
  const wallet = round.wallets.find((each) => each === last.wallet);
  if (wallet === undefined) return replacement(context, seen, round);
  if (last.ageMs < context.settings.repriceAfterMs) return undefined;
  // What is suggested above it says by itself that it is too cheap.
  const { height, suggestedPriceAtoken } = round.view;
  const isOutbid = suggestedPriceAtoken > last.gasPriceAtoken;
  if (!isOutbid && !isPassedOver(seen.sinceHeight, height)) return undefined;
  const gasPriceAtoken = dearerPrice(context, seen, round);
  return gasPriceAtoken === undefined
    ? undefined
    : attempt(context, seen, round, { n: last.n + 1, wallet, gasPriceAtoken });
}

/**
 * Of one whose block is lost: to another wallet where its own may be given nothing any more, also while a
 * pool has the former bytes; and of coins what is there, where the chain has lost deposits and no bytes that
 * are stored can be paid any more. Any of them takes the nonce; what comes again is of another sweep then.
 */
export function lostAttempt(
  context: TreasuryContext,
  seen: SeenSweep,
  round: SigningRound,
): NewSweepAttempt | undefined {
  const last = replaceableOf(seen);
  if (last === undefined) return undefined;
  const { nonce, pendingNonce } = seen.state;
  const isAstray = !round.wallets.includes(last.wallet);
  const isDue = isAstray || (pendingNonce === nonce && isShort(seen, round));
  return isDue ? replacement(context, seen, round) : undefined;
}

/** The newest attempt, where another one may be signed in its place. */
function replaceableOf({ sweep, state }: SeenSweep): SweepAttempt | undefined {
  const { gas, attempts, isPaused } = sweep;
  if (gas === undefined || state.nonce !== gas.nonce || isPaused) return undefined;
  return sweep.state === "signed" || sweep.state === "sent" ? attempts.at(-1) : undefined;
}

/** Whether an address has fewer coins than the sweep as meant, and each attempt that may go out, take. */
function isShort({ sweep, state }: SeenSweep, { isAsBooked, wallets }: SigningRound): boolean {
  const { gas, gasLimit, contract, attempts } = sweep;
  if (!isAsBooked || contract !== undefined || gas === undefined) return false;
  const { balanceAtoken } = state;
  return (
    valueAt(sweep, gas.gasPriceAtoken, 0n) > balanceAtoken &&
    attempts.every(({ wallet, raw, gasPriceAtoken }) => {
      if (!wallets.includes(wallet)) return true;
      const { valueAtoken } = decodeTransaction(hexToBytes(raw));
      return valueAtoken + feeOf({ gasLimit, gasPriceAtoken }) > balanceAtoken;
    })
  );
}

function replacement(
  context: TreasuryContext,
  seen: SeenSweep,
  round: SigningRound,
): NewSweepAttempt | undefined {
  const last = seen.sweep.attempts.at(-1);
  const wallet = round.wallets.find((each) => each === last?.wallet) ?? round.wallets[0];
  if (last === undefined || wallet === undefined) return undefined;
  // Where nothing dearer is allowed it still takes its place wherever a pool has lost the former.
  const gasPriceAtoken = dearerPrice(context, seen, round) ?? last.gasPriceAtoken;
  return attempt(context, seen, round, { n: last.n + 1, wallet, gasPriceAtoken });
}

/**
 * A price that replaces the last one; undefined where policy, cap or balance forbid it. Of a token it is the
 * dearest that they allow where the suggested one is beyond them, as a node may take it already: coins of
 * the address are there to pay for it. Of coins every price takes from what arrives, and less than what is
 * suggested would take it for nothing.
 */
function dearerPrice(
  { settings }: TreasuryContext,
  seen: SeenSweep,
  round: SigningRound,
): bigint | undefined {
  const { sweep, state } = seen;
  const { rules, view } = round;
  const { gasLimit, contract, attempts } = sweep;
  const formerAtoken = attempts.at(-1)?.gasPriceAtoken;
  if (formerAtoken === undefined) return undefined;
  const { suggestedPriceAtoken: suggestedAtoken } = view;
  const { priceCapAtoken } = settings.gas;
  const max = rules.assets.get(sweep.asset)?.sweepFeeMaxAtoken ?? 0n;
  if (contract !== undefined) {
    const payableAtoken = lower(max, state.balanceAtoken) / gasLimit;
    return raisePrice(formerAtoken, { suggestedAtoken }, lower(priceCapAtoken, payableAtoken));
  }
  const gasPriceAtoken = raisePrice(formerAtoken, { suggestedAtoken }, priceCapAtoken);
  if (gasPriceAtoken === undefined) return undefined;
  if (feeOf({ gasLimit, gasPriceAtoken }) > max) return undefined;
  return coinsAt(seen, round, gasPriceAtoken) > 0n ? gasPriceAtoken : undefined;
}

/**
 * Coins that an attempt sends at a price: those that were meant, or what is there where that is less; 0 where
 * it is not worth a sweep.
 */
function coinsAt(
  { sweep, state }: SeenSweep,
  { rules, isAsBooked }: SigningRound,
  gasPriceAtoken: Atoken,
): Atoken {
  const { gas, gasLimit, asset } = sweep;
  if (gas === undefined) return 0n;
  const meantAtoken = valueAt(sweep, gas.gasPriceAtoken, gasPriceAtoken);
  const thereAtoken = state.balanceAtoken - feeOf({ gasLimit, gasPriceAtoken });
  if (!isAsBooked || meantAtoken <= thereAtoken) return meantAtoken;
  return thereAtoken < (rules.assets.get(asset)?.sweepMinimumUnits ?? 1n) ? 0n : thereAtoken;
}

function attempt(
  { signer, chainId, log }: TreasuryContext,
  seen: SeenSweep,
  round: SigningRound,
  { n, wallet, gasPriceAtoken }: Pick<NewSweepAttempt, "n" | "wallet" | "gasPriceAtoken">,
): NewSweepAttempt | undefined {
  const { id, address, index, asset, contract, amountUnits, gasLimit, gas } = seen.sweep;
  if (gas === undefined) return undefined;
  const transfer = { to: wallet, amountUnits };
  const valueAtoken = contract === undefined ? coinsAt(seen, round, gasPriceAtoken) : 0n;
  if (contract === undefined && valueAtoken <= 0n) return undefined;
  const signed = signer.sign({
    address,
    index,
    asset,
    wallet,
    amountUnits,
    chainId,
    nonce: gas.nonce,
    to: contract ?? wallet,
    valueAtoken,
    data: contract === undefined ? new Uint8Array(0) : hexToBytes(encodeTransfer(transfer)),
    gasLimit,
    gasPriceAtoken,
  });
  if (signed.kind === "refused") {
    log.warn({ sweep: id, reason: signed.reason }, "a sweep is not signed");
    return undefined;
  }
  const { raw, hash } = signed;
  return { sweepId: id, n, wallet, raw, hash, gasPriceAtoken };
}

/** Nothing of it is sent before it is stored. */
export async function storeAttempts(
  database: SqlDatabase,
  attempts: readonly NewSweepAttempt[],
): Promise<void> {
  if (attempts.length === 0) return;
  failpoint(TREASURY_FAILPOINTS.beforeAttempt);
  await storeSweepAttempts(database, attempts);
  failpoint(TREASURY_FAILPOINTS.afterAttempt);
}

/** Seconds since a sweep's first bytes were signed; undefined where none were. */
export function signedSeconds({ attempts }: Pick<Sweep, "attempts">): number | undefined {
  if (attempts.length === 0) return undefined;
  return Math.ceil(Math.max(...attempts.map(({ ageMs }) => ageMs)) / 1_000);
}
