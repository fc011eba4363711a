/**
 * The node's only database: one level store. This page lists every key space as "key -> value";
 * prefix numbers are never reused.
 */
import { AppError } from "../../chain/errors.js";
import { type Hex, writeHex } from "../../chain/hex.js";
import {
  type LevelSnapshot,
  type LevelStore,
  LevelStoreError,
  type LevelWrite,
  openLevelStore,
} from "../../runtime/files/level-store.js";
import { openFileLimit } from "../../runtime/files/open-file-limit.js";

/** The version of this layout; a store that a newer or a much older one has written is refused. */
export const STORE_FORMAT_VERSION = 4;

/**
 * The oldest layout that is read as well, and written as this one from then on. Until version 4 an
 * account had both hashes always, and reverse diffs told every node whole (ADR 78).
 */
export const OLDEST_FORMAT_VERSION = 3;

/**
 * Key spaces. Heights and indices are big-endian (8 and 4 bytes), addresses 20 bytes, hashes and
 * storage slots 32 bytes; values are RLP unless said otherwise.
 */
export const KEY_SPACE = {
  /** name -> text: format version, genesis hash, cosmos chain id */
  meta: 0x01,
  /** "" -> height: the last committed block */
  tip: 0x02,
  /** height -> header, time, data hash, counts of the transactions, where the pages begin */
  outline: 0x18,
  /** height, index of the first -> hashes of some neighbouring transactions, 32 bytes each */
  hashPage: 0x19,
  /** height, index of the first -> these transactions, raw, with their senders */
  transactionPage: 0x1a,
  /** height, index of the first -> logs before them, their receipts with packed blooms */
  receiptPage: 0x1b,
  /** height, index of the first -> balance changes of each of them */
  journalPage: 0x1c,
  /** height, place among them -> a Cosmos transaction, its place in data.txs, result, changes */
  cosmosTransaction: 0x1e,
  /** height -> balance changes that no transaction made, minted, burned */
  blockChanges: 0x1d,
  /** height -> 256 bytes of logs bloom */
  bloom: 0x13,
  /** block hash -> height */
  blockHash: 0x14,
  /** height -> block hash, 32 bytes: for BLOCKHASH and links, without decoding the block */
  heightHash: 0x17,
  /** keccak256(raw transaction) -> height, index */
  transaction: 0x15,
  /** SHA-256(SDK transaction) -> height, index in data.txs */
  sdkTransaction: 0x16,
  /** address -> account at the tip; of storage and code only what is not empty */
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
  /** height -> names that the pages of its reverse diff begin with */
  trieDiff: 0x2a,
  /** height, page -> what changed trie nodes were before that block, by name: `trie-diff.ts` */
  trieDiffPage: 0x2d,
  /** level, height before it -> names that the pages of a span's diff begin with: `trie-spans.ts` */
  trieSpan: 0x2f,
  /** level, height before it, page -> what trie nodes that a span changed were at that height */
  trieSpanPage: 0x27,
  /** height -> total supply, minted, burned after that block */
  supply: 0x2b,
  /** kind of term, its length, term, height -> "": the event index */
  event: 0x2c,
  /** kind of term, address or first topic or both, height -> pages with such logs: the log index */
  log: 0x2e,
  /** sequence of the first -> neighbours of one group commit: the mempool's journal */
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
  | "STORE_UNUSABLE"
  | "STORE_READ_FAILED"
  | "STORE_WRITE_FAILED"
  | "HISTORY_PRUNED";

/** A fault of the store. */
export class StoreError extends AppError<StoreErrorCode> {}

/** One write; a missing value deletes the key. */
export type StoreWrite = LevelWrite;

/** Takes a write over into what is written together; level has a copy of it then. */
export type AddWrite = (write: StoreWrite) => void;

/** A consistent view of the store at one moment; must be closed. */
export type StoreSnapshot = LevelSnapshot;

/**
 * The open store; its `write` throws STORE_WRITE_FAILED, what reads STORE_READ_FAILED, all of it
 * STORE_CORRUPT.
 */
export type Database = LevelStore;

/** Key of a space: prefix byte, then the parts, which are bytes as such or as `0x` text. */
export function storeKey(space: KeySpace, ...parts: readonly (Uint8Array | Hex)[]): Buffer {
  let sizeBytes = 0;
  for (const part of parts) {
    sizeBytes += typeof part === "string" ? (part.length - 2) >> 1 : part.length;
  }
  const key = newStoreKey(space, sizeBytes);
  let at = 1;
  for (const part of parts) {
    if (typeof part === "string") at = writeHex(key, at, part);
    else {
      key.set(part, at);
      at += part.length;
    }
  }
  return key;
}

/** Key of a space with room for so many bytes behind its prefix byte; the caller writes every one. */
export function newStoreKey(space: KeySpace, sizeBytes: number): Buffer {
  const key = Buffer.allocUnsafe(1 + sizeBytes);
  key[0] = KEY_SPACE[space];
  return key;
}

/** Written bare, because a program of any format must be able to read it. */
const FORMAT_KEY = metaKey("formatVersion");

/** How the level store is opened; see the sections `memory` and `store` of app.toml. */
export interface DatabaseSettings {
  /** Memory that level may use for its block cache. */
  readonly cacheBytes: number;
  /** Bigger memtables mean fewer compactions under a load of many small keys. */
  readonly writeBufferBytes: number;
  /** With level's own 2 MiB a year of blocks is half a million files. */
  readonly fileBytes: number;
  readonly openFiles: number;
}

/** What a store is opened with where no settings are at hand. */
const DEFAULT_SETTINGS: DatabaseSettings = {
  cacheBytes: 16 * 1024 * 1024,
  writeBufferBytes: 32 * 1024 * 1024,
  fileBytes: 64 * 1024 * 1024,
  openFiles: 10_000,
};

/** Part of the files that a process may open which the store takes; sockets are files as well. */
const OPEN_FILE_SHARE = 0.5;

/**
 * Files that the store has open at most.
 * @param wanted by the settings
 * @param openFiles that the process may have open
 */
export function storeFiles(wanted: number, openFiles = openFileLimit()): number {
  return Math.min(wanted, Math.floor(openFiles * OPEN_FILE_SHARE));
}

/** How the database is opened. */
export interface DatabaseOptions {
  /** Memory and files; usual values when absent. */
  readonly database?: DatabaseSettings;
  /** Told of the first damage that is found, whoever asked and whatever he makes of the error. */
  readonly onDamage?: (error: StoreError) => void;
}

/**
 * Opens the level store in a folder, creating it where missing.
 * @throws STORE_LOCKED when another process holds it, STORE_UNUSABLE when disk or folder do not let it be
 * opened, STORE_CORRUPT when its files are not what was written
 */
export function openDatabase(folder: string, options: DatabaseOptions = {}): Promise<Database> {
  const settings = options.database ?? DEFAULT_SETTINGS;
  let isTold = false;
  return openLevelStore(folder, {
    ...settings,
    openFiles: storeFiles(settings.openFiles),
    formatKey: FORMAT_KEY,
    inOwnTerms(fault) {
      const error = storeErrorOf(fault);
      if (error.code === "STORE_CORRUPT" && !isTold) {
        isTold = true;
        options.onDamage?.(error);
      }
      return error;
    },
  });
}

/** Text under a name of the meta space; undefined where there is none. */
export function readMeta(database: Database, name: string): string | undefined {
  return database.get(metaKey(name))?.toString("utf8");
}

/** Key of a name in the meta space. */
export function metaKey(name: string): Buffer {
  return storeKey("meta", Buffer.from(name, "ascii"));
}

/** What is said wherever a store may be moved away: not everybody has another node to sync from. */
export const ONLY_COPY =
  "a chain with a single validator has no other copy: there put data/chain, data/cs.wal and " +
  "data/priv_validator_state.json of one moment back";

/** The error for a store whose records contradict each other, although each is what was written. */
export function storeDamaged(folder: string, reason: string, cause?: unknown): StoreError {
  return new StoreError(
    "STORE_CORRUPT",
    `the store in ${folder} is damaged (${reason}): move this folder away and the node syncs ` +
      `again from the network or a snapshot, or put a backup in its place; ${ONLY_COPY}; a validator ` +
      "of several keeps its data/priv_validator_state.json whatever happens",
    { details: { folder, reason }, cause },
  );
}

/** Faults of level under the names that the node's edges know. */
function storeErrorOf(fault: LevelStoreError): StoreError {
  const { code, message, details } = fault;
  if (code !== "CORRUPT") {
    return new StoreError(`STORE_${code}`, message, { details, cause: fault });
  }
  const { folder, key, reason } = details;
  const space = key instanceof Uint8Array ? `a record of ${spaceOf(key)}: ` : "";
  return storeDamaged(String(folder), `${space}${String(reason)}`, fault);
}

/** Name of a key's space and the key itself. */
function spaceOf(key: Uint8Array): string {
  const [name] = Object.entries(KEY_SPACE).find(([, prefix]) => prefix === key[0]) ?? ["no space"];
  return `${name}, key 0x${Buffer.from(key.subarray(1)).toString("hex")}`;
}
