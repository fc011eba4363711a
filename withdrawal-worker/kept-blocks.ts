/**
 * Pure: whether a node without a receipt of what used a nonce denies that it was ours. One that was made anew
 * from a snapshot, or deletes its blocks, has no receipts of what it does not keep; states do not matter.
 */

/** By the chain's time, seconds. */
export interface KeptBlocks {
  /**
   * Of the oldest block of which the node has receipts; -Infinity where it has all of them, or does not say,
   * Infinity where it did not show that block.
   */
  readonly oldestSeconds: number;
  /** Of its head. */
  readonly headSeconds: number;
}

/** How much a clock may have been changed since, and block times be off. */
const CLOCKS_DIFFER_SECONDS = 60;

/**
 * From when on a node has to keep its blocks to deny that something is ours. Ages are the database's, whose
 * clock may be wrong by anything, as long as it was wrong by as much when that was signed. A head that is
 * late makes it earlier, so that more waits.
 */
function neededSince({ headSeconds }: KeptBlocks, ageSeconds: number): number {
  return headSeconds - ageSeconds - CLOCKS_DIFFER_SECONDS;
}

/** What a node says of things whose used nonces no receipt explains. */
export interface LostJudgement<T> {
  /** It would have their receipts, were they ours. */
  readonly denied: readonly T[];
  /** It cannot say: they wait. */
  readonly unkept: readonly T[];
  /** Why, and what to do; undefined for none. */
  readonly reason: string | undefined;
}

/**
 * Tells what a node denies from what it cannot say.
 * @param ageSecondsOf since the first bytes for it were signed; Infinity where nobody knows. Undefined where
 *   none were: what used its nonce is not ours, whatever the node keeps
 */
export function judgeLost<T>(
  lost: readonly T[],
  kept: KeptBlocks,
  ageSecondsOf: (one: T) => number | undefined,
): LostJudgement<T> {
  const denied: T[] = [];
  const unkept: T[] = [];
  let needed = Infinity;
  for (const one of lost) {
    const ageSeconds = ageSecondsOf(one);
    const since = ageSeconds === undefined ? Infinity : neededSince(kept, ageSeconds);
    if (kept.oldestSeconds <= since) denied.push(one);
    else {
      unkept.push(one);
      needed = Math.min(needed, since);
    }
  }
  const reason =
    `the node keeps no blocks before ${timeText(kept.oldestSeconds)}, and cannot say whether what is ` +
    `signed has used the nonces that are used: ask a node that keeps ${wantedText(needed)}`;
  return { denied, unkept, reason: unkept.length === 0 ? undefined : reason };
}

function wantedText(seconds: number): string {
  return Number.isFinite(seconds) ? `the blocks since ${timeText(seconds)}` : "all blocks";
}

function timeText(seconds: number): string {
  return Number.isFinite(seconds) ? new Date(seconds * 1_000).toISOString() : "its head";
}
