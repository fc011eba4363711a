/** The read model over the stores: what is committed and published, nothing else. */
import { type Address, addressToBytes } from "../chain/address.js";
import { keccak256 } from "../chain/crypto.js";
import {
  bytesToBigint,
  bytesToHex,
  EMPTY_TRIE_ROOT,
  type Hash32,
  type Height,
  hexToBytes,
} from "../chain/hex.js";
import type {
  AccountJournalEntry,
  AccountProof,
  AccountState,
  ChainView,
  Head,
  OldestHeights,
  Supply,
} from "./chain-view.js";
import type { CommittedBlock, TransactionLocation } from "./event-bus.js";
import { EMPTY_ACCOUNT } from "./store/account-record.js";
import { ACCOUNT_TRIE } from "./state/state-root.js";
import { proveKey } from "./state/trie-proof.js";
import type { BlockStore } from "./store/block-store.js";
import type { Database } from "./store/database.js";
import type { StateStore } from "./store/state-store.js";
import type { StoreBase } from "./store/store-base.js";
import { loadTriePath } from "./store/trie-store.js";

/** Stores behind the view. */
export interface CommittedStores {
  readonly database: Database;
  readonly blocks: BlockStore;
  readonly state: StateStore;
  readonly base: StoreBase;
}

/** ChainView whose head is moved by the committer after each durable write. */
export class CommittedView implements ChainView {
  private current: Head;

  constructor(
    private readonly stores: CommittedStores,
    head: Head,
  ) {
    this.current = head;
  }

  /** Publishes a block: from here on every reader sees it. */
  moveHead(head: Head): void {
    this.current = head;
  }

  head(): Head {
    return this.current;
  }

  oldest(): OldestHeights {
    const { base, journalBase, historyBase, proofBase } = this.stores.base.get();
    return { block: base, journal: journalBase, state: historyBase, proof: proofBase };
  }

  genesis(): CommittedBlock {
    return this.stores.blocks.block(0);
  }

  block(height: Height): CommittedBlock | undefined {
    return this.isCommitted(height) ? this.stores.blocks.block(height) : undefined;
  }

  heightOfHash(hash: Hash32): Height | undefined {
    const height = this.stores.blocks.heightOfHash(hash);
    return height !== undefined && this.isCommitted(height) ? height : undefined;
  }

  locate(hash: Hash32): TransactionLocation | undefined {
    return this.published(this.stores.blocks.locate("transaction", hash));
  }

  locateBySdkHash(hash: Hash32): TransactionLocation | undefined {
    return this.published(this.stores.blocks.locate("sdkTransaction", hash));
  }

  /** An index entry can be on disk a moment before its block is published. */
  private published(location: TransactionLocation | undefined): TransactionLocation | undefined {
    return location !== undefined && this.isCommitted(location.height) ? location : undefined;
  }

  private isCommitted(height: Height): boolean {
    return Number.isSafeInteger(height) && height >= 0 && height <= this.current.height;
  }

  blooms(from: Height, to: Height): AsyncIterable<{ height: Height; bloom: Uint8Array }> {
    return this.stores.blocks.blooms(from, Math.min(to, this.current.height));
  }

  async account(address: Address, height: Height): Promise<AccountState | undefined> {
    return this.stores.state.accountAt(address, height);
  }

  async code(address: Address, height: Height): Promise<Uint8Array> {
    const account = await this.stores.state.accountAt(address, height);
    return account === undefined ? new Uint8Array(0) : this.stores.state.code(account.codeHash);
  }

  async storageAt(address: Address, slot: Hash32, height: Height): Promise<bigint> {
    return bytesToBigint(await this.stores.state.storageAt(address, slot, height));
  }

  async proof(address: Address, slots: readonly Hash32[], height: Height): Promise<AccountProof> {
    const account = (await this.stores.state.accountAt(address, height)) ?? EMPTY_ACCOUNT;
    const accountProof = await this.prove(ACCOUNT_TRIE, addressToBytes(address), height);
    const storageProof = [];
    for (const slot of slots) {
      const value = await this.storageAt(address, slot, height);
      const proof =
        account.storageRoot === EMPTY_TRIE_ROOT
          ? []
          : await this.prove(address, hexToBytes(slot), height);
      storageProof.push({ key: slot, value, proof });
    }
    return { account, accountProof, storageProof };
  }

  private async prove(owner: string, preimage: Uint8Array, height: Height) {
    const key = keccak256(preimage);
    const nibbles = Uint8Array.from([...key].flatMap((byte) => [byte >> 4, byte & 15]));
    const { database, base } = this.stores;
    const reader = await loadTriePath(database, owner, nibbles, { height, base });
    return proveKey(reader, owner, key).map((node) => bytesToHex(node));
  }

  blockHash(height: Height): Hash32 | undefined {
    return this.isCommitted(height) ? this.stores.blocks.hashOf(height) : undefined;
  }

  supply(height: Height): Supply | undefined {
    return this.isCommitted(height) ? this.stores.blocks.supply(height) : undefined;
  }

  accountHeights(address: Address, from: Height, to: Height): AsyncIterable<Height> {
    return this.stores.state.heightsOf(address, from, Math.min(to, this.current.height));
  }

  accountJournal(address: Address, from: Height, to: Height): AsyncIterable<AccountJournalEntry> {
    if (from <= to) this.stores.base.assertJournal(to === 0 ? 0 : Math.max(from, 1));
    return this.readJournal(address, from, to);
  }

  private async *readJournal(
    address: Address,
    from: Height,
    to: Height,
  ): AsyncIterable<AccountJournalEntry> {
    for await (const height of this.accountHeights(address, from, to)) {
      const { block, journal } = this.stores.blocks.block(height);
      const groups = [
        ...journal.transactions.map(({ transactionHash, changes }) => ({
          transactionHash,
          changes,
        })),
        { transactionHash: undefined, changes: journal.blockChanges },
      ];
      for (const [transactionIndex, { transactionHash, changes }] of groups.entries()) {
        for (const [changeIndex, change] of changes.entries()) {
          if (change.from !== address && change.to !== address) continue;
          const place = { height, blockHash: block.hash, transactionHash };
          yield { ...place, transactionIndex, changeIndex, change };
        }
      }
    }
  }
}
