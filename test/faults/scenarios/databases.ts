/** 15, 16, 18 and 62: PostgreSQL dies, has no space, is in the way, and its standby takes over. */
import { Client } from "pg";
import { pause } from "../../helpers/faults/bench.js";
import type { LabExchange } from "../../helpers/faults/lab/lab-exchange.js";
import { until } from "../../helpers/until.js";
import type { Scenario } from "./scenario.js";

const RESTARTS = 3;
const MAX_GAP_MS = 800;
const STORM_MS = 8_000;

/** Tables that every step of money passes. */
const TABLES = ["withdrawal", "hot_wallet", "customer_balance", "nonce_slot", "event_counter"];

/** What the proxy counts of commits. */
const CUTS = ["cut before the commit", "cut after the commit"];

/** Connections that are let through while the pools are starved. */
const FEW = 2;

/** Times that a standby takes over: the second one follows a server that was one itself. */
const FAILOVERS = 2;

/** The four. */
export const DATABASES: readonly Scenario[] = [
  {
    number: 15,
    name: "PostgreSQL is killed and started again, three times",
    setup: { hasOwnPostgres: true },
    async run(lab) {
      const { postgres } = lab;
      if (postgres === undefined) throw new Error("no PostgreSQL of its own");
      for (let round = 0; round < RESTARTS; round += 1) {
        const working = lab.work(2);
        await pause(lab.random.integer(MAX_GAP_MS));
        await postgres.kill();
        await pause(lab.random.integer(MAX_GAP_MS));
        await postgres.start();
        await working;
      }
    },
  },
  {
    number: 16,
    name: "PostgreSQL's disk is full: no file grows, its log first",
    setup: { hasOwnPostgres: true },
    async run(lab) {
      const { postgres } = lab;
      if (postgres === undefined) throw new Error("no PostgreSQL of its own");
      const working = lab.work(2);
      await pause(lab.random.integer(MAX_GAP_MS));
      postgres.limitFiles(1);
      await until(() => lab.members.every((member) => isComplaining(member.process.output)), {
        timeoutMs: 60_000,
        what: "the processes say that the database does not write",
      });
      await postgres.kill();
      await postgres.start();
      await working;
      await lab.work();
      // A limit is not quite a full disk: PostgreSQL gives 53100 for that, which is waited out, and
      // an internal error for this, at which a process may end and come back.
      for (const { process } of lab.members) {
        const others = process.ownEnds.filter((end) => !end.includes("File too large"));
        process.ownEnds.splice(0, Infinity, ...others);
      }
    },
  },
  {
    number: 18,
    name: "deadlocks, ended sessions, commits cut in the middle, no connection left",
    async run(lab) {
      const storm = new AbortController();
      const raging = [rage(lab, storm.signal), rage(lab, storm.signal)];
      for (const { database } of lab.members) {
        database.cutCommits(() =>
          lab.random.integer(6) === 0 ? lab.random.pick(["before", "after"] as const) : undefined,
        );
      }
      const working = lab.work(3);
      await pause(STORM_MS);
      // However slow the machine is: the watcher commits with every block.
      await until(() => CUTS.every((fault) => cutsOf(lab, fault) > 0), {
        timeoutMs: 60_000,
        what: "commits are cut before and after they happen",
      });
      for (const { database } of lab.members) {
        database.cutCommits(() => undefined);
        database.limit(FEW);
        database.reset();
      }
      await pause(STORM_MS / 2);
      for (const { database } of lab.members) await database.heal();
      storm.abort();
      await Promise.all(raging);
      await working;
    },
  },
  {
    number: 62,
    name: "PostgreSQL is killed, and a standby that has every commit takes over, twice",
    setup: { hasOwnPostgres: true },
    async run(lab) {
      const { postgres } = lab;
      if (postgres === undefined) throw new Error("no PostgreSQL of its own");
      for (let round = 0; round < FAILOVERS; round += 1) {
        await postgres.follow({ isSynchronous: true });
        const working = lab.work(2);
        await pause(lab.random.integer(MAX_GAP_MS));
        await lab.failOver();
        await working;
      }
    },
  },
];

function cutsOf(lab: LabExchange, fault: string): number {
  return lab.members.reduce((sum, { database }) => sum + (database.hits.get(fault) ?? 0), 0);
}

function isComplaining(output: string): boolean {
  return /DATABASE_UNAVAILABLE|File too large|terminating connection|recovery mode/.test(output);
}

/** Locks tables in a random order for a moment, as a report or a careless operator does. */
async function rage(lab: LabExchange, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const client = new Client({ connectionString: lab.databaseUrl });
    client.on("error", () => undefined);
    await client.connect();
    try {
      await client.query("BEGIN");
      const [one, other] = [lab.random.pick(TABLES), lab.random.pick(TABLES)];
      await client.query(`LOCK TABLE ${one} IN ACCESS EXCLUSIVE MODE`);
      await client.query(`SELECT pg_sleep(0.05)`);
      await client.query(`LOCK TABLE ${other} IN SHARE ROW EXCLUSIVE MODE`);
      await client.query(`SELECT pg_sleep(0.1)`);
      await client.query("COMMIT");
      await client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.15`,
      );
    } catch {
      // It was the one that the server chose to end a deadlock: that is what was wanted.
    } finally {
      await client.end().catch(() => undefined);
    }
    await pause(lab.random.integer(200));
  }
}
