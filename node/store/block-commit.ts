/**
 * The one atomic, fsynced write of a block: read this to know what is durable when a block is
 * published. Block, receipts, journal, state, tries, indexes, supply, what consensus decided, and
 * the tip go to disk together or not at all.
 */
import { heightBytes } from "../../chain/encoding/height-bytes.js";
import type { ValidatorUpdate } from "../../chain/consensus/validator-set.js";
import { transactionCountOf } from "../../chain/abci-event.js";
import { type Hash32, hexToBytes } from "../../chain/hex.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";
import { eachInSteps, type Steps } from "../../chain/steps/steps.js";
import { Slices } from "../../runtime/process/slices.js";
import type { Supply } from "../view/chain-view.js";
import type { CommittedBlock } from "../view/event-bus.js";
import { blockRecordSteps, pageStartSteps } from "./blocks/block-records.js";
import {
  type AddWrite,
  type Database,
  metaKey,
  STORE_FORMAT_VERSION,
  storeKey,
  type StoreWrite,
} from "./database.js";
import { eventSteps } from "./blocks/event-store.js";
import { logIndexSteps } from "./blocks/log-index.js";
import type { StateChanges, StateStore } from "./state-store.js";
import type { TrieWrite } from "./tries/trie-port.js";
import type { StoreBase } from "./store-base.js";
import { addTrieWrites, oldestProofAt } from "./tries/trie-diff.js";

/** Everything that a block changes, as execution hands it over. */
export interface ExecutedBlock {
  readonly committed: CommittedBlock;
  readonly changes: StateChanges;
  readonly trieWrites: readonly TrieWrite[];
  readonly supply: Supply;
  /**
   * Changes of the validators, in effect two heights later; undefined on chains whose validators
   * have no stake.
   */
  readonly validatorUpdates?: readonly ValidatorUpdate[];
  /** Version of the rules from the next block on; undefined on the same chains. */
  readonly appVersion?: number;
  /** SHA-256 of each transaction as `data.txs` has it, in that order. */
  readonly sdkHashes: readonly Hash32[];
  /** Compute units that its transactions took (D21); they are not stored. */
  readonly computeNs: number;
}

/** Identity of a chain, written with block 0. */
export interface StoreIdentity {
  readonly cosmosChainId: string;
}

function locationOf(at: Buffer, index: number): Buffer {
  const location = Buffer.allocUnsafe(12);
  location.set(at);
  location.writeUInt32BE(index, 8);
  return location;
}

/** Adds the block's records and indexes, in steps. */
function* addBlockWrites(executed: ExecutedBlock, add: AddWrite): Steps<void> {
  const { block } = executed.committed;
  const height = block.header.height;
  const at = heightBytes(height);
  const { totalAtoken, mintedAtoken, burnedAtoken } = executed.supply;
  const supply = [totalAtoken, mintedAtoken, burnedAtoken];
  const starts = yield* pageStartSteps(executed.committed);
  const writes: StoreWrite[] = [
    ...(yield* blockRecordSteps(executed.committed, starts)),
    ...(yield* logIndexSteps(executed.committed, starts)),
    { key: storeKey("bloom", at), value: block.header.logsBloom },
    { key: storeKey("blockHash", block.hash), value: at },
    { key: storeKey("heightHash", at), value: hexToBytes(block.hash) },
    { key: storeKey("supply", at), value: encodeRlp(supply) },
    { key: storeKey("tip"), value: at },
  ];
  yield* eachInSteps(writes, add);
  yield* eachInSteps(block.transactions.entries(), ([index, { tx }]) => {
    add({ key: storeKey("transaction", tx.hash), value: locationOf(at, index) });
  });
  yield* eachInSteps(executed.sdkHashes.entries(), ([index, sdkHash]) => {
    add({ key: storeKey("sdkTransaction", sdkHash), value: locationOf(at, index) });
  });
  if (executed.sdkHashes.length !== transactionCountOf(executed.committed)) {
    throw new RangeError("an SDK hash is missing");
  }
}

/** Adds all writes of a block but those of consensus, in steps. */
function* addWrites(stores: CommitStores, executed: ExecutedBlock, add: AddWrite): Steps<void> {
  const { height } = executed.committed.block.header;
  const { database, archive } = stores;
  yield* addBlockWrites(executed, add);
  yield* eachInSteps(yield* eventSteps(executed.committed), add);
  yield* stores.state.addWrites(executed.changes, add);
  const target = { database, add, keepsAll: archive };
  yield* addTrieWrites(target, height, executed.trieWrites);
}

/** Where a block is written to. */
interface CommitStores {
  readonly database: Database;
  readonly state: StateStore;
  readonly base: StoreBase;
  readonly archive: boolean;
}

/**
 * Makes a block durable. When the promise resolves the block survives a power cut; when it
 * rejects nothing of it was stored. `more.writes` go with it: the records of consensus. Level takes over
 * what is written while it is made, in slices, and nothing of it is seen before: what a block writes would
 * be a fifth of all that lives until the block is done.
 * @throws STORE_WRITE_FAILED (disk full, read-only)
 */
export async function commitBlock(
  stores: CommitStores,
  executed: ExecutedBlock,
  more: { readonly identity?: StoreIdentity; readonly writes?: readonly StoreWrite[] } = {},
): Promise<void> {
  const { header, hash } = executed.committed.block;
  if (!stores.archive) stores.base.raiseProofs(oldestProofAt(header.height));
  const batch = stores.database.batch();
  await new Slices().run(addWrites(stores, executed, batch.add));
  for (const write of more.writes ?? []) batch.add(write);
  const { identity } = more;
  if (identity !== undefined) {
    const meta: Record<string, string> = {
      formatVersion: String(STORE_FORMAT_VERSION),
      genesisHash: hash,
      cosmosChainId: identity.cosmosChainId,
    };
    for (const [name, value] of Object.entries(meta)) {
      batch.add({ key: metaKey(name), value: Buffer.from(value, "utf8") });
    }
  }
  await batch.write({ durable: true });
}
