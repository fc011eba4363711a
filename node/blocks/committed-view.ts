/** The read model over the stores: what is committed and published, nothing else. */
import type { BlockRecordBytes } from "../../chain/records/block-records.js";
import { type Address, addressToBytes } from "../../chain/address.js";
import type { BalanceChange, BlockJournal } from "../../chain/balance-change.js";
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import type { BlockOutline, BlockTransaction } from "../../chain/block.js";
import type { MinedCosmosTransaction } from "../../chain/cosmos/cosmos-result.js";
import { keccak256 } from "../../chain/hashes.js";
import {
  bytesToBigint,
  bytesToHex,
  EMPTY_TRIE_ROOT,
  type Hash32,
  type Height,
  hexToBytes,
} from "../../chain/hex.js";
import type {
  AccountJournalEntry,
  AccountProof,
  AccountState,
  ChainView,
  Head,
  LogTerm,
  LogTest,
  OldestHeights,
  PlacedLog,
  Supply,
} from "../view/chain-view.js";
import type { Steps } from "../../chain/steps/steps.js";
import { breathe } from "../../runtime/process/main-thread.js";
import type { BlockPage, PlacedReceipt } from "../view/block-pages.js";
import { cosmosOf } from "../view/cosmos-items.js";
import type { CommittedBlock, TransactionLocation } from "../view/event-bus.js";
import { EMPTY_ACCOUNT } from "../store/account-record.js";
import { ACCOUNT_TRIE } from "../state/state-root.js";
import { nibblesOf } from "../state/trie-nodes.js";
import { proveKey } from "../state/trie-proof.js";
import type { BlockStore } from "../store/blocks/block-store.js";
import type { Database } from "../store/database.js";
import type { StateStore } from "../store/state-store.js";
import type { StoreBase } from "../store/store-base.js";
import { SharedWalks } from "../store/tries/shared-walks.js";

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
  private readonly past: SharedWalks;

  constructor(
    private readonly stores: CommittedStores,
    head: Head,
  ) {
    this.current = head;
    this.past = new SharedWalks(stores.database, stores.base);
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

  async load(height: Height, signal?: AbortSignal): Promise<CommittedBlock | undefined> {
    if (!this.isCommitted(height)) return undefined;
    return this.stores.blocks.load(height, () => breathe(signal));
  }

  outline(height: Height): BlockOutline | undefined {
    return this.isCommitted(height) ? this.stores.blocks.outline(height) : undefined;
  }

  transaction(height: Height, index: number): BlockTransaction | undefined {
    return this.isCommitted(height) ? this.stores.blocks.transaction(height, index) : undefined;
  }

  receipt(height: Height, index: number): PlacedReceipt | undefined {
    return this.isCommitted(height) ? this.stores.blocks.receipt(height, index) : undefined;
  }

  *receiptSteps(height: Height, index: number): Steps<PlacedReceipt | undefined> {
    if (!this.isCommitted(height)) return undefined;
    return yield* this.stores.blocks.receiptSteps(height, index);
  }

  cosmosTransaction(height: Height, item: number): MinedCosmosTransaction | undefined {
    return this.isCommitted(height)
      ? this.stores.blocks.cosmosTransaction(height, item)
      : undefined;
  }

  cosmosBytes(height: Height, item: number): Uint8Array | undefined {
    return this.isCommitted(height) ? this.stores.blocks.cosmosBytes(height, item) : undefined;
  }

  changes(height: Height, index: number): readonly BalanceChange[] {
    return this.isCommitted(height) ? this.stores.blocks.changes(height, index) : [];
  }

  moduleEvents(height: Height, index: number): readonly AbciEvent[] {
    return this.isCommitted(height) ? this.stores.blocks.moduleEvents(height, index) : [];
  }

  pages(height: Height): Iterable<BlockPage> {
    return this.isCommitted(height) ? this.stores.blocks.pages(height) : [];
  }

  records(height: Height): BlockRecordBytes {
    return this.stores.blocks.stored(height);
  }

  blockChanges(height: Height): Omit<BlockJournal, "transactions"> {
    return this.stores.blocks.blockChanges(height);
  }

  logPages(term: LogTerm, from: Height, to: Height) {
    return this.stores.blocks.logPages(term, from, Math.min(to, this.current.height));
  }

  pageStarts(height: Height): readonly number[] {
    return this.stores.blocks.outline(height).starts;
  }

  pageLogs(height: Height, start: number, isWanted: LogTest): Iterable<PlacedLog | undefined> {
    return this.stores.blocks.pageLogs(height, start, isWanted);
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

  addresses(from: Address | undefined, options: { readonly isReverse: boolean }) {
    return this.stores.state.addresses(from, options);
  }

  async code(address: Address, height: Height): Promise<Uint8Array> {
    const account = await this.stores.state.accountAt(address, height);
    return account === undefined ? new Uint8Array(0) : this.stores.state.code(account.codeHash);
  }

  async storageAt(address: Address, slot: Hash32, height: Height): Promise<bigint> {
    return bytesToBigint(await this.stores.state.storageAt(address, slot, height));
  }

  async proof(
    address: Address,
    slots: readonly Hash32[],
    height: Height,
    signal: AbortSignal,
  ): Promise<AccountProof> {
    const account = (await this.stores.state.accountAt(address, height)) ?? EMPTY_ACCOUNT;
    const accountKey = keccak256(addressToBytes(address));
    // An account without storage has no trie, and proves nothing about any slot.
    const hasStorage = account.storageRoot !== EMPTY_TRIE_ROOT;
    const slotKeys = hasStorage ? slots.map((slot) => keccak256(hexToBytes(slot))) : [];
    const wanted = [
      { owner: ACCOUNT_TRIE, nibbles: keyNibbles(accountKey) },
      ...slotKeys.map((key) => ({ owner: address, nibbles: keyNibbles(key) })),
    ];
    return this.past.with(wanted, { height, signal }, async (reader) => {
      const prove = (owner: string, key: Uint8Array) =>
        proveKey(reader, owner, key).map((node) => bytesToHex(node));
      const accountProof = prove(ACCOUNT_TRIE, accountKey);
      const storageProof = [];
      for (const [index, slot] of slots.entries()) {
        await breathe(signal);
        const value = await this.storageAt(address, slot, height);
        const key = slotKeys[index];
        const proof = key === undefined ? [] : prove(address, key);
        storageProof.push({ key: slot, value, proof });
      }
      return { account, accountProof, storageProof };
    });
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

  accountJournal(
    address: Address,
    from: Height,
    to: Height,
    signal?: AbortSignal,
  ): AsyncIterable<AccountJournalEntry> {
    if (from <= to) this.stores.base.assertJournal(to === 0 ? 0 : Math.max(from, 1));
    return this.readJournal(address, { from, to }, signal);
  }

  private async *readJournal(
    address: Address,
    { from, to }: { readonly from: Height; readonly to: Height },
    signal: AbortSignal | undefined,
  ): AsyncIterable<AccountJournalEntry> {
    for await (const height of this.accountHeights(address, from, to)) {
      await breathe(signal);
      const { hash: blockHash, transactionCount } = this.stores.blocks.outline(height);
      for (const page of this.stores.blocks.pages(height)) {
        for (const [item, { transactionHash, changes }] of page.journal().entries()) {
          const place = { height, blockHash, transactionHash };
          yield* entriesOf(address, changes, { ...place, transactionIndex: page.first + item });
        }
        await breathe(signal);
      }
      let transactionIndex = transactionCount;
      for await (const { tx, changes } of cosmosOf(this, height, signal)) {
        const place = { height, blockHash, transactionHash: tx.hash };
        yield* entriesOf(address, changes, { ...place, transactionIndex });
        transactionIndex += 1;
      }
      const { blockChanges } = this.stores.blocks.blockChanges(height);
      const place = { height, blockHash, transactionHash: undefined };
      yield* entriesOf(address, blockChanges, { ...place, transactionIndex });
    }
  }
}

function* entriesOf(
  address: Address,
  changes: readonly BalanceChange[],
  place: Omit<AccountJournalEntry, "changeIndex" | "change">,
): Generator<AccountJournalEntry> {
  for (const [changeIndex, change] of changes.entries()) {
    if (change.from !== address && change.to !== address) continue;
    yield { ...place, changeIndex, change };
  }
}

function keyNibbles(key: Uint8Array): Uint8Array {
  return nibblesOf(key, 0, 2 * key.length);
}
