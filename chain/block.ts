/** The EVM block header and the block as the node stores and serves it (D8, D19). */
import type { Address } from "./address.js";
import { keccak256Hex } from "./hashes.js";
import type { Hash32, Height } from "./hex.js";
import { encodeRlp, rlpSizeBytes } from "./encoding/rlp-writer.js";
import type { CosmosBlockTransaction, MinedCosmosTransaction } from "./cosmos/cosmos-result.js";
import type { AnyTransaction } from "./cosmos/cosmos-transaction.js";
import type { SignedTransaction } from "./transaction.js";

/** `keccak256(rlp([]))`: the hash of the empty list of uncles. */
export const EMPTY_UNCLES_HASH =
  "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347" as Hash32;

/** The 15 classic header fields; difficulty is 0, nonce 8 zero bytes, no base fee (D7, D19). */
export interface BlockHeader {
  readonly parentHash: Hash32;
  /** The proposer's address. */
  readonly coinbase: Address;
  readonly stateRoot: Hash32;
  readonly transactionsRoot: Hash32;
  readonly receiptsRoot: Hash32;
  /** 256 bytes. */
  readonly logsBloom: Uint8Array;
  readonly height: Height;
  readonly gasLimit: bigint;
  readonly gasUsed: bigint;
  /** Unix seconds, the whole part of the block's time. */
  readonly timestampSeconds: number;
  /** Root of the module state: supply now, staking and governance later. */
  readonly moduleRoot: Hash32;
  /** The parent hash again: the VM's PREVRANDAO; a BFT chain has no other shared randomness. */
  readonly mixHash: Hash32;
}

/** A transaction inside a block, with its sender as recovered at admission. */
export interface BlockTransaction {
  readonly tx: SignedTransaction;
  readonly from: Address;
  /** SHA-256 of the SDK Tx around it, where that has been worked out already. */
  readonly sdkHash?: Hash32;
}

/** A transaction of either kind with its sender. */
export interface AnyBlockTransaction {
  readonly tx: AnyTransaction;
  readonly from: Address;
  readonly sdkHash?: Hash32;
}

/** True for a Cosmos transaction. */
export function isCosmos(
  one: Pick<AnyBlockTransaction, "tx" | "from">,
): one is CosmosBlockTransaction {
  return one.tx.type === "cosmos";
}

/** True for an EVM transaction. */
export function isEvm(one: Pick<AnyBlockTransaction, "tx" | "from">): one is BlockTransaction {
  return one.tx.type !== "cosmos";
}

/** A block as decided; receipts and journal are stored beside it. */
export interface Block {
  readonly header: BlockHeader;
  /** keccak256(rlp(header)). */
  readonly hash: Hash32;
  /** Unix milliseconds of the block's time. */
  readonly timeMs: number;
  /** EVM transactions: all that the header's roots and the EVM's indexes know of. */
  readonly transactions: readonly BlockTransaction[];
  /** Cosmos transactions, each with its place among all of them; absent where there are none. */
  readonly cosmos?: readonly MinedCosmosTransaction[];
  /** CometBFT's data_hash over all transactions, those of the EVM in their SDK Tx (D20). */
  readonly dataHash: Hash32;
}

/** A block without what is in it. */
export interface BlockOutline {
  readonly header: BlockHeader;
  readonly hash: Hash32;
  /** Unix milliseconds of the block's time. */
  readonly timeMs: number;
  readonly dataHash: Hash32;
  /** EVM transactions. */
  readonly transactionCount: number;
  /** Places of the Cosmos transactions in `data.txs`, ascending. */
  readonly cosmosPlaces: readonly number[];
  /** Length of the transactions as items of the block's RLP list, that list's header left out. */
  readonly transactionBytes: number;
}

/** RLP of the header; its keccak256 is the block hash. */
export function encodeHeader(header: BlockHeader): Uint8Array {
  return encodeRlp([
    header.parentHash,
    EMPTY_UNCLES_HASH,
    header.coinbase,
    header.stateRoot,
    header.transactionsRoot,
    header.receiptsRoot,
    header.logsBloom,
    new Uint8Array(0),
    header.height,
    header.gasLimit,
    header.gasUsed,
    header.timestampSeconds,
    header.moduleRoot,
    header.mixHash,
    new Uint8Array(8),
  ]);
}

/**
 * Length of a transaction as an item of a block's RLP: a typed envelope is a byte string in the
 * list, a legacy one is a list itself.
 */
export function rlpTransactionBytes({ type, raw }: SignedTransaction): number {
  return type === 0 ? raw.length : rlpSizeBytes(raw.length);
}

/** Block hash: keccak256(rlp(header)) (D8). */
export function hashHeader(header: BlockHeader): Hash32 {
  return keccak256Hex(encodeHeader(header));
}

/** Length of rlp([header, transactions, uncles]), computed without the transactions. */
export function blockSizeBytes({ header, transactionBytes }: BlockOutline): number {
  return rlpSizeBytes(encodeHeader(header).length + rlpSizeBytes(transactionBytes) + 1);
}
