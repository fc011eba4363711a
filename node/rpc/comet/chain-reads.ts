/** Reads that several routes share: one height's decided block with what execution made of it. */
import { LRUCache } from "lru-cache";
import type { ExecutedTransaction } from "../../../chain/consensus/abci-event.js";
import { bytesAround, dataItemBytes } from "../../../chain/consensus/consensus-block.js";
import type { Height } from "../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import type { ConsensusView, DecidedOutline } from "../../consensus/consensus-ports.js";
import type { BlockOutline, BlockPage } from "../../view/block-pages.js";
import { base64, blockIdJson, blockJson } from "./json/encode.js";
import { JsonPieces } from "./json/json-pieces.js";
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
export function committedOutline({ view }: CometChain, height: Height): BlockOutline {
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
  for (const page of chain.view.pages(height)) {
    for (const { tx, from } of page.transactions()) {
      dataBytes += dataItemBytes(encodeSdkTransaction(tx, from).length);
    }
    await breathe(signal);
  }
  const sizeBytes = bytesAround(outline, dataBytes);
  cache.set(height, sizeBytes);
  return sizeBytes;
}

/** One executed transaction of a height in range. Throws INTERNAL when it is gone. */
export function executedAt(
  chain: CometChain,
  { height, index }: { readonly height: Height; readonly index: number },
): ExecutedTransaction {
  assertResults(chain, height);
  const mined = chain.view.transaction(height, index);
  const placed = chain.view.receipt(height, index);
  if (mined === undefined || placed === undefined) {
    throw refused(`results of height ${height} are not available`);
  }
  const { receipt } = placed;
  return { ...mined, index, receipt, changes: chain.view.changes(height, index) };
}

/** The executed transactions of a page. */
export function executedOf(page: BlockPage): ExecutedTransaction[] {
  const receipts = page.receipts();
  const journal = page.journal();
  return page.transactions().map((mined, item) => {
    const receipt = receipts[item]?.receipt;
    const changed = journal[item];
    if (receipt === undefined || changed === undefined) {
      throw new RangeError("a transaction has no receipt or no journal");
    }
    return { ...mined, index: page.first + item, receipt, changes: changed.changes };
  });
}

/** Throws INTERNAL, in CometBFT's words, where the results of a height are not here any more. */
export function assertResults({ view }: CometChain, height: Height): void {
  const { journal } = view.oldest();
  if (height >= journal) return;
  throw refused(`height ${height} is not available, lowest height is ${journal}`);
}

/** What stands around the transactions in a block's JSON. */
const TRANSACTIONS_MARK = '"data":{"txs":[';

/** `block_id` and `block` of a height, the transactions encoded a page at a time. */
export async function blockResult(
  chain: CometChain,
  height: Height,
  signal?: AbortSignal,
): Promise<JsonPieces> {
  const { blockId, ...outline } = needOutline(chain, height);
  const block = blockJson({ ...outline, transactions: [] });
  const text = JSON.stringify({ block_id: blockIdJson(blockId), block });
  const at = text.indexOf(TRANSACTIONS_MARK) + TRANSACTIONS_MARK.length;
  const pieces: (string | Buffer)[] = [text.slice(0, at)];
  for (const page of chain.view.pages(height)) {
    const items = page
      .transactions()
      .map(({ tx, from }) => `"${base64(encodeSdkTransaction(tx, from))}"`)
      .join(",");
    pieces.push(Buffer.from(page.first === 0 ? items : `,${items}`, "latin1"));
    await breathe(signal);
  }
  pieces.push(text.slice(at));
  return new JsonPieces(pieces);
}
