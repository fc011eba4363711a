/** The mempool's journal in the node's store: durable before a transaction's hash is answered. */
import { addressToBytes, bytesToAddress } from "../../chain/address.js";
import { bigintToBytes, bytesToHash32, hexToBytes } from "../../chain/hex.js";
import { decodeRlp, encodeRlp, rlpBytes, rlpInteger, rlpList } from "../../chain/rlp.js";
import { type Database, KEY_SPACE, storeKey } from "./database.js";

/** One journalled transaction; the same shape as the mempool's port asks for. */
export interface StoredPoolEntry {
  readonly hash: ReturnType<typeof bytesToHash32>;
  readonly raw: Uint8Array;
  readonly from: ReturnType<typeof bytesToAddress>;
  readonly receivedAtMs: number;
  readonly sequence: number;
}

/** Journal over the key space "pool"; a block's atomic write deletes what it includes. */
export function createPoolStore(database: Database) {
  return {
    async append(entries: readonly StoredPoolEntry[]): Promise<void> {
      const writes = entries.map((entry) => ({
        key: storeKey("pool", hexToBytes(entry.hash)),
        value: encodeRlp([
          entry.raw,
          addressToBytes(entry.from),
          bigintToBytes(BigInt(entry.receivedAtMs)),
          bigintToBytes(BigInt(entry.sequence)),
        ]),
      }));
      await database.write(writes, { durable: true });
    },
    async remove(hashes: readonly StoredPoolEntry["hash"][]): Promise<void> {
      const writes = hashes.map((hash) => ({
        key: storeKey("pool", hexToBytes(hash)),
        value: undefined,
      }));
      await database.write(writes, { durable: false });
    },
    async *load(): AsyncIterable<StoredPoolEntry> {
      const range = { from: storeKey("pool"), to: Buffer.from([KEY_SPACE.pool + 1]) };
      for await (const [key, value] of database.entries(range)) {
        const [raw, from, receivedAtMs, sequence] = rlpList(decodeRlp(value));
        yield {
          hash: bytesToHash32(key.subarray(1, 33)),
          raw: rlpBytes(raw),
          from: bytesToAddress(rlpBytes(from)),
          receivedAtMs: Number(rlpInteger(receivedAtMs)),
          sequence: Number(rlpInteger(sequence)),
        };
      }
    },
  };
}
