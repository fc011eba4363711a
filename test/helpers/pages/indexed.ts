/** What the explorer's pages show of an index: an indexer beside a stage, and a market on its chain. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { Contract, ContractFactory, type ContractTransactionResponse, Wallet } from "ethers";
import { createIndexerDatabase } from "../indexer/indexer.js";
import { compiledFolder } from "../services/services.js";
import { until } from "../until.js";
import type { ExplorerStage } from "./explorer.js";

/** A pair of Uniswap V2 that was traded. */
export interface Market {
  readonly pair: string;
  readonly token: string;
  readonly trader: string;
}

/** An indexer that has the whole chain of a stage, where the explorer looks for it. */
export interface StageIndexer {
  close(): Promise<void>;
}

const PRICE = { type: 0, gasPrice: 25_000_000n } as const;
const SUPPLY = 10n ** 24n;
const SWAPS = 6;

/** Starts it, and waits until it has the head and has checked its balances. */
export async function openStageIndexer({ home, offset }: ExplorerStage): Promise<StageIndexer> {
  const [{ database, url }, folder] = await Promise.all([
    createIndexerDatabase(),
    compiledFolder(),
  ]);
  const script = path.join(folder, "indexer", "main.js");
  const child = spawn(process.execPath, [script, "--home", home, "--port-offset", String(offset)], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { PATH: process.env["PATH"], DATABASE_URL: url, CAUSEWAY_LOG_LEVEL: "error" },
  });
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    await database.drop();
  };
  try {
    const isThere = async () => {
      const reply = await fetch(`http://127.0.0.1:${8084 + offset}/v1/status`).catch(
        () => undefined,
      );
      if (reply?.status !== 200) return false;
      const { status } = (await reply.json()) as {
        status: { state: string; unverifiedBalances: number };
      };
      // Blocks keep coming, with rewards to check.
      return status.state === "following" && status.unverifiedBalances < 10;
    };
    await until(isThere, { timeoutMs: 60_000, what: "the indexer follows" });
    return { close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Deploys Uniswap V2's published factory and a pair of two tokens, and trades it to and fro. */
export async function playMarket({ home, provider }: ExplorerStage): Promise<Market> {
  const key = fs.readFileSync(path.join(home, "config", "faucet.key"), "utf8").trim();
  const wallet = new Wallet(key, provider);
  let nonce = await wallet.getNonce();
  const deploy = async (part: string, name: string, args: unknown[]) => {
    const { abi, bytecode } = artifact(part, name);
    const made = await new ContractFactory(abi, bytecode, wallet).deploy(...args, {
      ...PRICE,
      nonce: nonce++,
    });
    await made.waitForDeployment();
    return new Contract(await made.getAddress(), abi, wallet);
  };
  const send = async (contract: Contract, method: string, ...args: unknown[]) => {
    const gasLimit = 3_900_000n;
    const call = contract.getFunction(method);
    const sent = await call(...args, { ...PRICE, gasLimit, nonce: nonce++ });
    await (sent as ContractTransactionResponse).wait();
  };
  const factory = await deploy("core", "UniswapV2Factory", [wallet.address]);
  const first = await deploy("periphery", "ERC20", [SUPPLY]);
  const second = await deploy("periphery", "ERC20", [SUPPLY]);
  const sides = [await first.getAddress(), await second.getAddress()];
  await send(factory, "createPair", ...sides);
  const pairAddress = String(await factory.getFunction("getPair")(...sides));
  const pair = new Contract(pairAddress, artifact("core", "UniswapV2Pair").abi, wallet);
  const liquidity = 10n ** 21n;
  await send(first, "transfer", pairAddress, liquidity);
  await send(second, "transfer", pairAddress, liquidity);
  await send(pair, "mint", wallet.address);
  const zero = String(await pair.getFunction("token0")());
  for (let turn = 0; turn < SWAPS; turn += 1) {
    const given = turn % 2 === 0 ? first : second;
    const isZero = (await given.getAddress()) === zero;
    const out = 10n ** 18n * BigInt(1 + turn);
    await send(given, "transfer", pairAddress, 2n * out);
    const amounts = isZero ? [0n, out] : [out, 0n];
    await send(pair, "swap", ...amounts, wallet.address, "0x");
  }
  return { pair: pairAddress, token: await first.getAddress(), trader: wallet.address };
}

function artifact(part: string, name: string): { abi: string[]; bytecode: string } {
  const file = `node_modules/@uniswap/v2-${part}/build/${name}.json`;
  return JSON.parse(fs.readFileSync(file, "utf8")) as { abi: string[]; bytecode: string };
}
