/** The 14 encodings of Ed25519 points of small order: as keys, everybody can sign for them (ZIP-215). */
const P = 2n ** 255n - 19n;

/** The y of points of order 8, little-endian: both are published in ZIP-215's test vectors. */
export const ORDER_EIGHT = [
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
];

/** A number as Ed25519 has it, 32 bytes. */
export function littleEndian(value: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, at) => Number((value >> BigInt(8 * at)) & 0xffn));
}

/** Both signs of x for an encoded y. */
function bothSigns(y: Uint8Array): Uint8Array[] {
  const negative = Uint8Array.from(y);
  negative[31] = (negative[31] ?? 0) | 0x80;
  return [y, negative];
}

/** y of order 1, 2, 4 and, beyond the field, of orders 4 and 1 again; then those of order 8. */
export const SMALL_ORDER = [
  ...[1n, P - 1n, 0n, P, P + 1n].map(littleEndian),
  ...ORDER_EIGHT.map((hex) => Uint8Array.from(Buffer.from(hex, "hex"))),
].flatMap(bothSigns);
