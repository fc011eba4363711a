/**
 * A complete store from a snapshot and what the light client proved: written into an empty folder,
 * every part of it held against what validators signed, and marked last. A folder without the mark
 * is worth nothing.
 */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import { sha256Hex } from "../../../chain/hashes.js";
import { hashEvidence } from "../../../chain/consensus/evidence.js";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import { hexToBytes, type Height } from "../../../chain/hex.js";
import { ensureFolder } from "../../../runtime/files/folder.js";
import { failpoint } from "../../../runtime/process/failpoint.js";
import { commitBlock, type ExecutedBlock } from "../../store/block-commit.js";
import { ConsensusStore } from "../../store/consensus-store.js";
import {
  type Database,
  metaKey,
  openDatabase,
  readMeta,
  StoreError,
  storeKey,
  type StoreWrite,
} from "../../store/database.js";
import { StateStore } from "../../store/state-store.js";
import { baseWrites, StoreBase } from "../../store/store-base.js";
import { trieNodeWrites } from "../../store/tries/trie-store.js";
import { type ProvenBlock, proveBlock } from "./snapshot-block.js";
import { snapshotInvalid } from "./snapshot-error.js";
import { proveSupply } from "./snapshot-guard.js";
import type { SnapshotManifest } from "./snapshot-manifest.js";
import { ChunkReader } from "./snapshot-records.js";
import { RestoredState } from "./snapshot-state.js";
import { TrieSorter } from "./snapshot-tries.js";
import type { TrustedState } from "../statesync-ports.js";

/** Named crash points, for the fault tests. */
export const RESTORE_FAILPOINTS = [
  "restore.after-chunk",
  "restore.after-tries",
  "restore.after-block",
  "restore.after-mark",
] as const;

/** What a restore is made of. */
export interface RestoreOptions {
  /** Where the store is written; what is there is deleted first. */
  readonly folder: string;
  readonly manifest: SnapshotManifest;
  /** Bytes of a chunk, from wherever; they are held against the manifest. */
  readonly readChunk: (index: number, signal: AbortSignal) => Promise<Uint8Array>;
  readonly trusted: TrustedState;
  readonly genesisBlock: ExecutedBlock;
  readonly cosmosChainId: string;
  /** Told of each chunk that is in the store. */
  readonly onChunk?: (index: number) => void;
  readonly signal: AbortSignal;
  /** Crash points; the runtime's own by default. */
  readonly failpoint?: (name: (typeof RESTORE_FAILPOINTS)[number]) => void;
}

/** Name of the mark in the meta space; its value is the height. */
const MARK = "restored";

/** Heights whose hashes the BLOCKHASH opcode reads. */
const BLOCKHASH_BLOCKS = 256;

/** Heights of backfilled headers in one write. */
const HEIGHTS_PER_WRITE = 500;

/**
 * Writes the store of the snapshot's height. When the promise resolves the folder is complete, on
 * disk and closed; when it rejects the folder is deleted.
 * @throws SNAPSHOT_INVALID: never try this snapshot again; STORE_WRITE_FAILED (disk full), the
 * signal's reason, and what `readChunk` throws
 */
export async function restoreSnapshot(options: RestoreOptions): Promise<void> {
  const { folder, signal } = options;
  signal.throwIfAborted();
  checkManifest(options);
  await rm(folder, { recursive: true, force: true });
  ensureFolder(folder);
  try {
    const database = await openDatabase(folder);
    try {
      await fill(database, options);
    } finally {
      await database.close();
    }
    await mark(options);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** Height of the complete store in a folder; undefined for a part of one, or none. */
export async function restoredHeight(folder: string): Promise<Height | undefined> {
  if (!existsSync(path.join(folder, "CURRENT"))) return undefined;
  try {
    const database = await openDatabase(folder);
    try {
      const text = readMeta(database, MARK);
      return text === undefined ? undefined : Number(text);
    } finally {
      await database.close();
    }
  } catch (error) {
    // A crash can leave anything where nothing was finished.
    if (error instanceof StoreError && error.code === "STORE_CORRUPT") return undefined;
    throw error;
  }
}

function checkManifest({ manifest, trusted, genesisBlock }: RestoreOptions): void {
  const { header, next } = trusted;
  const isOurs = manifest.genesisHash === genesisBlock.committed.block.hash;
  if (!isOurs) throw snapshotInvalid("it is of another chain");
  const isOfHeight = manifest.height === header.height && next.height === header.height + 1;
  if (!isOfHeight) throw snapshotInvalid("it is of another height");
}

async function fill(database: Database, options: RestoreOptions): Promise<void> {
  const { folder, manifest, trusted, signal } = options;
  const reached = options.failpoint ?? failpoint;
  const sortingFolder = path.join(folder, "sorting");
  const sorter = await TrieSorter.open(sortingFolder);
  try {
    const state = new RestoredState({
      database,
      sorter,
      manifest,
      prove: (encoded) => proveBlock(encoded, trusted),
    });
    const reader = new ChunkReader();
    for (const [index, expected] of manifest.chunkHashes.entries()) {
      signal.throwIfAborted();
      const chunk = await options.readChunk(index, signal);
      if (sha256Hex(chunk) !== expected) throw snapshotInvalid("the hash of a chunk");
      await state.add(reader.read(chunk));
      options.onChunk?.(index);
      reached("restore.after-chunk");
    }
    const { proven, storageTries } = state.finish();
    const { stateRoot } = proven.committed.block.header;
    await sorter.build(database, { stateRoot, storageTries }, signal);
    reached("restore.after-tries");
    await writeChain(database, proven, options);
    reached("restore.after-block");
  } finally {
    await sorter.close();
    await rm(sortingFolder, { recursive: true, force: true });
  }
}

/** Block 0, the records before the height, then the height itself in one durable write. */
async function writeChain(
  database: Database,
  proven: ProvenBlock,
  options: RestoreOptions,
): Promise<void> {
  const { manifest, trusted, genesisBlock, cosmosChainId } = options;
  const base = await StoreBase.open(database);
  const state = new StateStore(database, 0, base);
  const stores = { database, state, base, archive: true };
  try {
    const identity = { cosmosChainId };
    await commitBlock(stores, withoutState(genesisBlock), { identity });
    const consensus = new ConsensusStore(database);
    await writeBackfill(database, consensus, trusted);
    const { height } = manifest;
    const roots = proveSupply(manifest, proven);
    // Nobody executes the block here.
    const executed = { ...proven, changes: noChanges(height), trieWrites: [], computeNs: 0 };
    await commitBlock(
      stores,
      { ...executed, supply: manifest.supply },
      {
        writes: [
          ...trieNodeWrites(roots.trieWrites),
          ...consensusWrites(consensus, trusted),
          ...baseWrites({
            base: height,
            // Nothing proves the journal, so the node has none of this height.
            journalBase: height + 1,
            historyBase: height,
            proofBase: height,
          }),
        ],
      },
    );
  } finally {
    await state.close();
  }
}

/** The genesis without its accounts, which are of no use at any other height. */
function withoutState(genesisBlock: ExecutedBlock): ExecutedBlock {
  return { ...genesisBlock, changes: noChanges(0), trieWrites: [] };
}

function noChanges(height: Height): ExecutedBlock["changes"] {
  return { height, accounts: new Map(), storage: new Map(), codes: new Map() };
}

function consensusWrites(store: ConsensusStore, trusted: TrustedState): StoreWrite[] {
  const { header, blockId, lastCommit, evidence, commit, backfill } = trusted;
  const { height } = header;
  return [
    ...store.wholeSetWrites(height, trusted.validators),
    ...store.wholeSetWrites(height + 1, trusted.nextValidators),
    ...store.writesOf({
      header,
      blockId,
      lastCommit,
      evidence,
      seenCommit: commit,
      nextValidators: trusted.afterNextValidators,
      isSetChanged: true,
    }),
    ...store.evidenceWrites(
      [...evidence, ...backfill.evidence].map((one) => ({
        evidence: one,
        hash: hashEvidence(one),
      })),
      [],
    ),
  ];
}

/** Headers and validators before the height, and the EVM hashes that the headers hold. */
async function writeBackfill(
  database: Database,
  store: ConsensusStore,
  { header, backfill }: TrustedState,
): Promise<void> {
  const hashes: StoreWrite[] = [];
  for (const { height, appHash } of [header, ...backfill.headers].slice(0, BLOCKHASH_BLOCKS)) {
    // The genesis block is there itself.
    if (height === 1) break;
    const value = hexToBytes(appHash);
    hashes.push({ key: storeKey("heightHash", heightBytes(height - 1)), value });
  }
  await database.write(hashes, { durable: false });
  let waiting: StoreWrite[] = [];
  let heights = 0;
  for (const writes of store.backfillWrites(backfill)) {
    waiting.push(...writes);
    if (++heights % HEIGHTS_PER_WRITE !== 0) continue;
    await database.write(waiting, { durable: false });
    waiting = [];
  }
  await database.write(waiting, { durable: false });
}

/**
 * Marks the folder as complete. Opened anew, because opening puts everything that was written into
 * files that are on disk: a power cut must not find the mark without the rest.
 */
async function mark(options: RestoreOptions): Promise<void> {
  const { folder, manifest, signal } = options;
  signal.throwIfAborted();
  const database = await openDatabase(folder);
  try {
    const value = Buffer.from(`${manifest.height}`, "ascii");
    await database.write([{ key: metaKey(MARK), value }], { durable: true });
  } finally {
    await database.close();
  }
  (options.failpoint ?? failpoint)("restore.after-mark");
}
