/** The queue on Redis: flushed, killed and down while withdrawals are on their way. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { FaultBench, faultSeed, pause } from "../helpers/faults/bench.js";
import { OwnRedis, redisProgram, sendToRedis } from "../helpers/faults/lab/own-redis.js";
import { kitOffset } from "../helpers/kit.js";
import { until } from "../helpers/until.js";

const FLUSHES = 10;
const FLUSH_EVERY_MS = 300;

const program = redisProgram();
const givenUrl = process.env["REDIS_URL_TEST"];

if (program === undefined && givenUrl === undefined) {
  console.log("no redis-server here and no REDIS_URL_TEST: the faults of Redis are left out");
}

describe("the queue on Redis", () => {
  let bench: FaultBench | undefined;
  let server: OwnRedis | undefined;
  let url = givenUrl;

  beforeAll(async () => {
    if (program !== undefined) {
      server = await OwnRedis.start(program);
      url = server.url;
    }
    if (url === undefined) return;
    const env = { REDIS_URL: url };
    bench = await FaultBench.open({ seed: faultSeed(), portOffset: kitOffset(4), env });
  });
  afterAll(async () => {
    await bench?.close();
    await server?.remove();
  });

  it("flushed in mid-flight costs nothing but time", async () => {
    if (bench === undefined || url === undefined) return;
    const place = new URL(url);
    await bench.underLoad(async () => {
      // A queue that is somewhere else would make the flushes prove nothing.
      const isUsed = async () => !(await sendToRedis(place, "DBSIZE")).startsWith(":0");
      await until(isUsed, { timeoutMs: 20_000, what: "the queue is in Redis" });
      for (let round = 0; round < FLUSHES; round += 1) {
        await pause(FLUSH_EVERY_MS);
        expect(await sendToRedis(place, "FLUSHALL")).toContain("+OK");
      }
    });
    console.log(`flushed: ${JSON.stringify(await bench.prove())}`);
  });

  it("killed, down for a while and back empty costs nothing but time", async () => {
    const { exchange } = bench ?? {};
    if (bench === undefined || exchange === undefined || server === undefined) return;
    const redis = server;
    await bench.underLoad(async () => {
      await redis.kill();
      // Whatever is asked for now has to be paid without any queue.
      const asked = exchange.requests.length;
      await until(() => exchange.requests.length >= asked + 5, { timeoutMs: 60_000 });
      await exchange.untilEnded(asked + 5);
      await redis.start();
    });
    console.log(`down and back: ${JSON.stringify(await bench.prove())}`);
  });

  it("down at the start of the kit does not keep it from paying", async () => {
    if (bench === undefined || server === undefined || url === undefined) return;
    const [redis, env] = [server, { REDIS_URL: url }];
    const current = bench;
    await current.underLoad(async () => {
      await redis.kill();
      await current.restart("kill -9 of everything", env);
      await current.exchange.untilEnded(current.exchange.requests.length);
      await redis.start();
    });
    console.log(`down at the start: ${JSON.stringify(await current.prove())}`);
  });
});
