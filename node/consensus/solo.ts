/**
 * Consensus of one validator: it decides its own blocks on a fixed schedule. BFT consensus fills
 * the same place later: it drives the same BlockApplication.
 */
import { AppError, errorMessage } from "../../chain/errors.js";
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import { sleep } from "../../runtime/task.js";
import type { BlockApplication } from "./application.js";

/** What the producer needs. */
export interface SoloOptions {
  readonly application: BlockApplication;
  readonly blockIntervalMs: number;
  /** Time of the last committed block; block time never goes back. */
  readonly lastTimeMs: () => number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told once when blocks stop because an invariant broke; the process stays up for reading. */
  readonly onHalt: (reason: string) => void;
}

/** Codes after which producing on would risk coins; everything else ends the process. */
const HALTING_CODES: ReadonlySet<string> = new Set(["BALANCE_JOURNAL_MISMATCH", "SUPPLY_MISMATCH"]);

/**
 * Produces blocks until the signal fires; resolves then, or after a halt. The schedule is fixed
 * when it starts, so the mean interval does not drift with the time that a block takes; ticks that
 * were missed (a long block, a suspended machine) are skipped, not caught up.
 * @throws what `commit` throws, for example STORE_WRITE_FAILED
 */
export async function runSolo(options: SoloOptions, signal: AbortSignal): Promise<void> {
  const { clock, blockIntervalMs } = options;
  let tickMs = clock.monotonicMs();
  while (!signal.aborted) {
    tickMs = nextTick(tickMs, clock.monotonicMs(), blockIntervalMs);
    try {
      await sleep(Math.max(0, tickMs - clock.monotonicMs()), { signal });
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    if (!(await produceOne(options))) return;
  }
}

function nextTick(lastTickMs: number, nowMs: number, intervalMs: number): number {
  const next = lastTickMs + intervalMs;
  if (next >= nowMs) return next;
  const missed = Math.floor((nowMs - lastTickMs) / intervalMs);
  return lastTickMs + missed * intervalMs;
}

/** Builds and commits one block; false after a halt. */
async function produceOne(options: SoloOptions): Promise<boolean> {
  const startedMs = options.clock.monotonicMs();
  const timeMs = Math.max(options.clock.nowMs(), options.lastTimeMs() + 1);
  try {
    const executed = await options.application.build(timeMs);
    await options.application.commit(executed);
    const { header, hash, transactions } = executed.committed.block;
    options.log.info(
      {
        height: header.height,
        hash,
        transactions: transactions.length,
        durationMs: Math.round(options.clock.monotonicMs() - startedMs),
      },
      "block committed",
    );
    return true;
  } catch (error) {
    if (!(error instanceof AppError) || !HALTING_CODES.has(error.code)) throw error;
    options.log.error({ err: error }, "block production halted");
    options.onHalt(errorMessage(error));
    return false;
  }
}
