/** The node's own methods: the balance journal, and what became of a transaction hash. */
import type { Address } from "../../../../chain/address.js";
import type { BalanceChange } from "../../../../chain/balance-change.js";
import { transactionAt } from "../../../../chain/cosmos/cosmos-result.js";
import { type Hash32, type Height, toQuantity } from "../../../../chain/hex.js";
import { type Operation, operationsOf } from "../../../../chain/operations.js";
import type { Atoken } from "../../../../chain/units.js";
import type { AccountJournalEntry, ChainView } from "../../../view/chain-view.js";
import type { TransactionPool, TransactionStatus } from "../../../mempool/pool-port.js";
import type { BlockJson } from "../json/block-json.js";
import { blockRangeJson, MAX_RANGE_BYTES } from "../json/block-range.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import { historyPruned, invalidParams } from "../errors.js";
import { changeJson } from "../json/journal-json.js";
import { LARGE_BYTES } from "../large-lane.js";
import {
  type JsonValue,
  type LargeContext,
  type MethodEntries,
  method,
  RawJson,
} from "../method.js";
import { parseAddressParam, parseHashParam, parseIndex } from "../params.js";

/**
 * Entries of one causeway_getAccountJournal answer. Blocks are never split, so one block with
 * more entries than this is given whole.
 */
const MAX_JOURNAL_ENTRIES = 1_000;

/**
 * Blocks that one such answer looks through, and transactions in them: a contract is written in any
 * number of blocks that move none of its coins.
 */
const MAX_JOURNAL_BLOCKS = 2_000;
const MAX_JOURNAL_TRANSACTIONS = 200_000;

/** Heights of one causeway_getAccountHeights answer: 10 KB of reply, and 1,000 keys read. */
const MAX_ACCOUNT_HEIGHTS = 1_000;

/** A height as a quantity, or as a JSON number. */
function parseHeight(value: unknown): Height {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  return parseIndex(value);
}

/** causeway_* methods; operation indexes are those of `chain/operations.ts`. */
export function journalMethods(
  view: ChainView,
  json: BlockJson,
  pool: TransactionPool,
): MethodEntries {
  return [
    method("causeway_getBlockJournal", 1, async (params, context) => {
      const height = view.heightOfHash(params.required(0, parseHashParam));
      if (height === undefined) return null;
      if (height !== 0 && height < view.oldest().journal) throw historyPruned();
      return (await json.journal(height, context)) ?? null;
    }),
    method("causeway_getAccountJournal", 3, async (params, context) => {
      const address = params.required(0, parseAddressParam);
      const from = params.required(1, parseHeight);
      const to = Math.min(params.required(2, parseHeight), view.head().height);
      return accountJournal(view, address, { from, to }, context);
    }),
    method("causeway_getAccountHeights", 3, (params, { signal }) => {
      const address = params.required(0, parseAddressParam);
      const from = params.required(1, parseHeight);
      const to = Math.min(params.required(2, parseHeight), view.head().height);
      return accountHeights(view, address, { from, to }, signal);
    }),
    method("causeway_getBlockRange", 4, (params, context) => {
      const from = params.required(0, parseHeight);
      const to = params.required(1, parseHeight);
      const asked = params.optional(2, parseHeight) ?? MAX_RANGE_BYTES;
      checkRange({ from, to });
      const maxBytes = Math.min(Math.max(asked, 1), MAX_RANGE_BYTES);
      const recordsVersion = params.optional(3, parseHeight);
      return blockRangeJson(view, { from, to, maxBytes, recordsVersion }, context);
    }),
    method("causeway_getTransactionStatus", 1, (params) => {
      const hash = params.required(0, parseHashParam);
      const location = view.locate(hash) ?? placeBySdkHash(view, hash);
      if (location !== undefined) {
        const { height, index } = location;
        return statusJson({ status: "included", height, index });
      }
      return statusJson(pool.status(hash));
    }),
  ];
}

/** Where the block's journal has it: a Cosmos one behind all of the EVM's, which `data.txs` mixes. */
function placeBySdkHash(
  view: ChainView,
  hash: Hash32,
): { readonly height: Height; readonly index: number } | undefined {
  const found = view.locateBySdkHash(hash);
  if (found === undefined) return undefined;
  const { height, index } = found;
  const outline = view.outline(height);
  if (outline === undefined) return undefined;
  const at = transactionAt(index, outline.cosmosPlaces);
  return { height, index: "evm" in at ? at.evm : outline.transactionCount + at.cosmos };
}

/** Status with its numbers as quantities. */
function statusJson(status: TransactionStatus): JsonValue {
  switch (status.status) {
    case "queued": {
      const { missingNonce, reason } = status;
      const known = { status: status.status, missingNonce: toQuantity(missingNonce) };
      return reason === undefined ? known : { ...known, reason };
    }
    case "included": {
      const { height, index } = status;
      return { status: status.status, height: toQuantity(height), index: toQuantity(index) };
    }
    case "replaced":
      return { status: status.status, by: status.by };
    case "dropped":
      return { status: status.status, reason: status.reason };
    default:
      return { status: status.status };
  }
}

/** Operations of each change of one transaction, or of the block-level one. */
class OperationIndex {
  private key = "";
  private byChange: ReadonlyMap<BalanceChange, readonly Operation[]> = new Map();
  private changes: readonly BalanceChange[] = [];

  constructor(private readonly view: ChainView) {}

  /** Operations of the account in one change: two for a transfer to oneself. */
  sidesOf(address: Address, entry: AccountJournalEntry): readonly Operation[] {
    this.load(entry);
    const change = this.changes[entry.changeIndex];
    const operations = change === undefined ? undefined : this.byChange.get(change);
    if (operations === undefined) {
      throw new Error(`block ${entry.height} has no change ${entry.changeIndex}`);
    }
    return operations.filter((operation) => operation.address === address);
  }

  private changesOf({ height, transactionIndex }: AccountJournalEntry): readonly BalanceChange[] {
    const count = this.view.outline(height)?.transactionCount ?? 0;
    if (transactionIndex < count) return this.view.changes(height, transactionIndex);
    return this.view.cosmosTransaction(height, transactionIndex - count)?.changes ?? [];
  }

  /** Numbers a transaction's operations once, however many of its changes are asked for. */
  private load(entry: AccountJournalEntry): void {
    const key = `${entry.height}/${entry.transactionIndex}`;
    if (key === this.key) return;
    this.changes =
      entry.transactionHash === undefined
        ? this.view.blockChanges(entry.height).blockChanges
        : this.changesOf(entry);
    const byChange = new Map<BalanceChange, Operation[]>();
    for (const operation of operationsOf(this.changes)) {
      const sides = byChange.get(operation.change);
      if (sides === undefined) byChange.set(operation.change, [operation]);
      else sides.push(operation);
    }
    this.byChange = byChange;
    this.key = key;
  }
}

/** What the operation did to the balance: nothing where the frame was reverted. */
function deltaAtoken(operation: Operation): Atoken {
  return operation.status === "SUCCESS" ? operation.amountAtoken : 0n;
}

function entryJson(entry: AccountJournalEntry, operation: Operation): string {
  const own = JSON.stringify({
    blockNumber: toQuantity(entry.height),
    blockHash: entry.blockHash,
    transactionHash: entry.transactionHash ?? null,
    transactionIndex: entry.transactionIndex,
    operationIndex: operation.index,
    delta: deltaAtoken(operation).toString(),
  });
  return `${own.slice(0, -1)},"change":${changeJson(entry.change)}}`;
}

interface HeightRange {
  readonly from: Height;
  readonly to: Height;
}

/** A range may start one above the head: there a reader goes on that has read everything. */
function checkRange({ from, to }: HeightRange): void {
  if (from > to + 1) throw invalidParams("invalid block range params");
}

async function accountHeights(
  view: ChainView,
  address: Address,
  range: HeightRange,
  signal: AbortSignal,
): Promise<JsonValue> {
  checkRange(range);
  const heights: Height[] = [];
  for await (const height of view.accountHeights(address, range.from, range.to)) {
    signal.throwIfAborted();
    if (heights.length === MAX_ACCOUNT_HEIGHTS) return { heights, next: height };
    heights.push(height);
  }
  return { heights, next: null };
}

/** How far one answer looks, and the next block that is of the account, where it is behind that. */
async function journalReach(
  view: ChainView,
  address: Address,
  { from, to }: HeightRange,
  signal: AbortSignal,
): Promise<{ readonly to: Height; readonly next: Height | undefined }> {
  let [blocks, transactions] = [0, 0];
  for await (const height of view.accountHeights(address, from, to)) {
    if (blocks === MAX_JOURNAL_BLOCKS || transactions > MAX_JOURNAL_TRANSACTIONS) {
      return { to: height - 1, next: height };
    }
    const outline = view.outline(height);
    blocks += 1;
    transactions += (outline?.transactionCount ?? 0) + (outline?.cosmosPlaces.length ?? 0);
    await breathe(signal);
  }
  return { to, next: undefined };
}

async function accountJournal(
  view: ChainView,
  address: Address,
  range: HeightRange,
  context: LargeContext,
): Promise<RawJson> {
  checkRange(range);
  const { signal } = context;
  const reach = await journalReach(view, address, range, signal);
  const operations = new OperationIndex(view);
  const entries: string[] = [];
  let blockEntries: string[] = [];
  let blockHeight: Height | undefined;
  let last = "";
  let sizeBytes = 0;
  const fits = () =>
    entries.length === 0 || entries.length + blockEntries.length <= MAX_JOURNAL_ENTRIES;
  for await (const entry of view.accountJournal(address, range.from, reach.to, signal)) {
    signal.throwIfAborted();
    if (entry.height !== blockHeight) {
      if (!fits()) break;
      entries.push(...blockEntries);
      blockEntries = [];
      blockHeight = entry.height;
    }
    // A transfer to oneself touches the account twice but is one change with two sides.
    const change = `${entry.height}/${entry.transactionIndex}/${entry.changeIndex}`;
    if (change !== last) {
      const sides = operations.sidesOf(address, entry);
      const texts = sides.map((operation) => entryJson(entry, operation));
      blockEntries.push(...texts);
      for (const { length } of texts) sizeBytes += length;
      if (sizeBytes > LARGE_BYTES) await context.becameLarge();
    }
    last = change;
  }
  const isWhole = fits();
  const shown = isWhole ? [...entries, ...blockEntries] : entries;
  const next = (isWhole ? reach.next : blockHeight) ?? null;
  return new RawJson(`{"entries":[${shown.join(",")}],"next":${next}}`);
}
