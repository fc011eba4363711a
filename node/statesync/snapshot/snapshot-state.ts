/**
 * The state of a snapshot on its way into a store: accounts, storage and codes as they are at the
 * tip and as the oldest versions of their histories. Everything that can be held against something
 * at once is; what only the roots prove waits for them.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { keccak256Hex } from "../../../chain/hashes.js";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import {
  bytesToHash32,
  EMPTY_CODE_HASH,
  EMPTY_TRIE_ROOT,
  type Hash32,
} from "../../../chain/hex.js";
import {
  type AccountRecord,
  decodeAccount,
  encodeStoredAccount,
} from "../../store/account-record.js";
import { type Database, storeKey, type StoreWrite } from "../../store/database.js";
import type { ProvenBlock } from "./snapshot-block.js";
import { snapshotInvalid } from "./snapshot-error.js";
import type { SnapshotManifest } from "./snapshot-manifest.js";
import { RECORD_KIND, Slices, type SnapshotRecord } from "./snapshot-records.js";
import type { TrieSorter } from "./snapshot-tries.js";

/** What a restored state is made of. */
export interface RestoredStateOptions {
  readonly database: Database;
  readonly sorter: TrieSorter;
  readonly manifest: SnapshotManifest;
  /** Proves the block as soon as it is whole; throws SNAPSHOT_INVALID. */
  readonly prove: (encoded: {
    readonly block: Uint8Array;
    readonly receipts: Uint8Array;
  }) => ProvenBlock;
}

/** Records in one write: about 20 ms, then other work has its turn. */
const RECORDS_PER_WRITE = 1_000;

/** Bytes of an address in the key of a slot. */
const ADDRESS_BYTES = 20;

/** Takes records in their order. */
export class RestoredState {
  private readonly slices = {
    block: new Slices(RECORD_KIND.block),
    receipts: new Slices(RECORD_KIND.receipts),
  };
  private readonly at: Buffer;
  private readonly counts = { accounts: 0, slots: 0, codes: 0 };
  private readonly missingCodes = new Set<Hash32>();
  private proven: ProvenBlock | undefined;
  private storageTries = 0;
  private totalAtoken = 0n;

  constructor(private readonly options: RestoredStateOptions) {
    this.at = heightBytes(options.manifest.height);
  }

  /** Takes the records of one chunk. Throws SNAPSHOT_INVALID, STORE_WRITE_FAILED. */
  async add(records: readonly SnapshotRecord[]): Promise<void> {
    for (let from = 0; from < records.length; from += RECORDS_PER_WRITE) {
      await this.write(records.slice(from, from + RECORDS_PER_WRITE));
      await nextTurn();
    }
  }

  /** What is known when all records are here. Throws SNAPSHOT_INVALID. */
  finish(): { readonly proven: ProvenBlock; readonly storageTries: number } {
    const { manifest } = this.options;
    const proven = this.proveBlock();
    const { accounts, slots, codes } = manifest.counts;
    const isCounted =
      this.counts.accounts === accounts &&
      this.counts.slots === slots &&
      this.counts.codes === codes;
    if (!isCounted) throw snapshotInvalid("the number of records");
    if (this.missingCodes.size > 0) throw snapshotInvalid("a code is missing");
    if (this.totalAtoken !== manifest.supply.totalAtoken) {
      throw snapshotInvalid("the sum of balances is not the supply");
    }
    return { proven, storageTries: this.storageTries };
  }

  private async write(records: readonly SnapshotRecord[]): Promise<void> {
    const writes: StoreWrite[] = [];
    const accounts: { address: Uint8Array; value: Uint8Array }[] = [];
    const slots: { address: Uint8Array; slot: Uint8Array; value: Uint8Array }[] = [];
    for (const { kind, id, value } of records) {
      if (kind === RECORD_KIND.block) this.slices.block.add(id, value);
      else if (kind === RECORD_KIND.receipts) this.slices.receipts.add(id, value);
      else this.proveBlock();
      if (kind === RECORD_KIND.account) {
        const stored = encodeStoredAccount(this.countAccount(value));
        accounts.push({ address: id, value });
        writes.push({ key: storeKey("account", id), value: stored });
        writes.push({ key: storeKey("accountHistory", id, this.at), value: stored });
      } else if (kind === RECORD_KIND.storage) {
        this.counts.slots++;
        const [address, slot] = [id.subarray(0, ADDRESS_BYTES), id.subarray(ADDRESS_BYTES)];
        slots.push({ address, slot, value });
        writes.push({ key: storeKey("storage", id), value });
        writes.push({ key: storeKey("storageHistory", id, this.at), value });
      } else if (kind === RECORD_KIND.code) {
        this.takeCode(id, value);
        writes.push({ key: storeKey("code", id), value });
      }
    }
    await this.options.sorter.add({ accounts, slots });
    await this.options.database.write(writes, { durable: false });
  }

  /** Before anything else is written: it says which state is the right one. */
  private proveBlock(): ProvenBlock {
    const { block, receipts } = this.slices;
    this.proven ??= this.options.prove({ block: block.join(), receipts: receipts.join() });
    return this.proven;
  }

  private countAccount(value: Uint8Array): AccountRecord {
    const account = readAccountRecord(value);
    this.counts.accounts++;
    this.totalAtoken += account.balanceAtoken;
    if (account.storageRoot !== EMPTY_TRIE_ROOT) this.storageTries++;
    if (account.codeHash !== EMPTY_CODE_HASH) this.missingCodes.add(account.codeHash);
    return account;
  }

  private takeCode(id: Buffer, code: Uint8Array): void {
    const codeHash = bytesToHash32(id);
    if (keccak256Hex(code) !== codeHash) throw snapshotInvalid("the hash of a code");
    if (!this.missingCodes.delete(codeHash)) throw snapshotInvalid("a code of no account");
    this.counts.codes++;
  }
}

/** Untrusted bytes to an account. Throws SNAPSHOT_INVALID. */
export function readAccountRecord(value: Uint8Array): AccountRecord {
  try {
    return decodeAccount(value);
  } catch (cause) {
    throw snapshotInvalid("an account cannot be read", cause);
  }
}
