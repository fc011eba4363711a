/** What the endpoints read of the index. Everything is as of the index' tip or below it. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { EncodedBlock } from "../rosetta/encoded-block.js";
import type { BlockIdentifier } from "../rosetta/identifiers.js";

/** From when on and why a token's operations are left out. */
export interface Quarantine {
  /** First block without its operations. */
  readonly height: Height;
  /** One sentence. */
  readonly reason: string;
}

/** A transaction's place in the chain. */
export interface TransactionPlace {
  readonly height: Height;
  /** Position in the block's reply; the block-level transaction is the last. */
  readonly position: number;
}

/** Reads of the index; those that return no promise never leave this process. */
export interface IndexReader {
  /** The newest indexed block; undefined before genesis was read. */
  tip(): BlockIdentifier | undefined;
  /** The block of a height up to the tip. */
  identifierAt(height: Height): BlockIdentifier | undefined;
  /** Height of a block hash up to the tip. */
  heightOf(hash: Hash32): Height | undefined;
  /** Place of a transaction up to the tip. */
  placeOf(transactionHash: Hash32): TransactionPlace | undefined;
  /**
   * The finished reply of a block up to the tip; read from the node again where it was dropped.
   * @throws BLOCK_ABOVE_TIP, and what asking the node throws
   */
  block(height: Height): Promise<EncodedBlock>;
  /** Contracts of the tokens that operations up to the height name the account in. */
  holdings(account: Address, at: Height): Promise<Address[]>;
  /** Sum of the account's operations of a token up to the height, in the token's units. */
  tokenBalance(
    query: { readonly contract: Address; readonly account: Address },
    at: Height,
  ): Promise<bigint>;
  /** The quarantine of a token, if it is in one at the index' tip. */
  quarantineOf(contract: Address): Quarantine | undefined;
}
