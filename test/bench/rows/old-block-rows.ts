/**
 * Rows of reads of the past, ours beside anvil: receipts and logs of old full blocks, whole blocks.
 * Our node is started again before, so that nothing of these blocks is in its memory; anvil keeps
 * everything in memory at all times. Beside each row stands the longest pause of our event loop.
 */
import { bytesToHex, type Hex, hexToBytes } from "../../../chain/hex.js";
import type { Address } from "../../../chain/address.js";
import { startAnvilTarget } from "../targets/anvil-target.js";
import { startCausewayTarget } from "../targets/causeway-target.js";
import type { ChainTarget } from "../targets/chain-target.js";
import { closedLoop, encodeCall, type LoadResult } from "../http-load.js";
import { blockNumber, callRpc, transactionCount } from "../json-rpc.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createRecipients, createSenders, encodeBatch, type Sender, signNext } from "../senders.js";

/** Name of the rows here, for `--only`. */
export const OLD_BLOCK_ROWS = ["old-blocks"] as const;

/** What the rows are run with. */
export interface OldBlockOptions {
  readonly quick: boolean;
  /** Time of one closed loop of reads, milliseconds. */
  readonly readMs: number;
  readonly profileFolder: string | undefined;
  readonly say: (line: string) => void;
}

/** Transfers that are sent at once, so that blocks of some ten thousand come of them. */
const TRANSFERS = { full: 60_000, quick: 30_000 };

/** Calls that leave a log each, some in every block. */
const LOG_CALLS = 2_000;

/** Accounts that send; each has few enough transactions for the pools of both chains. */
const SENDER_COUNT = 1_000;

const BATCH_SIZE = 500;
const READ_CONNECTIONS = 4;
const LOG_GAS = 60_000n;
const DEPLOY_GAS = 200_000n;

/** First topic of the contract's logs; the second is the caller. */
const TOPIC = `0x${"c0de".repeat(16)}`;

/** `log2(0, 32, TOPIC, caller)`, behind the code that deploys it. */
const LOGGER_CODE = hexToBytes(`0x602880600b6000396000f3337f${TOPIC.slice(2)}60206000a200`);

/** What is read, and how fast. */
interface OldBlockFigures {
  readonly results: ReadonlyMap<string, LoadResult>;
  /** Longest pause of the event loop while each was read, milliseconds; ours only. */
  readonly pausesMs: ReadonlyMap<string, number>;
}

/** Runs the rows; the chains are filled and read one after the other. */
export async function runOldBlockRows(options: OldBlockOptions): Promise<BenchRow[]> {
  const senders = createSenders(SENDER_COUNT, "old blocks").map(({ address }) => address);
  const ours = await startCausewayTarget({ ...options, funded: senders });
  let peer: ChainTarget | undefined;
  try {
    peer = await startAnvilTarget(senders);
    const pasts = [];
    for (const target of peer === undefined ? [ours] : [ours, peer]) {
      pasts.push({ target, past: await fill(target, options) });
    }
    await ours.restart();
    const figures: OldBlockFigures[] = [];
    for (const { target, past } of pasts) figures.push(await readAll(target, past, options));
    const [own, other] = figures;
    return own === undefined ? [] : toRows(own, other);
  } finally {
    await Promise.all([ours.stop(), peer?.stop()]);
  }
}

/** What the filled chain has. */
interface Past {
  readonly hashes: readonly string[];
  readonly fullBlock: number;
  readonly from: number;
  readonly to: number;
  readonly contract: Address;
  /** One that left logs. */
  readonly caller: Address;
}

async function fill(target: ChainTarget, { quick, say }: OldBlockOptions): Promise<Past> {
  const { url } = target;
  const senders = createSenders(SENDER_COUNT, "old blocks");
  const [caller] = senders;
  if (caller === undefined) throw new Error("no senders");
  const from = await blockNumber(url);
  const contract = await deploy(url, caller);
  const transfers = quick ? TRANSFERS.quick : TRANSFERS.full;
  const recipients = createRecipients(SENDER_COUNT);
  const logEvery = Math.floor(transfers / LOG_CALLS);
  const raws: Uint8Array[] = [];
  for (let index = 0; index < transfers; index += 1) {
    const sender = senders[index % senders.length] ?? caller;
    const isCall = index % logEvery === 0;
    const call = { to: contract, valueAtoken: 0n, gasLimit: LOG_GAS };
    const payment = isCall ? call : { to: recipients[index % recipients.length] };
    raws.push(signNext(sender, payment));
  }
  const batches: Buffer[] = [];
  for (let start = 0; start < raws.length; start += BATCH_SIZE) {
    batches.push(encodeBatch(url, raws.slice(start, start + BATCH_SIZE)));
  }
  const check = ({ body }: { readonly body: Buffer }) => {
    if (body.includes('"error"')) throw new Error(body.toString("latin1").slice(0, 500));
  };
  await closedLoop({ url, connections: 1, next: () => batches.shift(), check });
  return findPast(target, { from, transfers, contract, caller: caller.address }, say);
}

async function deploy(url: string, owner: Sender): Promise<Address> {
  const raw = signNext(owner, {
    to: undefined,
    valueAtoken: 0n,
    data: LOGGER_CODE,
    gasLimit: DEPLOY_GAS,
  });
  const hash = await callRpc<string>(url, "eth_sendRawTransaction", [bytesToHex(raw)]);
  for (;;) {
    const receipt = await callRpc<{ contractAddress: Address } | null>(
      url,
      "eth_getTransactionReceipt",
      [hash],
    );
    if (receipt !== null) return receipt.contractAddress;
    await pause(50);
  }
}

async function findPast(
  { name, url }: ChainTarget,
  sent: Pick<Past, "from" | "contract" | "caller"> & { readonly transfers: number },
  say: OldBlockOptions["say"],
): Promise<Past> {
  const counts = new Map<number, number>();
  let mined = 0;
  for (let height = sent.from + 1; mined < sent.transfers + 1; height += 1) {
    while ((await blockNumber(url)) < height) await pause(50);
    counts.set(height, await transactionCount(url, height));
    mined += counts.get(height) ?? 0;
  }
  const heights = [...counts].toSorted(([, left], [, right]) => right - left);
  const [largest = [0, 0]] = heights;
  say(`${name}: ${mined} transactions in blocks of up to ${largest[1]}`);
  const hashes: string[] = [];
  for (const [height, count] of heights) {
    if (count < largest[1] / 4) continue;
    const block = await callRpc<{ transactions: string[] }>(url, "eth_getBlockByNumber", [
      toHex(height),
      false,
    ]);
    hashes.push(...block.transactions);
  }
  const to = Math.max(...counts.keys());
  return { ...sent, hashes, fullBlock: largest[0], to };
}

/** Title of each row and what it asks for; the unit is requests. */
function requests(url: string, past: Past): ReadonlyMap<string, () => Buffer> {
  let turn = 0;
  // A step that shares no factor with the count visits all, never two neighbours in a row.
  const hash = () => past.hashes[(turn++ * 7_919) % past.hashes.length];
  const range = { fromBlock: toHex(past.from), toBlock: toHex(past.to) };
  const caller = `0x${past.caller.slice(2).padStart(64, "0")}`;
  return new Map([
    [
      "eth_getTransactionReceipt, old blocks",
      () => encodeCall(url, "eth_getTransactionReceipt", [hash()]),
    ],
    [
      "eth_getTransactionByHash, old blocks",
      () => encodeCall(url, "eth_getTransactionByHash", [hash()]),
    ],
    [
      "eth_getLogs of one caller, old blocks",
      () => {
        // A new range each time: what was asked before is not asked again.
        const fromBlock = toHex(past.from + (turn++ % 3));
        const filter = { ...range, fromBlock, address: past.contract };
        return encodeCall(url, "eth_getLogs", [{ ...filter, topics: [TOPIC, caller] }]);
      },
    ],
    [
      "eth_getBlockByNumber with all transactions, the largest",
      () => encodeCall(url, "eth_getBlockByNumber", [toHex(past.fullBlock), true]),
    ],
  ]);
}

async function readAll(
  target: ChainTarget,
  past: Past,
  { readMs, say }: OldBlockOptions,
): Promise<OldBlockFigures> {
  const { url, name } = target;
  const results = new Map<string, LoadResult>();
  const pausesMs = new Map<string, number>();
  for (const [title, next] of requests(url, past)) {
    await longestPauseMs(target);
    const loop = { url, connections: READ_CONNECTIONS, durationMs: readMs };
    const result = await closedLoop({ ...loop, next });
    results.set(title, result);
    const pauseMs = await longestPauseMs(target);
    if (pauseMs !== undefined) pausesMs.set(title, pauseMs);
    const seen = pauseMs === undefined ? "" : `, longest pause ${formatFigure(pauseMs)} ms`;
    say(`${name}: ${title}: ${formatFigure(result.perSecond)}/s${seen}`);
  }
  return { results, pausesMs };
}

/** Longest pause of the event loop since the last question; undefined for a peer. */
async function longestPauseMs({ metricsUrl }: ChainTarget): Promise<number | undefined> {
  if (metricsUrl === undefined) return undefined;
  const page = await (await fetch(metricsUrl)).text();
  const seconds = /^nodejs_eventloop_lag_max_seconds ([0-9.e+-]+)$/m.exec(page)?.[1];
  if (seconds === undefined) throw new Error(`${metricsUrl} does not tell the event loop's lag`);
  return Number(seconds) * 1_000;
}

function toRows(ours: OldBlockFigures, peer: OldBlockFigures | undefined): BenchRow[] {
  return [...ours.results].map(([title, result]) => {
    const other = peer?.results.get(title);
    const latency = (name: string, { p50Ms, p99Ms }: LoadResult) =>
      `${name}: p50 ${formatFigure(p50Ms)} ms, p99 ${formatFigure(p99Ms)} ms`;
    const pauseMs = ours.pausesMs.get(title);
    return {
      title,
      unit: "requests/s",
      ours: result.perSecond,
      peer: other?.perSecond,
      peerName: "anvil",
      details: [
        latency("ours", result),
        ...(other === undefined ? [] : [latency("anvil", other)]),
        ...(pauseMs === undefined
          ? []
          : [`longest pause of our event loop ${formatFigure(pauseMs)} ms`]),
      ],
    };
  });
}

function toHex(height: number): Hex {
  return `0x${height.toString(16)}`;
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
