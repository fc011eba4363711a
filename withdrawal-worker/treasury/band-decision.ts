/** Pure: what the hot wallets' holdings of an asset ask for. One payment is made by one wallet. */
import type { Address } from "../../chain/address.js";
import type { TreasuryBand } from "../../ledger/policy/policy.js";
import { lower } from "../gas.js";

/** What a wallet has beyond what its open payments take. */
export interface Holding {
  readonly wallet: Address;
  /** Below zero where less is there than its open payments take. */
  readonly freeUnits: bigint;
}

/** What is waited for and no wallet has reserved yet. */
export interface WaitingUnits {
  readonly sumUnits: bigint;
  /** The largest that customers wait for: no more than it can be one payment. */
  readonly largestUnits: bigint;
}

/** What is to be done about one asset. */
export type BandDecision =
  | { readonly kind: "cold"; readonly amountUnits: bigint }
  | {
      readonly kind: "refill";
      readonly amountUnits: bigint;
      /** Where it has to go, as no other wallet could pay with it what waits; undefined for any. */
      readonly wallet?: Address;
    }
  /** Between the low end and the target: a request for any wallet that is open goes on, for so much. */
  | { readonly kind: "low"; readonly amountUnits: bigint }
  | { readonly kind: "enough" };

/**
 * Above the band the rest goes to cold storage, in one payment of one wallet; below it a refill is asked for,
 * and wherever no wallet alone has the largest of what customers wait for.
 * @param named the wallet that persons are asked to send to already: it stays so unless another lacks a third
 *   less, since what is on its way there would help no other
 */
export function decideBand(
  holdings: readonly Holding[],
  waiting: WaitingUnits,
  { lowUnits, targetUnits, highUnits }: TreasuryBand,
  named?: Address,
): BandDecision {
  const freeUnits = holdings.reduce((sum, holding) => sum + holding.freeUnits, 0n);
  const heldUnits = freeUnits - waiting.sumUnits;
  const fullest = holdings.reduce<Holding | undefined>(fuller, undefined);
  const lackingUnits = waiting.largestUnits - atLeastNone(fullest?.freeUnits);
  const belowUnits = heldUnits < lowUnits ? targetUnits - heldUnits : 0n;
  if (fullest !== undefined && lackingUnits > 0n) {
    const lackOf = ({ freeUnits: ofWallet }: Holding) =>
      waiting.largestUnits - atLeastNone(ofWallet);
    const stays = (each: Holding) =>
      each.wallet === named && lackOf(each) * 2n <= lackingUnits * 3n;
    const to = holdings.find(stays) ?? fullest;
    return { kind: "refill", amountUnits: higher(lackOf(to), belowUnits), wallet: to.wallet };
  }
  if (belowUnits > 0n) return { kind: "refill", amountUnits: belowUnits };
  if (heldUnits < targetUnits) return { kind: "low", amountUnits: targetUnits - heldUnits };
  if (heldUnits <= highUnits) return { kind: "enough" };
  const amountUnits = lower(heldUnits - targetUnits, spareOf(holdings, waiting));
  return amountUnits > 0n ? { kind: "cold", amountUnits } : { kind: "enough" };
}

/**
 * What one wallet can give away although what waits may come first, of whichever wallet: it is covered still,
 * and so is the largest behind it. Of several that wait it is what all of them leave the fullest, but half of
 * what one would leave at least: behind a long queue nothing would go at all.
 */
function spareOf(holdings: readonly Holding[], { sumUnits, largestUnits }: WaitingUnits): bigint {
  const fullest = holdings.reduce<Holding | undefined>(fuller, undefined);
  const second = holdings.filter((each) => each !== fullest).reduce(fuller, undefined);
  const fullestUnits = atLeastNone(fullest?.freeUnits);
  const secondUnits = atLeastNone(second?.freeUnits);
  const besideUnits = fullestUnits - largestUnits;
  // Where two can pay the largest, one does, and the other has its own.
  const oneUnits = secondUnits < largestUnits ? besideUnits : higher(besideUnits, secondUnits);
  return sumUnits <= largestUnits ? oneUnits : higher(fullestUnits - sumUnits, oneUnits / 2n);
}

/** The fuller of two; among equals the first. */
function fuller(best: Holding | undefined, next: Holding): Holding {
  return best === undefined || next.freeUnits > best.freeUnits ? next : best;
}

function atLeastNone(units = 0n): bigint {
  return units > 0n ? units : 0n;
}

function higher(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
