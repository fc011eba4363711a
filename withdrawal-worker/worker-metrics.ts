/** Metrics of the withdrawal worker: its health for anybody, its business for who has the key. */
import {
  endingsAfter,
  newestEvent,
  openFigures,
} from "../ledger/withdrawals/withdrawal-figures.js";
import { isFinalStatus, WITHDRAWAL_STATUSES } from "../ledger/requests/withdrawal-status.js";
import { type Metrics, sharedRead } from "../runtime/process/metrics.js";
import type { Sql } from "../runtime/sql/sql.js";
import { SqlError } from "../runtime/sql/sql-errors.js";
import type { WalletLaneStatus } from "./lanes.js";

/** What the gauges of health read when a page is asked for. */
export interface WorkerHealthSource {
  readonly laneStatuses: () => readonly WalletLaneStatus[];
  readonly isQueueOpen: () => boolean;
}

/** Registers figures of the tables: open withdrawals by state, and those that ended since. */
export function registerWorkerFigures(metrics: Metrics, database: Sql): void {
  // Without its tables a page shows no figures of them; the rest of it matters all the more.
  const readOpen = sharedRead(() => unlessAway(() => openFigures(database)));
  metrics.gauge(
    "causeway_withdrawals",
    "Withdrawals that have not ended, by status; each at most 100000.",
    ["status"],
    async (gauge) => {
      const figures = await readOpen();
      gauge.reset();
      if (figures === undefined) return;
      for (const status of WITHDRAWAL_STATUSES.filter((each) => !isFinalStatus(each))) {
        gauge.set({ status }, figures.countByStatus.get(status) ?? 0);
      }
    },
  );
  metrics.gauge(
    "causeway_withdrawals_oldest_open_age_seconds",
    "Age of the oldest withdrawal that has not ended; 0 without one.",
    [],
    async (gauge) => {
      const figures = await readOpen();
      // Resetting would make it 0, which says that none is open.
      if (figures === undefined) gauge.remove();
      else gauge.set(figures.oldestAgeSeconds);
    },
  );
  let lastSeq: number | undefined;
  // Pages that are asked for at once share one count, so that nothing counts twice.
  const readEndings = sharedRead(() =>
    unlessAway(async () => {
      const endings = await endingsAfter(database, (lastSeq ??= await newestEvent(database)));
      for (const [status, count] of endings.countByStatus) ended.inc({ status }, count);
      ({ lastSeq } = endings);
    }),
  );
  const ended = metrics.counter(
    "causeway_withdrawals_ended_total",
    "Withdrawals that ended since this process was first asked.",
    ["status"],
    readEndings,
  );
  for (const status of WITHDRAWAL_STATUSES.filter(isFinalStatus)) ended.inc({ status }, 0);
}

/** Registers the gauges of health; each of a lane has its wallet's address as label. */
export function registerWorkerHealth(metrics: Metrics, source: WorkerHealthSource): void {
  const perWallet = (name: string, help: string, read: (status: WalletLaneStatus) => number) => {
    metrics.gauge(name, help, ["wallet"], (gauge) => {
      gauge.reset();
      for (const status of source.laneStatuses())
        gauge.set({ wallet: status.wallet }, read(status));
    });
  };
  perWallet(
    "causeway_withdrawals_in_flight",
    "Nonces of a wallet that are taken and not yet booked.",
    ({ openSlots }) => openSlots,
  );
  perWallet(
    "causeway_withdrawal_lane_stalled_seconds",
    "How long a wallet's lowest open nonce has been waited for; 0 while none is open.",
    ({ stalledMs }) => stalledMs / 1_000,
  );
  perWallet(
    "causeway_signing_frozen",
    "1 while signing for a wallet is frozen and an operator must look.",
    ({ isFrozen }) => (isFrozen ? 1 : 0),
  );
  perWallet(
    "causeway_withdrawal_lane_held",
    "1 while this process works for the wallet.",
    ({ holdsLease }) => (holdsLease ? 1 : 0),
  );
  metrics.gauge(
    "causeway_wallet_status",
    "1 for the status that a wallet has.",
    ["wallet", "status"],
    (gauge) => {
      gauge.reset();
      for (const { wallet, walletStatus } of source.laneStatuses()) {
        gauge.set({ wallet, status: walletStatus }, 1);
      }
    },
  );
  perWallet(
    "causeway_wallet_key_present",
    "1 while a keystore of this home opens the wallet; with another signer.kind, while a file names it.",
    ({ hasKey }) => (hasKey ? 1 : 0),
  );
  metrics.gauge(
    "causeway_withdrawal_queue_open",
    "1 while wake-ups can be sent; 0 means scanning only.",
    [],
    (gauge) => gauge.set(source.isQueueOpen() ? 1 : 0),
  );
}

/** Reads figures; undefined while the database cannot be asked. */
async function unlessAway<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof SqlError && error.retriable)) throw error;
    return undefined;
  }
}
