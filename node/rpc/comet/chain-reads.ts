/** Reads that several routes share: one height's decided block with what execution made of it. */
import { LRUCache } from "lru-cache";
import type { AnyBlockTransaction, BlockOutline } from "../../../chain/block.js";
import { dataIndexOf, transactionAt } from "../../../chain/cosmos/cosmos-result.js";
import {
  type ExecutedEvmTransaction,
  type ExecutedTransaction,
  feeOf,
  isEvmExecuted,
  moduleEventsOf,
} from "../../../chain/abci-event.js";
import { bytesAround, dataItemBytes } from "../../../chain/consensus/consensus-block.js";
import type { Height } from "../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { mapInSteps, type Steps } from "../../../chain/steps/steps.js";
import { breathe, doBreathing } from "../../../runtime/process/main-thread.js";
import { ownerOf, type WorkOwner } from "../../../runtime/process/work-owner.js";
import type { ChainView } from "../../view/chain-view.js";
import type { ConsensusView, DecidedOutline } from "../../consensus/consensus-ports.js";
import type { BlockPage } from "../../view/block-pages.js";
import { blockIdJson, blockJson } from "./json/encode.js";
import type { JsonPieces } from "./json/json-pieces.js";
import { transactionPieces, withTransactions } from "./json/transaction-pieces.js";
import { refused } from "./errors.js";
import type { CometChain } from "./ports.js";

/** Sizes of blocks that are kept. */
const MAX_SIZES = 10_000;

/** By the view they were read from: only the whole block tells its size. */
const sizes = new WeakMap<ConsensusView, LRUCache<Height, number>>();

/** Newest height that is decided, stored and published. */
export function latestHeight({ view, consensus }: CometChain): Height {
  return Math.min(view.head().height, consensus.height());
}

/** A block without its transactions. Throws INTERNAL when it is gone. */
export function needOutline({ consensus }: CometChain, height: Height): DecidedOutline {
  const outline = consensus.outline(height);
  if (outline === undefined) throw refused(`block of height ${height} is not available`);
  return outline;
}

/** The EVM's block of a height in range, without what is in it. Throws INTERNAL when it is gone. */
export function committedOutline({ view }: Pick<CometChain, "view">, height: Height): BlockOutline {
  const outline = view.outline(height);
  if (outline === undefined) throw refused(`block of height ${height} is not available`);
  return outline;
}

/** Bytes of a decided block as it travels. Throws INTERNAL when it is gone. */
export async function sizeBytesOf(
  chain: CometChain,
  height: Height,
  signal: AbortSignal,
): Promise<number> {
  const cache = sizes.get(chain.consensus) ?? new LRUCache({ max: MAX_SIZES });
  sizes.set(chain.consensus, cache);
  const known = cache.get(height);
  if (known !== undefined) return known;
  const outline = needOutline(chain, height);
  let dataBytes = 0;
  for (const page of dataPages(chain.view, height)) {
    for (const { length } of page) dataBytes += dataItemBytes(length);
    await breathe(signal);
  }
  const sizeBytes = bytesAround(outline, dataBytes);
  cache.set(height, sizeBytes);
  return sizeBytes;
}

/** One executed transaction of a height in range. Throws INTERNAL when it is gone. */
export async function executedAt(
  chain: Pick<CometChain, "view">,
  { height, index }: { readonly height: Height; readonly index: number },
  signal?: AbortSignal,
): Promise<ExecutedTransaction> {
  assertResults(chain, height);
  const { view } = chain;
  const at = transactionAt(index, committedOutline(chain, height).cosmosPlaces);
  if ("cosmos" in at) return resultOf(height, view.cosmosTransaction(height, at.cosmos));
  const mined = view.transaction(height, at.evm);
  const placed = await doBreathing(view.receiptSteps(height, at.evm), signal);
  if (mined === undefined || placed === undefined) {
    throw refused(`results of height ${height} are not available`);
  }
  const changes = view.changes(height, at.evm);
  const own = { changes, ...moduleEventsOf(view.moduleEvents(height, at.evm)) };
  // Nobody asks for an even fee, and few fees are odd.
  const isOdd =
    isOddFee({ changes }) && (await oddFeesOf(view, height, ownerOf(signal)))[index] === 1;
  const { receipt } = placed;
  return { ...mined, index, evmIndex: at.evm, receipt, ...own, oddFeesBefore: () => isOdd };
}

/** Blocks of which the oddness of fees is kept, a byte for each of their transactions. */
const MAX_ODD_FEES = 256;

/** By the view they were read from. */
const oddFees = new WeakMap<ChainView, LRUCache<Height, Promise<Uint8Array>>>();

/**
 * For each place of `data.txs` 1 where the fees before it add up to an odd number. It takes a whole block
 * to tell, so that it is made in slices, and once for all who ask for transactions of the block.
 * @param owner who asks: whose the making is, if he is the first
 */
function oddFeesOf(view: ChainView, height: Height, owner: WorkOwner): Promise<Uint8Array> {
  const cache = oddFees.get(view) ?? new LRUCache({ max: MAX_ODD_FEES });
  oddFees.set(view, cache);
  const known = cache.get(height);
  if (known !== undefined) return known;
  const made = readOddFees(view, height, owner);
  cache.set(height, made);
  made.catch(() => cache.delete(height));
  return made;
}

/** Nobody's end stops what others wait for: no signal. */
async function readOddFees(view: ChainView, height: Height, owner: WorkOwner): Promise<Uint8Array> {
  const odd: number[] = [];
  let isOdd = false;
  for (const page of executedPages(view, height)) {
    for (const executed of page ?? []) {
      odd.push(Number(isOdd));
      if (isOddFee(executed)) isOdd = !isOdd;
    }
    await breathe(undefined, owner);
  }
  return Uint8Array.from(odd);
}

function isOddFee(executed: Pick<ExecutedTransaction, "changes">): boolean {
  return feeOf(executed) % 2n === 1n;
}

/** The bytes of a transaction as `data.txs` has them. */
export function bytesOf({ tx, from }: AnyBlockTransaction): Uint8Array {
  return tx.type === "cosmos" ? tx.raw : encodeSdkTransaction(tx, from);
}

/**
 * All transactions of a block with what execution made of them, in the order of `data.txs`; undefined
 * where others may have their turn.
 */
export function* executedPages(
  view: Pick<ChainView, "pages" | "cosmosTransaction" | "outline">,
  height: Height,
): Generator<ExecutedTransaction[] | undefined> {
  const places = view.outline(height)?.cosmosPlaces ?? [];
  const evm = mapPages(view.pages(height), (page) => executedSteps(page, places));
  let sumAtoken = 0n;
  const cosmos = (item: number) => resultOf(height, view.cosmosTransaction(height, item));
  for (const page of withCosmos<ExecutedTransaction>(evm, places, cosmos)) {
    yield page?.map((executed) => {
      const isOdd = sumAtoken % 2n === 1n;
      sumAtoken += feeOf(executed);
      return isEvmExecuted(executed) ? { ...executed, oddFeesBefore: () => isOdd } : executed;
    });
  }
}

/** `data.txs` of a block; what Cosmos transactions say is not decoded for it. */
export function* dataPages(
  view: Pick<ChainView, "pages" | "cosmosBytes" | "outline">,
  height: Height,
): Generator<Uint8Array[]> {
  const places = view.outline(height)?.cosmosPlaces ?? [];
  const cosmos = (item: number) => resultOf(height, view.cosmosBytes(height, item));
  const evm = mapPages(view.pages(height), (page) => mapInSteps(page.transactions(), bytesOf));
  for (const page of withCosmos(evm, places, cosmos)) if (page !== undefined) yield page;
}

/** What a height in range has of a Cosmos transaction. Throws INTERNAL when it is gone. */
function resultOf<Result>(height: Height, found: Result | undefined): Result {
  if (found === undefined) throw refused(`results of height ${height} are not available`);
  return found;
}

function* mapPages<Item>(
  pages: Iterable<BlockPage>,
  read: (page: BlockPage) => Steps<readonly Item[]>,
): Generator<readonly Item[] | undefined> {
  for (const page of pages) yield yield* read(page);
}

/** Cosmos transactions of one page, at most. */
const COSMOS_AT_ONCE = 64;

/**
 * Puts the Cosmos transactions of a block at their places; no page is empty. Each is read when its page
 * is made: all of a full block at a stretch would hold up the thread for half a second.
 */
function* withCosmos<Item>(
  pages: Iterable<readonly Item[] | undefined>,
  places: readonly number[],
  read: (item: number) => Item,
): Generator<Item[] | undefined> {
  let [next, index] = [0, 0];
  let page: Item[] = [];
  for (const items of pages) {
    if (items === undefined) {
      yield undefined;
      continue;
    }
    for (const item of items) {
      while (places[next] === index) {
        page.push(read(next));
        [next, index] = [next + 1, index + 1];
        if (page.length >= COSMOS_AT_ONCE) {
          yield page;
          page = [];
        }
      }
      page.push(item);
      index += 1;
    }
    if (page.length > 0) yield page;
    page = [];
  }
  for (; next < places.length; next += COSMOS_AT_ONCE) {
    const count = Math.min(COSMOS_AT_ONCE, places.length - next);
    const start = next;
    yield Array.from({ length: count }, (_, offset) => read(start + offset));
  }
}

/** The executed transactions of a page, in steps. */
function* executedSteps(
  page: BlockPage,
  places: readonly number[],
): Steps<ExecutedEvmTransaction[]> {
  const receipts = yield* page.receiptSteps();
  const journal = page.journal();
  return page.transactions().map((mined, item) => {
    const evmIndex = page.first + item;
    const receipt = receipts[item]?.receipt;
    const changed = journal[item];
    if (receipt === undefined || changed === undefined) {
      throw new RangeError("a transaction has no receipt or no journal");
    }
    const index = dataIndexOf(evmIndex, places);
    // Who puts the pages together knows about fees.
    const own = { changes: changed.changes, oddFeesBefore: () => false };
    const ofModules = moduleEventsOf(changed.events);
    return { ...mined, index, evmIndex, receipt, ...own, ...ofModules };
  });
}

/** Throws INTERNAL, in CometBFT's words, where the results of a height are not here any more. */
export function assertResults({ view }: Pick<CometChain, "view">, height: Height): void {
  const { journal } = view.oldest();
  if (height >= journal) return;
  throw refused(`height ${height} is not available, lowest height is ${journal}`);
}

/** `block_id` and `block` of a height, the transactions encoded a page at a time. */
export async function blockResult(
  chain: CometChain,
  height: Height,
  signal?: AbortSignal,
): Promise<JsonPieces> {
  const { blockId, ...outline } = needOutline(chain, height);
  const block = blockJson({ ...outline, transactions: [] });
  const text = JSON.stringify({ block_id: blockIdJson(blockId), block });
  return withTransactions(text, [await transactionPieces(dataPages(chain.view, height), signal)]);
}
