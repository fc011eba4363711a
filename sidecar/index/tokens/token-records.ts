/** Values of the index that tell of tokens, to bytes and back. */
import { type Address, addressToBytes, bytesToAddress } from "../../../chain/address.js";
import { heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import { bigintToBytes, bytesToBigint, type Height } from "../../../chain/hex.js";
import type { Quarantine } from "../index-reader.js";

/** An account's balance of a token at the index' tip. */
export interface HolderRecord {
  /** Block of the last operation: the balance holds from there on. */
  readonly height: Height;
  readonly units: bigint;
}

const HEIGHT_BYTES = 8;
const HOLDING_BYTES = 28;

/** Height, then the balance. */
export function encodeHolder({ height, units }: HolderRecord): Buffer {
  return Buffer.concat([heightBytes(height), bigintToBytes(units)]);
}

/** Holder from its bytes. */
export function parseHolder(bytes: Buffer): HolderRecord {
  return { height: readHeight(bytes, 0), units: bytesToBigint(bytes.subarray(HEIGHT_BYTES)) };
}

/** For each contract its address and the height of the first operation. */
export function encodeHoldings(holdings: ReadonlyMap<Address, Height>): Buffer {
  return Buffer.concat(
    [...holdings].flatMap(([contract, height]) => [addressToBytes(contract), heightBytes(height)]),
  );
}

/** Holdings from their bytes; none for an account that no token names. */
export function parseHoldings(bytes: Buffer | undefined): Map<Address, Height> {
  const holdings = new Map<Address, Height>();
  for (let at = 0; at < (bytes?.length ?? 0); at += HOLDING_BYTES) {
    const entry = bytes?.subarray(at, at + HOLDING_BYTES) ?? Buffer.alloc(HOLDING_BYTES);
    holdings.set(bytesToAddress(entry.subarray(0, 20)), readHeight(entry, 20));
  }
  return holdings;
}

/** Height, then the reason. */
export function encodeQuarantine({ height, reason }: Quarantine): Buffer {
  return Buffer.concat([heightBytes(height), Buffer.from(reason)]);
}

/** Quarantine from its bytes. */
export function parseQuarantine(bytes: Buffer): Quarantine {
  return { height: readHeight(bytes, 0), reason: bytes.subarray(HEIGHT_BYTES).toString("utf8") };
}
