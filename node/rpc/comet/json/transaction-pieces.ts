/** Transactions of blocks as JSON, encoded a page at a time, so that full blocks hold up nobody. */
import assert from "node:assert/strict";
import { breathe } from "../../../../runtime/process/main-thread.js";
import { base64 } from "./encode.js";
import { JsonPieces } from "./json-pieces.js";

/** What stands before the transactions in a block's JSON. */
const TRANSACTIONS_MARK = '"data":{"txs":[';

/** Bytes of transactions that are encoded at a stretch; one of more is a page of its own. */
const PAGE_BYTES = 64 * 1024;

/** Transactions in pages that are encoded at a stretch. */
export function* pagesOf(transactions: Iterable<Uint8Array>): Generator<readonly Uint8Array[]> {
  let page: Uint8Array[] = [];
  let sizeBytes = 0;
  for (const bytes of transactions) {
    page.push(bytes);
    sizeBytes += bytes.length;
    if (sizeBytes < PAGE_BYTES) continue;
    yield page;
    [page, sizeBytes] = [[], 0];
  }
  if (page.length > 0) yield page;
}

/** The items of a JSON list of transactions, encoded a page at a time. */
export async function transactionPieces(
  pages: Iterable<readonly Uint8Array[]>,
  signal?: AbortSignal,
): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  for (const page of pages) {
    const items = page.map((bytes) => `"${base64(bytes)}"`).join(",");
    pieces.push(Buffer.from(pieces.length === 0 ? items : `,${items}`, "latin1"));
    await breathe(signal);
  }
  return pieces;
}

/**
 * A text in which blocks stand without transactions, with the transactions put in.
 * @param ofBlocks those of each block, in the blocks' order
 */
export function withTransactions(
  text: string,
  ofBlocks: readonly (readonly Buffer[])[],
): JsonPieces {
  const pieces: (string | Buffer)[] = [];
  let from = 0;
  for (const transactions of ofBlocks) {
    const markAt = text.indexOf(TRANSACTIONS_MARK, from);
    assert(markAt >= 0, "a block has no place for its transactions");
    const at = markAt + TRANSACTIONS_MARK.length;
    pieces.push(text.slice(from, at));
    for (const piece of transactions) pieces.push(piece);
    from = at;
  }
  pieces.push(text.slice(from));
  return new JsonPieces(pieces);
}
