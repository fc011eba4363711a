/**
 * One snapshot from a consistent view of the store to files: `chunk-<n>` and `manifest` in a
 * folder of its own. Works in short stretches with rests between, because blocks are made in the
 * same thread.
 */
import path from "node:path";
import { sha256Hex } from "../../../chain/hashes.js";
import { EMPTY_CODE_HASH, type Hash32, type Height, hexToBytes } from "../../../chain/hex.js";
import { writeNewFile } from "../../../runtime/files/durable-file.js";
import { sleep } from "../../../runtime/process/task.js";
import type { Supply } from "../../view/chain-view.js";
import { BlockRecords } from "../../store/blocks/block-records.js";
import { decodeStoredAccount, encodeAccount } from "../../store/account-record.js";
import {
  type Database,
  type KeySpace,
  storeKey,
  type StoreSnapshot,
} from "../../store/database.js";
import {
  encodeManifest,
  MAX_CHUNKS,
  SNAPSHOT_FORMAT,
  type SnapshotManifest,
} from "./snapshot-manifest.js";
import { ChunkBuilder, RECORD_KIND, slicesOf, type SnapshotRecord } from "./snapshot-records.js";

/** What a snapshot is made of. */
export interface SnapshotInput {
  readonly database: Database;
  /** The store with that block as its newest. */
  readonly view: StoreSnapshot;
  readonly height: Height;
  readonly supply: Supply;
  readonly genesisHash: Hash32;
}

/** Name of a chunk's file. */
export function chunkFileName(index: number): string {
  return `chunk-${index}`;
}

/** Name of the manifest's file. */
export const MANIFEST_FILE = "manifest";

/**
 * Rest after each stretch of work, as a multiple of it: a snapshot takes a quarter of a core at
 * most, so that blocks, which share the thread, keep their time.
 */
const REST_PER_WORK = 3;

/** Longest rest: a stretch seems long when a block came in between. */
const MAX_REST_MS = 100;

/** Records that are read in one stretch: about 5 ms. */
const RECORDS_PER_STRETCH = 2_000;

/** Longer than any key of the spaces that are read. */
const LAST_KEY = Buffer.alloc(53, 0xff);

/**
 * Writes a snapshot into a folder that is empty; every file is on disk when the promise resolves,
 * the folder itself is not.
 * @throws what the file system or the signal says
 */
export async function writeSnapshot(
  input: SnapshotInput,
  options: {
    readonly folder: string;
    readonly signal: AbortSignal;
    /** Throws where the disk has no room for so many bytes. */
    readonly needRoom: (sizeBytes: number) => Promise<void>;
  },
): Promise<SnapshotManifest> {
  const { folder, signal, needRoom } = options;
  const chunkHashes: Hash32[] = [];
  const writeChunk = async (chunk: Uint8Array) => {
    signal.throwIfAborted();
    if (chunkHashes.length === MAX_CHUNKS) throw new RangeError("the state has too many chunks");
    await needRoom(chunk.length);
    await writeNewFile(path.join(folder, chunkFileName(chunkHashes.length)), chunk);
    chunkHashes.push(sha256Hex(chunk));
  };
  const counts = { accounts: 0, slots: 0, codes: 0 };
  const builder = new ChunkBuilder();
  const pace = createPace(signal);
  for await (const record of recordsOf(input)) {
    if (record.kind === RECORD_KIND.account) counts.accounts++;
    if (record.kind === RECORD_KIND.storage) counts.slots++;
    if (record.kind === RECORD_KIND.code) counts.codes++;
    const chunk = builder.add(record);
    if (chunk !== undefined) await writeChunk(chunk);
    await pace();
  }
  const last = builder.finish();
  if (last !== undefined) await writeChunk(last);
  const { genesisHash, supply, height } = input;
  const format = SNAPSHOT_FORMAT;
  const manifest = { format, genesisHash, height, chunkHashes, counts, supply };
  await writeNewFile(path.join(folder, MANIFEST_FILE), encodeManifest(manifest));
  return manifest;
}

/** All records in their order. */
async function* recordsOf(input: SnapshotInput): AsyncGenerator<SnapshotRecord> {
  const { database, view, height } = input;
  const need = (space: KeySpace, key: Uint8Array): Buffer => {
    const value = database.get(storeKey(space, key), view);
    if (value === undefined) throw new RangeError(`the store lacks a record of ${space}`);
    return value;
  };
  const encoded = new BlockRecords(database, view).encoded(height);
  yield* slicesOf(RECORD_KIND.block, encoded.block);
  yield* slicesOf(RECORD_KIND.receipts, encoded.receipts);
  // Code is never removed from a store: what no account has any more is left out, so that nodes
  // with different pasts make the same snapshot. One entry for each different contract.
  const codeHashes = new Set<Hash32>();
  for await (const [id, value] of entriesOf(database, "account", view)) {
    const account = decodeStoredAccount(value);
    if (account.codeHash !== EMPTY_CODE_HASH) codeHashes.add(account.codeHash);
    yield { kind: RECORD_KIND.account, id, value: encodeAccount(account) };
  }
  for await (const [id, value] of entriesOf(database, "storage", view)) {
    yield { kind: RECORD_KIND.storage, id, value };
  }
  for (const codeHash of [...codeHashes].toSorted()) {
    const id = Buffer.from(hexToBytes(codeHash));
    yield { kind: RECORD_KIND.code, id, value: need("code", id) };
  }
}

/** Entries of a key space, keys without the prefix byte. */
async function* entriesOf(
  database: Database,
  space: KeySpace,
  snapshot: StoreSnapshot,
): AsyncGenerator<[Buffer, Buffer]> {
  const range = { from: storeKey(space), to: storeKey(space, LAST_KEY), snapshot };
  for await (const [key, value] of database.entries(range)) yield [key.subarray(1), value];
}

/** Lets other work have its turn every so many records. */
function createPace(signal: AbortSignal): () => Promise<void> {
  let count = 0;
  let startedAtMs = performance.now();
  return async () => {
    if (++count % RECORDS_PER_STRETCH !== 0) return;
    const restMs = (performance.now() - startedAtMs) * REST_PER_WORK;
    await sleep(Math.min(restMs, MAX_REST_MS), { signal });
    startedAtMs = performance.now();
  };
}
