/** The journaled state with an ear for reads: whatever a message touches, it reads first. */
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { AccountRecord } from "../../store/account-record.js";
import type { MaybePromise } from "../../store/state-reader.js";
import { JournaledState } from "../../state/journaled-state.js";

/** Told of each value read, as it is at that moment. */
export interface ReadWatcher {
  account(address: Address, account: AccountRecord | undefined): void;
  slot(address: Address, slot: Hash32, value: Uint8Array): void;
}

/** State under a trace. */
export class TracedState extends JournaledState {
  readWatcher: ReadWatcher | undefined;

  override account(address: Address): MaybePromise<AccountRecord | undefined> {
    const found = super.account(address);
    if (this.readWatcher === undefined) return found;
    return this.heard(found, (account) => this.readWatcher?.account(address, account));
  }

  override storage(address: Address, slot: Hash32): MaybePromise<Uint8Array> {
    const found = super.storage(address, slot);
    if (this.readWatcher === undefined) return found;
    return this.heard(found, (value) => this.readWatcher?.slot(address, slot, value));
  }

  private heard<T>(found: MaybePromise<T>, hear: (value: T) => void): MaybePromise<T> {
    if (found instanceof Promise) {
      return found.then((value) => {
        hear(value);
        return value;
      });
    }
    hear(found);
    return found;
  }
}
