/** JSON texts that are too long for one string: made, kept and sent in pieces. */
import { breathe } from "../../../../runtime/process/main-thread.js";

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

/** Pieces as one row of bytes. A text of megabytes is encoded bit by bit, and others have their turns. */
export async function bytesInTurn(
  pieces: Iterable<string | Buffer>,
  signal: AbortSignal,
): Promise<Buffer> {
  const bytes: Buffer[] = [];
  for (const piece of pieces) {
    bytes.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    await breathe(signal);
  }
  return Buffer.concat(bytes);
}
