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
import { withdrawalRow } from "./withdrawal-rows.js";

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
      rows.push(await withdrawalRow(stack, options));
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
