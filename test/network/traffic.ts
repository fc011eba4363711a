/** Plain transfers at a steady rate, spread over nodes; each one's hash is kept. */
import { type Address, parseAddress, privateKeyToAddress } from "../../chain/address.js";
import { sha256 } from "../../chain/crypto.js";
import { bytesToHex, hexToBytes } from "../../chain/hex.js";
import { signLegacy } from "../../chain/transaction.js";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../helpers/until.js";
import { evm, evmBatch } from "./calls.js";
import type { NetworkNode, RunningNetwork } from "./network.js";

/** Time between two batches. */
const TICK_MS = 100;

/** Senders; each belongs to one node, so that its nonces arrive in order. */
const SENDERS = 40;

/** Coins of each sender: far more than its transfers cost. */
const FUNDED_ATOKEN = 10n ** 21n;

/** Pause between two looks at all receipts. */
const POLL_MS = 150;

/** Longest until what was accepted is mined everywhere, on a busy machine. */
const MINED_TIMEOUT_MS = 60_000;

/** A sender's next transaction is sent after the answer to the one before. */
interface Sender {
  readonly address: Address;
  readonly key: Uint8Array;
  readonly node: NetworkNode;
  nonce: bigint;
}

/** Figures of a run. */
export interface TrafficReport {
  /** Hashes that a node answered with, in no order. */
  readonly accepted: readonly string[];
  readonly perSecond: number;
  /** Times of `eth_getTransactionReceipt` during the run, sorted, milliseconds. */
  readonly receiptMs: readonly number[];
}

/** Traffic that runs until it is stopped. */
export interface RunningTraffic {
  /** Hashes so far. */
  readonly accepted: readonly string[];
  /** Ends it; rejects with the first refusal of a transfer. */
  stop(): Promise<TrafficReport>;
}

/** Funds fresh senders and begins. @param nodes those that are sent to; they stay up */
export async function startTraffic(
  network: RunningNetwork,
  nodes: readonly NetworkNode[],
  perSecond: number,
): Promise<RunningTraffic> {
  const senders = createSenders(nodes);
  await fund(network, senders, nodes);
  const accepted: string[] = [];
  const receiptMs: number[] = [];
  const ending = new AbortController();
  const startMs = performance.now();
  const run = async () => {
    for (let sent = 0, tick = 1; !ending.signal.aborted; tick += 1) {
      const due = Math.round((perSecond * tick * TICK_MS) / 1_000) - sent;
      const turn = Array.from({ length: due }, (_, n) => senders[(sent + n) % senders.length]);
      sent += due;
      await Promise.all(nodes.map((node) => send(node, turn, accepted)));
      const node = nodes[tick % nodes.length];
      if (node !== undefined) await readReceipt(node, accepted, receiptMs);
      const waitMs = startMs + tick * TICK_MS - performance.now();
      if (waitMs > 0) await pause(waitMs);
    }
    return (accepted.length * 1_000) / (performance.now() - startMs);
  };
  const running = run();
  // A refusal is thrown by `stop`; until then nobody waits for it.
  running.catch(() => undefined);
  return {
    accepted,
    async stop() {
      ending.abort();
      const rate = await running;
      return {
        accepted,
        perSecond: Math.round(rate),
        receiptMs: receiptMs.toSorted((left, right) => left - right),
      };
    },
  };
}

/** Resolves when every hash has a receipt on every node. */
export async function untilMined(
  nodes: readonly NetworkNode[],
  hashes: readonly string[],
): Promise<void> {
  for (const node of nodes) {
    let missing = [...hashes];
    await until(
      async () => {
        await pause(POLL_MS);
        missing = await withoutReceipt(node, missing);
        return missing.length === 0;
      },
      { timeoutMs: MINED_TIMEOUT_MS, what: `all accepted transfers are mined on ${node.name}` },
    ).catch(async (error: unknown) => {
      const hash = missing[0];
      const status = await evm(node, "causeway_getTransactionStatus", [hash]);
      const first = `${missing.length} are missing, ${hash} first: ${JSON.stringify(status)}`;
      throw new Error(`${String(error)}; ${first}`);
    });
  }
}

async function withoutReceipt(node: NetworkNode, hashes: readonly string[]): Promise<string[]> {
  const missing: string[] = [];
  for (let start = 0; start < hashes.length; start += 500) {
    const some = hashes.slice(start, start + 500);
    const calls = some.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] }));
    const answers = await evmBatch<object | null>(node, calls);
    missing.push(...some.filter((_, index) => answers[index]?.result == null));
  }
  return missing;
}

function createSenders(nodes: readonly NetworkNode[]): Sender[] {
  const tag = `${process.pid} ${performance.now()}`;
  return Array.from({ length: SENDERS }, (_, index) => {
    const key = sha256(Buffer.from(`${tag} ${index}`));
    const node = nodes[index % nodes.length];
    if (node === undefined) throw new RangeError("no node to send to");
    return { address: privateKeyToAddress(key), key, node, nonce: 0n };
  });
}

async function fund(
  network: RunningNetwork,
  senders: readonly Sender[],
  nodes: readonly NetworkNode[],
): Promise<void> {
  const [first] = nodes;
  if (first === undefined) return;
  const key = hexToBytes(network.faucetKey);
  const place = [privateKeyToAddress(key), "latest"];
  const nonce = BigInt(await evm<string>(first, "eth_getTransactionCount", place));
  const raws = senders.map(({ address }, index) => {
    return sign(key, { nonce: nonce + BigInt(index), to: address, valueAtoken: FUNDED_ATOKEN });
  });
  await untilMined(nodes, await submit(first, raws));
}

async function send(
  node: NetworkNode,
  turn: readonly (Sender | undefined)[],
  accepted: string[],
): Promise<void> {
  const raws = turn.flatMap((sender) => {
    if (sender?.node !== node) return [];
    const to = parseAddress(
      `0x${(0x10ad_0000n + (sender.nonce % 97n)).toString(16).padStart(40, "0")}`,
    );
    const raw = sign(sender.key, { nonce: sender.nonce, to, valueAtoken: 7n });
    sender.nonce += 1n;
    return [raw];
  });
  accepted.push(...(await submit(node, raws)));
}

async function submit(node: NetworkNode, raws: readonly string[]): Promise<string[]> {
  const calls = raws.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] }));
  return (await evmBatch<string>(node, calls)).map(({ result, error }) => {
    if (result === undefined) throw new Error(`${node.name} refused: ${JSON.stringify(error)}`);
    return result;
  });
}

async function readReceipt(node: NetworkNode, hashes: readonly string[], times: number[]) {
  // One of the last second: mined or not, both are asked for in life.
  const hash = hashes.at(-Math.min(hashes.length, 100));
  if (hash === undefined) return;
  const startMs = performance.now();
  await evmBatch(node, [{ method: "eth_getTransactionReceipt", params: [hash] }]);
  times.push(performance.now() - startMs);
}

function sign(
  key: Uint8Array,
  intent: { readonly nonce: bigint; readonly to: Address; readonly valueAtoken: bigint },
): string {
  const gas = { gasPriceAtoken: 25_000_000n, gasLimit: 21_000n };
  const fields = { chainId: 6940n, data: new Uint8Array(0), ...gas, ...intent };
  return bytesToHex(signLegacy(fields, key));
}
