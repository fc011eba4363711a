/** Pure: which waiting withdrawals get a nonce now, within the wallet's balance, window and fees. */
import type { Height } from "../../chain/hex.js";
import type { WithdrawalId } from "./withdrawal-id.js";

/** A withdrawal that is ready for a nonce, with the gas it will be signed with. */
export interface SlotCandidate {
  readonly id: WithdrawalId;
  readonly amountUnits: bigint;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: bigint;
  /** The destination runs code: it is slotted behind plain payments, within a share of gas. */
  readonly entersCode: boolean;
}

/** What the slots are counted against. */
export interface SlotBudget {
  /** The wallet's balance on the chain ... */
  readonly balanceAtoken: bigint;
  /** ... after this block. */
  readonly balanceHeight: Height;
  /** Most slots that may be open at once. */
  readonly maxLiveSlots: number;
  /** Gas limits of open slots that run code, summed; a single one may be above it alone. */
  readonly maxCodeGas: bigint;
  /** Fees of a UTC day: paid ones, and the most that open slots can cost. */
  readonly feePerDayAtoken: bigint;
}

/** Open slots of a wallet, summed, and what the day has cost. */
export interface OpenSlots {
  readonly count: number;
  /** What they may still take from the wallet. */
  readonly reservedAtoken: bigint;
  /** Fees of the dearest attempts of the open slots of all wallets: the day's budget is one. */
  readonly feesAtoken: bigint;
  /** Gas limits of those that run code. */
  readonly codeGas: bigint;
}

/**
 * Why not all candidates got a slot: signing is frozen; the balance does not cover all open slots
 * and this one; too many are open; the balance was read at a block older than what is settled; the
 * day's budget of fees is used up; the wallet is draining or retired. Waiting behind code is none of
 * these: others go on.
 */
export type SlotLimit =
  | "frozen"
  | "reserve"
  | "window"
  | "stale-balance"
  | "fee-budget"
  | "not-active";

/** Who gets a slot, and who waits for what. */
export interface SlotChoice {
  readonly chosen: readonly SlotCandidate[];
  readonly limit: SlotLimit | undefined;
  /** Wait because the reserve does not cover them. */
  readonly uncovered: readonly WithdrawalId[];
  /** Run code, and wait until others of their kind are mined. */
  readonly behindCode: readonly WithdrawalId[];
}

/** The most that a transaction with this gas can cost in fees. */
export function feeOf(gas: { readonly gasLimit: bigint; readonly gasPriceAtoken: bigint }): bigint {
  return gas.gasLimit * gas.gasPriceAtoken;
}

/**
 * Chooses in the order of the candidates, plain payments before those that run code: a nonce
 * behind a transaction that takes a whole block's room for code waits for that block.
 * @param paidFeesAtoken fees of today that are booked
 */
export function chooseSlots(
  candidates: readonly SlotCandidate[],
  open: OpenSlots,
  budget: SlotBudget,
  paidFeesAtoken: bigint,
): SlotChoice {
  const chosen: SlotCandidate[] = [];
  const uncovered: WithdrawalId[] = [];
  const behindCode: WithdrawalId[] = [];
  const waiting = (limit: SlotLimit | undefined) => ({ chosen, limit, uncovered, behindCode });
  let freeAtoken = budget.balanceAtoken - open.reservedAtoken;
  let feesAtoken = paidFeesAtoken + open.feesAtoken;
  let codeGas = open.codeGas;
  const ordered = [
    ...candidates.filter(({ entersCode }) => !entersCode),
    ...candidates.filter(({ entersCode }) => entersCode),
  ];
  for (const candidate of ordered) {
    const { id, entersCode, gasLimit } = candidate;
    if (open.count + chosen.length >= budget.maxLiveSlots) return waiting("window");
    if (entersCode && codeGas > 0n && codeGas + gasLimit > budget.maxCodeGas) {
      behindCode.push(id);
      continue;
    }
    const feeAtoken = feeOf(candidate);
    if (feesAtoken + feeAtoken > budget.feePerDayAtoken) return waiting("fee-budget");
    const neededAtoken = candidate.amountUnits + feeAtoken;
    if (neededAtoken > freeAtoken) {
      uncovered.push(id);
      continue;
    }
    freeAtoken -= neededAtoken;
    feesAtoken += feeAtoken;
    if (entersCode) codeGas += gasLimit;
    chosen.push(candidate);
  }
  return waiting(uncovered.length > 0 ? "reserve" : undefined);
}
