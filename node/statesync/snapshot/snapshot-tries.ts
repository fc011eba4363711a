/**
 * Builds the tries of a restored state. Records come in the order of addresses and slots, tries
 * are ordered by their hashes: a second store beside the first one sorts them, so that each trie
 * grows at its right edge only and memory stays small whatever the size of the state.
 */
import { type Address, bytesToAddress } from "../../../chain/address.js";
import { keccak256 } from "../../../chain/hashes.js";
import { EMPTY_TRIE_ROOT, type Hash32 } from "../../../chain/hex.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { decodeStoredAccount } from "../../store/account-record.js";
import { ACCOUNT_TRIE } from "../../state/state-root.js";
import { type TrieUpdate, updateTrie } from "../../state/trie.js";
import { type Database, openDatabase, storeKey, type StoreWrite } from "../../store/database.js";
import { createTrieReader, trieNodeWrites } from "../../store/tries/trie-store.js";
import { snapshotInvalid } from "./snapshot-error.js";

/** Entries of a trie that are put in at once: some 10 ms. */
const ENTRIES_PER_BATCH = 1_000;

/** Kinds of keys in the sorting store: tries of storage come first. */
const STORAGE = Uint8Array.of(1);
const ACCOUNTS = Uint8Array.of(2);

/** Longer than any key behind its kind. */
const LAST_KEY = Buffer.alloc(53, 0xff);

/** Length of an address, and where the hash of a slot begins in a key. */
const ADDRESS_BYTES = 20;

/** Sorts what goes into tries, then builds them. */
export class TrieSorter {
  private constructor(private readonly sorting: Database) {}

  /** Opens the store for sorting; its folder is the caller's to delete. */
  static async open(folder: string): Promise<TrieSorter> {
    return new TrieSorter(await openDatabase(folder));
  }

  /** Closes the store for sorting. */
  close(): Promise<void> {
    return this.sorting.close();
  }

  /** Entries of the account trie and of storage tries, in any order. */
  async add(entries: {
    readonly accounts: readonly { readonly address: Uint8Array; readonly value: Uint8Array }[];
    readonly slots: readonly {
      readonly address: Uint8Array;
      readonly slot: Uint8Array;
      readonly value: Uint8Array;
    }[];
  }): Promise<void> {
    const writes: StoreWrite[] = [];
    for (const { address, value } of entries.accounts) {
      writes.push({ key: Buffer.concat([ACCOUNTS, keccak256(address)]), value });
    }
    for (const { address, slot, value } of entries.slots) {
      const key = Buffer.concat([STORAGE, address, keccak256(slot)]);
      writes.push({ key, value: encodeRlp(value) });
    }
    await this.sorting.write(writes, { durable: false });
  }

  /**
   * Builds all tries in the store that holds the accounts, and proves them.
   * @param expected.stateRoot root of the account trie
   * @param expected.storageTries how many accounts say that they have storage
   * @throws SNAPSHOT_INVALID, STORE_WRITE_FAILED, or the signal's reason
   */
  async build(
    database: Database,
    expected: { readonly stateRoot: Hash32; readonly storageTries: number },
    signal: AbortSignal,
  ): Promise<void> {
    let tries = 0;
    let current: { readonly address: Address; readonly trie: TrieBuilder } | undefined;
    const finish = async () => {
      if (current === undefined) return;
      const root = await current.trie.finish();
      const isRight = root === storageRootOf(database, current.address);
      if (!isRight) throw snapshotInvalid("the storage of an account");
      tries++;
    };
    for await (const [id, value] of this.entries(STORAGE)) {
      signal.throwIfAborted();
      const address = bytesToAddress(id.subarray(0, ADDRESS_BYTES));
      if (current?.address !== address) {
        await finish();
        current = { address, trie: new TrieBuilder(database, address) };
      }
      await current.trie.add({ key: id.subarray(ADDRESS_BYTES), value });
    }
    await finish();
    if (tries !== expected.storageTries) throw snapshotInvalid("the storage of an account");
    const accounts = new TrieBuilder(database, ACCOUNT_TRIE);
    for await (const [key, value] of this.entries(ACCOUNTS)) {
      signal.throwIfAborted();
      await accounts.add({ key, value });
    }
    if ((await accounts.finish()) !== expected.stateRoot) throw snapshotInvalid("the state root");
  }

  /** Sorted entries of a kind, keys without it. */
  private async *entries(kind: Uint8Array): AsyncGenerator<[Buffer, Buffer]> {
    const range = { from: Buffer.from(kind), to: Buffer.concat([kind, LAST_KEY]) };
    for await (const [key, value] of this.sorting.entries(range)) yield [key.subarray(1), value];
  }
}

/** One trie that grows by sorted entries. */
class TrieBuilder {
  private waiting: TrieUpdate[] = [];
  private root: Hash32 = EMPTY_TRIE_ROOT;

  constructor(
    private readonly database: Database,
    private readonly owner: string,
  ) {}

  async add(entry: TrieUpdate): Promise<void> {
    this.waiting.push(entry);
    if (this.waiting.length >= ENTRIES_PER_BATCH) await this.flush();
  }

  /** The root of everything that was added. */
  async finish(): Promise<Hash32> {
    if (this.waiting.length > 0) await this.flush();
    return this.root;
  }

  private async flush(): Promise<void> {
    const { root, writes } = updateTrie(createTrieReader(this.database), this.owner, this.waiting);
    this.waiting = [];
    this.root = root;
    await this.database.write(trieNodeWrites(writes), { durable: false });
  }
}

/** What the account says; undefined without an account. */
function storageRootOf(database: Database, address: Address): Hash32 | undefined {
  const bytes = database.get(storeKey("account", address));
  return bytes === undefined ? undefined : decodeStoredAccount(bytes).storageRoot;
}
