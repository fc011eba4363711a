/** Rows of a chain with 2 s blocks, ours beside anvil: transfers, ERC-20 transfers, swaps, reads. */
import { Interface } from "ethers";
import type { Address } from "../../../chain/address.js";
import { swap } from "../bench-exchange.js";
import { tokenTransfer } from "../bench-token.js";
import { deployExchange, deployToken, mint } from "../contracts.js";
import { startAnvilTarget } from "../targets/anvil-target.js";
import { startCausewayTarget } from "../targets/causeway-target.js";
import type { ChainTarget } from "../targets/chain-target.js";
import { closedLoop, encodeCall, type LoadResult } from "../http-load.js";
import { blockNumber, transactionCount } from "../json-rpc.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createRecipients, createSenders, encodeBatch, type Sender, signNext } from "../senders.js";
import {
  findHeldRate,
  type HeldResult,
  maxTrials,
  senderGroups,
  type TrialPlan,
} from "../transfer-trial.js";
import { Turns } from "../turns.js";

/** How much a run measures. */
export interface RunLength {
  readonly quick: boolean;
  /** Trials of the search for a rate, and how many blocks each lasts. */
  readonly trials: number;
  readonly blocksPerTrial: number;
  /** Time of one closed loop of reads, milliseconds. */
  readonly readMs: number;
}

/** How many of something a run of this length takes. */
export const lengthOf = <T>(
  sizes: { readonly quick: T; readonly full: T },
  { quick }: RunLength,
): T => (quick ? sizes.quick : sizes.full);

/** Names of the rows here, for `--only`. */
export const CHAIN_ROWS = ["transfers", "erc20", "swaps", "reads"] as const;

/** A row that needs the two chains. */
export type ChainRowName = (typeof CHAIN_ROWS)[number];

/** What the rows are run with. */
export interface ChainRowsOptions {
  readonly rows: readonly ChainRowName[];
  readonly length: RunLength;
  readonly profileFolder: string | undefined;
  readonly say: (line: string) => void;
}

/** Transactions of the block that is read. */
const READ_BLOCK_TRANSACTIONS = 500;

/** Connections of a closed loop of reads. */
const READ_CONNECTIONS = 4;

/** Accounts that receive the transfers. */
const RECIPIENT_COUNT = 10_000;

/** Compute units of a token's transfer where the block has changed both slots; else 31 us more for each. */
const ERC20_COMPUTE_NS = 79_000;

/** The same of a swap for its own sender, where the block has changed or read all slots. */
const SWAP_COMPUTE_NS = 298_000;

/** What one chain measured. */
interface ChainFigures {
  readonly transfers?: HeldResult;
  readonly erc20?: HeldResult;
  readonly swaps?: HeldResult;
  readonly blocks?: LoadResult;
  readonly balances?: LoadResult;
  readonly calls?: LoadResult;
  readonly memoryMib: number | undefined;
}

/** Runs the rows; the chains take turns step by step, so that both meet the same machine. */
export async function runChainRows(options: ChainRowsOptions): Promise<BenchRow[]> {
  const { profileFolder, length, say, rows } = options;
  const funded = new SenderPool(length.trials).addresses();
  const targets: ChainTarget[] = [];
  try {
    targets.push(await startCausewayTarget({ funded, profileFolder }));
    const anvil = await startAnvilTarget(funded);
    if (anvil === undefined) say("no anvil for this platform: the peer's column is empty");
    else targets.push(anvil);
    const turns = new Turns();
    const run = (target: ChainTarget) =>
      measure({ target, turns, pool: new SenderPool(length.trials), options });
    const [ours, peer] = await Promise.all(targets.map(run));
    return ours === undefined ? [] : toRows(ours, peer, rows);
  } finally {
    await Promise.all(targets.map((target) => target.stop()));
  }
}

/** One chain's way through the rows. */
interface Measurement {
  readonly target: ChainTarget;
  readonly turns: Turns;
  readonly pool: SenderPool;
  readonly options: ChainRowsOptions;
}

async function measure(measurement: Measurement): Promise<ChainFigures> {
  const wants = (row: ChainRowName) => measurement.options.rows.includes(row);
  // Reads first: the block to read has to be there before the pool is full of transfers.
  const reads = wants("reads") ? await measureReads(measurement) : {};
  const transfers = wants("transfers") ? await measureTransfers(measurement) : undefined;
  const erc20 = wants("erc20") ? await measureErc20(measurement) : undefined;
  const swaps = wants("swaps") ? await measureSwaps(measurement) : undefined;
  const memoryMib = measurement.target.process.memoryMib();
  return { ...reads, transfers, erc20, swaps, memoryMib };
}

function measureTransfers(measurement: Measurement): Promise<HeldResult> {
  const { target, turns, pool, options } = measurement;
  const { length, say } = options;
  const recipients = createRecipients(RECIPIENT_COUNT);
  return findHeldRate({
    target,
    turns,
    senders: () => pool.take(),
    payment: (index) => ({ to: recipients[index % recipients.length] }),
    blocksPerTrial: length.blocksPerTrial,
    trials: length.trials,
    say,
  });
}

async function measureErc20(measurement: Measurement): Promise<HeldResult> {
  const { target, turns, pool } = measurement;
  const holders = takeGroups(pool);
  const token = await turns.take(async () => {
    const deployed = await deployToken(target.url, pool.owner);
    await mint(target.url, pool.owner, deployed, holders);
    return deployed;
  });
  const all = holders.flat();
  return holdCode(measurement, {
    name: "ERC-20",
    computeNs: ERC20_COMPUTE_NS,
    groups: holders,
    payment: (index) => tokenTransfer(token, (all[index % all.length] ?? pool.owner).address),
  });
}

async function measureSwaps(measurement: Measurement): Promise<HeldResult> {
  const { target, turns, pool } = measurement;
  const traders = takeGroups(pool);
  const exchange = await turns.take(() => deployExchange(target.url, pool.owner, traders));
  return holdCode(measurement, {
    name: "swaps",
    computeNs: SWAP_COMPUTE_NS,
    groups: traders,
    payment: (_, sender) => swap(exchange, sender.address),
  });
}

/** Senders for all trials of a row that calls contracts. */
function takeGroups(pool: SenderPool): (readonly Sender[])[] {
  return Array.from({ length: maxTrials(CODE_TRIALS) + 1 }, () => pool.take());
}

/** What calls of a contract are: compute units of each, and what it does. */
interface CodeLoad {
  readonly name: string;
  readonly computeNs: number;
  readonly groups: readonly (readonly Sender[])[];
  readonly payment: TrialPlan["payment"];
}

function holdCode(
  { target, turns, options }: Measurement,
  { name, computeNs, groups, payment }: CodeLoad,
): Promise<HeldResult> {
  const { length, say } = options;
  const left = [...groups];
  return findHeldRate({
    target,
    turns,
    senders: () => left.shift() ?? [],
    payment,
    blocksPerTrial: length.blocksPerTrial,
    trials: Math.min(length.trials, CODE_TRIALS),
    ceilingPerSecond: ceilingOf(target, computeNs),
    say: (line) => say(`${name}, ${line}`),
  });
}

/** What the chain's rules allow in a second; undefined where no rule is worth naming. */
function ceilingOf({ limits }: Pick<ChainTarget, "limits">, computeNs: number): number | undefined {
  if (limits === undefined) return undefined;
  return (limits.computeNs / computeNs) * (1_000 / limits.blockIntervalMs);
}

/** Trials of rows that call contracts; their ceilings are near where they start. */
const CODE_TRIALS = 4;

async function measureReads({
  target,
  turns,
  pool,
  options,
}: Measurement): Promise<Pick<ChainFigures, "blocks" | "balances" | "calls">> {
  const { length, say } = options;
  const { url } = target;
  const height = await turns.take(() => mineFullBlock(url, pool));
  const quantity = `0x${height.toString(16)}`;
  const block = encodeCall(url, "eth_getBlockByNumber", [quantity, true]);
  const loop = { url, connections: READ_CONNECTIONS, durationMs: length.readMs };
  const blocks = await turns.take(() => closedLoop({ ...loop, next: () => block }));
  say(`${target.name}: ${formatFigure(blocks.perSecond)} full blocks/s`);
  const balance = encodeCall(url, "eth_getBalance", [pool.owner.address, "latest"]);
  const balances = await turns.take(() => closedLoop({ ...loop, next: () => balance }));
  say(`${target.name}: ${formatFigure(balances.perSecond)} balances/s`);
  const to = await turns.take(() => deployToken(url, pool.owner));
  const data = new Interface(["function balanceOf(address)"]).encodeFunctionData("balanceOf", [
    pool.owner.address,
  ]);
  const call = encodeCall(url, "eth_call", [{ to, data }, "latest"]);
  const calls = await turns.take(() => closedLoop({ ...loop, next: () => call }));
  say(`${target.name}: ${formatFigure(calls.perSecond)} calls of balanceOf/s`);
  return { blocks, balances, calls };
}

/** Height of a block with READ_BLOCK_TRANSACTIONS transfers. */
async function mineFullBlock(url: string, pool: SenderPool): Promise<number> {
  const senders = pool.take();
  const recipients = createRecipients(READ_BLOCK_TRANSACTIONS);
  for (;;) {
    const before = await blockNumber(url);
    while ((await blockNumber(url)) === before) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const raws = recipients.map((to, index) => {
      const sender = senders[index % senders.length] ?? pool.owner;
      return signNext(sender, { to });
    });
    await closedLoop({ url, connections: 1, next: once(encodeBatch(url, raws)) });
    const sent = await blockNumber(url);
    while ((await blockNumber(url)) < sent + 2) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    for (let height = before + 1; height <= sent + 2; height += 1) {
      if ((await transactionCount(url, height)) === READ_BLOCK_TRANSACTIONS) return height;
    }
  }
}

/** Gives a value once. */
function once<T>(value: T): () => T | undefined {
  let left: T | undefined = value;
  return () => {
    const given = left;
    left = undefined;
    return given;
  };
}

/** Funded accounts for all trials of a run; each chain has a pool with the same ones. */
class SenderPool {
  readonly owner: Sender;
  private readonly groups: Sender[][];
  private next = 0;

  constructor(trials: number) {
    // Reads, and for transfers and both kinds of calls a burst and the trials.
    const count = 1 + (maxTrials(trials) + 1) + 2 * (maxTrials(CODE_TRIALS) + 1);
    this.groups = senderGroups(count, "sender");
    const [owner] = createSenders(1, "owner");
    if (owner === undefined) throw new Error("no owner");
    this.owner = owner;
  }

  addresses(): Address[] {
    return [this.owner, ...this.groups.flat()].map(({ address }) => address);
  }

  take(): readonly Sender[] {
    const group = this.groups[this.next];
    if (group === undefined) throw new Error("no senders are left");
    this.next += 1;
    return group;
  }
}

function toRows(
  ours: ChainFigures,
  peer: ChainFigures | undefined,
  names: readonly ChainRowName[],
): BenchRow[] {
  const rows: BenchRow[] = [];
  const held = (title: string, kind: "transfers" | "erc20" | "swaps", aim?: number) => {
    const [own, other] = [ours[kind], peer?.[kind]];
    if (!names.includes(kind) || own === undefined) return;
    rows.push({
      title: `${title} held, 2 s blocks`,
      unit: "tx/s",
      ours: own.perSecond,
      peer: other?.perSecond,
      peerName: "anvil",
      aim: aim === undefined ? undefined : { ratio: aim },
      details: [
        ...boundDetail(own),
        heldDetail("ours", own, ours.memoryMib),
        ...(other === undefined ? [] : [heldDetail("anvil", other, peer?.memoryMib)]),
      ],
    });
  };
  held("transfers", "transfers", 0.5);
  held("ERC-20 transfers", "erc20");
  held("Uniswap V2 swaps", "swaps");
  if (ours.blocks !== undefined && ours.balances !== undefined && ours.calls !== undefined) {
    rows.push(
      readRow("eth_getBlockByNumber, 500 full transactions", ours.blocks, peer?.blocks, 100),
      readRow("eth_getBalance", ours.balances, peer?.balances, undefined),
      readRow("eth_call of an ERC-20's balanceOf", ours.calls, peer?.calls, undefined),
    );
  }
  return rows;
}

/** Which rule of the chain the rate is near. */
function boundDetail({ ceilingPerSecond }: HeldResult): string[] {
  if (ceilingPerSecond === undefined) return [];
  const ceiling = formatFigure(ceilingPerSecond);
  return [`ours is bounded by compute units at about ${ceiling}/s; anvil has no such rule`];
}

/** A held rate in words: of the search, of waiting, of processor time and memory. */
export function heldDetail(
  name: string,
  result: HeldResult,
  memoryMib: number | undefined,
): string {
  const { verdict, cpuMicroseconds, burstPerSecond } = result;
  const parts = [`burst accepted at ${formatFigure(burstPerSecond ?? 0)}/s`];
  if (verdict !== undefined) {
    const [p50, p99] = [verdict.inclusionP50Ms, verdict.inclusionP99Ms].map((ms) =>
      (ms / 1_000).toFixed(2),
    );
    parts.push(`inclusion p50 ${p50} s, p99 ${p99} s`);
    parts.push(`blocks every ${(verdict.meanIntervalMs / 1_000).toFixed(2)} s`);
  }
  if (cpuMicroseconds !== undefined) {
    parts.push(`${formatFigure(cpuMicroseconds)} us of processor time per transfer`);
  }
  if (memoryMib !== undefined) parts.push(`${formatFigure(memoryMib)} MiB at the end`);
  return `${name}: ${parts.join("; ")}`;
}

function readRow(
  title: string,
  ours: LoadResult,
  peer: LoadResult | undefined,
  aim: number | undefined,
): BenchRow {
  const latency = (name: string, { p50Ms, p99Ms }: LoadResult) =>
    `${name}: p50 ${formatFigure(p50Ms)} ms, p99 ${formatFigure(p99Ms)} ms`;
  return {
    title,
    unit: "requests/s",
    ours: ours.perSecond,
    peer: peer?.perSecond,
    peerName: "anvil",
    aim: aim === undefined ? undefined : { ratio: aim },
    details: [latency("ours", ours), ...(peer === undefined ? [] : [latency("anvil", peer)])],
  };
}
