/** CRC-32C (Castagnoli), as CometBFT's log guards its records. */

/** The polynomial, its lowest power in the highest bit. */
export const CRC32C_POLYNOMIAL = 0x82f63b78;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ CRC32C_POLYNOMIAL : crc >>> 1;
  return crc >>> 0;
});

/** Checksum of the bytes as an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  // By index: an iterator costs several times as much here.
  for (let at = 0; at < bytes.length; at++) {
    crc = (crc >>> 8) ^ (TABLE[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/** One byte more in a sum that began with 0 and is not turned round at its end. */
export function crc32cStep(sum: number, byte: number): number {
  return (sum >>> 8) ^ (TABLE[(sum ^ byte) & 0xff] ?? 0);
}
