/**
 * The node's only database: one level store. This page lists every key space as "key -> value";
 * prefix numbers are never reused.
 */
import { AppError } from "../../chain/errors.js";
import {
  type LevelSnapshot,
  type LevelStore,
  LevelStoreError,
  type LevelWrite,
  openLevelStore,
} from "../../runtime/level-store.js";

/** The version of this layout; a store written by another one is refused. */
export const STORE_FORMAT_VERSION = 2;

/**
 * Key spaces. Heights and indices are big-endian (8 and 4 bytes), addresses 20 bytes, hashes and
 * storage slots 32 bytes; values are RLP unless said otherwise.
 */
export const KEY_SPACE = {
  /** name -> text: format version, genesis hash, cosmos chain id */
  meta: 0x01,
  /** "" -> height: the last committed block */
  tip: 0x02,
  /** height -> block (header, time, data hash, raw transactions with senders) */
  block: 0x10,
  /** height -> receipts */
  receipts: 0x11,
  /** height -> balance journal */
  journal: 0x12,
  /** height -> 256 bytes of logs bloom */
  bloom: 0x13,
  /** block hash -> height */
  blockHash: 0x14,
  /** height -> block hash, 32 bytes: for BLOCKHASH and links, without decoding the block */
  heightHash: 0x17,
  /** keccak256(raw transaction) -> height, index */
  transaction: 0x15,
  /** SHA-256(SDK transaction) -> height, index */
  sdkTransaction: 0x16,
  /** address -> account at the tip */
  account: 0x20,
  /** address, height -> account after that block (empty: none); one entry per journalled block */
  accountHistory: 0x21,
  /** code hash -> code */
  code: 0x22,
  /** address, slot -> value at the tip, without leading zeros */
  storage: 0x23,
  /** address, slot, height -> value after that block */
  storageHistory: 0x24,
  /** trie owner, path -> trie node at the tip */
  trieNode: 0x28,
  /** height -> what each changed trie node was before that block (empty: none), by name */
  trieDiff: 0x29,
  /** height -> total supply, minted, burned after that block */
  supply: 0x2b,
  /** kind of term, its length, term, height -> "": the event index */
  event: 0x2c,
  /** sequence of the first -> transactions of one group commit: the mempool's journal */
  pool: 0x30,
  /** transaction hash -> "": left the pool otherwise than by a block */
  poolRemoved: 0x31,
  /** height -> consensus header, block id, last commit, evidence (protobuf, as all below) */
  consensusBlock: 0x40,
  /** consensus block hash -> height */
  consensusHash: 0x41,
  /** "" -> the commit that this node saw for the newest block */
  seenCommit: 0x42,
  /** height -> validators with priorities and proposer; not of every height */
  validatorSet: 0x43,
  /** height -> height of the stored set that its validators follow from */
  validatorsAt: 0x44,
  /** height of the votes, evidence hash -> evidence that waits for a block */
  pendingEvidence: 0x45,
  /** evidence hash -> height of its votes: it is in a block */
  committedEvidence: 0x46,
  /** height -> consensus header from before the height that the node began with (state sync) */
  backfilledHeader: 0x47,
} as const;

/** Name of a key space. */
export type KeySpace = keyof typeof KEY_SPACE;

/** Codes of faults of the store. */
export type StoreErrorCode =
  | "STORE_FOREIGN"
  | "STORE_NEWER"
  | "STORE_OLDER"
  | "STORE_CORRUPT"
  | "STORE_LOCKED"
  | "STORE_WRITE_FAILED"
  | "HISTORY_PRUNED";

/** A fault of the store. */
export class StoreError extends AppError<StoreErrorCode> {}

/** One write; a missing value deletes the key. */
export type StoreWrite = LevelWrite;

/** A consistent view of the store at one moment; must be closed. */
export type StoreSnapshot = LevelSnapshot;

/** The open store; its `write` throws STORE_WRITE_FAILED. */
export type Database = LevelStore;

/** Key of a space: prefix byte, then the parts. */
export function storeKey(space: KeySpace, ...parts: readonly Uint8Array[]): Buffer {
  let length = 1;
  for (const part of parts) length += part.length;
  const key = Buffer.allocUnsafe(length);
  key[0] = KEY_SPACE[space];
  let at = 1;
  for (const part of parts) {
    key.set(part, at);
    at += part.length;
  }
  return key;
}

/** Memory that level may use for its block cache. */
const BLOCK_CACHE_BYTES = 64 * 1024 * 1024;
/** Bigger memtables mean fewer compactions under a load of many small keys. */
const WRITE_BUFFER_BYTES = 32 * 1024 * 1024;

/**
 * Opens the level store in a folder, creating it where missing.
 * @throws STORE_LOCKED when another process holds it, STORE_CORRUPT when it cannot be read
 */
export async function openDatabase(folder: string): Promise<Database> {
  const store = await openLevelStore(folder, {
    cacheBytes: BLOCK_CACHE_BYTES,
    writeBufferBytes: WRITE_BUFFER_BYTES,
  }).catch(rethrow);
  return { ...store, write: (writes, options) => store.write(writes, options).catch(rethrow) };
}

/** Faults of level under the names that the node's edges know. */
function rethrow(error: unknown): never {
  if (!(error instanceof LevelStoreError)) throw error;
  const { code, message, details } = error;
  throw new StoreError(`STORE_${code}`, message, { details, cause: error });
}
