/**
 * The traffic generator: fills a kit's chain with every kind of balance change, seeded, and proves
 * from receipts, events and balances that each kind really occurred.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { id, Interface, Wallet } from "ethers";
import {
  type ChainRequest,
  deployData,
  ExchangeChain,
  Sender,
  type TestReceipt,
} from "../helpers/exchange/chain.js";
import type { RunningKit } from "../helpers/kit.js";
import { createRandom, type Random } from "../helpers/random.js";
import { type CompiledContract, compileSolidity } from "../helpers/contracts/solidity.js";

/** One TOKEN in atoken. */
export const TOKEN = 10n ** 18n;

/** Accounts that send; few, so that most transactions touch accounts with a past. */
const SENDER_COUNT = 6;

/** Endowment of each sender: enough for the long form. */
const EACH_ATOKEN = 1_000n * TOKEN;

/** A receipt with the events that it carries. */
export interface TrafficReceipt extends TestReceipt {
  readonly gasUsed: bigint;
  readonly logs: readonly { readonly address: string; readonly topics: string[]; data: string }[];
}

/** One transaction of the traffic, and how to know that it did what it is for. */
export interface Act {
  readonly kind: string;
  readonly from: Sender;
  readonly request: ChainRequest;
  readonly fails?: boolean;
  /** The event that a contract emits once it has proved the effect. */
  readonly says?: string;
  /** A further proof; false means that the kind did not occur. */
  readonly proof?: (receipt: TrafficReceipt) => boolean | Promise<boolean>;
}

/** What the generators build acts from. */
export interface Stage {
  readonly chain: ExchangeChain;
  readonly random: Random;
  readonly senders: readonly Sender[];
  readonly faucet: Sender;
}

/** What was played: how often each kind occurred, proven. */
export interface TrafficReport {
  readonly kinds: Map<string, number>;
  transactions: number;
}

/** The wallet of a name: the same in every run, so that addresses are known before the chain. */
export function namedWallet(name: string): Wallet {
  return new Wallet(id(`causeway mesh traffic: ${name}`));
}

/** Compiles a source of test/mesh/contracts. */
export function compileContracts(file: string): Record<string, CompiledContract> {
  const source = path.join(process.cwd(), "test", "mesh", "contracts", file);
  return compileSolidity({ [file]: fs.readFileSync(source, "utf8") });
}

/** A home that holds nothing but the list of tokens, for a kit to start on. */
export function homeWithTokens(tokens: readonly object[]): string {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-mesh-"));
  fs.mkdirSync(path.join(home, "config"), { mode: 0o700 });
  fs.writeFileSync(path.join(home, "config", "tokens.json"), JSON.stringify(tokens));
  return home;
}

/** Funds the senders and everything else by name. */
export async function openStage(kit: RunningKit, seed: number): Promise<Stage> {
  const chain = new ExchangeChain(kit);
  const wallet = new Wallet(kit.key("faucet.key"));
  const nonce = await chain.provider.send("eth_getTransactionCount", [wallet.address, "latest"]);
  const faucet = new Sender(wallet, chain, Number(nonce));
  const wallets = Array.from({ length: SENDER_COUNT }, (_, n) =>
    namedWallet(`sender ${seed} ${n}`),
  );
  await fundWallets({ chain, faucet }, wallets, EACH_ATOKEN);
  const senders = wallets.map((each) => new Sender(each, chain));
  return { chain, faucet, senders, random: createRandom(seed) };
}

/** Pays each wallet from the faucet. */
export async function fundWallets(
  { chain, faucet }: Pick<Stage, "chain" | "faucet">,
  wallets: readonly Wallet[],
  valueAtoken: bigint,
): Promise<void> {
  const requests = wallets.map(({ address }) => ({ to: address, valueAtoken }));
  await chain.mined(await faucet.send(requests));
}

/** Sends all acts, each sender's in order and the senders at once, and proves every one. */
export async function playActs(
  stage: Stage,
  acts: readonly Act[],
  report: TrafficReport,
): Promise<TrafficReceipt[]> {
  const hashes = new Map<Act, string>();
  await Promise.all(
    [...new Set(acts.map(({ from }) => from))].map(async (sender) => {
      const own = acts.filter(({ from }) => from === sender);
      const sent = await sender.send(own.map(({ request }) => request));
      own.forEach((act, index) => hashes.set(act, sent[index] ?? ""));
    }),
  );
  await stage.chain.mined([...hashes.values()]);
  const receipts = await Promise.all(
    acts.map((act) => readReceipt(stage.chain, hashes.get(act) ?? "")),
  );
  for (const [index, act] of acts.entries()) {
    const receipt = receipts[index];
    if (receipt === undefined) throw new Error(`${act.kind}: no receipt`);
    await prove(act, receipt);
    report.kinds.set(act.kind, (report.kinds.get(act.kind) ?? 0) + 1);
  }
  report.transactions += acts.length;
  return receipts;
}

const DID = new Interface(["event Did(string kind)"]);

async function prove(act: Act, receipt: TrafficReceipt): Promise<void> {
  const place = `${act.kind}, transaction ${receipt.hash}`;
  if (receipt.isSuccess === (act.fails === true)) {
    throw new Error(`${place}: ${receipt.isSuccess ? "it succeeded" : "it failed"}`);
  }
  const said = receipt.logs.map((log) => DID.parseLog(log)?.args["kind"]);
  if (act.says !== undefined && !said.includes(act.says)) {
    throw new Error(`${place}: it did not occur, only ${said.join(", ")}`);
  }
  if (act.proof !== undefined && !(await act.proof(receipt))) {
    throw new Error(`${place}: its proof does not hold`);
  }
}

interface RpcReceipt {
  readonly transactionHash: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly transactionIndex: string;
  readonly status: string;
  readonly gasUsed: string;
  readonly effectiveGasPrice: string;
  readonly logs: TrafficReceipt["logs"];
}

async function readReceipt(chain: ExchangeChain, hash: string): Promise<TrafficReceipt> {
  const receipt: RpcReceipt = await chain.provider.send("eth_getTransactionReceipt", [hash]);
  const gasUsed = BigInt(receipt.gasUsed);
  return {
    hash: receipt.transactionHash,
    blockNumber: Number(receipt.blockNumber),
    blockHash: receipt.blockHash,
    transactionIndex: Number(receipt.transactionIndex),
    isSuccess: receipt.status === "0x1",
    feeAtoken: gasUsed * BigInt(receipt.effectiveGasPrice),
    gasUsed,
    logs: receipt.logs,
  };
}

/** A call of a contract as the request of a transaction. */
export function callRequest(
  contract: CompiledContract | undefined,
  to: string,
  call: {
    readonly name: string;
    readonly args?: readonly unknown[];
    readonly valueAtoken?: bigint;
  },
): ChainRequest {
  if (contract === undefined) throw new Error("the contract did not compile");
  const data = new Interface(JSON.stringify(contract.abi)).encodeFunctionData(call.name, [
    ...(call.args ?? []),
  ]);
  return { to, data, valueAtoken: call.valueAtoken ?? 0n };
}

/** A creation as the request of a transaction. */
export function deployRequest(
  contract: CompiledContract | undefined,
  args: readonly unknown[] = [],
  valueAtoken = 0n,
): ChainRequest {
  return { data: deployData(contract, args), valueAtoken, gasLimit: 3_000_000n };
}
