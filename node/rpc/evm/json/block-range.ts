/**
 * Ranges of blocks with all that an index of the chain is made of: outline, transactions, logs and
 * balance changes. Read once by each index and never again, so nothing of it is kept in memory.
 */
import {
  type BlockOutline,
  blockSizeBytes,
  type BlockTransaction,
} from "../../../../chain/block.js";
import { sdkTransactionHash } from "../../../../chain/consensus/sdk-transaction.js";
import { type Height, toQuantity } from "../../../../chain/hex.js";
import { RECORDS_VERSION } from "../../../../chain/records/records-version.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import type { ChainView } from "../../../view/chain-view.js";
import { cosmosOf } from "../../../view/cosmos-items.js";
import {
  type BoundedRange,
  type OpenAnswer,
  readableOutline,
  recordRange,
} from "./record-range.js";
import {
  cosmosJson,
  DataRoom,
  journaledTransactions,
  journalEndJson,
  journalStartJson,
} from "./journal-json.js";
import { LARGE_BYTES } from "../large-lane.js";
import { JsonPieces, type LargeContext } from "../method.js";

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
  /** Bytes that the JSON of the blocks may have. */
  readonly maxBytes: number;
  /** Of the records that whoever asks can read; undefined: JSON. */
  readonly recordsVersion: number | undefined;
}

/**
 * `{blocks, next, head}`: blocks in order from the first on, the height to go on from (null when the
 * range is done), and the newest block. Made in slices. Of large data `inputBytes` and `dataBytes` say how
 * much was left out. `{records, next, head}` for who can read this node's records, unless the first block is
 * too large for that.
 * @throws HISTORY_PRUNED where a block of the range or its journal is not here any more
 */
export async function blockRangeJson(
  view: ChainView,
  { from, to, maxBytes, recordsVersion }: WantedRange,
  context: LargeContext,
): Promise<JsonPieces> {
  const { height: headHeight, hash: headHash } = view.head();
  const range = { from, last: Math.min(to, headHeight, from + MAX_RANGE_BLOCKS - 1), maxBytes };
  const records =
    recordsVersion === RECORDS_VERSION ? await recordRange(view, range, context) : undefined;
  const { answer, height } = records ?? (await wholeRange(view, range, context));
  const next = height <= Math.min(to, headHeight) ? toQuantity(height) : null;
  const head = { height: toQuantity(headHeight), hash: headHash };
  answer.add(`],"next":${JSON.stringify(next)},"head":${JSON.stringify(head)}}`);
  return answer;
}

/** The blocks' JSON up to its end. */
async function wholeRange(
  view: ChainView,
  { from, last, maxBytes }: BoundedRange,
  context: LargeContext,
): Promise<OpenAnswer> {
  const answer = new JsonPieces();
  answer.add('{"blocks":[');
  let height = from;
  for (; height <= last && (height === from || answer.sizeBytes < maxBytes); height++) {
    if (height > from) answer.add(",");
    await addBlock(answer, view, readableOutline(view, height), context);
  }
  return { answer, height };
}

async function addBlock(
  answer: JsonPieces,
  view: ChainView,
  outline: BlockOutline,
  context: LargeContext,
): Promise<void> {
  const { signal } = context;
  const { header, transactionCount } = outline;
  const extra = JSON.stringify({
    proposer: header.coinbase,
    gasUsed: toQuantity(header.gasUsed),
    gasLimit: toQuantity(header.gasLimit),
    size: toQuantity(blockSizeBytes(outline)),
  });
  answer.add(`{${extra.slice(1, -1)},${journalStartJson(outline).slice(1)}`);
  const room = new DataRoom(IN_RANGE, SPARE_BYTES);
  for (const page of view.pages(header.height)) {
    if (page.first > 0) answer.add(",");
    for (const text of journaledTransactions(page, room, extraMembers)) {
      if (text !== undefined) answer.add(text);
      if (answer.sizeBytes > LARGE_BYTES) await context.becameLarge();
      await breathe(signal);
    }
  }
  const { height } = header;
  const cosmosTexts: string[] = [];
  let { sizeBytes } = answer;
  for await (const mined of cosmosOf(view, height, signal)) {
    const text = cosmosJson(mined, transactionCount + cosmosTexts.length);
    cosmosTexts.push(text);
    sizeBytes += text.length;
    if (sizeBytes > LARGE_BYTES) await context.becameLarge();
  }
  answer.add(journalEndJson(view.blockChanges(height), cosmosTexts));
  if (answer.sizeBytes > LARGE_BYTES) await context.becameLarge();
  await breathe(signal);
}

/** What a front end shows of a transaction beside its journal. */
function extraMembers({ tx, from, sdkHash }: BlockTransaction): string {
  return (
    `,"value":"${toQuantity(tx.valueAtoken)}","gas":"${toQuantity(tx.gasLimit)}",` +
    `"type":"${toQuantity(tx.type)}","sdkHash":"${sdkHash ?? sdkTransactionHash(tx, from)}"`
  );
}
