/** Blocks of the Data API that name nobody. */
import { keccak256Hex } from "../../../chain/hashes.js";
import type { Height } from "../../../chain/hex.js";
import type { DataBlock } from "../../../rpc-client/data-api/data-block.js";

/** Hash of a block of the chain that the blocks here make. */
export const hashAt = (height: Height) => keccak256Hex(Buffer.from(`block ${height}`));

/** A block of that chain. */
export function blockAt(height: Height): DataBlock {
  return {
    height,
    hash: hashAt(height),
    parentHash: hashAt(Math.max(0, height - 1)),
    timestampMs: 0,
    transactionCount: 0,
    accountCount: 0,
    sizeBytes: 0,
    transactions: async () => [],
    addresses: () => new Set(),
  };
}
