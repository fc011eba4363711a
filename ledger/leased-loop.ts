/** Background work that one of several watchers does, in rounds; whatever fails is tried again. */
import { errorMessage } from "../chain/errors.js";
import { holdLease, type LeaseHolder, releaseLease, TaskLeaseLostError } from "./task-lease.js";
import { whileHolding } from "../runtime/process/lease-keeper.js";
import type { Logger } from "../runtime/process/logger.js";
import { sleep } from "../runtime/process/task.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";

/** Pauses for which who cannot work now leaves the lease to others: each has looked by then. */
const STAND_BACK_PAUSES = 3;

/** How a loop runs. */
export interface LeasedLoop extends LeaseHolder {
  readonly database: SqlDatabase;
  /** Pause between rounds; a round that says there is more is followed at once. */
  readonly pauseMs: number;
  /** Time after which another process may begin a round; while one lasts the lease is renewed. */
  readonly leaseMs: number;
  readonly log: Logger;
  /** Called whenever another process is found to hold the lease. */
  readonly onStandby?: () => void;
  /**
   * Whether a round's fault is of what this process has for itself, which another may be spared: it gives the
   * work to others. Default: none is.
   */
  readonly isOwn?: (error: unknown) => boolean;
}

/**
 * Runs rounds until the signal fires, while this process holds the lease. A round is safe beside
 * another one: the lease only saves work.
 * @param round resolves to true when there is more to do now; its signal fires when the lease is lost, too
 */
export async function runLeased(
  loop: LeasedLoop,
  round: (signal: AbortSignal) => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const { database, task, owner, leaseMs, pauseMs, log, isOwn } = loop;
  const holding = {
    renew: () => holdLease(database, { task, owner, leaseMs }),
    lost: () => new TaskLeaseLostError("TASK_LEASE_LOST", "another process does this work now"),
    leaseMs,
    signal,
  };
  // Without the database the lease runs out by itself.
  const giveBack = () => releaseLease(database, { task, owner }).catch(() => undefined);
  while (!signal.aborted) {
    let isMore = false;
    let restMs = pauseMs;
    try {
      if (await holding.renew()) isMore = await whileHolding(holding, round);
      else loop.onStandby?.();
    } catch (error) {
      if (!signal.aborted) log.warn({ task, reason: errorMessage(error) }, "background work waits");
      if (isOwn?.(error) === true) {
        await giveBack();
        restMs = STAND_BACK_PAUSES * pauseMs;
      }
    }
    if (!isMore) await sleep(restMs, { signal }).catch(() => undefined);
  }
  await giveBack();
}
