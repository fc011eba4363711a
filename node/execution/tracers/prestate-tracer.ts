/** geth's prestateTracer: the accounts and slots a message touched, before and (diffMode) after. */
import type { Address } from "../../../chain/address.js";
import { contractAddress2Of, contractAddressOf } from "../../../chain/evm/contract-address.js";
import {
  bytesToBigint,
  bytesToHex,
  EMPTY_CODE_HASH,
  type Hash32,
  type Hex,
  toQuantity,
} from "../../../chain/hex.js";
import type { Atoken } from "../../../chain/units.js";
import { EMPTY_ACCOUNT } from "../../store/account-record.js";
import type { JournaledState } from "../../state/journaled-state.js";
import {
  ACCOUNT_OPCODES,
  CALL_ITEMS,
  CALL_OPCODES,
  SLOT_OPCODES,
} from "../interpreter/opcodes/naming-opcodes.js";
import type { Step, StepEnd, WatchedFrame, Watcher } from "../interpreter/watcher.js";
import { MAX_INIT_CODE_BYTES } from "../interpreter/schedule.js";
import { wordToAddress, wordToSize, wordToSlot } from "../interpreter/words.js";
import type { PrestateOptions } from "../calls/call-port.js";
import type { TraceBudget, TracedMessage, Tracer } from "./tracer.js";

/** JSON of an account without code and storage, and of one slot. */
const ACCOUNT_BYTES = 200;
const SLOT_BYTES = 140;
const ZERO_WORD: Hash32 = wordToSlot(0n);

const CREATE = 0xf0;
const CREATE2 = 0xf5;
const SELFDESTRUCT = 0xff;

interface Touched {
  readonly balanceAtoken: Atoken;
  readonly nonce: bigint;
  readonly codeHash: Hash32;
  readonly slots: Map<Hash32, Hash32>;
  /** There was nothing, or nothing but an empty account. */
  readonly isEmpty: boolean;
}

interface AccountJson {
  balance?: Hex;
  code?: Hex;
  codeHash?: Hash32;
  nonce?: number;
  storage?: Record<Hash32, Hash32>;
}

/** Records what everything was when an instruction named it first. */
export class PrestateTracer implements Tracer {
  readonly watcher: Watcher;
  private touched = new Map<Address, Touched>();
  private readonly created = new Set<Address>();
  private readonly deleted = new Set<Address>();
  /** Keeps what the instruction under way names, once its gas is paid. */
  private pending: (() => void) | undefined;

  /** @param always accounts that every transaction touches beside sender and target */
  constructor(
    private readonly state: JournaledState,
    private readonly options: PrestateOptions,
    private readonly always: readonly Address[],
    private readonly budget: TraceBudget,
  ) {
    this.watcher = {
      touch: (address, slot) => this.touch(address, slot),
      steps: {
        before: (step) => {
          this.pending = this.lookup(step);
        },
        after: (_step, end) => this.keep(end),
      },
    };
  }

  start({ from, target, isCreation }: TracedMessage): void {
    this.touched = new Map();
    this.created.clear();
    this.deleted.clear();
    if (isCreation) this.created.add(target);
    for (const address of [from, target, ...this.always]) this.account(address)?.();
  }

  /** What a module touches is paid for already. */
  private touch(address: Address, slot: bigint | undefined): void {
    this.account(address)?.();
    if (slot !== undefined) this.slot(address, wordToSlot(slot))?.();
  }

  private keep({ refusal }: StepEnd): void {
    if (refusal === undefined) this.pending?.();
    this.pending = undefined;
  }

  /** What the instruction names, as it is now. */
  private lookup({ frame, opcode }: Step): (() => void) | undefined {
    const height = frame.stackHeight;
    if (SLOT_OPCODES.has(opcode) && height >= 1) {
      return this.slot(frame.self, wordToSlot(frame.peek(0)));
    }
    if (ACCOUNT_OPCODES.has(opcode) && height >= 1) {
      const found = this.account(wordToAddress(frame.peek(0)));
      if (opcode !== SELFDESTRUCT) return found;
      return () => {
        found?.();
        if (this.created.has(frame.self)) this.deleted.add(frame.self);
      };
    }
    if (CALL_OPCODES.has(opcode) && height >= CALL_ITEMS)
      return this.account(wordToAddress(frame.peek(1)));
    const made = madeBy(frame, opcode, this.state);
    if (made === undefined) return undefined;
    const found = this.account(made);
    return () => {
      found?.();
      this.created.add(made);
    };
  }

  private account(address: Address): (() => void) | undefined {
    if (this.touched.has(address)) return undefined;
    const { balanceAtoken, nonce, codeHash } = this.state.accountNow(address) ?? EMPTY_ACCOUNT;
    const isEmpty = nonce === 0n && balanceAtoken === 0n && codeHash === EMPTY_CODE_HASH;
    return () => {
      this.budget.take(ACCOUNT_BYTES);
      const slots = new Map<Hash32, Hash32>();
      this.touched.set(address, { balanceAtoken, nonce, codeHash, slots, isEmpty });
    };
  }

  private slot(address: Address, slot: Hash32): (() => void) | undefined {
    const touched = this.touched.get(address);
    if (this.options.disableStorage || touched === undefined) return undefined;
    if (touched.slots.has(slot)) return undefined;
    const value = this.wordNow(address, slot);
    return () => {
      this.budget.take(SLOT_BYTES);
      touched.slots.set(slot, value);
    };
  }

  private wordNow(address: Address, slot: Hash32): Hash32 {
    return wordToSlot(bytesToBigint(this.state.storageNow(address, slot)));
  }

  finish(): unknown {
    const sorted = [...this.touched].toSorted(([left], [right]) => (left < right ? -1 : 1));
    return this.options.diffMode ? this.difference(sorted) : this.before(sorted);
  }

  private before(sorted: readonly (readonly [Address, Touched])[]): unknown {
    const pre: Record<Address, AccountJson> = {};
    for (const [address, touched] of sorted) {
      if (touched.isEmpty && !this.options.includeEmpty) continue;
      pre[address] = this.toJson(touched, touched.slots);
    }
    return pre;
  }

  private difference(sorted: readonly (readonly [Address, Touched])[]): unknown {
    const pre: Record<Address, AccountJson> = {};
    const post: Record<Address, AccountJson> = {};
    for (const [address, touched] of sorted) {
      if (this.deleted.has(address)) {
        // An account that is gone has no "after".
        if (!touched.isEmpty) pre[address] = this.toJson(touched, touched.slots);
        continue;
      }
      const changed = this.changesOf(address, touched);
      if (changed === undefined) continue;
      post[address] = changed.after;
      // A new account has no "before".
      if (!touched.isEmpty) pre[address] = this.toJson(touched, changed.slotsBefore);
    }
    return { post, pre };
  }

  private changesOf(
    address: Address,
    touched: Touched,
  ): { after: AccountJson; slotsBefore: Map<Hash32, Hash32> } | undefined {
    const now = this.state.accountNow(address) ?? EMPTY_ACCOUNT;
    const after: AccountJson = {};
    if (now.balanceAtoken !== touched.balanceAtoken) after.balance = toQuantity(now.balanceAtoken);
    if (now.codeHash !== touched.codeHash) {
      if (!this.options.disableCode) after.code = this.codeText(now.codeHash);
      after.codeHash = now.codeHash;
    }
    if (now.nonce !== touched.nonce) after.nonce = Number(now.nonce);
    const storage = new Map<Hash32, Hash32>();
    const slotsBefore = new Map<Hash32, Hash32>();
    let isChanged = Object.keys(after).length > 0;
    for (const [slot, before] of touched.slots) {
      const word = this.wordNow(address, slot);
      if (word === before) continue;
      isChanged = true;
      if (before !== ZERO_WORD) slotsBefore.set(slot, before);
      if (word !== ZERO_WORD) storage.set(slot, word);
    }
    if (storage.size > 0) after.storage = sortedRecord(storage);
    return isChanged ? { after, slotsBefore } : undefined;
  }

  private toJson(touched: Touched, slots: ReadonlyMap<Hash32, Hash32>): AccountJson {
    const { balanceAtoken, nonce, codeHash } = touched;
    const json: AccountJson = { balance: toQuantity(balanceAtoken) };
    if (codeHash !== EMPTY_CODE_HASH) {
      if (!this.options.disableCode) json.code = this.codeText(codeHash);
      json.codeHash = codeHash;
    }
    if (nonce > 0n) json.nonce = Number(nonce);
    if (slots.size > 0) json.storage = sortedRecord(slots);
    return json;
  }

  /** Read when it is shown: all codes of what a message looks at would be half a gigabyte. */
  private codeText(codeHash: Hash32): Hex {
    const code = this.state.codeNow(codeHash);
    this.budget.take(2 * code.length);
    return bytesToHex(code);
  }
}

/** Where CREATE or CREATE2 would put its contract; undefined for other instructions. */
function madeBy(frame: WatchedFrame, opcode: number, state: JournaledState): Address | undefined {
  if (opcode === CREATE) {
    return contractAddressOf(frame.self, state.accountNow(frame.self)?.nonce ?? 0n);
  }
  if (opcode !== CREATE2 || frame.stackHeight < 4) return undefined;
  const [offset, size] = [wordToSize(frame.peek(1)), wordToSize(frame.peek(2))];
  // What has no memory yet costs more gas than there is, or is zero.
  const known = 32 * frame.memory.words;
  if (size > MAX_INIT_CODE_BYTES) return undefined;
  const code = new Uint8Array(size);
  if (offset < known) code.set(frame.memory.view(offset, Math.min(size, known - offset)));
  return contractAddress2Of(frame.self, frame.peek(3), code);
}

function sortedRecord(words: ReadonlyMap<Hash32, Hash32>): Record<Hash32, Hash32> {
  return Object.fromEntries([...words].toSorted(([left], [right]) => (left < right ? -1 : 1)));
}
