/** Rows of the whole kit: the watcher's catch-up, withdrawals, Rosetta's reads. */
import { JsonRpcProvider, Wallet } from "ethers";
import type { Address } from "../../../chain/address.js";
import { ATOKEN_PER_TOKEN } from "../../../chain/units.js";
import { until } from "../../helpers/until.js";
import type { RunLength } from "./chain-rows.js";
import { closedLoop, encodeRequest, type LoadResult } from "../http-load.js";
import { blockNumber } from "../json-rpc.js";
import { type BenchRow, formatFigure } from "../report.js";
import { rosettaRows } from "./rosetta-rows.js";
import { createRecipients } from "../senders.js";
import { Stack } from "../targets/stack-target.js";

/** Names of the rows here, for `--only`. */
export const STACK_ROWS = ["watcher", "withdrawals", "rosetta"] as const;

/** A row that needs the whole kit. */
export type StackRowName = (typeof STACK_ROWS)[number];

/** What the rows are run with. */
export interface StackRowsOptions {
  readonly rows: readonly StackRowName[];
  readonly length: RunLength;
  readonly profileFolder: string | undefined;
  readonly say: (line: string) => void;
}

/** Transactions of each block of the backlog, and how many of them pay a watched address. */
const BACKLOG_TRANSACTIONS = 50;
const BACKLOG_DEPOSITS = 5;

/** Watched addresses. */
const ADDRESS_COUNT = 100;

/**
 * Blocks of the backlog, and how many of them the ethers loop reads: enough that either side runs
 * for a second or two, since a shorter run measures how fast V8 compiles.
 */
const BACKLOG_BLOCKS = { quick: 500, full: 1_000 };
const ETHERS_BLOCKS = { quick: 120, full: 300 };

/** Withdrawals through the worker, and payments of the naive loop. */
const WITHDRAWALS = { quick: 1_000, full: 4_000 };
const NAIVE_PAYMENTS = { quick: 50, full: 200 };

/** Withdrawals before the clock starts: without them it is measured how fast V8 compiles. */
const FIRST_WITHDRAWALS = 1_000;

/** Requests to withdraw that are under way at once: those that wait for a commit share the next one. */
const WITHDRAWAL_CONNECTIONS = 64;

/** Time for booking, crediting and sending. */
const WAIT_TIMEOUT_MS = 180_000;

/** Runs the rows: withdrawals over a kit with the network's own blocks, the others over one with many. */
export async function runStackRows(options: StackRowsOptions): Promise<BenchRow[]> {
  const { rows: names, profileFolder } = options;
  const rows: BenchRow[] = [];
  if (names.some((name) => name !== "withdrawals")) {
    await withStack(await Stack.start(profileFolder), async (stack) => {
      if (names.includes("watcher")) rows.push(await watcherRow(stack, options));
      if (names.includes("rosetta")) rows.push(...(await rosettaRows(stack, options)));
    });
  }
  if (names.includes("withdrawals")) {
    await withStack(await Stack.start(profileFolder, {}), async (stack) => {
      rows.push(await withdrawalRow(stack, options));
    });
  }
  return rows;
}

async function withStack(stack: Stack, work: (stack: Stack) => Promise<void>): Promise<void> {
  try {
    await work(stack);
  } finally {
    await stack.stop();
  }
}

const isDeposit = (index: number) => index % BACKLOG_TRANSACTIONS < BACKLOG_DEPOSITS;

const lengthOf = (sizes: { quick: number; full: number }, { quick }: RunLength) =>
  quick ? sizes.quick : sizes.full;

async function watcherRow(stack: Stack, { length, say }: StackRowsOptions): Promise<BenchRow> {
  const watched: Address[] = [];
  for (let index = 0; index < ADDRESS_COUNT; index += 1) {
    watched.push(await stack.createAddress(`bench-${index}`));
  }
  const recipients = createRecipients(ADDRESS_COUNT);
  const before = await stack.depositCount("credited");
  await stack.stopPart("deposit-watcher");
  const count = lengthOf(BACKLOG_BLOCKS, length);
  const cursor = await blockNumber(stack.nodeUrl);
  const heights = await stack.makeBlocks({
    count,
    size: BACKLOG_TRANSACTIONS,
    isExact: false,
    payment: (index) => ({
      to: isDeposit(index)
        ? watched[index % watched.length]
        : recipients[index % recipients.length],
    }),
  });
  const last = heights.at(-1) ?? cursor;
  await stack.startPart("deposit-watcher");
  const startMs = Date.now();
  await stack.untilWatched(last);
  const endMs = Math.max(...(await detectionTimes(stack)));
  const perSecond = (last - cursor) / ((endMs - startMs) / 1_000);
  say(`watcher: ${formatFigure(perSecond)} blocks/s`);
  // One more block confirms the last deposits.
  await stack.untilWatched(last + 2);
  const credited = (await stack.depositCount("credited")) - before;
  await stack.stopPart("deposit-watcher");
  const loop = await ethersLoop(stack.nodeUrl, {
    heights: heights.slice(0, lengthOf(ETHERS_BLOCKS, length)),
    watched,
  });
  say(`ethers: ${formatFigure(loop.perSecond)} blocks/s`);
  await stack.startPart("deposit-watcher");
  return {
    title: "deposit watcher's catch-up",
    unit: "blocks/s",
    ours: perSecond,
    peer: loop.perSecond,
    peerName: "ethers loop",
    aim: { ratio: 10 },
    details: [
      `${last - cursor} blocks of about ${BACKLOG_TRANSACTIONS} transactions, ` +
        `${credited} deposits credited; ours checks balances and commits to PostgreSQL, ` +
        "in a process that was just started",
      `the loop is getBlock(n, true) and a Set of addresses; it writes nothing and found ` +
        `${loop.found} deposits in ${loop.blocks} blocks`,
    ],
  };
}

/**
 * Unix milliseconds at which deposits were booked, by the ledger's events. The last one lies in the
 * backlog's last block, so it tells the end without asking a busy process again and again.
 */
async function detectionTimes(stack: Stack): Promise<number[]> {
  const events = await stack.events(0);
  return events.filter(({ type }) => type === "deposit.detected").map(({ at }) => Date.parse(at));
}

interface LoopResult {
  readonly perSecond: number;
  readonly blocks: number;
  readonly found: number;
}

/** What an exchange writes first: every block with its transactions, matched against a Set. */
async function ethersLoop(
  url: string,
  { heights, watched }: { heights: readonly number[]; watched: readonly Address[] },
): Promise<LoopResult> {
  const provider = new JsonRpcProvider(url);
  const addresses = new Set<string>(watched);
  let found = 0;
  try {
    await provider.getBlockNumber();
    const startMs = performance.now();
    for (const height of heights) {
      const block = await provider.getBlock(height, true);
      for (const { to } of block?.prefetchedTransactions ?? []) {
        if (to !== null && addresses.has(to.toLowerCase())) found += 1;
      }
    }
    const seconds = (performance.now() - startMs) / 1_000;
    return { perSecond: heights.length / seconds, blocks: heights.length, found };
  } finally {
    provider.destroy();
  }
}

async function withdrawalRow(stack: Stack, { length, say }: StackRowsOptions): Promise<BenchRow> {
  await stack.startPart("withdrawal-worker");
  const customerId = "bench-withdrawals";
  await fundCustomer(stack, customerId);
  const count = lengthOf(WITHDRAWALS, length);
  const recipients = createRecipients(FIRST_WITHDRAWALS + count);
  const first = withdrawals(stack, customerId, recipients.slice(0, FIRST_WITHDRAWALS));
  const requests = withdrawals(stack, customerId, recipients.slice(FIRST_WITHDRAWALS));
  await send(stack, first);
  const { seq } = await untilEvents(stack, { type: "withdrawal.settled", count: first.length });
  const parts = ["withdrawal-worker", "node", "sidecar-online", "deposit-watcher"] as const;
  const cpuSeconds = () => [
    ...parts.map((part) => stack.cpuSeconds(part)),
    stack.databaseCpuSeconds(),
  ];
  const before = cpuSeconds();
  const startMs = Date.now();
  const accepted = await send(stack, requests);
  const { lastMs } = await untilEvents(stack, { type: "withdrawal.broadcast", count, seq });
  const perSecond = count / ((lastMs - startMs) / 1_000);
  say(`worker: ${formatFigure(perSecond)} withdrawals/s`);
  const after = cpuSeconds();
  const cpu = [...parts, "PostgreSQL"].map((part, index) => {
    const seconds = (after[index] ?? 0) - (before[index] ?? 0);
    return `${part} ${formatFigure((seconds * 1e6) / count)}`;
  });
  await stack.stopPart("withdrawal-worker");
  const naive = await naivePayments(stack, lengthOf(NAIVE_PAYMENTS, length));
  say(`naive loop: ${formatFigure(naive)} payments/s`);
  return {
    title: "withdrawals, accepted to broadcast",
    unit: "per s",
    ours: perSecond,
    peer: naive,
    peerName: "ethers loop",
    details: [
      `${count} requests over HTTP behind ${FIRST_WITHDRAWALS} others, accepted at ` +
        `${formatFigure(accepted.perSecond)}/s (p50 ${formatFigure(accepted.p50Ms)} ms, p99 ${formatFigure(accepted.p99Ms)} ms); ` +
        "ours holds, slots, signs and stores each before it is sent",
      `processor time until the last one was sent, microseconds each: ${cpu.join(", ")}`,
      "the loop is getTransactionCount and sendTransaction, one by one, and remembers nothing",
    ],
  };
}

/** Gives a customer coins the way customers get them. */
async function fundCustomer(stack: Stack, customerId: string): Promise<void> {
  const address = await stack.createAddress(customerId);
  const valueAtoken = 1_000n * ATOKEN_PER_TOKEN;
  const payment = () => ({ to: address, valueAtoken });
  await stack.makeBlocks({ count: 1, size: 1, isExact: false, payment });
  const url = `${stack.home.url("depositApi")}/v1/customers/${customerId}/balances`;
  await until(
    async () => {
      const response = await fetch(url, { headers: stack.authorization() });
      const { balances } = (await response.json()) as {
        balances?: { availableAtoken: string }[];
      };
      return BigInt(balances?.[0]?.availableAtoken ?? "0") >= valueAtoken;
    },
    { timeoutMs: WAIT_TIMEOUT_MS, what: "the customer's deposit is credited" },
  );
}

/** Requests of 1 atoken for each recipient. */
function withdrawals(stack: Stack, customerId: string, recipients: readonly Address[]): Buffer[] {
  return recipients.map((to) =>
    encodeRequest(stack.home.url("withdrawalApi"), {
      path: "/v1/withdrawals",
      headers: { ...stack.authorization(), "Idempotency-Key": `bench-${to}` },
      body: JSON.stringify({ customerId, asset: "TOKEN", to, amountAtoken: "1" }),
    }),
  );
}

function send(stack: Stack, requests: readonly Buffer[]): Promise<LoadResult> {
  const waiting = [...requests];
  return closedLoop({
    url: stack.home.url("withdrawalApi"),
    connections: WITHDRAWAL_CONNECTIONS,
    next: () => waiting.shift(),
  });
}

/**
 * Waits until so many events of a type were told behind `seq`.
 * @returns Unix milliseconds of the last of them, and the number of the last event that was read
 */
async function untilEvents(
  stack: Stack,
  {
    type,
    count,
    seq = 0,
  }: { readonly type: string; readonly count: number; readonly seq?: number },
): Promise<{ readonly lastMs: number; readonly seq: number }> {
  const times: number[] = [];
  let last = seq;
  await until(
    async () => {
      const events = await stack.events(last);
      last = events.at(-1)?.seq ?? last;
      times.push(...events.filter((event) => event.type === type).map(({ at }) => Date.parse(at)));
      return times.length >= count;
    },
    { timeoutMs: WAIT_TIMEOUT_MS, what: `${count} events ${type}` },
  );
  return { lastMs: Math.max(...times), seq: last };
}

/** What an exchange writes first: nonce, send, wait for the hash, next. */
async function naivePayments(stack: Stack, count: number): Promise<number> {
  // Without this ethers answers the next getTransactionCount from its cache, and the loop breaks.
  const provider = new JsonRpcProvider(stack.nodeUrl, undefined, { cacheTimeout: -1 });
  const key = Buffer.from(stack.payer.privateKey).toString("hex");
  const wallet = new Wallet(`0x${key}`, provider);
  try {
    await provider.getNetwork();
    const startMs = performance.now();
    for (const to of createRecipients(count)) {
      const nonce = await provider.getTransactionCount(wallet.address, "pending");
      await wallet.sendTransaction({ to, value: 1n, nonce });
    }
    return count / ((performance.now() - startMs) / 1_000);
  } finally {
    provider.destroy();
  }
}
