/** JSON texts that are too long for one string: made, kept and sent in pieces. */
import { breathe } from "../../../../runtime/process/main-thread.js";
import { base64 } from "./encode.js";

/** A result that is JSON already, in pieces that follow each other. */
export class JsonPieces {
  constructor(readonly pieces: readonly (string | Buffer)[]) {}

  /** The whole as one string. */
  toString(): string {
    return this.pieces.map((piece) => piece.toString()).join("");
  }
}

/** A list of results as one JSON array. */
export function piecesOfList(items: readonly JsonPieces[]): (string | Buffer)[] {
  const pieces: (string | Buffer)[] = ["["];
  for (const [position, item] of items.entries()) {
    if (position > 0) pieces.push(",");
    // One after the other: a call takes some hundred thousand arguments at most.
    for (const piece of item.pieces) pieces.push(piece);
  }
  pieces.push("]");
  return pieces;
}

/** What stands around the transactions in a block's JSON. */
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
    const at = text.indexOf(TRANSACTIONS_MARK, from) + TRANSACTIONS_MARK.length;
    pieces.push(text.slice(from, at));
    for (const piece of transactions) pieces.push(piece);
    from = at;
  }
  pieces.push(text.slice(from));
  return new JsonPieces(pieces);
}

/** Pieces as one row of bytes. A text of megabytes is encoded bit by bit, and others have their turns. */
export async function bytesInTurn(pieces: Iterable<string | Buffer>): Promise<Buffer> {
  const bytes: Buffer[] = [];
  for (const piece of pieces) {
    bytes.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    await breathe();
  }
  return Buffer.concat(bytes);
}
