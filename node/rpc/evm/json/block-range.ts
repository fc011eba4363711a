/**
 * Ranges of blocks with all that an index of the chain is made of: outline, transactions, logs and
 * balance changes. Read once by each index and never again, so nothing of it is kept in memory.
 */
import type { BlockTransaction } from "../../../../chain/block.js";
import { sdkTransactionHash } from "../../../../chain/consensus/sdk-transaction.js";
import { type Height, toQuantity } from "../../../../chain/hex.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import type { BlockOutline } from "../../../view/block-pages.js";
import type { ChainView } from "../../../view/chain-view.js";
import { blockSizeBytes } from "../encode.js";
import { historyPruned } from "../errors.js";
import {
  DataRoom,
  journaledTransactions,
  journalEndJson,
  journalStartJson,
} from "../journal-json.js";
import { RawJson } from "../method.js";

/** An answer begins no further block behind this size. */
export const MAX_RANGE_BYTES = 16 * 1024 * 1024;

/**
 * Of one block: calls and events of most contracts are whole, and a block may have some large ones. The
 * rest is asked for by transaction, so that the answer holds every block that the chain allows.
 */
const IN_RANGE = { inputBytes: 256, logBytes: 64 };
const SPARE_BYTES = 1024 * 1024;

/** Most blocks of one answer: empty ones are small, and each is some reads of the store. */
const MAX_RANGE_BLOCKS = 2_000;

/** Which blocks, both ends included, in at most about how many bytes. */
export interface WantedRange {
  readonly from: Height;
  readonly to: Height;
  readonly maxBytes: number;
}

/**
 * `{blocks, next, head}`: blocks in order from the first on, the height to go on from (null when the
 * range is done), and the newest block. Made in slices. Of large data `inputBytes` and `dataBytes` say how
 * much was left out.
 * @throws HISTORY_PRUNED where a block of the range or its journal is not here any more
 */
export async function blockRangeJson(
  view: ChainView,
  { from, to, maxBytes }: WantedRange,
  signal: AbortSignal,
): Promise<RawJson> {
  const { height: headHeight, hash: headHash } = view.head();
  const last = Math.min(to, headHeight, from + MAX_RANGE_BLOCKS - 1);
  const pieces: Buffer[] = [Buffer.from('{"blocks":[')];
  let sizeBytes = 0;
  let height = from;
  for (; height <= last && sizeBytes < maxBytes; height++) {
    const oldest = view.oldest();
    if (height !== 0 && height < Math.max(oldest.journal, oldest.block)) throw historyPruned();
    const outline = view.outline(height);
    if (outline === undefined) throw historyPruned();
    if (height > from) pieces.push(Buffer.from(","));
    for await (const piece of blockPieces(view, outline, signal)) {
      pieces.push(piece);
      sizeBytes += piece.length;
    }
  }
  const next = height <= Math.min(to, headHeight) ? toQuantity(height) : null;
  const head = { height: toQuantity(headHeight), hash: headHash };
  pieces.push(Buffer.from(`],"next":${JSON.stringify(next)},"head":${JSON.stringify(head)}}`));
  return new RawJson(Buffer.concat(pieces));
}

async function* blockPieces(
  view: ChainView,
  outline: BlockOutline,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  const { header } = outline;
  const extra = JSON.stringify({
    proposer: header.coinbase,
    gasUsed: toQuantity(header.gasUsed),
    gasLimit: toQuantity(header.gasLimit),
    size: toQuantity(blockSizeBytes(outline)),
  });
  yield Buffer.from(`{${extra.slice(1, -1)},${journalStartJson(outline).slice(1)}`);
  const room = new DataRoom(IN_RANGE, SPARE_BYTES);
  for (const page of view.pages(header.height)) {
    const text = journaledTransactions(page, room, extraMembers);
    yield Buffer.from(page.first === 0 ? text : `,${text}`);
    await breathe(signal);
  }
  const { height } = header;
  const end = journalEndJson(
    view.blockChanges(height),
    view.cosmos(height),
    outline.transactionCount,
  );
  yield Buffer.from(end);
  await breathe(signal);
}

/** What a front end shows of a transaction beside its journal. */
function extraMembers({ tx, from, sdkHash }: BlockTransaction): string {
  return (
    `,"value":"${toQuantity(tx.valueAtoken)}","gas":"${toQuantity(tx.gasLimit)}",` +
    `"type":"${toQuantity(tx.type)}","sdkHash":"${sdkHash ?? sdkTransactionHash(tx, from)}"`
  );
}
