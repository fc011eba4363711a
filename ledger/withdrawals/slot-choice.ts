/** Pure: which waiting withdrawals get a nonce now, within the wallet's balance, window and fees. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import { valueOf } from "../requests/payment-terms.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";

/** A withdrawal that is ready for a nonce, with the gas it will be signed with. */
export interface SlotCandidate {
  readonly id: WithdrawalId;
  /** Of a token; coins where absent. */
  readonly asset?: string;
  /** The token's contract; undefined for coins. */
  readonly contract?: Address | undefined;
  /** In the asset's smallest unit. */
  readonly amountUnits: bigint;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: Atoken;
  /** The destination runs code: it is slotted behind plain payments, within a share of gas. */
  readonly entersCode: boolean;
}

/** What the slots are counted against. */
export interface SlotBudget {
  /** The wallet's balance on the chain ... */
  readonly balanceAtoken: Atoken;
  /** ... after this block ... */
  readonly balanceHeight: Height;
  /** ... and its nonce there, of the same look: slots below it have taken theirs of the balance. */
  readonly nonce: bigint;
  /** The wallet's balances of the candidates' tokens after it; none of one that is missing. */
  readonly tokenUnits?: ReadonlyMap<string, bigint>;
  /** Most slots that may be open at once. */
  readonly maxLiveSlots: number;
  /** Gas limits of open slots that run code, summed; a single one may be above it alone. */
  readonly maxCodeGas: bigint;
  /** Fees of a UTC day: paid ones, and the most that open slots can cost. */
  readonly feePerDayAtoken: Atoken;
}

/** Open slots of a wallet, summed, and what the day has cost. */
export interface OpenSlots {
  /** All, those too that are mined and not booked. */
  readonly count: number;
  /** What they may still take from the wallet. */
  readonly reservedAtoken: Atoken;
  /** The same of tokens. */
  readonly tokenUnits?: ReadonlyMap<string, bigint>;
  /** Fees of the dearest attempts of the open slots of all wallets: the day's budget is one. */
  readonly feesAtoken: Atoken;
  /** Gas limits of those that run code and may still be mined. */
  readonly codeGas: bigint;
}

/**
 * Why not all candidates got a slot: signing is frozen; the balance does not cover all open slots
 * and this one; too many are open; the balance was read at a block older than what is settled; what is
 * left of the day's budget of fees does not cover one of them; the wallet is draining or retired; another
 * policy is in force. Waiting behind code is none of these: others go on.
 */
export type SlotLimit =
  | "frozen"
  | "reserve"
  | "window"
  | "stale-balance"
  | "fee-budget"
  | "not-active"
  | "other-policy";

/** Who gets a slot, and who waits for what. */
export interface SlotChoice {
  readonly chosen: readonly SlotCandidate[];
  readonly limit: SlotLimit | undefined;
  /** Wait because the reserve does not cover them. */
  readonly uncovered: readonly WithdrawalId[];
  /** Run code, and wait until others of their kind are mined. */
  readonly behindCode: readonly WithdrawalId[];
  /** What is left of the day's budget of fees behind those that are chosen; may be below zero. */
  readonly feesLeftAtoken: Atoken;
}

/** What the wallet may still be given by the policy's limits of it. */
export interface LimitRoom {
  /** False where a limit has too little left: it is not chosen, and the limit's word counts. */
  hasRoom(id: WithdrawalId): boolean;
  take(id: WithdrawalId): void;
}

/** The most that a transaction with this gas can cost in fees. */
export function feeOf(gas: { readonly gasLimit: bigint; readonly gasPriceAtoken: Atoken }): bigint {
  return gas.gasLimit * gas.gasPriceAtoken;
}

/**
 * Chooses in the order of the candidates, plain payments before those that run code: a nonce
 * behind a transaction that takes a whole block's room for code waits for that block.
 * @param paidFeesAtoken fees of today that are booked
 * @param room of which nobody takes but who is chosen; absent where the policy has no limits of wallets
 */
export function chooseSlots(
  candidates: readonly SlotCandidate[],
  open: OpenSlots,
  budget: SlotBudget,
  paidFeesAtoken: Atoken,
  room?: LimitRoom,
): SlotChoice {
  const chosen: SlotCandidate[] = [];
  const uncovered: WithdrawalId[] = [];
  const behindCode: WithdrawalId[] = [];
  let isAnyTooDear = false;
  let freeAtoken = budget.balanceAtoken - open.reservedAtoken;
  let feesAtoken = paidFeesAtoken + open.feesAtoken;
  const choice = (limit: SlotLimit | undefined) => {
    const feesLeftAtoken = budget.feePerDayAtoken - feesAtoken;
    return { chosen, limit, uncovered, behindCode, feesLeftAtoken };
  };
  let codeGas = open.codeGas;
  const tokens = new FreeTokens(open, budget);
  const ordered = [
    ...candidates.filter(({ entersCode }) => !entersCode),
    ...candidates.filter(({ entersCode }) => entersCode),
  ];
  for (const candidate of ordered) {
    const { id, entersCode, gasLimit } = candidate;
    if (open.count + chosen.length >= budget.maxLiveSlots) return choice("window");
    if (room?.hasRoom(id) === false) continue;
    if (entersCode && codeGas > 0n && codeGas + gasLimit > budget.maxCodeGas) {
      behindCode.push(id);
      continue;
    }
    const feeAtoken = feeOf(candidate);
    // A dear one waits for another day: those behind it may cost less.
    if (feesAtoken + feeAtoken > budget.feePerDayAtoken) {
      isAnyTooDear = true;
      continue;
    }
    const neededAtoken = valueOf(candidate) + feeAtoken;
    if (neededAtoken > freeAtoken || !tokens.covers(candidate)) {
      uncovered.push(id);
      continue;
    }
    freeAtoken -= neededAtoken;
    tokens.take(candidate);
    room?.take(id);
    feesAtoken += feeAtoken;
    if (entersCode) codeGas += gasLimit;
    chosen.push(candidate);
  }
  if (isAnyTooDear) return choice("fee-budget");
  return choice(uncovered.length > 0 ? "reserve" : undefined);
}

/** What is left of the wallet's tokens while candidates are chosen. */
class FreeTokens {
  readonly #left: Map<string, bigint>;

  constructor({ tokenUnits: open }: OpenSlots, { tokenUnits: balances = new Map() }: SlotBudget) {
    this.#left = new Map(
      [...balances].map(([asset, units]) => [asset, units - (open?.get(asset) ?? 0n)]),
    );
  }

  covers({ asset = "", contract, amountUnits }: SlotCandidate): boolean {
    return contract === undefined || amountUnits <= (this.#left.get(asset) ?? 0n);
  }

  take({ asset = "", contract, amountUnits }: SlotCandidate): void {
    if (contract !== undefined) this.#left.set(asset, (this.#left.get(asset) ?? 0n) - amountUnits);
  }
}
