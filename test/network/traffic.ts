/**
 * Plain transfers at a steady rate, spread over nodes; each one's hash is kept. A node may go away:
 * what it did not answer is sent to it again when it is back, as a careful client does.
 */
import { type Address, parseAddress } from "../../chain/address.js";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { keccak256Hex, sha256 } from "../../chain/hashes.js";
import { bytesToHex, hexToBytes } from "../../chain/hex.js";
import { signLegacy } from "../../chain/transaction.js";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../helpers/until.js";
import { evm, evmBatch } from "./calls.js";
import type { NetworkNode, RunningNetwork } from "./network.js";

/** Time between two batches. */
const TICK_MS = 100;

/** Senders; each belongs to one node, so that its nonces arrive in order. */
const SENDERS = 42;

/** Most calls of one request; a node that was away is not sent more transfers at once. */
const MOST_PER_REQUEST = 500;

/**
 * A client does not send for ever to a chain that does not mine: with so much of it under way it
 * waits. Longer than a chain is halted here on purpose.
 */
const MOST_UNDER_WAY_MS = 8_000;

/** Answers to a transfer that the node had taken before it went away. */
const TAKEN_BEFORE = /already known|nonce too low/;

/** Coins of each sender: far more than its transfers cost. */
const FUNDED_ATOKEN = 10n ** 21n;

/** Pause between two looks at all receipts. */
const POLL_MS = 250;

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

/** Funds fresh senders and begins. @param nodes those that are sent to */
export async function startTraffic(
  network: RunningNetwork,
  nodes: readonly NetworkNode[],
  perSecond: number,
): Promise<RunningTraffic> {
  if (nodes.length > SENDERS) throw new RangeError(`at most ${SENDERS} nodes can be sent to`);
  const senders = createSenders(nodes);
  await fund(network, senders, nodes);
  const accepted: string[] = [];
  const receiptMs: number[] = [];
  const ending = new AbortController();
  const startMs = performance.now();
  const lanes = nodes.map((node) => {
    const own = senders.filter((sender) => sender.node === node);
    return new Lane(node, own, { perSecond: perSecond / nodes.length, accepted, receiptMs });
  });
  const running = Promise.all(lanes.map((lane) => lane.run(ending.signal)));
  // A refusal is thrown by `stop`; until then nobody waits for it.
  running.catch(() => undefined);
  return {
    accepted,
    async stop() {
      ending.abort();
      await running;
      const rate = (accepted.length * 1_000) / (performance.now() - startMs);
      return {
        accepted,
        perSecond: Math.round(rate),
        receiptMs: receiptMs.toSorted((left, right) => left - right),
      };
    },
  };
}

/** What is sent to one node. */
class Lane {
  private sent = 0;
  /** Signed and not answered, oldest first. */
  private open: string[] = [];
  private isResending = false;
  private readonly taken: string[] = [];
  private isFarAhead = false;

  constructor(
    private readonly node: NetworkNode,
    private readonly senders: readonly Sender[],
    private readonly plan: {
      readonly perSecond: number;
      readonly accepted: string[];
      readonly receiptMs: number[];
    },
  ) {}

  /** Sends until the signal fires and everything has its answer. */
  async run(signal: AbortSignal): Promise<void> {
    const startMs = performance.now();
    for (let tick = 1; !signal.aborted || this.open.length > 0; tick += 1) {
      if (!signal.aborted && !this.isFarAhead) this.signDue(performance.now() - startMs);
      await this.send();
      const waitMs = startMs + tick * TICK_MS - performance.now();
      if (waitMs > 0) await pause(waitMs);
      else tick = Math.floor((performance.now() - startMs) / TICK_MS);
    }
  }

  private signDue(elapsedMs: number): void {
    const due = Math.round((this.plan.perSecond * elapsedMs) / 1_000) - this.sent;
    const room = Math.max(0, MOST_PER_REQUEST - this.open.length);
    for (let n = 0; n < Math.min(due, room); n += 1) {
      const sender = this.senders[this.sent % this.senders.length];
      if (sender === undefined) throw new RangeError("no sender");
      const receiver = (0x10ad_0000n + (sender.nonce % 97n)).toString(16).padStart(40, "0");
      const to = parseAddress(`0x${receiver}`);
      this.open.push(sign(sender.key, { nonce: sender.nonce, to, valueAtoken: 7n }));
      sender.nonce += 1n;
      this.sent += 1;
    }
  }

  private async send(): Promise<void> {
    const raws = this.open;
    try {
      const hashes = await submit(this.node, raws, { isAgain: this.isResending });
      this.open = [];
      this.isResending = false;
      this.plan.accepted.push(...hashes);
      this.taken.push(...hashes);
    } catch (error) {
      if (error instanceof Refused) throw error;
      // It is down, frozen, or its answer was lost with the connection.
      this.isResending = true;
      return;
    }
    this.isFarAhead = !(await this.isMining().catch(() => false));
  }

  /** Whether what was taken some time ago is mined; the answer's time is one of the figures. */
  private async isMining(): Promise<boolean> {
    const mostUnderWay = Math.ceil((this.plan.perSecond * MOST_UNDER_WAY_MS) / 1_000);
    const hash = this.taken.at(-mostUnderWay) ?? this.taken[0];
    if (hash === undefined) return true;
    const startMs = performance.now();
    const call = { method: "eth_getTransactionReceipt", params: [hash] };
    const [answer] = await evmBatch<object | null>(this.node, [call]);
    this.plan.receiptMs.push(performance.now() - startMs);
    return this.taken.length < mostUnderWay || answer?.result != null;
  }
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
        missing = await withoutReceipt(node, missing).catch(() => missing);
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

/** Those without a receipt; it stops at the first ones, to leave the node its processor. */
async function withoutReceipt(node: NetworkNode, hashes: readonly string[]): Promise<string[]> {
  for (let start = 0; start < hashes.length; start += MOST_PER_REQUEST) {
    const some = hashes.slice(start, start + MOST_PER_REQUEST);
    const calls = some.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] }));
    const answers = await evmBatch<object | null>(node, calls);
    const missing = some.filter((_, index) => answers[index]?.result == null);
    if (missing.length > 0) return [...missing, ...hashes.slice(start + MOST_PER_REQUEST)];
  }
  return [];
}

/** Sends all to one node, a request after the other. @returns the hashes, in order. @throws what it refuses */
export async function submitAll(node: NetworkNode, raws: readonly string[]): Promise<string[]> {
  const hashes: string[] = [];
  for (let start = 0; start < raws.length; start += MOST_PER_REQUEST) {
    const some = raws.slice(start, start + MOST_PER_REQUEST);
    hashes.push(...(await submit(node, some, { isAgain: false })));
  }
  return hashes;
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
  await untilMined(nodes, await submit(first, raws, { isAgain: false }));
}

/** A transfer that a node does not take. */
class Refused extends Error {}

/** @returns the hashes, in order. @throws Refused */
async function submit(
  node: NetworkNode,
  raws: readonly string[],
  { isAgain }: { readonly isAgain: boolean },
): Promise<string[]> {
  const calls = raws.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] }));
  return (await evmBatch<string>(node, calls)).map(({ result, error }, index) => {
    const hash = keccak256Hex(hexToBytes(raws[index] ?? ""));
    const isTaken = isAgain && TAKEN_BEFORE.test(error?.message ?? "");
    if (result !== hash && !isTaken) {
      throw new Refused(`${node.name} refused: ${JSON.stringify(error ?? result)}`);
    }
    return hash;
  });
}

function sign(
  key: Uint8Array,
  intent: { readonly nonce: bigint; readonly to: Address; readonly valueAtoken: bigint },
): string {
  const gas = { gasPriceAtoken: 25_000_000n, gasLimit: 21_000n };
  const fields = { chainId: 6940n, data: new Uint8Array(0), ...gas, ...intent };
  return bytesToHex(signLegacy(fields, key));
}
