/** Single nodes for tests: `causeway start` from the compiled sources, and what a node says. */
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { compiledFolder } from "../services/services.js";

/** A node that was started; it need not be up. */
export interface NodeProcess {
  readonly process: ChildProcess;
  /** All that it wrote to standard output. */
  output(): string;
  errors(): string;
  /** Exit code, or the signal's name, when it is gone. */
  readonly ended: Promise<number | string>;
}

/** No call is too late for a node on a busy machine, whose threads may take seconds to begin. */
export const PATIENT_CALLS = { CAUSEWAY_APP_JSON_RPC_EVM_TIMEOUT_MS: "240000" } as const;

/** Starts the node of a home in this process' own group; `env` is added to its environment. */
export async function startNodeProcess(
  home: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<NodeProcess> {
  const main = path.join(await compiledFolder(), "cli", "main.js");
  const child = spawn(process.execPath, [main, "start", "--home", home, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...PATIENT_CALLS, ...env },
  });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const ended = new Promise<number | string>((resolve) =>
    child.once("close", (code, signal) => resolve(code ?? signal ?? "")),
  );
  return { process: child, output: () => output, errors: () => errors, ended };
}

/** What is asked of a node's consensus RPC. */
export interface NodeReport {
  readonly height: number;
  readonly isCatchingUp: boolean;
  readonly nodeId: string;
  readonly hash: string;
}

/** What a node says about itself; undefined as long as it does not answer. */
export async function nodeReport(cometRpcPort: number): Promise<NodeReport | undefined> {
  try {
    const answer = await fetch(`http://127.0.0.1:${cometRpcPort}/status`);
    const { result } = (await answer.json()) as {
      result: {
        node_info: { id: string };
        sync_info: {
          latest_block_height: string;
          latest_block_hash: string;
          catching_up: boolean;
        };
      };
    };
    return {
      height: Number(result.sync_info.latest_block_height),
      isCatchingUp: result.sync_info.catching_up,
      nodeId: result.node_info.id,
      hash: result.sync_info.latest_block_hash,
    };
  } catch {
    return undefined; // Not listening yet, or gone.
  }
}
