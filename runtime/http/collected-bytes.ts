/**
 * Bytes that come in pieces, kept until they are whole. How large a piece is, the sender decides: each
 * of a single byte would take some 300 bytes of memory as an object of its own, and a body within every
 * bound would end the process. So small pieces are copied together.
 */

/** Pieces from here on are kept as they are: what they take beside their bytes does not count. */
const LARGE_BYTES = 4 * 1024;

/** Room that small pieces are copied into. */
const BLOCK_BYTES = 16 * 1024;

/** A body or an answer as it comes in. */
export class CollectedBytes {
  private size = 0;
  private readonly pieces: Buffer[] = [];
  private block: Buffer | undefined;
  private used = 0;

  /** Size of all pieces so far. */
  get sizeBytes(): number {
    return this.size;
  }

  /** Takes the next piece, which must not change any more. */
  add(piece: Buffer): void {
    const isFirst = this.size === 0;
    this.size += piece.length;
    // Most bodies are one piece: it is not copied.
    if (isFirst || piece.length >= LARGE_BYTES) {
      this.endBlock();
      this.pieces.push(piece);
      return;
    }
    if (this.used + piece.length > BLOCK_BYTES) this.endBlock();
    this.block ??= Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.used += piece.copy(this.block, this.used);
  }

  /** All bytes in order; to be asked once, when all are there. */
  whole(): Buffer {
    this.endBlock();
    const [only] = this.pieces;
    if (this.pieces.length === 1 && only !== undefined) return only;
    return Buffer.concat(this.pieces.splice(0), this.size);
  }

  /** What was copied becomes a piece; the block goes with it only where it is full enough. */
  private endBlock(): void {
    const { block, used } = this;
    if (block === undefined || used === 0) return;
    this.used = 0;
    const part = block.subarray(0, used);
    if (used < BLOCK_BYTES / 2) {
      this.pieces.push(Buffer.from(part));
    } else {
      this.pieces.push(part);
      this.block = undefined;
    }
  }
}
