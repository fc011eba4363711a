/**
 * What a snapshot says of itself: height, the hash of each chunk, how much there is of what, and
 * the supply. Its SHA-256 is the snapshot's id. All of it is a claim until the restored state
 * hashes to what validators signed.
 */
import { sha256Hex } from "../../../chain/hashes.js";
import { bytesToHash32, type Hash32, type Height } from "../../../chain/hex.js";
import {
  decodeRlp,
  rlpBytes,
  rlpInteger,
  type RlpItem,
  rlpList,
} from "../../../chain/encoding/rlp.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import type { Supply } from "../../view/chain-view.js";
import { snapshotInvalid } from "./snapshot-error.js";

/** The only format so far. */
export const SNAPSHOT_FORMAT = 1;

/** Most bytes of one chunk; written ones have about a quarter of it. */
export const MAX_CHUNK_BYTES = 4 * 1024 * 1024;

/** Most chunks of one snapshot: 64 GiB of state in chunks of 1 MiB. */
export const MAX_CHUNKS = 65_536;

/** Hash of a chunk in RLP, and room for the other fields. */
const HASH_ITEM_BYTES = 33;
const OTHER_FIELDS_BYTES = 1_024;

/** Most bytes of a manifest. */
export const MAX_MANIFEST_BYTES = MAX_CHUNKS * HASH_ITEM_BYTES + OTHER_FIELDS_BYTES;

/** How many records of each kind a snapshot holds. */
export interface SnapshotCounts {
  readonly accounts: number;
  /** Storage slots. */
  readonly slots: number;
  readonly codes: number;
}

/** A snapshot's description. */
export interface SnapshotManifest {
  readonly format: number;
  /** Block 0 of the chain that it belongs to. */
  readonly genesisHash: Hash32;
  readonly height: Height;
  /** SHA-256 of each chunk, in order. */
  readonly chunkHashes: readonly Hash32[];
  readonly counts: SnapshotCounts;
  /** Supply after the height. */
  readonly supply: Supply;
}

/** Name of a snapshot: SHA-256 of its manifest. */
export function snapshotIdOf(manifestBytes: Uint8Array): Hash32 {
  return sha256Hex(manifestBytes);
}

/** rlp([format, genesisHash, height, [chunk hashes], [accounts, slots, codes], [total, minted, burned]]). */
export function encodeManifest(manifest: SnapshotManifest): Uint8Array {
  const { format, genesisHash, height, chunkHashes, counts, supply } = manifest;
  return encodeRlp([
    format,
    genesisHash,
    height,
    chunkHashes,
    [counts.accounts, counts.slots, counts.codes],
    [supply.totalAtoken, supply.mintedAtoken, supply.burnedAtoken],
  ]);
}

/**
 * Untrusted bytes to a manifest; only the one canonical encoding is accepted.
 * @throws SNAPSHOT_INVALID
 */
export function decodeManifest(bytes: Uint8Array): SnapshotManifest {
  if (bytes.length > MAX_MANIFEST_BYTES) throw snapshotInvalid("the manifest is too long");
  const manifest = readManifest(bytes);
  if (manifest.format !== SNAPSHOT_FORMAT) throw snapshotInvalid("the format is unknown");
  if (manifest.height === 0) throw snapshotInvalid("height 0");
  const { length } = manifest.chunkHashes;
  if (length === 0 || length > MAX_CHUNKS) throw snapshotInvalid("the number of chunks");
  const { totalAtoken, mintedAtoken, burnedAtoken } = manifest.supply;
  if (totalAtoken !== mintedAtoken - burnedAtoken) throw snapshotInvalid("the supply");
  if (Buffer.compare(encodeManifest(manifest), bytes) !== 0) {
    throw snapshotInvalid("the manifest is not in its canonical encoding");
  }
  return manifest;
}

function readManifest(bytes: Uint8Array): SnapshotManifest {
  try {
    const [format, genesisHash, height, hashes, counts, supply] = rlpList(decodeRlp(bytes));
    const [accounts, slots, codes] = rlpList(counts);
    const [totalAtoken, mintedAtoken, burnedAtoken] = rlpList(supply);
    return {
      format: count(format),
      genesisHash: bytesToHash32(rlpBytes(genesisHash)),
      height: count(height),
      chunkHashes: rlpList(hashes).map((item) => bytesToHash32(rlpBytes(item))),
      counts: { accounts: count(accounts), slots: count(slots), codes: count(codes) },
      supply: {
        totalAtoken: rlpInteger(totalAtoken),
        mintedAtoken: rlpInteger(mintedAtoken),
        burnedAtoken: rlpInteger(burnedAtoken),
      },
    };
  } catch (cause) {
    throw snapshotInvalid("the manifest cannot be read", cause);
  }
}

/** Six bytes are exact as a number. */
function count(item: RlpItem | undefined): number {
  return Number(rlpInteger(item, 6));
}
