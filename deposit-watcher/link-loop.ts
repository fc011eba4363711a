/**
 * Links what the ledger has written, off the path of payments, tells how far the chain is, and adds up
 * what is linked for certain.
 */
import { linkRows, readHead } from "../ledger/tamper/chainer.js";
import { SettledKeys } from "../ledger/tamper/settled-keys.js";
import { keepSums } from "../ledger/treasury/kept-sums.js";
import type { Clock } from "../runtime/process/clock.js";
import type { Metrics } from "../runtime/process/metrics.js";
import { type LeasedLoop, runLeased } from "../ledger/leased-loop.js";

/** One process at a time links rows; `owner` names this one in the lease. */
export interface LinkLoopParts extends Pick<LeasedLoop, "database" | "owner" | "log"> {
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** Rows are linked so long after they were written, at most, while nothing is in the way. */
const PAUSE_MS = 2_000;

/** A batch takes a fraction of a second. */
const LEASE_MS = 30_000;

/**
 * Time between two looks for rows that committed late. They read all behind what was settled at the one
 * before, which is much in a busy time; the other rounds read what is new.
 */
const THOROUGH_MS = 60_000;

/**
 * Time between two lines in the log with the chain's head. Whoever keeps the log elsewhere has
 * witnesses of the chain that nobody with the database can change.
 */
const WITNESS_MS = 3_600_000;

/** Runs until the signal fires; see `runLeased` for faults. */
export async function runLinkLoop(parts: LinkLoopParts, signal: AbortSignal): Promise<void> {
  const { database, owner, log, metrics, clock } = parts;
  const links = metrics.gauge("causeway_chain_links", "Links of the ledger's chain of hashes.");
  const linkedAt = metrics.gauge(
    "causeway_chain_complete_timestamp_seconds",
    "Every row from before this Unix time has its link.",
  );
  // Whoever links tells of it; 0 and what was seen here last would both be taken for what is.
  const onStandby = () => {
    links.remove();
    linkedAt.remove();
  };
  onStandby();
  let witnessedMs = Number.NEGATIVE_INFINITY;
  let thoroughMs = Number.NEGATIVE_INFINITY;
  let areSumsBehind = true;
  const settledKeys = new SettledKeys();
  const loop = { database, task: "link-chain" as const, owner, log, onStandby };
  const round = async (): Promise<boolean> => {
    // A few rows at a time would cost more than their links: what is written now waits for the next.
    if ((await linkRows(database, "recent")).hasMore) return true;
    if (clock.monotonicMs() - thoroughMs >= THOROUGH_MS) {
      const beganMs = clock.nowMs();
      const settled = await settledKeys.look(database);
      // What it links may have been written meanwhile: on a busy ledger it always finds something.
      if ((await linkRows(database, "all", settled)).hasMore) return true;
      thoroughMs = clock.monotonicMs();
      linkedAt.set(beganMs / 1_000);
      areSumsBehind = true;
    }
    if (areSumsBehind) areSumsBehind = await keepSums(database);
    const head = await readHead(database);
    links.set(head.n);
    if (clock.monotonicMs() - witnessedMs >= WITNESS_MS) {
      witnessedMs = clock.monotonicMs();
      log.info({ link: head.n, hash: head.hash }, "head of the ledger's chain of hashes");
    }
    return areSumsBehind;
  };
  await runLeased({ ...loop, pauseMs: PAUSE_MS, leaseMs: LEASE_MS }, round, signal);
}
