/** CometBFT's own light client, unmodified: it follows a chain through a primary and a witness. */
import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../helpers/ports.js";
import { until } from "../helpers/until.js";
import { comet } from "./calls.js";
import type { NetworkNode, RunningNetwork } from "./network.js";

/** Pause between two looks whether it serves. */
const POLL_MS = 150;

/** A header that the light client verified, as its proxy answers it. */
export interface VerifiedCommit {
  readonly signed_header: {
    readonly header: { readonly height: string; readonly validators_hash: string };
    readonly commit: { readonly block_id: { readonly hash: string } };
  };
}

/** A light client that runs. */
export interface LightClient {
  /** Asks its proxy for a height: it verifies before it answers. */
  commit(height: number): Promise<VerifiedCommit>;
  output(): string;
  stop(): Promise<void>;
}

/** What the light client trusts to begin with, and whom it asks. */
export interface LightOptions {
  readonly network: RunningNetwork;
  readonly primary: NetworkNode;
  readonly witness: NetworkNode;
  readonly height: number;
  /** Hash of the header of that height, 64 hex digits. */
  readonly hash: string;
  /** Verifies every header in between, instead of as few as it can. */
  readonly isSequential?: boolean;
}

const processes = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of processes) child.kill("SIGKILL");
});

/** Path of the program that `bin/test.mjs --network` built. */
export function lightProgram(): string {
  const program = process.env["COMETBFT"];
  if (program === undefined) throw new Error("run this with `npm run test:network`");
  return program;
}

/** Starts it on an empty home and waits until its proxy answers. */
export async function startLightClient(options: LightOptions): Promise<LightClient> {
  const { network, primary, witness, height, hash, isSequential = false } = options;
  const port = await freePort();
  const home = fs.mkdtempSync(path.join(network.folder, "light-"));
  const trusted = ["--height", String(height), "--hash", hash];
  const asked = ["-p", primary.cometUrl, "-w", witness.cometUrl];
  const place = ["--laddr", `tcp://127.0.0.1:${port}`, "--home-dir", home];
  const child = spawn(
    lightProgram(),
    ["light", "chain_6940-1", ...asked, ...trusted, ...place].concat(
      isSequential ? ["--sequential"] : [],
    ),
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  processes.add(child);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => {
      processes.delete(child);
      resolve();
    });
  });
  const proxy = { evmUrl: "", cometUrl: `http://127.0.0.1:${port}` };
  const client: LightClient = {
    async commit(wanted) {
      const ask = () => comet<VerifiedCommit>(proxy, `commit?height=${wanted}`);
      // CometBFT's server cuts off what it has not answered in 10 s, and connections that it kept.
      return ask().catch(async (error: unknown) => {
        if (!(error instanceof TypeError)) throw error;
        return ask().catch((cause: unknown) => {
          throw new Error(`the light client does not answer:\n${output}`, { cause });
        });
      });
    },
    output: () => output,
    async stop() {
      child.kill("SIGKILL");
      await exited;
    },
  };
  await until(
    async () => {
      await pause(POLL_MS);
      if (child.exitCode !== null) throw new Error(`the light client ended:\n${output}`);
      return comet(proxy, "status").then(
        () => true,
        () => false, // Not listening yet.
      );
    },
    { timeoutMs: 60_000, what: "the light client serves" },
  );
  return client;
}
