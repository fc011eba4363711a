/**
 * Everything that is stored of a block, as deletions: the counterpart of `block-commit.ts`, where
 * a new record of a block has to be named as well.
 */
import { heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import type { Height } from "../../../chain/hex.js";
import { sdkTransactionHash } from "../../../chain/consensus/sdk-transaction.js";
import { type BlockStore, HASHES_BELOW_BASE } from "../blocks/block-store.js";
import type { ConsensusStore } from "../consensus-store.js";
import { type Database, type KeySpace, storeKey, type StoreWrite } from "../database.js";
import { blockRecordKeys } from "../blocks/block-records.js";
import { eventWrites } from "../blocks/event-store.js";
import { logIndexWrites } from "../blocks/log-index.js";

/** Records with the height alone as their key, beside the block's own (`block-records.ts`). */
const BY_HEIGHT: readonly KeySpace[] = ["bloom", "supply", "consensusBlock"];

/** Every space that is ordered by the heights of blocks, for giving their room on disk back. */
export const HEIGHT_SPACES: readonly KeySpace[] = [
  ...BY_HEIGHT,
  "outline",
  "blockChanges",
  "cosmosTransaction",
  "hashPage",
  "transactionPage",
  "receiptPage",
  "journalPage",
];

/** Where a block's records lie. */
export interface PrunedStores {
  readonly database: Database;
  readonly blocks: BlockStore;
  readonly consensus: ConsensusStore;
}

/**
 * Deletions of a block and its indexes; the hash of the block that falls out of BLOCKHASH's reach
 * goes with it. Block 0 stays for ever.
 * @param breathe called between parts of the work, to let others run
 */
export async function blockDeletions(
  { blocks, consensus }: PrunedStores,
  height: Height,
  breathe: () => Promise<void>,
): Promise<StoreWrite[]> {
  const committed = await blocks.load(height, breathe);
  const { block } = committed;
  const at = heightBytes(height);
  const keys = BY_HEIGHT.map((space) => storeKey(space, at));
  const outline = blocks.outline(height);
  const { starts } = outline;
  keys.push(...blockRecordKeys(height, outline));
  keys.push(storeKey("blockHash", block.hash));
  if (height > HASHES_BELOW_BASE) {
    keys.push(storeKey("heightHash", heightBytes(height - HASHES_BELOW_BASE)));
  }
  const record = consensus.record(height);
  if (record !== undefined) {
    keys.push(storeKey("consensusHash", record.blockId.hash));
  }
  await breathe();
  for (const { key } of eventWrites(committed)) keys.push(key);
  await breathe();
  for (const { key } of logIndexWrites(committed, starts)) keys.push(key);
  for (const { tx, from } of block.transactions) {
    await breathe();
    keys.push(storeKey("transaction", tx.hash));
    keys.push(storeKey("sdkTransaction", sdkTransactionHash(tx, from)));
  }
  for (const { tx } of block.cosmos ?? []) {
    keys.push(storeKey("sdkTransaction", tx.hash));
  }
  return keys.map((key) => ({ key, value: undefined }));
}

/**
 * Deletions of validators and of headers fetched by state sync that no height from the base on
 * needs, at most `limit` of each kind; none when there are no more. Sets go when no height names them
 * any more: one that is named and not there is damage, and ends the process of whoever looks.
 * @param range.from where to begin to look: deleted keys are dear to walk over
 */
export async function validatorDeletions(
  database: Database,
  range: { readonly from: Height; readonly base: Height; readonly limit: number },
): Promise<StoreWrite[]> {
  const { from, base, limit } = range;
  const writes: StoreWrite[] = [];
  const add = async (space: KeySpace, bound: Height) => {
    for await (const key of keysBelow(database, space, { from, bound, limit })) {
      writes.push({ key, value: undefined });
    }
  };
  await add("backfilledHeader", base);
  await add("validatorsAt", base);
  if (writes.length > 0) return writes;
  const pointer = database.get(storeKey("validatorsAt", heightBytes(base)));
  await add("validatorSet", pointer === undefined ? 0 : readHeight(pointer, 0));
  return writes;
}

/** Keys of a space that is ordered by height, between two heights, the upper one not included. */
export function keysBelow(
  database: Database,
  space: KeySpace,
  range: { readonly from: Height; readonly bound: Height; readonly limit: number },
): AsyncIterable<Buffer> | readonly Buffer[] {
  const { from, bound, limit } = range;
  if (bound <= from) return [];
  // Keys may have more behind the height.
  const to = storeKey(space, heightBytes(bound - 1), Buffer.alloc(4, 0xff));
  return database.keys({ from: storeKey(space, heightBytes(from)), to, limit });
}
