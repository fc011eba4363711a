/** The journaled state in the form that @ethereumjs/evm asks of a state manager. */
import type { StateManagerInterface } from "@ethereumjs/common";
import { Account, type Address as EvmAddress } from "@ethereumjs/util";
import type { Address } from "../../../chain/address.js";
import {
  bytesToHash32,
  bytesToHex,
  EMPTY_CODE_HASH,
  EMPTY_TRIE_ROOT,
  type Hash32,
  hexToBytes,
} from "../../../chain/hex.js";
import { type AccountRecord, EMPTY_ACCOUNT } from "../../store/account-record.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { ZERO_VALUE } from "../../store/state-reader.js";

const EMPTY_ROOT_BYTES = hexToBytes(EMPTY_TRIE_ROOT);
/** A root that is not the empty one. */
const SOME_ROOT_BYTES = new Uint8Array(32);
const EMPTY_CODE_BYTES = hexToBytes(EMPTY_CODE_HASH);

/** EVM address object to the internal form. */
export function toAddress(address: EvmAddress): Address {
  return bytesToHex(address.bytes) as Address;
}

function toSlot(key: Uint8Array): Hash32 {
  return bytesToHash32(key);
}

/** A fresh object each time: the EVM mutates the accounts that it is handed. */
function toEvmAccount(record: AccountRecord): Account {
  return new Account(
    record.nonce,
    record.balanceAtoken,
    record.storageRoot === EMPTY_TRIE_ROOT ? EMPTY_ROOT_BYTES : hexToBytes(record.storageRoot),
    record.codeHash === EMPTY_CODE_HASH ? EMPTY_CODE_BYTES : hexToBytes(record.codeHash),
  );
}

function toRecord(account: Account): AccountRecord {
  return {
    nonce: account.nonce,
    balanceAtoken: account.balance,
    storageRoot: bytesToHash32(account.storageRoot),
    codeHash: bytesToHash32(account.codeHash),
  };
}

function withoutLeadingZeros(value: Uint8Array): Uint8Array {
  let start = 0;
  while (start < value.length && value[start] === 0) start++;
  return start === value.length ? ZERO_VALUE : value.slice(start);
}

/** Adapter; all state lives in the JournaledState, so several adapters may share one. */
export class EvmState implements StateManagerInterface {
  readonly originalStorageCache = {
    get: async (address: EvmAddress, key: Uint8Array): Promise<Uint8Array> =>
      this.state.transactionStorage(toAddress(address), toSlot(key)),
    clear: (): void => {
      this.state.beginTransaction();
    },
  };

  constructor(private readonly state: JournaledState) {}

  /** One with a schedule looks as if it had storage: then no contract is made there (EIP-7610). */
  async getAccount(address: EvmAddress): Promise<Account | undefined> {
    const key = toAddress(address);
    const record = await this.state.account(key);
    if (record === undefined) return undefined;
    const account = toEvmAccount(record);
    if (this.state.isLocking(key)) account.storageRoot = SOME_ROOT_BYTES;
    return account;
  }

  async putAccount(address: EvmAddress, account?: Account): Promise<void> {
    const key = toAddress(address);
    await this.state.account(key);
    const record = account === undefined ? undefined : toRecord(account);
    const isShown = record !== undefined && this.state.isLocking(key);
    this.state.putAccount(key, isShown ? { ...record, storageRoot: EMPTY_TRIE_ROOT } : record);
  }

  async deleteAccount(address: EvmAddress): Promise<void> {
    const key = toAddress(address);
    await this.state.account(key);
    this.state.putAccount(key, undefined);
    this.state.wipeStorage(key);
  }

  async modifyAccountFields(
    address: EvmAddress,
    fields: Parameters<StateManagerInterface["modifyAccountFields"]>[1],
  ): Promise<void> {
    const key = toAddress(address);
    const record = (await this.state.account(key)) ?? EMPTY_ACCOUNT;
    this.state.putAccount(key, {
      nonce: fields.nonce ?? record.nonce,
      balanceAtoken: fields.balance ?? record.balanceAtoken,
      storageRoot: fields.storageRoot ? bytesToHash32(fields.storageRoot) : record.storageRoot,
      codeHash: fields.codeHash ? bytesToHash32(fields.codeHash) : record.codeHash,
    });
  }

  async putCode(address: EvmAddress, value: Uint8Array): Promise<void> {
    const codeHash = this.state.putCode(value.slice());
    await this.modifyAccountFields(address, { codeHash: hexToBytes(codeHash) });
  }

  async getCode(address: EvmAddress): Promise<Uint8Array> {
    const record = await this.state.account(toAddress(address));
    return record === undefined ? ZERO_VALUE : this.state.code(record.codeHash);
  }

  async getCodeSize(address: EvmAddress): Promise<number> {
    return (await this.getCode(address)).length;
  }

  async getStorage(address: EvmAddress, key: Uint8Array): Promise<Uint8Array> {
    return this.state.storage(toAddress(address), toSlot(key));
  }

  async putStorage(address: EvmAddress, key: Uint8Array, value: Uint8Array): Promise<void> {
    const owner = toAddress(address);
    const slot = toSlot(key);
    await this.state.storage(owner, slot);
    this.state.putStorage(owner, slot, withoutLeadingZeros(value));
  }

  async clearStorage(address: EvmAddress): Promise<void> {
    this.state.wipeStorage(toAddress(address));
  }

  async checkpoint(): Promise<void> {
    this.state.checkpoint();
  }

  async commit(): Promise<void> {
    this.state.commit();
  }

  async revert(): Promise<void> {
    this.state.revert();
  }

  /** Roots are computed per block from the changes, never inside the EVM. */
  getStateRoot(): Promise<Uint8Array> {
    return Promise.reject(new TypeError("the EVM does not compute state roots here"));
  }

  setStateRoot(): Promise<void> {
    return Promise.reject(new TypeError("the EVM does not compute state roots here"));
  }

  hasStateRoot(): Promise<boolean> {
    return Promise.resolve(false);
  }

  clearCaches(): void {
    // There is no cache in this adapter.
  }

  shallowCopy(): StateManagerInterface {
    return new EvmState(this.state);
  }
}
