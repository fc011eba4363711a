/** Bounds of the pool (D23). */

/** How much the pool holds. Counts are transactions. */
export interface PoolLimits {
  readonly executablePerSender: number;
  readonly queuedPerSender: number;
  /** Executable ones that a sender may have in a nearly full pool (D23). */
  readonly guaranteedPerSender: number;
  /** Executable and queued together. */
  readonly totalCount: number;
  /**
   * Memory of what they hold, executable and queued together (`weightBytes`): raw bytes, and what lists take
   * once they are read. What every entry takes whatever it holds is bounded by their number.
   */
  readonly totalBytes: number;
  /** All senders' gapped transactions; the oldest make room for newer ones. */
  readonly queuedCount: number;
  /** How long a transaction may stay gapped. */
  readonly queuedLifetimeMs: number;
  /**
   * Clients' EVM transactions that were received but are not yet admitted or refused; those that come
   * other ways have parts of it, each its own (`admission/ways.ts`).
   */
  readonly waitingCount: number;
  /** Raw bytes of those. */
  readonly waitingBytes: number;
  /** Hashes of replaced and dropped transactions whose fate is remembered. */
  readonly outcomeCount: number;
}

/** Defaults; D23 fixes the first two and the lifetime. */
export const DEFAULT_POOL_LIMITS: PoolLimits = {
  executablePerSender: 8_192,
  queuedPerSender: 1_024,
  // geth's account slots.
  guaranteedPerSender: 16,
  // About 20 s of full blocks; at some 1.5 KiB each plain transfers stay below 400 MB of heap.
  totalCount: 200_000,
  // 4,096 of the largest transactions whose bytes are calldata; of those that are lists, fewer.
  totalBytes: 512 * 1024 * 1024,
  // A tenth of the pool: what cannot be mined now must not crowd out what can.
  queuedCount: 20_000,
  queuedLifetimeMs: 3 * 60 * 60 * 1000,
  // Some seconds of recovery on one core; more could only wait.
  waitingCount: 32_768,
  waitingBytes: 64 * 1024 * 1024,
  // Days of a busy exchange; about 25 MB.
  outcomeCount: 100_000,
};
