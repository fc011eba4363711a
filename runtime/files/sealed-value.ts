/**
 * A stored value with a checksum behind it: value, then CRC-32 of key and value, 4 bytes
 * big-endian. The key is part of it, so that a value found under another key counts as damaged.
 * CRC-32 sees every error within 32 bits in a row; others escape once in 2^32.
 */
import { crc32 } from "node:zlib";

const CHECKSUM_BYTES = 4;

/** Up to here the loop is quicker than the call into zlib (measured on Node 20). */
const SHORT_BYTES = 150;

const POLYNOMIAL = 0xedb88320;

/** What a byte does to the sum, ... */
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  return crc;
});
/** ... and what it does with one, two and three bytes behind it: four at a time take half as long. */
const TABLE_1 = TABLE.map(behindOneMore);
const TABLE_2 = TABLE_1.map(behindOneMore);
const TABLE_3 = TABLE_2.map(behindOneMore);

function behindOneMore(crc: number): number {
  return (crc >>> 8) ^ (TABLE[crc & 0xff] ?? 0);
}

/** Values up to this size are sealed in the same place, one after the other. */
const SHARED_BYTES = 64 * 1024;

const shared = Buffer.allocUnsafeSlow(SHARED_BYTES + CHECKSUM_BYTES);

/**
 * The bytes to store under a key. They are good until the next call only: whoever stores them copies them at
 * once, and a buffer for each costs the collector more than the rest of a write.
 */
export function sealValue(key: Uint8Array, value: Uint8Array): Buffer {
  const sizeBytes = value.length + CHECKSUM_BYTES;
  const stored =
    value.length > SHARED_BYTES ? Buffer.allocUnsafe(sizeBytes) : shared.subarray(0, sizeBytes);
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
  const { length } = bytes;
  let crc = ~start;
  let at = 0;
  for (; at + 4 <= length; at += 4) {
    crc ^= (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
    crc ^= ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24);
    crc =
      (TABLE_3[crc & 0xff] ?? 0) ^
      (TABLE_2[(crc >>> 8) & 0xff] ?? 0) ^
      (TABLE_1[(crc >>> 16) & 0xff] ?? 0) ^
      (TABLE[crc >>> 24] ?? 0);
  }
  for (; at < length; at++) crc = (crc >>> 8) ^ (TABLE[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0);
  return ~crc >>> 0;
}
