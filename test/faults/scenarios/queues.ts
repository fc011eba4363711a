/** 11 to 14 and 42: the queue is emptied, gone, older than it was, full, or says everything twice. */
import { createPostgresBackend, Queue, withBackend } from "bullmq";
import { QUEUE_NAME, REDIS_PREFIX, withOwnOptions } from "../../../withdrawal-worker/queue.js";
import { pause } from "../../helpers/faults/bench.js";
import type { LabExchange } from "../../helpers/faults/lab/lab-exchange.js";
import { assertHappened, type Scenario } from "./scenario.js";

const FLUSHES = 12;
const FLUSH_EVERY_MS = 250;
const DOWN_MS = 60_000;

/** Longer than the lock that BullMQ's worker has on a job (30 s), and than every lease. */
const FROZEN_MS = 40_000;

const DUPLICATES = 300;

/** The five. */
export const QUEUES: readonly Scenario[] = [
  {
    number: 11,
    name: "the queue is emptied in mid-flight",
    async run(lab) {
      await lab.work();
      const working = lab.work(3);
      for (let round = 0; round < FLUSHES; round += 1) {
        await empty(lab);
        await pause(FLUSH_EVERY_MS);
      }
      await working;
    },
  },
  {
    number: 12,
    name: "Redis is down for 60 s: payouts go on without it",
    backends: ["redis"],
    async run(lab) {
      await lab.work();
      await lab.redis?.kill();
      await lab.work(2);
      await lab.customers.untilEnded(lab.customers.requests.length);
      await pause(DOWN_MS);
      await lab.work();
      await lab.redis?.start();
      await lab.work();
    },
  },
  {
    number: 13,
    name: "Redis comes back from an older copy: its jobs run again",
    backends: ["redis"],
    async run(lab) {
      const { redis } = lab;
      if (redis === undefined) throw new Error("no Redis");
      lab.worker.process.freeze();
      await wakeOften(lab, DUPLICATES);
      await redis.copy();
      lab.worker.process.thaw();
      await lab.work(2);
      await redis.kill();
      await redis.start();
      const answer = await redis.send("DBSIZE");
      assertHappened(answer.startsWith(":0") ? 0 : 1, "a Redis with the keys of its copy");
      await lab.work();
    },
  },
  {
    number: 14,
    name: "Redis has no memory left",
    backends: ["redis"],
    async run(lab) {
      const { redis } = lab;
      await lab.work();
      await redis?.send("CONFIG SET maxmemory 1");
      const refused = (await redis?.send("SET a b")) ?? "";
      assertHappened(refused.includes("OOM") ? 1 : 0, "a refusal for want of memory");
      await lab.work(2);
      await lab.customers.untilEnded(lab.customers.requests.length);
      await redis?.send("CONFIG SET maxmemory 0");
      await lab.work();
    },
  },
  {
    number: 42,
    name: "jobs twice and in disorder; a worker frozen for 40 s comes back as a zombie",
    async run(lab) {
      await wakeOften(lab, DUPLICATES);
      const working = lab.work();
      const zombie = lab.worker;
      const heir = await lab.addWorker();
      await heir.process.untilReady();
      await working;
      zombie.process.freeze();
      lab.askAt(heir);
      await lab.work(2);
      await lab.customers.untilEnded(lab.customers.requests.length);
      await wakeOften(lab, DUPLICATES);
      await pause(FROZEN_MS);
      zombie.process.thaw();
      await lab.work(2);
    },
  },
];

async function empty(lab: LabExchange): Promise<void> {
  if (lab.redis !== undefined) {
    const answer = await lab.redis.send("FLUSHALL");
    if (!answer.includes("+OK")) throw new Error(`FLUSHALL: ${answer}`);
    return;
  }
  const tables = await lab.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
      WHERE schemaname = 'bullmq' AND tablename ~ 'job'`,
  );
  assertHappened(tables.length, "a queue in PostgreSQL");
  for (const { name } of tables) await lab.query(`DELETE FROM ${name}`);
}

/** Wakes many times as a stranger; none of these wake-ups has anything to tell. */
async function wakeOften(lab: LabExchange, count: number): Promise<void> {
  const jobs = Array.from({ length: count }, (_, index) => ({
    name: index % 3 === 0 ? "wake" : `stray ${index}`,
    data: { withdrawalId: "wd_0" },
    opts: { priority: 1 + lab.random.integer(50), delay: lab.random.integer(2_000), attempts: 3 },
  }));
  const queue = openQueue(lab);
  await queue.addBulk(jobs);
  await queue.close();
}

/** What of a queue is needed to wake by it. */
interface JobQueue {
  addBulk(jobs: readonly { name: string; data: object; opts: object }[]): Promise<unknown>;
  close(): Promise<void>;
}

function openQueue(lab: LabExchange): JobQueue {
  const nobodyCares = () => undefined;
  if (lab.redis !== undefined) {
    const connection = { host: "127.0.0.1", port: lab.redis.port };
    const queue = new Queue(QUEUE_NAME, { connection, prefix: REDIS_PREFIX });
    queue.on("error", nobodyCares);
    return { addBulk: (jobs) => queue.addBulk([...jobs]), close: () => queue.close() };
  }
  const backend = withBackend(createPostgresBackend);
  const connection = { ...withOwnOptions(lab.databaseUrl), migrate: true, max: 2 };
  const queue = new backend.Queue(QUEUE_NAME, { connection });
  queue.on("error", nobodyCares);
  return { addBulk: (jobs) => queue.addBulk([...jobs]), close: () => queue.close() };
}
