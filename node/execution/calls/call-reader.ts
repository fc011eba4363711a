/** Reader of a job's fixed state: what was read once is not asked again. */
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { AccountRecord } from "../../store/account-record.js";
import type { MaybePromise, StateReader } from "../../store/state-reader.js";

/**
 * Remembers accounts and slots for the length of a job; a job's reads are bounded by its gas. Codes are
 * not kept: 50 million gas look at 19,000 contracts, which may be half a gigabyte.
 */
export class RememberingReader implements StateReader {
  private readonly accounts = new Map<Address, MaybePromise<AccountRecord | undefined>>();
  private readonly slots = new Map<string, MaybePromise<Uint8Array>>();

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
    return this.source.code(codeHash);
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
