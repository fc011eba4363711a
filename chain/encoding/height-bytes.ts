/** Heights as 8 big-endian bytes: keys of stores, so that their order is the chain's. */
import type { Height } from "../hex.js";

/** Bytes of a height in a key. */
export const HEIGHT_BYTES = 8;

/** 8 big-endian bytes of a height. */
export function heightBytes(height: Height): Buffer {
  const bytes = Buffer.allocUnsafe(HEIGHT_BYTES);
  bytes.writeUInt32BE(Math.floor(height / 2 ** 32), 0);
  bytes.writeUInt32BE(height >>> 0, 4);
  return bytes;
}

/** Height from 8 bytes at an offset. */
export function readHeight(bytes: Buffer, offset: number): Height {
  return bytes.readUInt32BE(offset) * 2 ** 32 + bytes.readUInt32BE(offset + 4);
}
