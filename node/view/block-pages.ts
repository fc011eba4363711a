/**
 * A block as it is read: its outline, and its transactions in pages, so that nobody has to read or
 * hold a block of ten thousand transactions to show one of them. A page of the store decodes what
 * is asked of it and no more (`node/store/blocks/block-records.ts`); one of a block in memory only
 * cuts it out.
 */
import type { TransactionJournal } from "../../chain/balance-change.js";
import {
  type BlockOutline,
  type BlockTransaction,
  rlpTransactionBytes,
} from "../../chain/block.js";
import { cosmosPlacesOf } from "../../chain/abci-event.js";
import type { Hash32 } from "../../chain/hex.js";
import { encodeReceipt, type Receipt } from "../../chain/receipt.js";
import type { Steps } from "../../chain/steps/steps.js";
import type { Atoken } from "../../chain/units.js";
import type { CommittedBlock } from "./event-bus.js";

/** A receipt with what the block alone knows of it. */
export interface PlacedReceipt {
  readonly receipt: Receipt;
  /** Logs of the block before the receipt's first one. */
  readonly firstLogIndex: number;
}

/** What a transaction paid. */
export interface PaidGas {
  readonly gasUsed: bigint;
  /** Price of one unit of gas. */
  readonly priceAtoken: Atoken;
}

/** Some neighbouring transactions of a block with all that belongs to them. */
export interface BlockPage {
  /** Index in the block of the first of them. */
  readonly first: number;
  readonly count: number;
  hashes(): readonly Hash32[];
  transactions(): readonly BlockTransaction[];
  receipts(): readonly PlacedReceipt[];
  /** The same in steps: a single one may have tens of thousands of logs. */
  receiptSteps(): Steps<readonly PlacedReceipt[]>;
  /** Nothing of their logs is decoded. */
  paidGas(): readonly PaidGas[];
  /** Consensus encodings of the receipts, one after the other; logs as they are stored. */
  rawReceipts(): Iterable<Uint8Array>;
  /** Nothing in it where the block came without its journal (state sync). */
  journal(): readonly TransactionJournal[];
}

/** Most transactions of one page; a page of transfers is less than a millisecond of work. */
export const PAGE_TRANSACTIONS = 128;

/** The outline of a block in memory. */
export function outlineOf({ block }: Pick<CommittedBlock, "block">): BlockOutline {
  const { header, hash, timeMs, dataHash, transactions } = block;
  let transactionBytes = 0;
  for (const { tx } of transactions) transactionBytes += rlpTransactionBytes(tx);
  const transactionCount = transactions.length;
  const cosmosPlaces = cosmosPlacesOf(block);
  return { header, hash, timeMs, dataHash, transactionCount, cosmosPlaces, transactionBytes };
}

/** The pages of a block in memory. */
export function* pagesOf(committed: CommittedBlock): Generator<BlockPage> {
  const { block, receipts, journal } = committed;
  let logCount = 0;
  for (let first = 0; first < block.transactions.length; first += PAGE_TRANSACTIONS) {
    const end = Math.min(first + PAGE_TRANSACTIONS, block.transactions.length);
    const firstLogIndex = logCount;
    const own = receipts.slice(first, end);
    for (const { logs } of own) logCount += logs.length;
    yield {
      first,
      count: end - first,
      hashes: () => block.transactions.slice(first, end).map(({ tx }) => tx.hash),
      transactions: () => block.transactions.slice(first, end),
      receipts: () => placeReceipts(own, firstLogIndex),
      receiptSteps: () => atOnce(placeReceipts(own, firstLogIndex)),
      paidGas: () => own.map(paidBy),
      rawReceipts: () => encodedReceipts(own),
      journal: () => journal.transactions.slice(first, end),
    };
  }
}

/** What is there already, as work in steps. */
function* atOnce<Result>(result: Result): Steps<Result> {
  yield;
  return result;
}

function* encodedReceipts(receipts: readonly Receipt[]): Generator<Uint8Array, void> {
  for (const receipt of receipts) yield encodeReceipt(receipt);
}

function paidBy({ gasUsed, effectiveGasPriceAtoken }: Receipt): PaidGas {
  return { gasUsed, priceAtoken: effectiveGasPriceAtoken };
}

/** Receipts that follow each other, the first of which has so many logs before it. */
export function placeReceipts(
  receipts: readonly Receipt[],
  firstLogIndex: number,
): readonly PlacedReceipt[] {
  let next = firstLogIndex;
  return receipts.map((receipt) => {
    const placed = { receipt, firstLogIndex: next };
    next += receipt.logs.length;
    return placed;
  });
}

/** Logs before each receipt of a block in memory, counted once. */
const logCounts = new WeakMap<readonly Receipt[], Uint32Array>();

/** The receipt of one transaction of a block in memory; undefined where there is none. */
export function placedReceipt(
  { receipts }: Pick<CommittedBlock, "receipts">,
  index: number,
): PlacedReceipt | undefined {
  const receipt = receipts[index];
  const firstLogIndex = logsBefore(receipts)[index];
  return receipt === undefined || firstLogIndex === undefined
    ? undefined
    : { receipt, firstLogIndex };
}

function logsBefore(receipts: readonly Receipt[]): Uint32Array {
  const known = logCounts.get(receipts);
  if (known !== undefined) return known;
  const counts = new Uint32Array(receipts.length);
  let count = 0;
  for (const [index, { logs }] of receipts.entries()) {
    counts[index] = count;
    count += logs.length;
  }
  logCounts.set(receipts, counts);
  return counts;
}
