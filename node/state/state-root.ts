/** Roots of a block: storage tries first, then the account trie, then the modules' trie. */
import { type Address, addressToBytes } from "../../chain/address.js";
import { keccak256 } from "../../chain/hashes.js";
import { type Hash32, hexToBytes } from "../../chain/hex.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";
import { allAtOnce, eachInSteps, mapInSteps, type Steps } from "../../chain/steps/steps.js";
import { type AccountRecord, encodeAccount } from "../store/account-record.js";
import type { TrieNodeReader, TrieWrite } from "../store/tries/trie-port.js";
import { type TrieUpdate, updateTrieSteps } from "./trie.js";

/** Owner of the account trie. */
export const ACCOUNT_TRIE = "";
/** Owner of the modules' trie: supply now, staking and governance later. */
const MODULE_TRIE = "m";

/** New roots and all trie nodes that changed. */
export interface BlockRoots {
  readonly stateRoot: Hash32;
  readonly moduleRoot: Hash32;
  /** Accounts with their new storage roots filled in. */
  readonly accounts: ReadonlyMap<Address, AccountRecord | undefined>;
  readonly trieWrites: readonly TrieWrite[];
}

/** @param before the slot's value before; undefined where nobody knows */
function storageUpdate(
  slot: Hash32,
  value: Uint8Array,
  before: Uint8Array | undefined,
): TrieUpdate {
  const key = keccak256(hexToBytes(slot));
  const encoded = slotRlp(value);
  if (before === undefined) return { key, value: encoded };
  return { key, value: encoded, existed: before.length > 0, before: slotRlp(before) };
}

/** No bytes are zero, which no trie has. */
function slotRlp(value: Uint8Array): Uint8Array | undefined {
  return value.length === 0 ? undefined : encodeRlp(value);
}

/** @param former undefined where nobody knows of the accounts before */
function accountUpdate(
  address: Address,
  account: AccountRecord | undefined,
  former: FormerState | undefined,
): TrieUpdate {
  const key = keccak256(addressToBytes(address));
  const value = account === undefined ? undefined : encodeAccount(account);
  if (former === undefined) return { key, value };
  const before = former.accountBefore(address);
  if (before === undefined) return { key, value, existed: false };
  return { key, value, existed: true, before: encodeAccount(before) };
}

/** Values of the modules' trie, by name. */
export type ModuleValues = Readonly<Record<string, bigint>>;

function moduleUpdates(values: ModuleValues): TrieUpdate[] {
  return Object.entries(values).map(([name, value]) => ({
    key: keccak256(Buffer.from(name, "ascii")),
    value: encodeRlp(value),
  }));
}

/** What the flat state had before a block: the tries must have had the same. */
export interface FormerState {
  /** Undefined where there was none. */
  accountBefore(address: Address): AccountRecord | undefined;
  /** No bytes for zero. */
  slotBefore(address: Address, slot: Hash32): Uint8Array;
}

/**
 * Computes the roots after a block from what it changed. Nothing is kept: the writes become real
 * with the block's atomic write.
 * @throws as `updateTrie`
 */
export function computeRoots(
  reader: TrieNodeReader,
  changed: ReadonlyMap<Address, AccountRecord | undefined>,
  storage: ReadonlyMap<Address, ReadonlyMap<Hash32, Uint8Array>>,
  modules: ModuleValues,
): BlockRoots {
  return allAtOnce(rootSteps(reader, changed, storage, modules));
}

/**
 * The same in steps; the committed tries must stay as they are between them.
 * @param former holds flat state and tries against each other: an account that damage hides from
 * the one would otherwise be taken for new, and its balance would be gone
 */
export function* rootSteps(
  reader: TrieNodeReader,
  changed: ReadonlyMap<Address, AccountRecord | undefined>,
  storage: ReadonlyMap<Address, ReadonlyMap<Hash32, Uint8Array>>,
  modules: ModuleValues,
  former?: FormerState,
): Steps<BlockRoots> {
  const trieWrites: TrieWrite[] = [];
  const accounts = new Map(changed);
  for (const [address, slots] of storage) {
    const account = accounts.get(address);
    if (account === undefined) continue;
    const updates = yield* mapInSteps(slots, ([slot, value]) =>
      storageUpdate(slot, value, former?.slotBefore(address, slot)),
    );
    const { root, writes } = yield* updateTrieSteps(reader, address, updates, account.storageRoot);
    accounts.set(address, { ...account, storageRoot: root });
    for (const write of writes) trieWrites.push(write);
  }
  const updates: TrieUpdate[] = [];
  yield* eachInSteps(accounts, ([address, account]) => {
    updates.push(accountUpdate(address, account, former));
  });
  const state = yield* updateTrieSteps(reader, ACCOUNT_TRIE, updates);
  const module = yield* updateTrieSteps(reader, MODULE_TRIE, moduleUpdates(modules));
  for (const write of state.writes) trieWrites.push(write);
  for (const write of module.writes) trieWrites.push(write);
  return { stateRoot: state.root, moduleRoot: module.root, accounts, trieWrites };
}
