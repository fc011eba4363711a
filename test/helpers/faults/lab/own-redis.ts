/** A Redis of one test: killed, started empty or from an older copy, short of memory. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { connect } from "node:net";
import os from "node:os";
import path from "node:path";
import { freePort } from "../../ports.js";
import { until } from "../../until.js";

/** Where the copy lies that a start reads. */
const COPY = "dump.rdb";

/** The program of this machine; undefined where there is none. */
export function redisProgram(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(path.delimiter), "/usr/bin"];
  return folders
    .map((folder) => path.join(folder, "redis-server"))
    .find((file) => fs.existsSync(file));
}

/** A server that keeps nothing on disk but what `copy` writes. */
export class OwnRedis {
  readonly url: string;
  readonly #folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-redis-"));
  #process: ChildProcess | undefined;

  private constructor(
    private readonly program: string,
    readonly port: number,
  ) {
    this.url = `redis://127.0.0.1:${port}/0`;
  }

  /** Starts one on a free port. */
  static async start(program: string): Promise<OwnRedis> {
    const redis = new OwnRedis(program, await freePort());
    await redis.start();
    return redis;
  }

  /** Starts it on the same port, from the copy when there is one. */
  async start(): Promise<void> {
    const args = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", this.#folder];
    const quiet = ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"];
    this.#process = spawn(this.program, [...args, ...quiet], { stdio: "ignore" });
    const isUp = async () => (await this.send("PING").catch(() => "")).includes("+PONG");
    await until(isUp, { timeoutMs: 20_000, what: "Redis answers" });
  }

  /** Sends one command over a connection of its own; resolves with the first part of the answer. */
  send(command: string): Promise<string> {
    return sendToRedis(new URL(this.url), command);
  }

  /** Writes all keys to the copy. */
  async copy(): Promise<void> {
    const answer = await this.send("SAVE");
    if (!answer.includes("+OK")) throw new Error(`SAVE: ${answer}`);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Stops the process where it is: connections stay, nothing is answered. */
  freeze(): void {
    this.#process?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#process?.kill("SIGCONT");
  }

  async remove(): Promise<void> {
    await this.kill();
    fs.rmSync(this.#folder, { recursive: true, force: true });
  }

  /** True when there is a copy. */
  get hasCopy(): boolean {
    return fs.existsSync(path.join(this.#folder, COPY));
  }
}

/** Sends one inline command over a connection of its own. */
export function sendToRedis(place: URL, command: string): Promise<string> {
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
