/** The queue on Redis: flushed, killed and down while withdrawals are on their way. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { connect } from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { FaultBench, faultSeed, pause } from "../helpers/faults/bench.js";
import { kitOffset } from "../helpers/kit.js";
import { freePort } from "../helpers/ports.js";
import { until } from "../helpers/until.js";

const FLUSHES = 10;
const FLUSH_EVERY_MS = 300;

const program = findProgram();
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
      server = new OwnRedis(program, await freePort());
      await server.start();
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

/** A Redis of this test alone, which forgets everything when it is killed. */
class OwnRedis {
  readonly url: string;
  readonly #folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-redis-"));
  #process: ChildProcess | undefined;

  constructor(
    private readonly binary: string,
    private readonly port: number,
  ) {
    this.url = `redis://127.0.0.1:${port}/0`;
  }

  async start(): Promise<void> {
    const args = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#folder];
    this.#process = spawn(
      this.binary,
      [...args, "--save", "", "--maxmemory-policy", "noeviction"],
      {
        stdio: "ignore",
      },
    );
    await until(
      async () => {
        const answer = await sendToRedis(new URL(this.url), "PING").catch(() => "");
        return answer.includes("+PONG");
      },
      { timeoutMs: 20_000, what: "Redis answers" },
    );
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async remove(): Promise<void> {
    await this.kill();
    fs.rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Sends one inline command over a connection of its own. */
function sendToRedis(place: URL, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(place.port), place.hostname);
    socket.setTimeout(2_000, () => socket.destroy(new Error("Redis does not answer")));
    socket.once("error", reject);
    socket.once("data", (chunk) => {
      socket.destroy();
      resolve(chunk.toString());
    });
    socket.write(`${command}\r\n`);
  });
}

function findProgram(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(path.delimiter), "/usr/bin"];
  return folders
    .map((folder) => path.join(folder, "redis-server"))
    .find((file) => fs.existsSync(file));
}
