/** Opens the node's store for a genesis: makes block 0, or refuses a store that is not ours. */
import type { Head } from "../view/chain-view.js";
import { commitBlock, type ExecutedBlock } from "./block-commit.js";
import { BlockStore } from "./blocks/block-store.js";
import {
  type Database,
  type DatabaseSettings,
  metaKey,
  OLDEST_FORMAT_VERSION,
  ONLY_COPY,
  openDatabase,
  readMeta,
  STORE_FORMAT_VERSION,
  storeDamaged,
  StoreError,
  storeKey,
} from "./database.js";
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
  /** Asked before block 0 is written, and never again; throws where no chain may begin with it. */
  readonly assertMayBegin?: () => void;
  readonly cosmosChainId: string;
  /** Keeps the reverse diffs of the tries; else those of the window for proofs. */
  readonly archive: boolean;
  /** Told of damage that is found later: the process must not go on. */
  readonly onDamage?: (error: StoreError) => void;
  /** How the database is opened, and memory for what was read; usual values when absent. */
  readonly database?: DatabaseSettings;
  readonly memory?: { readonly stateBytes: number; readonly recentBlockBytes: number };
}

/**
 * Opens or creates the store. Throws what `assertMayBegin` throws, and:
 * @throws STORE_FOREIGN, STORE_NEWER, STORE_OLDER, STORE_LOCKED, STORE_UNUSABLE, STORE_CORRUPT,
 * STORE_WRITE_FAILED
 */
export async function openStores(options: StoreOptions): Promise<OpenStores> {
  const { memory } = options;
  const database = await openDatabase(options.folder, options);
  try {
    const format = readableFormat(database, options);
    const base = await StoreBase.open(database);
    const blocks = new BlockStore(database, base, { recentBytes: memory?.recentBlockBytes });
    if (format === undefined) await writeGenesis(database, options, base);
    else {
      assertOurs(database, options);
      // The next block has records that an older program would not understand.
      if (format !== STORE_FORMAT_VERSION) await writeFormat(database);
    }
    const height = blocks.tip();
    if (height === undefined) throw storeDamaged(options.folder, "it has no newest block");
    const { hash, timeMs } = blocks.outline(height);
    const head = { height, hash, timeMs };
    const state = new StateStore(database, height, base, { cacheBytes: memory?.stateBytes });
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
  options.assertMayBegin?.();
  const state = new StateStore(database, 0, base);
  const stores = { database, state, base, archive: options.archive };
  const { cosmosChainId } = options;
  await commitBlock(stores, options.genesisBlock, { identity: { cosmosChainId } });
  await state.close();
}

function writeFormat(database: Database): Promise<void> {
  const value = Buffer.from(String(STORE_FORMAT_VERSION));
  return database.write([{ key: metaKey("formatVersion"), value }], { durable: true });
}

/**
 * Looks at the format before anything else is read.
 * @returns undefined for a store that was just made
 */
function readableFormat(database: Database, { folder }: StoreOptions): number | undefined {
  const text = readMeta(database, "formatVersion");
  // Both were written at once, and nothing deletes either.
  if (text === undefined) {
    if (database.get(storeKey("tip")) === undefined) return undefined;
    throw storeDamaged(folder, "it does not say what format it has");
  }
  const version = Number(text);
  if (!Number.isSafeInteger(version)) throw storeDamaged(folder, `its format is ${text}`);
  const start = `the store in ${folder} has format ${version}, this program `;
  if (version > STORE_FORMAT_VERSION) {
    throw new StoreError(
      "STORE_NEWER",
      `${start}knows up to ${STORE_FORMAT_VERSION}: start the newer program, or move the folder ` +
        `away to sync again; ${ONLY_COPY}`,
    );
  }
  if (version < OLDEST_FORMAT_VERSION) {
    throw new StoreError(
      "STORE_OLDER",
      `${start}needs ${OLDEST_FORMAT_VERSION} at least: start the older program, or move the ` +
        `folder away to sync again, or use another home; ${ONLY_COPY}`,
    );
  }
  return version;
}

function assertOurs(database: Database, options: StoreOptions): void {
  const stored = readMeta(database, "genesisHash");
  const expected = options.genesisBlock.committed.block.hash;
  if (stored === expected) return;
  throw new StoreError(
    "STORE_FOREIGN",
    `the store in ${options.folder} belongs to another chain (genesis ${stored}, expected ` +
      `${expected}): restore the genesis file it was made with, or use another home`,
  );
}
