/** Readers of a job's fixed state: what was read once is not asked again; overrides lie on top. */
import type { Address } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/crypto.js";
import { bigintToBytes, EMPTY_CODE_HASH, type Hash32 } from "../../chain/hex.js";
import { type AccountRecord, EMPTY_ACCOUNT } from "../store/account-record.js";
import { type MaybePromise, type StateReader, ZERO_VALUE } from "../store/state-reader.js";
import type { StateOverrides } from "./call-port.js";

/** Remembers every read for the length of a job; a job's reads are bounded by its gas. */
export class RememberingReader implements StateReader {
  private readonly accounts = new Map<Address, MaybePromise<AccountRecord | undefined>>();
  private readonly slots = new Map<string, MaybePromise<Uint8Array>>();
  private readonly codes = new Map<Hash32, MaybePromise<Uint8Array>>();

  constructor(private readonly source: StateReader) {}

  account(address: Address): MaybePromise<AccountRecord | undefined> {
    if (this.accounts.has(address)) return this.accounts.get(address);
    const found = this.source.account(address);
    this.accounts.set(address, found);
    return found;
  }

  storage(address: Address, slot: Hash32): MaybePromise<Uint8Array> {
    return remember(this.slots, `${address}${slot}`, () => this.source.storage(address, slot));
  }

  code(codeHash: Hash32): MaybePromise<Uint8Array> {
    return remember(this.codes, codeHash, () => this.source.code(codeHash));
  }

  /** Puts an account that was read in a batch. */
  put(address: Address, account: AccountRecord | undefined): void {
    this.accounts.set(address, account);
  }
}

function remember<Key, Value extends {}>(map: Map<Key, Value>, key: Key, read: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const found = read();
  map.set(key, found);
  return found;
}

/** State with an override set on top (geth's eth_call override object). */
export class OverriddenReader implements StateReader {
  private readonly codes = new Map<Hash32, Uint8Array>();

  constructor(
    private readonly source: StateReader,
    private readonly overrides: StateOverrides,
  ) {
    for (const { code } of overrides.values()) {
      if (code !== undefined && code.length > 0) this.codes.set(keccak256Hex(code), code);
    }
  }

  account(address: Address): MaybePromise<AccountRecord | undefined> {
    const override = this.overrides.get(address);
    const found = this.source.account(address);
    if (override === undefined) return found;
    const apply = (account: AccountRecord = EMPTY_ACCOUNT): AccountRecord => ({
      ...account,
      nonce: override.nonce ?? account.nonce,
      balanceAtoken: override.balanceAtoken ?? account.balanceAtoken,
      codeHash: override.code === undefined ? account.codeHash : hashOf(override.code),
    });
    return found instanceof Promise ? found.then(apply) : apply(found);
  }

  storage(address: Address, slot: Hash32): MaybePromise<Uint8Array> {
    const override = this.overrides.get(address);
    const value = override?.stateDiff?.get(slot) ?? override?.state?.get(slot);
    if (value !== undefined) return bigintToBytes(value);
    return override?.state === undefined ? this.source.storage(address, slot) : ZERO_VALUE;
  }

  code(codeHash: Hash32): MaybePromise<Uint8Array> {
    return this.codes.get(codeHash) ?? this.source.code(codeHash);
  }
}

function hashOf(code: Uint8Array): Hash32 {
  return code.length === 0 ? EMPTY_CODE_HASH : keccak256Hex(code);
}
