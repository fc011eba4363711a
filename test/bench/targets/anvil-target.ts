/** The peer: anvil from npm with the same chain id, block time and prices; everything in RAM. */
import { existsSync } from "node:fs";
import path from "node:path";
import type { Address } from "../../../chain/address.js";
import { freePort } from "../../helpers/ports.js";
import { cloneFolder } from "../../../cli/home/home.js";
import type { ChainTarget } from "./chain-target.js";
import { callRpc, callRpcBatch } from "../json-rpc.js";
import { startProcess } from "../processes.js";
import { CHAIN_ID } from "../senders.js";

/** Coins of each funded account: a million TOKEN. */
const FUNDED = `0x${(10n ** 24n).toString(16)}`;

/** Accounts funded by one request. */
const FUND_BATCH = 500;

/** Far above what a block of 2 s can execute: anvil's gas limit shall not be what stops it. */
const BLOCK_GAS_LIMIT = "30000000000";

/** Path of anvil's program, or undefined where npm brings none for this platform. */
export function anvilProgram(): string | undefined {
  const name = `anvil-${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const folder = path.join(cloneFolder(), "node_modules", "@foundry-rs", name, "bin");
  const program = path.join(folder, "anvil");
  return existsSync(program) ? program : undefined;
}

/** Starts anvil; undefined where there is none. */
export async function startAnvilTarget(
  funded: readonly Address[],
): Promise<ChainTarget | undefined> {
  const program = anvilProgram();
  if (program === undefined) return undefined;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const chain = ["--block-time", "2", "--chain-id", String(CHAIN_ID), "--hardfork", "cancun"];
  const rules = ["--base-fee", "0", "--gas-price", "1", "--gas-limit", BLOCK_GAS_LIMIT];
  const anvil = await startProcess({
    name: "anvil",
    command: program,
    args: [...chain, ...rules, "--order", "fifo", "--silent", "--port", String(port)],
    isReady: async () => (await callRpc<string>(url, "eth_chainId", [])) !== "",
  });
  for (let start = 0; start < funded.length; start += FUND_BATCH) {
    const accounts = funded.slice(start, start + FUND_BATCH);
    const calls = accounts.map((at) => ({ method: "anvil_setBalance", params: [at, FUNDED] }));
    await callRpcBatch(url, calls);
  }
  return { name: "anvil", url, process: anvil, limits: undefined, stop: () => anvil.stop() };
}
