/** Rows of the Data API: blocks and balances, beside the same facts read by plain ethers. */
import { JsonRpcProvider } from "ethers";
import { BLOCKCHAIN_NAME } from "../../../chain/networks.js";
import type { RunLength } from "./chain-rows.js";
import { closedLoop, encodeRequest, type LoadResult } from "../http-load.js";
import { type BenchRow, formatFigure } from "../report.js";
import { type Stack, STACK_INTERVAL_MS } from "../targets/stack-target.js";

/** Connections that ask for blocks and for balances; ethers works on as many things at once. */
const BLOCK_CONNECTIONS = 4;
const BALANCE_CONNECTIONS = 32;

/** Blocks, small ones and full ones, and how many of each per second are wanted. */
const BLOCKS = [
  { size: 20, quick: 40, full: 150, aimPerSecond: 2_000 },
  { size: 500, quick: 8, full: 25, aimPerSecond: 300 },
] as const;

/** Pairs of account and height that are asked for, and how many of them ethers reads. */
const BALANCES = { quick: 4_000, full: 20_000 };
const ETHERS_BALANCES = { quick: 500, full: 2_000 };

/** Wanted of /account/balance, per second. */
const BALANCE_AIM = 10_000;

/** What the rows are run with. */
export interface RosettaRowsOptions {
  readonly length: RunLength;
  readonly say: (line: string) => void;
}

/** Runs the rows over a kit whose node and online sidecar are up. */
export async function rosettaRows(stack: Stack, options: RosettaRowsOptions): Promise<BenchRow[]> {
  // The watcher reads blocks from the sidecar: without it the first read is really the first.
  await stack.stopPart("deposit-watcher");
  const rows: BenchRow[] = [];
  let heights: readonly number[] = [];
  for (const kind of BLOCKS) {
    const made = await makeBlocks(stack, kind, options.length);
    heights = [...heights, ...made];
    rows.push(...(await blockRows(stack, { ...kind, heights: made }, options)));
  }
  rows.push(...(await balanceRows(stack, heights, options)));
  return rows;
}

function makeBlocks(
  stack: Stack,
  kind: (typeof BLOCKS)[number],
  { quick }: RunLength,
): Promise<number[]> {
  const { senders } = stack;
  return stack.makeBlocks({
    count: quick ? kind.quick : kind.full,
    size: kind.size,
    isExact: true,
    payment: (index) => ({ to: senders[index % senders.length]?.address }),
  });
}

async function blockRows(
  stack: Stack,
  kind: {
    readonly size: number;
    readonly aimPerSecond: number;
    readonly heights: readonly number[];
  },
  { length, say }: RosettaRowsOptions,
): Promise<BenchRow[]> {
  const { size, heights, aimPerSecond } = kind;
  const requests = heights.map((index) => encode(stack, "/block", { block_identifier: { index } }));
  const ours = await firstAndAgain(stack, { requests, connections: BLOCK_CONNECTIONS, length });
  const peer = await ethersRate(stack, BLOCK_CONNECTIONS, heights, async (provider, height) => {
    const tag = `0x${height.toString(16)}`;
    // All that operations are made of: transactions, inner calls, fees and outcomes.
    await Promise.all([
      provider.getBlock(height, true),
      provider.send("debug_traceBlockByNumber", [tag, { tracer: "callTracer" }]),
      provider.send("eth_getBlockReceipts", [tag]),
    ]);
  });
  const title = `Rosetta /block, ${size} transactions`;
  tell(say, title, ours, peer);
  const words = "ethers reads block, call traces and receipts; it makes no operations of them";
  return rowsOf({ title, ours, peer, aim: aimPerSecond, words });
}

async function balanceRows(
  stack: Stack,
  heights: readonly number[],
  { length, say }: RosettaRowsOptions,
): Promise<BenchRow[]> {
  const { senders } = stack;
  const count = length.quick ? BALANCES.quick : BALANCES.full;
  const pairs = Array.from({ length: count }, (_, index) => ({
    address: senders[index % senders.length]?.address ?? "",
    height: heights[Math.floor(index / senders.length) % heights.length] ?? 0,
  }));
  const requests = pairs.map(({ address, height }) =>
    encode(stack, "/account/balance", {
      account_identifier: { address },
      block_identifier: { index: height },
    }),
  );
  const ours = await firstAndAgain(stack, { requests, connections: BALANCE_CONNECTIONS, length });
  const read = pairs.slice(0, length.quick ? ETHERS_BALANCES.quick : ETHERS_BALANCES.full);
  const peer = await ethersRate(stack, BALANCE_CONNECTIONS, read, async (provider, pair) => {
    await Promise.all([
      provider.getBalance(pair.address, pair.height),
      provider.getTransactionCount(pair.address, pair.height),
    ]);
  });
  const title = "Rosetta /account/balance";
  tell(say, title, ours, peer);
  const words = "ethers reads balance and nonce at the height, 32 pairs at once";
  return rowsOf({ title, ours, peer, aim: BALANCE_AIM, words });
}

/** How fast requests were answered the first time, and when they were asked again. */
interface Rates {
  readonly first: LoadResult;
  readonly again: LoadResult;
}

async function firstAndAgain(
  stack: Stack,
  load: {
    readonly requests: readonly Buffer[];
    readonly connections: number;
    readonly length: RunLength;
  },
): Promise<Rates> {
  const { requests, connections, length } = load;
  const url = stack.home.url("sidecarOnline");
  let asked = 0;
  const first = await closedLoop({ url, connections, next: () => requests[asked++] });
  let turn = 0;
  const again = await closedLoop({
    url,
    connections,
    durationMs: length.readMs,
    next: () => requests[turn++ % requests.length],
  });
  return { first, again };
}

/** Items per second that ethers reads, as many at once as connections are used otherwise. */
async function ethersRate<T>(
  stack: Stack,
  atOnce: number,
  items: readonly T[],
  read: (provider: JsonRpcProvider, item: T) => Promise<void>,
): Promise<number> {
  const provider = new JsonRpcProvider(stack.nodeUrl, undefined, { cacheTimeout: -1 });
  try {
    await provider.getNetwork();
    const left = [...items];
    const startMs = performance.now();
    const worker = async () => {
      for (let item = left.pop(); item !== undefined; item = left.pop()) await read(provider, item);
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    return items.length / ((performance.now() - startMs) / 1_000);
  } finally {
    provider.destroy();
  }
}

function encode(stack: Stack, path: string, fields: Readonly<Record<string, unknown>>): Buffer {
  const network_identifier = { blockchain: BLOCKCHAIN_NAME, network: "testnet" };
  const body = JSON.stringify({ network_identifier, ...fields });
  return encodeRequest(stack.home.url("sidecarOnline"), { path, body });
}

function tell(
  say: (line: string) => void,
  title: string,
  { first, again }: Rates,
  peer: number,
): void {
  const [once, later] = [formatFigure(first.perSecond), formatFigure(again.perSecond)];
  say(`${title}: ${once}/s, ${later}/s again; ethers ${formatFigure(peer)}/s`);
}

function rowsOf(measured: {
  readonly title: string;
  readonly ours: Rates;
  readonly peer: number;
  readonly aim: number;
  readonly words: string;
}): BenchRow[] {
  const { title, ours, peer, aim, words } = measured;
  const row = (name: string, result: LoadResult): BenchRow => ({
    title: `${title}, ${name}`,
    unit: "requests/s",
    ours: result.perSecond,
    peer,
    peerName: "ethers",
    aim: { value: aim },
    details: [
      `${result.count} requests, p50 ${formatFigure(result.p50Ms)} ms, ` +
        `p99 ${formatFigure(result.p99Ms)} ms; node, client and blocks every ` +
        `${STACK_INTERVAL_MS} ms on the same cores`,
      words,
    ],
  });
  return [row("first read", ours.first), row("again", ours.again)];
}
