/**
 * A client's override sets (geth's eth_call and eth_simulateV1): accounts that lie over the
 * committed state, precompiles that move, and what code sees of its block.
 */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { errorMessage } from "../../../chain/errors.js";
import { NATIVE_CONTRACTS } from "../../../chain/evm/precompiles.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import {
  bigintToBytes,
  EMPTY_CODE_HASH,
  EMPTY_TRIE_ROOT,
  type Hash32,
} from "../../../chain/hex.js";
import { MODULE_ACCOUNTS } from "../../modules/system-storage.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { type AccountRecord, EMPTY_ACCOUNT } from "../../store/account-record.js";
import { type MaybePromise, type StateReader, ZERO_VALUE } from "../../store/state-reader.js";
import type { BlockContext } from "../message.js";
import { ALL_PRECOMPILES, type AnyPrecompile, isNative } from "../native/table.js";
import { CallError } from "./call-error.js";
import type { BlockOverrides, StateOverrides } from "./call-port.js";

/** State with writes on top: what a client overrides, and what simulated blocks have changed. */
export class OverlaidState implements StateReader {
  private readonly accounts = new Map<Address, AccountRecord | undefined>();
  private readonly slots = new Map<Address, Map<Hash32, Uint8Array>>();
  /** Accounts whose storage below is not seen any more. */
  private readonly replaced = new Set<Address>();
  private readonly codes = new Map<Hash32, Uint8Array>();

  constructor(private readonly source: StateReader) {}

  account(address: Address): MaybePromise<AccountRecord | undefined> {
    return this.accounts.has(address) ? this.accounts.get(address) : this.source.account(address);
  }

  storage(address: Address, slot: Hash32): MaybePromise<Uint8Array> {
    const written = this.slots.get(address)?.get(slot);
    if (written !== undefined) return written;
    return this.replaced.has(address) ? ZERO_VALUE : this.source.storage(address, slot);
  }

  code(codeHash: Hash32): MaybePromise<Uint8Array> {
    return this.codes.get(codeHash) ?? this.source.code(codeHash);
  }

  /** Lays a client's overrides on top; what they do not name stays. */
  async override(overrides: StateOverrides): Promise<void> {
    for (const [address, { balanceAtoken, nonce, code, state, stateDiff }] of overrides) {
      const account = (await this.account(address)) ?? EMPTY_ACCOUNT;
      this.accounts.set(address, {
        ...account,
        nonce: nonce ?? account.nonce,
        balanceAtoken: balanceAtoken ?? account.balanceAtoken,
        codeHash: code === undefined ? account.codeHash : this.putCode(code),
        // What is replaced is in nobody's way: a contract may be made there again (geth's SetStorage).
        storageRoot: state === undefined ? account.storageRoot : EMPTY_TRIE_ROOT,
      });
      if (state !== undefined) {
        this.replaced.add(address);
        this.slots.delete(address);
      }
      for (const [slot, value] of stateDiff ?? state ?? []) {
        this.putSlot(address, slot, bigintToBytes(value));
      }
    }
  }

  /** Keeps what a simulated block has changed. */
  absorb(block: JournaledState): void {
    for (const [address, { after }] of block.changedAccounts()) this.accounts.set(address, after);
    for (const [address, slots] of block.changedStorage()) {
      for (const [slot, value] of slots) this.putSlot(address, slot, value);
    }
    for (const [codeHash, code] of block.newCodes()) this.codes.set(codeHash, code);
  }

  private putCode(code: Uint8Array): Hash32 {
    if (code.length === 0) return EMPTY_CODE_HASH;
    const codeHash = keccak256Hex(code);
    this.codes.set(codeHash, code);
    return codeHash;
  }

  private putSlot(address: Address, slot: Hash32, value: Uint8Array): void {
    const slots = this.slots.get(address) ?? new Map<Hash32, Uint8Array>();
    this.slots.set(address, slots);
    slots.set(slot, value);
  }
}

/**
 * The precompiles under an override set: whoever overrides one takes it away, and says where else
 * it can be called. The chain's own stay where they are, and go only for other code: their storage
 * is the state of modules.
 * @throws INVALID_OVERRIDE with geth's text
 */
export function precompilesUnder(overrides: StateOverrides): ReadonlyMap<Address, AnyPrecompile> {
  const removed = new Set<Address>();
  const moved = new Map<Address, AnyPrecompile>();
  // In order of addresses, as geth does it: which fault is told does not hang on the client.
  for (const address of [...overrides.keys()].toSorted()) {
    const { movePrecompileTo: to, code } = overrides.get(address) ?? {};
    const precompile = ALL_PRECOMPILES.get(address);
    const isOfChain = precompile !== undefined && isNative(precompile);
    if (to !== undefined) {
      if (precompile === undefined) throw invalidOverride(address, "is not a precompile");
      if (isOfChain) throw invalidOverride(address, "is a contract of the chain: it cannot move");
      if (overrides.has(to)) throw invalidOverride(to, "is already overridden");
      moved.set(to, precompile);
    }
    if (precompile !== undefined && (!isOfChain || code !== undefined)) removed.add(address);
  }
  const kept = [...ALL_PRECOMPILES].filter(([address]) => !removed.has(address));
  return new Map([...kept, ...moved]);
}

const OF_THE_CHAIN: ReadonlySet<Address> = new Set([
  ...NATIVE_CONTRACTS.values(),
  ...Object.values(MODULE_ACCOUNTS),
]);

/** Whether overrides are of the chain's own contracts or of accounts that they keep state in. */
export function overridesChain(overrides: StateOverrides | undefined): boolean {
  return [...(overrides?.keys() ?? [])].some((address) => OF_THE_CHAIN.has(address));
}

/** What contracts of the chain do not come to an end on: a sum below zero, a list without an end. */
export function impossibleState(cause: unknown): CallError {
  const text = `the chain's own contracts cannot run on this state: ${errorMessage(cause)}`;
  return new CallError("INVALID_OVERRIDE", text, { cause });
}

function invalidOverride(address: Address, what: string): CallError {
  const text = `account ${toChecksumAddress(address)} ${what}`;
  return new CallError("INVALID_OVERRIDE", text, { details: { address } });
}

/** The block that code sees: the committed one's facts, except for what the client names. */
export function overriddenBlock(
  block: BlockContext,
  { height, timestampSeconds, gasLimit, coinbase, mixHash, ...fees }: BlockOverrides,
): BlockContext {
  const { native } = block;
  const isOtherTime = native !== undefined && timestampSeconds !== undefined;
  return {
    ...block,
    ...fees,
    ...(isOtherTime ? { native: { ...native, timeMs: timestampSeconds * 1_000 } } : {}),
    height: height ?? block.height,
    timestampSeconds: timestampSeconds ?? block.timestampSeconds,
    gasLimit: gasLimit ?? block.gasLimit,
    coinbase: coinbase ?? block.coinbase,
    mixHash: mixHash ?? block.mixHash,
  };
}
