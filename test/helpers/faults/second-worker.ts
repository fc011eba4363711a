/** A second withdrawal worker for the same hot wallet, as when an operator starts one too many. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import type { RunningKit } from "../kit.js";
import { freePort } from "../ports.js";
import { compiledFolder } from "../services/services.js";
import { until } from "../until.js";

/** Time for a process to start, and to take over a wallet whose lease runs out after 3 s. */
const TIMEOUT_MS = 60_000;

/** The second worker. */
export interface SecondWorker {
  /** Its own withdrawal API. */
  readonly url: string;
  readonly process: ChildProcess;
  /** Resolves when it holds the hot wallet's lease. */
  untilWorking(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it on the kit's home and waits until its API is ready. */
export async function startSecondWorker(kit: RunningKit): Promise<SecondWorker> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const main = path.join(await compiledFolder(), "withdrawal-worker", "main.js");
  const portOffset = String(kit.port("jsonRpc") - 8545);
  const child = spawn(process.execPath, [main, "--home", kit.home, "--port-offset", portOffset], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, CAUSEWAY_WORKER_API_LISTEN: `127.0.0.1:${port}` },
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const exited = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await exited;
  };
  const waitFor = async (what: string, isThere: () => Promise<boolean>): Promise<void> => {
    await until(isThere, { timeoutMs: TIMEOUT_MS, what: `the second worker ${what}` }).catch(
      async (error: unknown) => {
        child.kill("SIGCONT");
        await stop();
        throw new Error(`${String(error)}\n${output.slice(-2_000)}`);
      },
    );
  };
  await waitFor("is ready", async () => {
    if (child.exitCode !== null) throw new Error(`the second worker ended: ${output}`);
    try {
      return (await fetch(`${url}/ready`)).status === 200;
    } catch {
      return false; // Not listening yet.
    }
  });
  return {
    url,
    process: child,
    untilWorking: () =>
      waitFor("works for the wallet", async () => output.includes("working for the wallet")),
    stop,
  };
}
