/**
 * Ranges of blocks as their records, which the node reads and gives as they are: for an index that wants all
 * that is in them, a tenth of the work that their JSON is.
 */
import type { BlockOutline } from "../../../../chain/block.js";
import type { Height } from "../../../../chain/hex.js";
import type { BlockRecordBytes } from "../../../../chain/records/block-records.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import type { ChainView } from "../../../view/chain-view.js";
import { historyPruned } from "../errors.js";
import { LARGE_BYTES } from "../large-lane.js";
import { JsonPieces, type LargeContext } from "../method.js";

/** A block whose records are longer is given as JSON, which leaves large data out. */
const MAX_RECORDS_BYTES = 16 * 1024 * 1024;

/** A block's JSON is about so many times as long as its records. */
const JSON_LENGTH = 3;

/** Heights, both ends included, in at most about how many bytes of JSON. */
export interface BoundedRange {
  readonly from: Height;
  readonly last: Height;
  readonly maxBytes: number;
}

/** The list of an answer that is not ended yet, and the first height that is not in it. */
export interface OpenAnswer {
  readonly answer: JsonPieces;
  readonly height: Height;
}

/** The outline of a block whose journal is here, too. Throws HISTORY_PRUNED. */
export function readableOutline(view: ChainView, height: Height): BlockOutline {
  const oldest = view.oldest();
  if (height !== 0 && height < Math.max(oldest.journal, oldest.block)) throw historyPruned();
  const outline = view.outline(height);
  if (outline === undefined) throw historyPruned();
  return outline;
}

/** The records' JSON up to its end; undefined where not one block of the range fits. */
export async function recordRange(
  view: ChainView,
  { from, last, maxBytes }: BoundedRange,
  context: LargeContext,
): Promise<OpenAnswer | undefined> {
  const answer = new JsonPieces();
  answer.add('{"records":[');
  let sizeBytes = 0;
  let height = from;
  for (; height <= last && JSON_LENGTH * sizeBytes < maxBytes; height++) {
    readableOutline(view, height);
    const block = await blockTexts(view.records(height), context);
    if (block === undefined) break;
    if (height > from) answer.add(",");
    for (const text of block.texts) answer.add(text);
    sizeBytes += block.sizeBytes;
    if (answer.sizeBytes > LARGE_BYTES) await context.becameLarge();
  }
  return height === from ? undefined : { answer, height };
}

/** One block; undefined where it is too large. */
async function blockTexts(
  { outline, changes, cosmos, pages }: BlockRecordBytes,
  context: LargeContext,
): Promise<{ readonly texts: readonly string[]; readonly sizeBytes: number } | undefined> {
  let sizeBytes = 0;
  const recordText = (bytes: Uint8Array): string => {
    sizeBytes += bytes.length;
    return `"${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64")}"`;
  };
  function* parts(): Generator<string> {
    yield `{"outline":${recordText(outline)},"changes":${recordText(changes)},"cosmos":[`;
    let lead = "";
    for (const record of cosmos) {
      yield lead + recordText(record);
      lead = ",";
    }
    yield '],"pages":[';
    lead = "";
    for (const page of pages) {
      yield `${lead}[${page.map(recordText).join(",")}]`;
      lead = ",";
    }
    yield "]}";
  }
  const texts: string[] = [];
  for (const text of parts()) {
    texts.push(text);
    if (sizeBytes > MAX_RECORDS_BYTES) return undefined;
    if (sizeBytes > LARGE_BYTES) await context.becameLarge();
    await breathe(context.signal);
  }
  return { texts, sizeBytes };
}
