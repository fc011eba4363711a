/**
 * Accounts, code and storage at the head and at any height. The head is served from a bounded
 * cache over a snapshot taken when the block was published, so that a read never mixes two blocks.
 */
import { LRUCache } from "lru-cache";
import { type Address, addressToBytes, bytesToAddress } from "../../chain/address.js";
import { heightBytes, readHeight } from "../../chain/encoding/height-bytes.js";
import { EMPTY_CODE_HASH, type Hash32, type Height } from "../../chain/hex.js";
import { allAtOnce, eachInSteps, type Steps } from "../../chain/steps/steps.js";
import { AccountHistory } from "./account-history.js";
import { type AccountRecord, decodeStoredAccount, encodeStoredAccount } from "./account-record.js";
import { type MaybePromise, type StateReader, ZERO_VALUE } from "./state-reader.js";
import type { StoreBase } from "./store-base.js";
import { UnchangedKeys } from "./unchanged-keys.js";
import {
  type AddWrite,
  type Database,
  StoreError,
  storeKey,
  type StoreSnapshot,
} from "./database.js";

/** Memory for accounts, slots and code where no settings are at hand. */
const CACHE_BYTES = 32 * 1024 * 1024;

/** How it is divided, and about how many bytes one account or slot takes. */
const ACCOUNT_SHARE = 0.5;
const ACCOUNT_BYTES = 400;
const SLOT_SHARE = 0.25;
const SLOT_BYTES = 350;
const CODE_SHARE = 0.25;

const ADDRESS_BYTES = 20;

/** What a block changes in the flat state. */
export interface StateChanges {
  readonly height: Height;
  /** New versions; undefined removes. Accounts named by the journal are in it even if unchanged. */
  readonly accounts: ReadonlyMap<Address, AccountRecord | undefined>;
  readonly storage: ReadonlyMap<Address, ReadonlyMap<Hash32, Uint8Array>>;
  readonly codes: ReadonlyMap<Hash32, Uint8Array>;
}

/** Name of a slot in memory. */
const slotKey = (address: Address, slot: Hash32): string => `${address}${slot}`;

/** Marks "no such account" in the cache, which cannot hold undefined. */
const ABSENT = Symbol("absent");

/** Flat state over the database. */
export class StateStore {
  private readonly accounts: LRUCache<Address, AccountRecord | typeof ABSENT>;
  private readonly slots: LRUCache<string, Uint8Array>;
  private readonly codes: LRUCache<Hash32, Uint8Array>;
  private readonly history: AccountHistory;
  private readonly unchanged: UnchangedKeys;
  private snapshot: StoreSnapshot;
  private headHeight: Height;
  private written = 0;
  /** What the head's block changed, while the caches may still hold what was before. */
  private newest: StateChanges | undefined;

  /** @param options.cacheBytes memory for accounts, slots and code (estimated) */
  constructor(
    private readonly database: Database,
    headHeight: Height,
    private readonly base: StoreBase,
    options: { readonly cacheBytes?: number | undefined } = {},
  ) {
    const { cacheBytes = CACHE_BYTES } = options;
    this.accounts = new LRUCache({ max: Math.ceil((cacheBytes * ACCOUNT_SHARE) / ACCOUNT_BYTES) });
    this.slots = new LRUCache({ max: Math.ceil((cacheBytes * SLOT_SHARE) / SLOT_BYTES) });
    this.codes = new LRUCache({
      maxSize: Math.ceil(cacheBytes * CODE_SHARE),
      sizeCalculation: (code) => code.length + 1,
    });
    this.headHeight = headHeight;
    this.history = new AccountHistory(database);
    this.unchanged = new UnchangedKeys(headHeight);
    this.snapshot = database.snapshot();
  }

  /** Account at the head. */
  account(address: Address): AccountRecord | undefined {
    const newest = this.newest?.accounts;
    if (newest?.has(address) === true) return newest.get(address);
    const cached = this.accounts.get(address);
    if (cached !== undefined) return cached === ABSENT ? undefined : cached;
    const bytes = this.database.get(storeKey("account", address), this.snapshot);
    const account = bytes === undefined ? undefined : decodeStoredAccount(bytes);
    this.accounts.set(address, account ?? ABSENT);
    return account;
  }

  /** Storage slot at the head, without leading zeros. */
  storage(address: Address, slot: Hash32): Uint8Array {
    const newest = this.newest?.storage.get(address)?.get(slot);
    if (newest !== undefined) return newest;
    const cacheKey = slotKey(address, slot);
    const cached = this.slots.get(cacheKey);
    if (cached !== undefined) return cached;
    const key = storeKey("storage", address, slot);
    const value = this.database.get(key, this.snapshot) ?? ZERO_VALUE;
    this.slots.set(cacheKey, value);
    return value;
  }

  /** Code by its hash; code is never removed. */
  code(codeHash: Hash32): Uint8Array {
    if (codeHash === EMPTY_CODE_HASH) return ZERO_VALUE;
    const cached = this.newest?.codes.get(codeHash) ?? this.codes.get(codeHash);
    if (cached !== undefined) return cached;
    const code = this.database.get(storeKey("code", codeHash));
    if (code === undefined) {
      throw new StoreError("STORE_CORRUPT", "code is missing", { details: { codeHash } });
    }
    this.codes.set(codeHash, code);
    return code;
  }

  /**
   * Account after a block of the past or the head; at once where it is as it is at the head. Throws
   * HISTORY_PRUNED.
   */
  accountAt(address: Address, height: Height): MaybePromise<AccountRecord | undefined> {
    if (height === this.headHeight) return this.account(address);
    this.base.assertState(height);
    const isChangedNow = this.newest?.accounts.has(address) === true;
    const isAsNow = !isChangedNow && this.unchanged.isUnchangedSince(address, height);
    return isAsNow ? this.account(address) : this.oldAccount(address, height);
  }

  private async oldAccount(address: Address, height: Height): Promise<AccountRecord | undefined> {
    const bytes = await this.history.versionAt(address, height, this.headHeight);
    return bytes === undefined || bytes.length === 0 ? undefined : decodeStoredAccount(bytes);
  }

  /** The same of a storage slot, without leading zeros. */
  storageAt(address: Address, slot: Hash32, height: Height): MaybePromise<Uint8Array> {
    if (height === this.headHeight) return this.storage(address, slot);
    this.base.assertState(height);
    const isChangedNow = this.newest?.storage.get(address)?.has(slot) === true;
    const key = slotKey(address, slot);
    const isAsNow = !isChangedNow && this.unchanged.isUnchangedSince(key, height);
    return isAsNow ? this.storage(address, slot) : this.oldStorage(address, slot, height);
  }

  private async oldStorage(address: Address, slot: Hash32, height: Height): Promise<Uint8Array> {
    const range = {
      from: storeKey("storageHistory", address, slot, heightBytes(0)),
      to: storeKey("storageHistory", address, slot, heightBytes(height)),
      reverse: true,
      limit: 1,
    };
    const [newest] = await this.database.few(range);
    return newest?.[1] ?? ZERO_VALUE;
  }

  /** Addresses of all accounts on disk, in their order, from one on. */
  async *addresses(
    start: Address | undefined,
    { isReverse }: { readonly isReverse: boolean },
  ): AsyncIterable<Address> {
    const least =
      start === undefined || isReverse ? Buffer.alloc(ADDRESS_BYTES) : addressToBytes(start);
    const most =
      start === undefined || !isReverse ? Buffer.alloc(ADDRESS_BYTES, 0xff) : addressToBytes(start);
    const range = { from: storeKey("account", least), to: storeKey("account", most) };
    for await (const [key] of this.database.entries({ ...range, reverse: isReverse })) {
      yield bytesToAddress(key.subarray(1));
    }
  }

  /** Heights at which an account changed, or was named by the balance journal or by events; ascending. */
  heightsOf(address: Address, from: Height, to: Height): AsyncIterable<Height> {
    // The version that is valid at the base stays under an older height.
    if (from <= to) this.base.assertState(from);
    return this.readHeights(address, from, to);
  }

  private async *readHeights(address: Address, from: Height, to: Height): AsyncIterable<Height> {
    const range = {
      from: storeKey("accountHistory", address, heightBytes(from)),
      to: storeKey("accountHistory", address, heightBytes(to)),
    };
    for await (const [key] of this.database.entries(range)) yield readHeight(key, 21);
  }

  /**
   * State at a fixed height for executors; immediate where the height is the head, and for what has not
   * changed since a height just behind it.
   * @throws HISTORY_PRUNED
   */
  readerAt(height: Height): StateReader {
    if (height !== this.headHeight) this.base.assertState(height);
    return {
      account: (address) => this.accountAt(address, height),
      storage: (address, slot) => this.storageAt(address, slot, height),
      code: (codeHash) => this.code(codeHash),
    };
  }

  /** Versions of accounts and slots that were handed out for writing since the start. */
  get versionsWritten(): number {
    return this.written;
  }

  /** Adds the writes that make the changes durable, in steps, to the block's one atomic write. */
  *addWrites(changes: StateChanges, add: AddWrite): Steps<void> {
    let versions = changes.accounts.size;
    const at = heightBytes(changes.height);
    yield* eachInSteps(changes.accounts, ([address, account]) => {
      const value = account === undefined ? undefined : encodeStoredAccount(account);
      add({ key: storeKey("account", address), value });
      add({ key: storeKey("accountHistory", address, at), value: value ?? ZERO_VALUE });
    });
    for (const [address, slots] of changes.storage) {
      yield* eachInSteps(slots, ([slot, value]) => {
        const current = value.length === 0 ? undefined : value;
        add({ key: storeKey("storage", address, slot), value: current });
        add({ key: storeKey("storageHistory", address, slot, at), value });
      });
      versions += slots.size;
      // Most contracts have fewer slots than a step.
      yield;
    }
    this.written += versions;
    for (const [codeHash, code] of changes.codes) {
      add({ key: storeKey("code", codeHash), value: code });
    }
  }

  /**
   * Moves the head after the atomic write; from here on readers see the new block. At once, however
   * much it changed: `takeOver` does the rest.
   */
  publish(changes: StateChanges): void {
    allAtOnce(this.takeOver());
    this.newest = changes;
    const old = this.snapshot;
    this.snapshot = this.database.snapshot();
    this.headHeight = changes.height;
    void old.close();
  }

  /** The caches take over what the newest block changed, in steps. */
  *takeOver(): Steps<void> {
    const changes = this.newest;
    if (changes === undefined) return;
    yield* eachInSteps(changes.accounts, ([address, account]) => {
      this.accounts.set(address, account ?? ABSENT);
      this.unchanged.note(address, changes.height);
    });
    for (const [address, slots] of changes.storage) {
      yield* eachInSteps(slots, ([slot, value]) => {
        const key = slotKey(address, slot);
        this.slots.set(key, value);
        this.unchanged.note(key, changes.height);
      });
      yield;
    }
    for (const [codeHash, code] of changes.codes) this.codes.set(codeHash, code);
    if (this.newest === changes) this.newest = undefined;
  }

  /** Releases the snapshot; the database is closed by its owner. */
  async close(): Promise<void> {
    await this.snapshot.close();
  }
}
