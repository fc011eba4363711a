/** Figures of the watcher, for Prometheus. */
import type { Metrics } from "../runtime/process/metrics.js";

/** What the watcher counts and shows. */
export interface WatcherMetrics {
  head(height: number): void;
  cursor(height: number): void;
  detected(count: number): void;
  credited(count: number): void;
  backfilled(count: number): void;
  halted(isHalted: boolean): void;
  foreignOutflows(count: number): void;
  /** Tokens that came and are not credited. */
  tokenSightings(count: number): void;
  tokensPaused(count: number): void;
  fault(): void;
}

function name(suffix: string): string {
  return `causeway_watcher_${suffix}`;
}

/** Registers the watcher's metrics. */
export function createWatcherMetrics(metrics: Metrics): WatcherMetrics {
  const head = metrics.gauge(name("head_height"), "Height of the node's head.");
  const cursor = metrics.gauge(name("cursor_height"), "Last block that is booked.");
  const lag = metrics.gauge(name("lag_blocks"), "Blocks between the head and the cursor.");
  const halted = metrics.gauge(name("halted"), "1 while an incident stops crediting.");
  const detected = metrics.counter(name("deposits_detected_total"), "Deposits detected.");
  const credited = metrics.counter(name("deposits_credited_total"), "Deposits credited.");
  const backfilled = metrics.counter(name("backfills_total"), "Addresses whose past is booked.");
  const foreign = metrics.counter(name("foreign_outflows_total"), "Outflows nobody asked for.");
  const sightings = metrics.counter(
    name("token_sightings_total"),
    "Tokens and NFTs that came and are not credited.",
  );
  const paused = metrics.counter(
    name("tokens_paused_total"),
    "Times that a token was stopped because it runs other code than was accepted.",
  );
  const faults = metrics.counter(name("faults_total"), "Rounds that ended with a fault.");
  let headHeight = 0;
  let cursorHeight = 0;
  const showLag = () => lag.set(Math.max(0, headHeight - cursorHeight));
  return {
    head(height) {
      headHeight = height;
      head.set(height);
      showLag();
    },
    cursor(height) {
      cursorHeight = height;
      cursor.set(height);
      showLag();
    },
    detected: (count) => detected.inc(count),
    credited: (count) => credited.inc(count),
    backfilled: (count) => backfilled.inc(count),
    halted: (isHalted) => halted.set(isHalted ? 1 : 0),
    foreignOutflows: (count) => foreign.inc(count),
    tokenSightings: (count) => sightings.inc(count),
    tokensPaused: (count) => paused.inc(count),
    fault: () => faults.inc(),
  };
}
