/** Reads of committed state at one fixed height, for whatever executes on top of it. */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { AccountRecord } from "./account-record.js";

/** A value that is there now or comes later; the head's reader is always immediate. */
export type MaybePromise<T> = T | Promise<T>;

/** Committed state at one fixed height. */
export interface StateReader {
  account(address: Address): MaybePromise<AccountRecord | undefined>;
  code(codeHash: Hash32): MaybePromise<Uint8Array>;
  /** Without leading zeros; no bytes for zero. */
  storage(address: Address, slot: Hash32): MaybePromise<Uint8Array>;
}

/** No bytes: the value of an unset storage slot. */
export const ZERO_VALUE: Uint8Array = new Uint8Array(0);
