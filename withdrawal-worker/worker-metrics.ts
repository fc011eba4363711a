/** Metrics of the withdrawal worker. */
import type { Address } from "../chain/address.js";
import {
  type WithdrawalFigures,
  withdrawalFigures,
} from "../ledger/withdrawals/withdrawal-figures.js";
import { WITHDRAWAL_STATUSES } from "../ledger/withdrawals/withdrawal-status.js";
import type { Metrics } from "../runtime/process/metrics.js";
import type { Sql } from "../runtime/sql/sql.js";
import { SqlError } from "../runtime/sql/sql-errors.js";
import type { LaneStatus } from "./lane.js";

/** What the gauges read when a page is asked for. */
export interface WorkerMetricsSource {
  readonly database: Sql;
  readonly wallet: Address;
  readonly laneStatus: () => LaneStatus;
  readonly isQueueOpen: () => boolean;
}

/** Registers the worker's gauges; the figures of the tables are read once per page. */
export function registerWorkerMetrics(metrics: Metrics, source: WorkerMetricsSource): void {
  const oldest = metrics.gauge(
    "causeway_withdrawals_oldest_open_age_seconds",
    "Age of the oldest withdrawal that has not ended; 0 without one.",
  );
  metrics.gauge("causeway_withdrawals", "Withdrawals by status.", ["status"], async (gauge) => {
    // Without its tables a page shows no figures of them; the rest of it matters all the more.
    gauge.reset();
    oldest.reset();
    const figures = await readFigures(source);
    if (figures === undefined) return;
    for (const status of WITHDRAWAL_STATUSES) {
      gauge.set({ status }, figures.countByStatus.get(status) ?? 0);
    }
    oldest.set(figures.oldestOpenAgeSeconds);
  });
  const status = source.laneStatus;
  metrics.gauge(
    "causeway_withdrawals_in_flight",
    "Nonces that are taken and not yet booked.",
    [],
    (gauge) => gauge.set(status().openSlots),
  );
  metrics.gauge(
    "causeway_withdrawal_lane_stalled_seconds",
    "How long the lowest open nonce has been waited for; 0 while none is open.",
    [],
    (gauge) => gauge.set(status().stalledMs / 1_000),
  );
  metrics.gauge(
    "causeway_signing_frozen",
    "1 while signing is frozen and an operator must look.",
    [],
    (gauge) => gauge.set(status().isFrozen ? 1 : 0),
  );
  metrics.gauge(
    "causeway_withdrawal_lane_held",
    "1 while this process works for the hot wallet.",
    [],
    (gauge) => gauge.set(status().holdsLease ? 1 : 0),
  );
  metrics.gauge(
    "causeway_withdrawal_queue_open",
    "1 while wake-ups can be sent; 0 means scanning only.",
    [],
    (gauge) => gauge.set(source.isQueueOpen() ? 1 : 0),
  );
}

/** Figures of the tables; undefined while the database cannot be asked. */
async function readFigures(source: WorkerMetricsSource): Promise<WithdrawalFigures | undefined> {
  try {
    return await withdrawalFigures(source.database, source.wallet);
  } catch (error) {
    if (error instanceof SqlError && error.retriable) return undefined;
    throw error;
  }
}
