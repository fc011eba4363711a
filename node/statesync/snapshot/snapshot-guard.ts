/**
 * Holds a snapshot against what is proven while it is fetched, chunk by chunk, so that a false one
 * is given up after its first chunk rather than after its last. First come the block and its
 * receipts: they prove the supply, and the supply bounds what accounts may hold. What only the
 * state root proves waits for the restore.
 */
import { keccak256Hex } from "../../../chain/hashes.js";
import { bytesToHash32 } from "../../../chain/hex.js";
import { moduleValues } from "../../blocks/block-executor.js";
import { computeRoots } from "../../state/state-root.js";
import { emptyTrieReader } from "../../state/trie.js";
import type { TrustedState } from "../statesync-ports.js";
import { proveBlock, type ProvenBlock } from "./snapshot-block.js";
import { snapshotInvalid } from "./snapshot-error.js";
import { MAX_CHUNK_BYTES, type SnapshotManifest } from "./snapshot-manifest.js";
import {
  ChunkReader,
  CHUNK_BYTES,
  RECORD_KIND,
  Slices,
  type SnapshotRecord,
} from "./snapshot-records.js";
import { readAccountRecord } from "./snapshot-state.js";

/** What a snapshot is held against. */
export interface GuardOptions {
  readonly manifest: SnapshotManifest;
  readonly trusted: Pick<TrustedState, "header" | "next">;
}

interface KeyRange {
  readonly first: Buffer;
  readonly last: Buffer;
}

/** Looks at each chunk of one snapshot once, the first ones in order. */
export class SnapshotGuard {
  private readonly slices = {
    block: new Slices(RECORD_KIND.block),
    receipts: new Slices(RECORD_KIND.receipts),
  };
  private readonly reader = new ChunkReader();
  private readonly ranges = new Map<number, KeyRange>();
  private readonly counts = { accounts: 0, slots: 0, codes: 0 };
  private sizeBytes = 0;
  private totalAtoken = 0n;

  constructor(private readonly options: GuardOptions) {}

  /**
   * Takes the next of the first chunks.
   * @returns whether block, receipts and supply are proven by now
   * @throws SNAPSHOT_INVALID
   */
  takeFirst(index: number, chunk: Uint8Array): boolean {
    for (const { kind, id, value } of this.reader.read(chunk)) {
      if (kind === RECORD_KIND.block) this.slices.block.add(id, value);
      else if (kind === RECORD_KIND.receipts) this.slices.receipts.add(id, value);
      else return this.prove();
    }
    return index === this.options.manifest.chunkHashes.length - 1 && this.prove();
  }

  /** Looks at any chunk, in any order, once. Throws SNAPSHOT_INVALID. */
  check(index: number, chunk: Uint8Array): void {
    const { chunkHashes, counts, supply } = this.options.manifest;
    this.sizeBytes += chunk.length;
    // A chunk is closed before it grows beyond its size; one record may be larger.
    const maxBytes = chunkHashes.length * CHUNK_BYTES + MAX_CHUNK_BYTES;
    if (this.sizeBytes > maxBytes) throw snapshotInvalid("the chunks are too long");
    const records = new ChunkReader().read(chunk);
    this.checkOrder(index, records);
    for (const record of records) this.count(record);
    const isCounted =
      this.counts.accounts <= counts.accounts &&
      this.counts.slots <= counts.slots &&
      this.counts.codes <= counts.codes;
    if (!isCounted) throw snapshotInvalid("the number of records");
    if (this.totalAtoken > supply.totalAtoken) {
      throw snapshotInvalid("balances are more than the supply");
    }
  }

  private prove(): true {
    const { manifest, trusted } = this.options;
    const { block, receipts } = this.slices;
    const proven = proveBlock({ block: block.join(), receipts: receipts.join() }, trusted);
    proveSupply(manifest, proven);
    return true;
  }

  private count({ kind, id, value }: SnapshotRecord): void {
    if (kind === RECORD_KIND.account) {
      this.counts.accounts++;
      this.totalAtoken += readAccountRecord(value).balanceAtoken;
    } else if (kind === RECORD_KIND.storage) {
      this.counts.slots++;
    } else if (kind === RECORD_KIND.code) {
      this.counts.codes++;
      if (keccak256Hex(value) !== bytesToHash32(id)) throw snapshotInvalid("the hash of a code");
    }
  }

  /** Keys ascend over the whole snapshot: neighbours that are here must not overlap. */
  private checkOrder(index: number, records: readonly SnapshotRecord[]): void {
    const [first, last] = [records[0], records.at(-1)];
    if (first === undefined || last === undefined) throw snapshotInvalid("a chunk is empty");
    const range = { first: keyOf(first), last: keyOf(last) };
    const [before, after] = [this.ranges.get(index - 1), this.ranges.get(index + 1)];
    const isOrdered =
      (before === undefined || Buffer.compare(before.last, range.first) < 0) &&
      (after === undefined || Buffer.compare(range.last, after.first) < 0);
    if (!isOrdered) throw snapshotInvalid("keys do not ascend");
    this.ranges.set(index, range);
  }
}

/**
 * Holds the manifest's supply against the proven header.
 * @returns the roots that the supply gives
 * @throws SNAPSHOT_INVALID
 */
export function proveSupply(
  { supply }: Pick<SnapshotManifest, "supply">,
  { committed }: Pick<ProvenBlock, "committed">,
): ReturnType<typeof computeRoots> {
  const roots = computeRoots(emptyTrieReader, new Map(), new Map(), moduleValues(supply));
  if (roots.moduleRoot !== committed.block.header.moduleRoot) throw snapshotInvalid("the supply");
  return roots;
}

/** A copy: the chunk is not to be kept for its keys. */
function keyOf({ kind, id }: SnapshotRecord): Buffer {
  return Buffer.concat([Uint8Array.of(kind), id]);
}
