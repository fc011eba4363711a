/** Rows of the whole kit: the watcher's catch-up, withdrawals, Rosetta's reads. */
import { JsonRpcProvider } from "ethers";
import type { Address } from "../../../chain/address.js";
import { lengthOf, type RunLength } from "./chain-rows.js";
import { blockNumber } from "../json-rpc.js";
import { type BenchRow, formatFigure } from "../report.js";
import { rosettaRows } from "./rosetta-rows.js";
import { createRecipients } from "../senders.js";
import { Stack } from "../targets/stack-target.js";
import { faultRows } from "./fault-rows.js";
import { withdrawalRows } from "./withdrawal-rows.js";

/** Names of the rows here, for `--only`. */
export const STACK_ROWS = ["watcher", "withdrawals", "rosetta", "faults"] as const;

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
const BACKLOG_TRANSACTIONS = 500;
const BACKLOG_DEPOSITS = 5;

/** Watched addresses that are paid, and those that nobody pays. */
const ADDRESS_COUNT = 100;
const CROWD = { quick: 100_000, full: 1_000_000 };

/**
 * Blocks of the backlog, and how many of them the ethers loop reads: enough that either side runs
 * for a second or two, since a shorter run measures how fast V8 compiles.
 */
const BACKLOG_BLOCKS = { quick: 200, full: 600 };
const ETHERS_BLOCKS = { quick: 30, full: 100 };

/** Runs the rows: payments over a kit with the network's own blocks, the others over one with many. */
export async function runStackRows(options: StackRowsOptions): Promise<BenchRow[]> {
  const { rows: names, profileFolder } = options;
  const rows: BenchRow[] = [];
  if (names.includes("watcher") || names.includes("rosetta")) {
    await withStack(await Stack.start(profileFolder), async (stack) => {
      if (names.includes("watcher")) rows.push(await watcherRow(stack, options));
      if (names.includes("rosetta")) rows.push(...(await rosettaRows(stack, options)));
    });
  }
  if (names.includes("withdrawals")) {
    await withStack(await Stack.start(profileFolder, {}), async (stack) => {
      rows.push(...(await withdrawalRows(stack, options)));
    });
  }
  if (names.includes("faults")) {
    await withStack(await Stack.start(profileFolder, {}), async (stack) => {
      rows.push(...(await faultRows(stack, options)));
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

async function watcherRow(stack: Stack, { length, say }: StackRowsOptions): Promise<BenchRow> {
  const watched: Address[] = [];
  for (let index = 0; index < ADDRESS_COUNT; index += 1) {
    watched.push(await stack.createAddress(`bench-${index}`));
  }
  const crowd = await stack.createCrowd(lengthOf(CROWD, length));
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
  const { firstMs, perSecond } = await catchUp(stack, heights);
  say(`watcher: ${formatFigure(perSecond)} blocks/s`);
  // One more block confirms the last deposits.
  await stack.untilWatched(last + 2);
  const credited = (await stack.depositCount("credited")) - before;
  await stack.stopPart("deposit-watcher");
  const loop = await ethersLoop(stack.nodeUrl, {
    heights: heights.slice(0, lengthOf(ETHERS_BLOCKS, length)),
    watched: [...watched, ...crowd],
  });
  say(`ethers: ${formatFigure(loop.perSecond)} blocks/s`);
  await stack.startPart("deposit-watcher");
  return {
    title: "deposit watcher's catch-up",
    unit: "blocks/s",
    ours: perSecond,
    peer: loop.perSecond,
    peerName: "ethers loop",
    aim: { ratio: 25 },
    details: [
      `${heights.length} blocks of about ${BACKLOG_TRANSACTIONS} transactions and ` +
        `${last - cursor - heights.length} empty ones, ${watched.length + crowd.length} addresses, ` +
        `${credited} deposits credited; ours checks balances and commits to PostgreSQL, ` +
        `in a process that was just started and booked its first blocks after ${firstMs - startMs} ms`,
      `the loop is getBlock(n, true) and a Set of addresses; it writes nothing and found ` +
        `${loop.found} deposits in ${loop.blocks} blocks`,
    ],
  };
}

/**
 * How fast blocks were booked behind the first ones, by the ledger's events: a process that starts reads
 * its addresses first. Each of the blocks has deposits; empty ones between them are read and not counted.
 */
async function catchUp(
  stack: Stack,
  heights: readonly number[],
): Promise<{ readonly firstMs: number; readonly perSecond: number }> {
  const timeOf = new Map<number, number>();
  for (const { type, at, data } of await stack.events(0)) {
    if (type === "deposit.detected") timeOf.set(data.blockNumber ?? 0, Date.parse(at));
  }
  const times = heights.map((height) => timeOf.get(height) ?? Number.NaN);
  const [firstMs, lastMs] = [Math.min(...times), Math.max(...times)];
  const later = times.filter((timeMs) => timeMs > firstMs).length;
  return { firstMs, perSecond: later / ((lastMs - firstMs) / 1_000) };
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
