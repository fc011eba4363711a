/** A fixture's accounts as committed state, and the root of what an execution made of them. */
import { type Address, addressToBytes } from "../../chain/address.js";
import { keccak256, keccak256Hex } from "../../chain/hashes.js";
import {
  bigintToBytes,
  bigintToWord,
  bytesToBigint,
  EMPTY_CODE_HASH,
  EMPTY_TRIE_ROOT,
  type Hash32,
} from "../../chain/hex.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";
import type { JournaledState } from "../../node/state/journaled-state.js";
import { buildTrie, type TrieEntry } from "../../node/state/trie-build.js";
import { type AccountRecord, encodeAccount } from "../../node/store/account-record.js";
import { type StateReader, ZERO_VALUE } from "../../node/store/state-reader.js";
import type { FixtureAccount } from "./state-fixture.js";

/** Committed state of a case. */
export class FixtureState implements StateReader {
  private readonly records = new Map<Address, AccountRecord>();
  private readonly codes = new Map<Hash32, Uint8Array>();

  constructor(private readonly accounts: ReadonlyMap<Address, FixtureAccount>) {
    for (const [address, { nonce, balance, code, storage }] of accounts) {
      const codeHash = code.length === 0 ? EMPTY_CODE_HASH : keccak256Hex(code);
      this.codes.set(codeHash, code);
      const storageRoot = storageRootOf(storage);
      this.records.set(address, { nonce, balanceAtoken: balance, codeHash, storageRoot });
    }
  }

  account(address: Address): AccountRecord | undefined {
    return this.records.get(address);
  }

  code(codeHash: Hash32): Uint8Array {
    return this.codes.get(codeHash) ?? ZERO_VALUE;
  }

  storage(address: Address, slot: Hash32): Uint8Array {
    return bigintToBytes(this.accounts.get(address)?.storage.get(BigInt(slot)) ?? 0n);
  }

  /** Root of the state with the changes of an execution. */
  rootAfter(state: JournaledState): Hash32 {
    const records = new Map(this.records);
    for (const [address, { after }] of state.changedAccounts()) {
      if (after === undefined) records.delete(address);
      else records.set(address, after);
    }
    for (const [address, changes] of state.changedStorage()) {
      const record = records.get(address);
      if (record === undefined) continue;
      const slots = new Map(this.accounts.get(address)?.storage);
      for (const [slot, value] of changes) slots.set(BigInt(slot), bytesToBigint(value));
      records.set(address, { ...record, storageRoot: storageRootOf(slots) });
    }
    return rootOf(
      [...records].map(([address, record]) =>
        entryOf(addressToBytes(address), encodeAccount(record)),
      ),
    );
  }
}

function storageRootOf(slots: ReadonlyMap<bigint, bigint>): Hash32 {
  return rootOf(
    [...slots]
      .filter(([, value]) => value !== 0n)
      .map(([slot, value]) => entryOf(bigintToWord(slot), encodeRlp(bigintToBytes(value)))),
  );
}

function entryOf(key: Uint8Array, value: Uint8Array): TrieEntry {
  return { key: keccak256(key), value };
}

function rootOf(entries: readonly TrieEntry[]): Hash32 {
  if (entries.length === 0) return EMPTY_TRIE_ROOT;
  const sorted = entries.toSorted((left, right) => Buffer.compare(left.key, right.key));
  return keccak256Hex(buildTrie(sorted, 0, sorted.length, 0, undefined));
}
