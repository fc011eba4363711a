/** The wake queue on PostgreSQL always, and on Redis where REDIS_URL_TEST names one. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Redis } from "ioredis";
import { Client } from "pg";
import { createLogger, type Logger } from "../../../runtime/process/logger.js";
import { createWakeQueue, type WakeQueue } from "../../../withdrawal-worker/queue.js";
import { OwnRedis, redisProgram } from "../../helpers/faults/lab/own-redis.js";
import { startPooler } from "../../helpers/services/pooler.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";
import { until as awaitCondition } from "../../helpers/until.js";

let database: TestDatabase;

const until = (condition: () => boolean, options: { readonly what: string }) =>
  awaitCondition(condition, { timeoutMs: 20_000, ...options });

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

const log = createLogger({ component: "test", level: "silent" });
const redisUrl = process.env["REDIS_URL_TEST"];
if (redisUrl === undefined) {
  process.stdout.write("queue on Redis: skipped, REDIS_URL_TEST names no server\n");
}

interface Counted {
  readonly queue: WakeQueue;
  wakeups: number;
}

function open(options: {
  name: string;
  url?: string;
  redis?: string | undefined;
  log?: Logger;
}): Counted {
  const counted: { queue?: WakeQueue; wakeups: number } = { wakeups: 0 };
  const queue = createWakeQueue({
    databaseUrl: options.url ?? database.url,
    redisUrl: options.redis,
    onWake: () => {
      counted.wakeups += 1;
    },
    log: options.log ?? log,
    signal: new AbortController().signal,
    name: options.name,
  });
  return Object.assign(counted, { queue });
}

const backends: readonly (readonly [string, string | undefined])[] = [
  ["PostgreSQL", undefined],
  ...(redisUrl === undefined ? [] : [["Redis", redisUrl] as const]),
];

for (const [backend, redis] of backends) {
  describe(`the wake queue on ${backend}`, () => {
    it("carries a wake-up from one process to another", async () => {
      const name = `test-${randomUUID()}`;
      const listener = open({ name, redis });
      await until(() => listener.queue.isOpen(), { what: "the queue to open" });
      const wakeupsAtOpening = listener.wakeups;
      const waker = open({ name, redis });
      await until(() => waker.queue.isOpen(), { what: "the second queue to open" });
      const before = waker.wakeups;
      waker.queue.wake();
      await until(() => listener.wakeups + waker.wakeups > wakeupsAtOpening + before, {
        what: "the wake-up to arrive",
      });
      await Promise.all([listener.queue.stop(), waker.queue.stop()]);
    });

    it("melts a burst into few wake-ups and never loses the last one", async () => {
      const name = `test-${randomUUID()}`;
      const only = open({ name, redis });
      await until(() => only.queue.isOpen(), { what: "the queue to open" });
      for (let index = 0; index < 500; index++) only.queue.wake();
      await until(() => only.wakeups >= 2, { what: "the wake-ups to arrive" });
      const settled = only.wakeups;
      expect(settled).toBeLessThan(50);
      only.queue.wake();
      await until(() => only.wakeups > settled, { what: "the last wake-up to arrive" });
      await only.queue.stop();
    });
  });
}

if (redisUrl !== undefined) {
  describe("the wake queue's connections to Redis", () => {
    it("have a name, and end with the queue", async () => {
      const only = open({ name: `test-${randomUUID()}`, redis: redisUrl });
      await until(() => only.queue.isOpen(), { what: "the queue to open" });
      const redis = new Redis(redisUrl);
      const names = async () =>
        String(await redis.client("LIST")).match(/name=\S*causeway-\S+/g) ?? [];
      const before = (await names()).length;
      expect(before).toBeGreaterThanOrEqual(2);
      await only.queue.stop();
      let after = before;
      await until(
        () => {
          void names().then((found) => (after = found.length));
          return after <= before - 2;
        },
        { what: "the connections to end" },
      );
      redis.disconnect();
    });
  });

  describe("the wake queue on a Redis that was flushed", () => {
    it("goes on waking", async () => {
      const only = open({ name: `test-${randomUUID()}`, redis: redisUrl });
      await until(() => only.queue.isOpen(), { what: "the queue to open" });
      const redis = new Redis(redisUrl);
      await redis.flushall();
      redis.disconnect();
      const before = only.wakeups;
      await until(
        () => {
          only.queue.wake();
          return only.wakeups > before;
        },
        { what: "a wake-up after the flush" },
      );
      await only.queue.stop();
    });
  });
}

describe("a wake queue whose server is gone", () => {
  for (const [backend, options] of [
    ["PostgreSQL", { url: "postgres://nobody:x@127.0.0.1:9/none", redis: undefined }],
    ["Redis", { redis: "redis://127.0.0.1:9" }],
  ] as const) {
    it(`neither throws nor holds up the stop (${backend})`, async () => {
      const orphan = open({ name: `test-${randomUUID()}`, ...options });
      for (let index = 0; index < 10; index++) orphan.queue.wake();
      expect(orphan.queue.isOpen()).toBe(false);
      // Without an end of its own this waits for ever.
      await orphan.queue.stop();
    });
  }

  it("says so rarely behind a pooler that refuses what its connections ask for", async () => {
    const pooler = await startPooler(database.url, "session");
    const lines: string[] = [];
    const telling = createLogger({
      component: "test",
      destination: { write: (line) => lines.push(line) },
    });
    const refused = open({ name: `test-${randomUUID()}`, url: pooler.url, log: telling });
    await until(() => lines.length > 0, { what: "a warning" });
    const connectionsOfOneTry = pooler.clientCount();
    await until(() => pooler.clientCount() > 2 * connectionsOfOneTry, { what: "a third try" });
    await refused.queue.stop();
    await pooler.close();
    expect(lines).toEqual([expect.stringContaining("startup parameter: options")]);
  });

  it("goes on after its connections were cut", async () => {
    const only = open({ name: `test-${randomUUID()}` });
    await until(() => only.queue.isOpen(), { what: "the queue to open" });
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    await client.end();
    const before = only.wakeups;
    await until(
      () => {
        only.queue.wake();
        return only.wakeups > before;
      },
      { what: "a wake-up after the cut" },
    );
    await only.queue.stop();
  });
});

const program = redisProgram();
if (program === undefined) {
  process.stdout.write("a Redis that takes nothing: left out, there is no redis-server here\n");
} else {
  describe("a wake queue whose Redis takes nothing any more", () => {
    const faults: readonly (readonly [string, (redis: OwnRedis) => Promise<unknown>])[] = [
      ["is gone", (redis) => redis.kill()],
      ["has no memory left", (redis) => redis.send("CONFIG SET maxmemory 1")],
      ["is a replica now", (redis) => redis.send("REPLICAOF 127.0.0.1 1")],
    ];
    for (const [fault, cause] of faults) {
      it(`says that no wake-up is sent when it ${fault}, and that they are again`, async () => {
        const redis = await OwnRedis.start(program);
        const only = open({ name: `test-${randomUUID()}`, redis: redis.url });
        const untilOpen = (isOpen: boolean) =>
          until(
            () => {
              only.queue.wake();
              return only.queue.isOpen() === isOpen;
            },
            { what: `isOpen() to be ${isOpen}` },
          );
        try {
          await untilOpen(true);
          await cause(redis);
          await untilOpen(false);
          if (fault === "is gone") await redis.start();
          await redis.send("CONFIG SET maxmemory 0");
          await redis.send("REPLICAOF NO ONE");
          await untilOpen(true);
        } finally {
          await only.queue.stop();
          await redis.remove();
        }
      });
    }

    it("says so of one that answers nothing, until it answers again", async () => {
      const redis = await OwnRedis.start(program);
      const only = open({ name: `test-${randomUUID()}`, redis: redis.url });
      try {
        await until(() => only.queue.isOpen(), { what: "the queue to open" });
        redis.freeze();
        only.queue.wake();
        await until(() => !only.queue.isOpen(), { what: "isOpen() to be false" });
        redis.thaw();
        const isOpenAgain = () => {
          only.queue.wake();
          return only.queue.isOpen();
        };
        await until(isOpenAgain, { what: "isOpen() to be true again" });
      } finally {
        await only.queue.stop();
        await redis.remove();
      }
    });
  });
}
