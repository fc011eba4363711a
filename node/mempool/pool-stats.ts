/** Figures of the pool, for metrics. */
import type { PoolErrorCode } from "./pool-port.js";

/** Gauges and, since the start, counters for metrics. */
export interface PoolStats {
  readonly pendingCount: number;
  readonly queuedCount: number;
  /** Raw bytes of all transactions in the pool. */
  readonly sizeBytes: number;
  readonly waitingCount: number;
  readonly admittedTotal: number;
  readonly replacedTotal: number;
  /** Those that made room in a full pool included. */
  readonly droppedTotal: number;
  /** Those that made room in a full pool by their price. */
  readonly evictedTotal: number;
  readonly journalAppendsTotal: number;
  readonly refusedTotal: ReadonlyMap<PoolErrorCode, number>;
}
