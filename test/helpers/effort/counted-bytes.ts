/** Bytes that count how often a piece is taken of them: what a reader did with a message. */

/** The same bytes, and how many pieces were taken of them and of large pieces of them. */
export function countedBytes(bytes: Uint8Array): {
  readonly bytes: Uint8Array;
  readonly pieces: () => number;
} {
  let pieces = 0;
  const watch = (whole: Uint8Array): Uint8Array => {
    const subarray = (from?: number, to?: number) => {
      pieces++;
      const piece = Uint8Array.prototype.subarray.call(whole, from, to);
      return piece.length > 1_000 ? watch(piece) : piece;
    };
    return Object.defineProperty(whole, "subarray", { value: subarray });
  };
  return { bytes: watch(bytes), pieces: () => pieces };
}
