/** geth's prestateTracer: the accounts and slots a message touched, before and (diffMode) after. */
import type { Address } from "../../../chain/address.js";
import {
  bytesToBigint,
  bytesToHex,
  bigintToWord,
  EMPTY_CODE_HASH,
  type Hash32,
  type Hex,
  toQuantity,
} from "../../../chain/hex.js";
import { type AccountRecord, EMPTY_ACCOUNT } from "../../store/account-record.js";
import { toAddress } from "../evm/evm-state.js";
import type { Machine } from "../evm/evm.js";
import type { TraceBudget, TracedMessage, Tracer } from "./tracer.js";
import type { TracedState } from "./traced-state.js";

/** JSON of an account without code and storage, and of one slot. */
const ACCOUNT_BYTES = 120;
const SLOT_BYTES = 140;

interface Touched {
  readonly account: AccountRecord;
  readonly slots: Map<Hash32, Hash32>;
}

interface AccountJson {
  balance?: Hex;
  code?: Hex;
  nonce?: number;
  storage?: Record<Hash32, Hash32>;
}

/** What a prestate trace needs beside the EVM. */
export interface PrestateOptions {
  readonly state: TracedState;
  readonly diffMode: boolean;
  /** Accounts that every transaction touches: coinbase and FeeCollector. */
  readonly always: readonly Address[];
}

/** Records the first value read of everything, which is the value before the message. */
export class PrestateTracer implements Tracer {
  private touched = new Map<Address, Touched>();
  private readonly created = new Set<Address>();

  constructor(
    machine: Machine,
    private readonly options: PrestateOptions,
    private readonly budget: TraceBudget,
  ) {
    machine.evm.events.on("newContract", ({ address }) => {
      this.created.add(toAddress(address));
    });
  }

  async start({ from, to, contractAddress }: TracedMessage): Promise<void> {
    this.touched = new Map();
    this.created.clear();
    const { state, always } = this.options;
    state.readWatcher = {
      account: (address, account) => {
        if (this.touched.has(address)) return;
        this.budget.take(ACCOUNT_BYTES);
        this.touched.set(address, { account: account ?? EMPTY_ACCOUNT, slots: new Map() });
      },
      slot: (address, slot, value) => this.slotRead(address, slot, value),
    };
    for (const address of [from, to ?? contractAddress, ...always]) {
      if (address !== undefined) await state.account(address);
    }
  }

  private slotRead(address: Address, slot: Hash32, value: Uint8Array): void {
    const touched = this.touched.get(address);
    if (touched === undefined || touched.slots.has(slot)) return;
    this.budget.take(SLOT_BYTES);
    touched.slots.set(slot, toWord(value));
  }

  async finish(): Promise<unknown> {
    this.options.state.readWatcher = undefined;
    return this.options.diffMode ? this.difference() : this.before();
  }

  private async before(): Promise<Record<Address, AccountJson>> {
    const pre: Record<Address, AccountJson> = {};
    for (const [address, touched] of this.touched) {
      if (this.isNew(address, touched)) continue;
      pre[address] = await this.toJson(touched);
    }
    return pre;
  }

  /** Contracts that the message made were nothing before it. */
  private isNew(address: Address, { account, slots }: Touched): boolean {
    if (!this.created.has(address)) return false;
    const { nonce, balanceAtoken, codeHash } = account;
    const isEmpty = nonce === 0n && balanceAtoken === 0n && codeHash === EMPTY_CODE_HASH;
    return isEmpty && [...slots.values()].every(isZero);
  }

  private async difference(): Promise<unknown> {
    const pre: Record<Address, AccountJson> = {};
    const post: Record<Address, AccountJson> = {};
    for (const [address, touched] of this.touched) {
      const after = await this.options.state.account(address);
      const changed = await this.changesOf(address, touched, after);
      if (changed === undefined) continue;
      // An account that is gone has no "after"; a new contract has no "before".
      if (after !== undefined) post[address] = changed;
      if (this.isNew(address, touched)) continue;
      pre[address] = await this.toJson({
        account: touched.account,
        slots: await this.changedSlots(address, touched),
      });
    }
    return { post, pre };
  }

  private async changesOf(
    address: Address,
    touched: Touched,
    after: AccountRecord = EMPTY_ACCOUNT,
  ): Promise<AccountJson | undefined> {
    const { account } = touched;
    const changes: AccountJson = {};
    if (after.balanceAtoken !== account.balanceAtoken) {
      changes.balance = toQuantity(after.balanceAtoken);
    }
    if (after.nonce !== account.nonce) changes.nonce = Number(after.nonce);
    if (after.codeHash !== account.codeHash) {
      changes.code = bytesToHex(await this.options.state.code(after.codeHash));
    }
    const storage: Record<Hash32, Hash32> = {};
    let isStorageChanged = false;
    for (const [slot, before] of touched.slots) {
      const now = toWord(await this.options.state.storage(address, slot));
      if (now === before) continue;
      isStorageChanged = true;
      if (!isZero(now)) storage[slot] = now;
    }
    if (Object.keys(storage).length > 0) changes.storage = storage;
    return isStorageChanged || Object.keys(changes).length > 0 ? changes : undefined;
  }

  private async changedSlots(address: Address, { slots }: Touched): Promise<Map<Hash32, Hash32>> {
    const changed = new Map<Hash32, Hash32>();
    for (const [slot, before] of slots) {
      if (isZero(before)) continue;
      const now = toWord(await this.options.state.storage(address, slot));
      if (now !== before) changed.set(slot, before);
    }
    return changed;
  }

  private async toJson({ account, slots }: Touched): Promise<AccountJson> {
    const json: AccountJson = { balance: toQuantity(account.balanceAtoken) };
    if (account.codeHash !== EMPTY_CODE_HASH) {
      json.code = bytesToHex(await this.options.state.code(account.codeHash));
      this.budget.take(json.code.length);
    }
    if (account.nonce > 0n) json.nonce = Number(account.nonce);
    if (slots.size > 0) json.storage = Object.fromEntries(slots);
    return json;
  }
}

function toWord(value: Uint8Array): Hash32 {
  return bytesToHex(bigintToWord(bytesToBigint(value))) as Hash32;
}

function isZero(word: Hash32): boolean {
  return BigInt(word) === 0n;
}
