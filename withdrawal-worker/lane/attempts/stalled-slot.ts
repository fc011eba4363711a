/**
 * Pure: the lowest open nonce, how long it has been waited for, and what follows. All later nonces
 * wait for it, so it gets a better price after a while, and in the end a transfer that takes its
 * place.
 */
import type { Height } from "../../../chain/hex.js";
import type { LiveSlot } from "../../../ledger/withdrawals/slot-rows.js";
import type { WithdrawalStatus } from "../../../ledger/requests/withdrawal-status.js";

/** States of a slot that the chain has not used. */
export const OPEN_STATUSES: readonly WithdrawalStatus[] = [
  "slotted",
  "signed",
  "broadcast",
  "cancelling",
  "frozen",
];

/** Whether the transfer of nothing that is to take the slot's nonce was signed. */
export function hasCancel({ attempts }: Pick<LiveSlot, "attempts">): boolean {
  return attempts.at(-1)?.kind === "cancel";
}

/** Times of the way out. */
export interface StallSettings {
  /** Wait for the lowest nonce before its transaction is replaced by a dearer one. */
  readonly repriceAfterMs: number;
  /** Wait for it before a transfer of nothing is to take the nonce. */
  readonly giveUpAfterMs: number;
  /** Wait for it before the lane says that it does not move. */
  readonly alarmAfterMs: number;
}

/** Since when the lane has waited for a nonce. */
export interface Stall {
  readonly nonce: bigint;
  readonly sinceMs: number;
  /** Height of the chain when it began. */
  readonly sinceHeight: Height;
  /** When the transaction was last made dearer; `sinceMs` before. */
  readonly repricedAtMs: number;
  /** When the chain was last looked at. */
  readonly seenMs: number;
}

/** One look at the chain. */
export interface StallView {
  /** The wallet's nonce on the chain: the lowest one that is not mined. */
  readonly nonce: bigint;
  readonly height: Height;
  /** True while that nonce has a slot. */
  readonly isOpen: boolean;
  /** True while the pool has a transaction of that nonce. */
  readonly isInPool: boolean;
  readonly nowMs: number;
}

/**
 * Blocks without the transaction before it is the transaction's fault: a chain that stands still
 * mines nobody's, and a block may have been under way when it was sent.
 */
const BLOCKS_OF_PROOF = 2;

/** Whether blocks since a height are proof that they had no place for a transaction that was there at it. */
export function isPassedOver(sinceHeight: Height, height: Height): boolean {
  return height - sinceHeight >= BLOCKS_OF_PROOF;
}

/** Looks are seconds apart, whatever the settings: less than this between two is no outage. */
const MIN_OUTAGE_MS = 60_000;

/**
 * The wait after another look; undefined while there is nothing to wait for. It begins anew for what the pool
 * has lost behind an outage of node or database that takes half of all patience: it could not be sent again.
 */
export function nextStall(
  stall: Stall | undefined,
  view: StallView,
  { giveUpAfterMs }: Pick<StallSettings, "giveUpAfterMs">,
): Stall | undefined {
  if (!view.isOpen) return undefined;
  const { nonce, nowMs, height, isInPool } = view;
  const outageMs = Math.max(MIN_OUTAGE_MS, giveUpAfterMs / 2);
  const isLost = stall !== undefined && !isInPool && nowMs - stall.seenMs > outageMs;
  if (stall?.nonce === nonce && !isLost) return { ...stall, seenMs: nowMs };
  return { nonce, sinceMs: nowMs, sinceHeight: height, repricedAtMs: nowMs, seenMs: nowMs };
}

/** What to do about the lowest nonce now. */
export type StallAction = "wait" | "reprice" | "give-up";

/**
 * Decides by time and blocks. One that the pool has let go again is made dearer in half the time:
 * it is not waiting for its turn, it has been outbid.
 */
export function stallAction(
  stall: Stall,
  view: Pick<StallView, "height" | "nowMs" | "isInPool">,
  settings: StallSettings,
): StallAction {
  if (!isPassedOver(stall.sinceHeight, view.height)) return "wait";
  if (view.nowMs - stall.sinceMs >= settings.giveUpAfterMs) return "give-up";
  const patienceMs = settings.repriceAfterMs / (view.isInPool ? 1 : 2);
  return view.nowMs - stall.repricedAtMs >= patienceMs ? "reprice" : "wait";
}
