/** What logs and metrics say of blocks that were booked. */
import type { Height } from "../chain/hex.js";
import type { NewSighting } from "../ledger/assets/token-sightings.js";
import type { BlockStepResult } from "../ledger/blocks/block-step.js";
import type { Logger } from "../runtime/process/logger.js";
import type { WatcherMetrics } from "./watcher-metrics.js";

/** Where it is said. */
interface Reporting {
  readonly log: Logger;
  readonly metrics: WatcherMetrics;
}

/** One commit, and what it recorded. */
interface Booked {
  readonly result: Extract<BlockStepResult, { outcome: "committed" }>;
  readonly sightings: readonly NewSighting[];
  /** Transfers of tokens that nobody listed, too many to be recorded. */
  readonly leftOut: number;
  /** The last block. */
  readonly height: Height;
}

/** Reports one commit. */
export function reportBooked(to: Reporting, { result, sightings, leftOut, height }: Booked): void {
  const { log, metrics } = to;
  metrics.detected(result.detected);
  metrics.credited(result.credited);
  metrics.foreignOutflows(result.foreignOutflows.length);
  if (result.detected > 0) log.debug({ count: result.detected, height }, "deposits detected");
  if (result.credited > 0) {
    log.debug({ count: result.credited, height }, "deposits credited");
  }
  reportPaused(to, result.pausedTokens);
  for (const outflow of result.foreignOutflows) {
    const fields = {
      ...outflow,
      amountUnits: outflow.amountUnits.toString(),
      feeAtoken: outflow.feeAtoken.toString(),
    };
    log.error(fields, "coins left one of our addresses and nobody asked for it");
  }
  reportTokens(to, { sightings, leftOut, height });
}

/** Reports tokens that are paused from now on. */
export function reportPaused({ log, metrics }: Reporting, reasons: readonly string[]): void {
  metrics.tokensPaused(reasons.length);
  for (const reason of reasons) log.error({ reason }, "a token is paused");
}

function reportTokens(
  { log, metrics }: Reporting,
  { sightings, leftOut, height }: Omit<Booked, "result">,
): void {
  metrics.tokenSightings(sightings.length);
  const [first, ...more] = sightings.filter(({ reason }) => reason === "NOT_LEFT");
  if (first !== undefined) {
    const { address: wallet, contract, txHash } = first;
    const fields = { height, wallet, contract, txHash, more: more.length };
    log.error(
      fields,
      "a token says that units left an address of ours, whose balance did not fall by them",
    );
  }
  if (leftOut === 0) return;
  log.warn({ count: leftOut, height }, "too many tokens that nobody listed, not recorded");
}
