/**
 * A validator alone in a process of its own, killed with SIGKILL at every numbered place of
 * consensus and of the block's write: its next life goes on with the chain that it showed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { NODE_FAILPOINTS } from "../../node/blocks/decision.js";
import { CONSENSUS_FAILPOINTS } from "../../node/consensus/height-run.js";
import { encodeGenesis } from "../../node/settings/genesis.js";
import { freePort } from "../helpers/ports.js";
import { compiledFolder } from "../helpers/services/services.js";
import { until } from "../helpers/until.js";
import { validatorGenesis, writeValidatorHome } from "../helpers/chains/validator-node.js";

let cleanUp: (() => void)[] = [];

afterEach(() => {
  for (const step of cleanUp.toReversed()) step();
  cleanUp = [];
});

/** Starts a node's process on a home of its own; resolves when it ends or decides blocks. */
class NodeProcess {
  private output = "";

  private constructor(
    readonly child: ChildProcess,
    readonly url: string,
  ) {
    child.stdout?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
    child.stderr?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
  }

  static async start(home: string, failpoint?: string): Promise<NodeProcess> {
    const folder = await compiledFolder();
    const [evm, ws, comet] = await Promise.all([freePort(), freePort(), freePort()]);
    const child = spawn(process.execPath, [path.join(folder, "node", "main.js"), "--home", home], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"],
        CAUSEWAY_APP_JSON_RPC_ADDRESS: `127.0.0.1:${evm}`,
        CAUSEWAY_APP_JSON_RPC_WS_ADDRESS: `127.0.0.1:${ws}`,
        CAUSEWAY_CONFIG_RPC_LADDR: `tcp://127.0.0.1:${comet}`,
        CAUSEWAY_CONFIG_INSTRUMENTATION_PROMETHEUS: "false",
        ...(failpoint === undefined ? {} : { CAUSEWAY_FAILPOINT: failpoint }),
      },
    });
    cleanUp.push(() => {
      child.kill("SIGKILL");
    });
    return new NodeProcess(child, `http://127.0.0.1:${evm}`);
  }

  async ended(): Promise<string> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      await once(this.child, "exit");
    }
    return this.child.signalCode ?? this.output;
  }

  /** Hashes of all blocks so far, by height; empty while the node does not answer. */
  async hashes(): Promise<Map<number, string>> {
    const found = new Map<number, string>();
    for (let height = 0; ; height++) {
      const block = await this.block(height).catch(() => undefined);
      if (block === undefined) return found;
      found.set(height, block);
    }
  }

  private async block(height: number): Promise<string | undefined> {
    const reply = await fetch(this.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "eth_getBlockByNumber",
        params: [`0x${height.toString(16)}`, false],
      }),
    });
    const { result } = (await reply.json()) as { result: { hash: string } | null };
    return result?.hash;
  }
}

describe("a validator alone", () => {
  it("killed with SIGKILL at every place goes on with the chain that it showed", async () => {
    const { genesis, seeds } = validatorGenesis(1, { blockIntervalMs: 100 });
    const home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-crash-"));
    cleanUp.push(() => fs.rmSync(home, { recursive: true, force: true }));
    const [seed] = seeds;
    if (seed === undefined) throw new Error("no seed");
    writeValidatorHome(home, seed);
    fs.copyFileSync(
      path.join(home, "config", "priv_validator_key.json"),
      path.join(home, "config", "node_key.json"),
    );
    fs.writeFileSync(path.join(home, "config", "genesis.json"), encodeGenesis(genesis));
    const shown = new Map<number, string>();
    for (const name of [...CONSENSUS_FAILPOINTS, ...NODE_FAILPOINTS, undefined]) {
      const node = await NodeProcess.start(home, name === undefined ? undefined : `${name}:4`);
      const before = shown.size;
      const isOver = () => node.child.exitCode !== null || node.child.signalCode !== null;
      await until(
        async () => {
          for (const [height, hash] of await node.hashes()) {
            expect({ height, hash }).toEqual({ height, hash: shown.get(height) ?? hash });
            shown.set(height, hash);
          }
          return isOver() || (name === undefined && shown.size >= before + 4);
        },
        { timeoutMs: 30_000, what: `the node dies at ${name ?? "no place"}` },
      );
      if (name === undefined) node.child.kill("SIGTERM");
      const ending = await node.ended();
      if (name !== undefined) expect({ name, ending }).toEqual({ name, ending: "SIGKILL" });
    }
    // Every life but the last decided some blocks, and none of them went away.
    expect(shown.size).toBeGreaterThan(CONSENSUS_FAILPOINTS.length);
    const state = fs.readFileSync(path.join(home, "data", "priv_validator_state.json"), "utf8");
    expect(Number(JSON.parse(state).height)).toBeGreaterThanOrEqual(shown.size - 1);
  });
});
