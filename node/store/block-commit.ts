/**
 * The one atomic, fsynced write of a block: read this to know what is durable when a block is
 * published. Block, receipts, journal, state, tries, indexes, supply, what consensus decided, and
 * the tip go to disk together or not at all.
 */
import { heightBytes } from "../../chain/encoding/height-bytes.js";
import type { ValidatorUpdate } from "../../chain/consensus/validator-set.js";
import { transactionCountOf } from "../../chain/consensus/abci-event.js";
import { type Hash32, hexToBytes } from "../../chain/hex.js";
import { encodeRlp } from "../../chain/encoding/rlp.js";
import { eachInSteps, type Steps } from "../../chain/steps/steps.js";
import { Slices } from "../../runtime/process/slices.js";
import type { Supply } from "../view/chain-view.js";
import type { CommittedBlock } from "../view/event-bus.js";
import { blockRecordSteps, pageStartSteps } from "./block-records.js";
import {
  type Database,
  metaKey,
  STORE_FORMAT_VERSION,
  storeKey,
  type StoreWrite,
} from "./database.js";
import { eventSteps } from "./event-store.js";
import { logIndexSteps } from "./log-index.js";
import type { StateChanges, StateStore } from "./state-store.js";
import type { TrieWrite } from "./trie-port.js";
import type { StoreBase } from "./store-base.js";
import { oldestProofAt, trieWritesOf } from "./trie-diff.js";

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

/** Writes of the block's records and indexes, in steps. */
function* blockWrites(executed: ExecutedBlock): Steps<StoreWrite[]> {
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
  yield* eachInSteps(block.transactions.entries(), ([index, { tx }]) => {
    const value = locationOf(at, index);
    writes.push({ key: storeKey("transaction", tx.hash), value });
  });
  yield* eachInSteps(executed.sdkHashes.entries(), ([index, sdkHash]) => {
    const value = locationOf(at, index);
    writes.push({ key: storeKey("sdkTransaction", sdkHash), value });
  });
  if (executed.sdkHashes.length !== transactionCountOf(executed.committed)) {
    throw new RangeError("an SDK hash is missing");
  }
  return writes;
}

/** All writes of a block but those of consensus, in steps. */
function* writeSteps(stores: CommitStores, executed: ExecutedBlock): Steps<StoreWrite[]> {
  const { height } = executed.committed.block.header;
  const { database, archive } = stores;
  const writes = yield* blockWrites(executed);
  const others = [
    yield* eventSteps(executed.committed),
    yield* stores.state.writesOf(executed.changes),
    yield* trieWritesOf(database, height, executed.trieWrites, archive),
  ];
  for (const some of others) {
    for (const write of some) writes.push(write);
    yield;
  }
  return writes;
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
 * rejects nothing of it was stored. `more.writes` go with it: the records of consensus. What is
 * written is put together in slices, and nothing of it is seen before.
 * @throws STORE_WRITE_FAILED (disk full, read-only)
 */
export async function commitBlock(
  stores: CommitStores,
  executed: ExecutedBlock,
  more: { readonly identity?: StoreIdentity; readonly writes?: readonly StoreWrite[] } = {},
): Promise<void> {
  const { header, hash } = executed.committed.block;
  if (!stores.archive) stores.base.raiseProofs(oldestProofAt(header.height));
  const slices = new Slices();
  const writes = await slices.run(writeSteps(stores, executed));
  writes.push(...(more.writes ?? []));
  const { identity } = more;
  if (identity !== undefined) {
    const meta: Record<string, string> = {
      formatVersion: String(STORE_FORMAT_VERSION),
      genesisHash: hash,
      cosmosChainId: identity.cosmosChainId,
    };
    for (const [name, value] of Object.entries(meta)) {
      writes.push({ key: metaKey(name), value: Buffer.from(value, "utf8") });
    }
  }
  await stores.database.write(writes, { durable: true, slices });
}
