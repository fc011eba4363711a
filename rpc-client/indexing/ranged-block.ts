/** A block of a range: its journal, and what an index of the chain has besides. */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { JournaledBlock, JournaledTransaction } from "../journal-codec.js";

/** A transaction with what front ends show beside its journal. */
export interface RangedTransaction extends JournaledTransaction {
  readonly valueAtoken: Atoken;
  readonly gasLimit: bigint;
  /** EIP-2718 type; undefined for a Cosmos transaction. */
  readonly type: number | undefined;
  /** SHA-256 of the SDK transaction: around one of the EVM's, or the Cosmos transaction's own. */
  readonly sdkHash: Hash32;
}

/** A block with all that happened in it. */
export interface RangedBlock extends JournaledBlock {
  readonly transactions: readonly RangedTransaction[];
  readonly proposer: Address;
  readonly gasUsed: bigint;
  readonly gasLimit: bigint;
  readonly sizeBytes: number;
}
