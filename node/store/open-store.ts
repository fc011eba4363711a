/** Opens the node's store for a genesis: makes block 0, or refuses a store that is not ours. */
import type { Head } from "../chain-view.js";
import { commitBlock, type ExecutedBlock } from "./block-commit.js";
import { BlockStore } from "./block-store.js";
import { type Database, openDatabase, STORE_FORMAT_VERSION, StoreError } from "./database.js";
import { StateStore } from "./state-store.js";
import { StoreBase } from "./store-base.js";

/** The open stores and the last committed block. */
export interface OpenStores {
  readonly database: Database;
  readonly blocks: BlockStore;
  readonly state: StateStore;
  /** The oldest heights that are there. */
  readonly base: StoreBase;
  /** Whether reverse diffs of the tries are kept when a block is written. */
  readonly archive: boolean;
  readonly head: Head;
}

/** Where the store lies and what chain it must hold. */
export interface StoreOptions {
  readonly folder: string;
  readonly genesisBlock: ExecutedBlock;
  readonly cosmosChainId: string;
  /** Keeps the reverse diffs of the tries; else those of the window for proofs. */
  readonly archive: boolean;
}

/**
 * Opens or creates the store.
 * @throws STORE_FOREIGN, STORE_NEWER, STORE_OLDER, STORE_LOCKED, STORE_CORRUPT, STORE_WRITE_FAILED
 */
export async function openStores(options: StoreOptions): Promise<OpenStores> {
  const database = await openDatabase(options.folder);
  try {
    const base = await StoreBase.open(database);
    const blocks = new BlockStore(database, base);
    if (blocks.tip() === undefined) await writeGenesis(database, options, base);
    else assertOurs(blocks, options);
    const height = blocks.tip() ?? 0;
    const { block } = blocks.block(height);
    const head = { height, hash: block.hash, timeMs: block.timeMs };
    const state = new StateStore(database, height, base);
    return { database, blocks, state, base, archive: options.archive, head };
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function writeGenesis(
  database: Database,
  options: StoreOptions,
  base: StoreBase,
): Promise<void> {
  const state = new StateStore(database, 0, base);
  const stores = { database, state, base, archive: options.archive };
  const { cosmosChainId } = options;
  await commitBlock(stores, options.genesisBlock, { identity: { cosmosChainId } });
  await state.close();
}

function assertOurs(blocks: BlockStore, options: StoreOptions): void {
  const version = Number(blocks.meta("formatVersion"));
  if (version > STORE_FORMAT_VERSION) {
    throw new StoreError(
      "STORE_NEWER",
      `the store in ${options.folder} has format ${version}, this program knows up to ` +
        `${STORE_FORMAT_VERSION}: start the newer program, or move the folder away to sync again`,
    );
  }
  if (version < STORE_FORMAT_VERSION) {
    throw new StoreError(
      "STORE_OLDER",
      `the store in ${options.folder} has format ${version}, this program needs ` +
        `${STORE_FORMAT_VERSION}: start the older program, or use another home`,
    );
  }
  const stored = blocks.meta("genesisHash");
  const expected = options.genesisBlock.committed.block.hash;
  if (stored !== expected) {
    throw new StoreError(
      "STORE_FOREIGN",
      `the store in ${options.folder} belongs to another chain (genesis ${stored}, expected ` +
        `${expected}): restore the genesis file it was made with, or use another home`,
    );
  }
}
