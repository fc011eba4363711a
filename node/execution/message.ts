/** What an engine executes: a message from outside, in the block that its code sees. */
import type { Address } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import type { AccessListEntry } from "../../chain/transaction.js";
import type { Atoken } from "../../chain/units.js";

/** What the chain's own contracts (`node/execution/native`) see beside code and state. */
export interface NativeFacts {
  /** Version of the chain's rules; absent: what the state says. */
  readonly appVersion?: number;
  /** Unix milliseconds of the block's time. */
  readonly timeMs: number;
  /** Of the state that the block begins with; undefined where it is not kept any more. */
  readonly totalSupplyAtoken: Atoken | undefined;
  readonly feeCollector: Address;
  readonly validatorsPool: Address;
}

/** What contract code can see of the block it runs in. */
export interface BlockContext {
  readonly height: number;
  readonly timestampSeconds: number;
  readonly coinbase: Address;
  readonly gasLimit: bigint;
  /** PREVRANDAO: the parent's hash. */
  readonly mixHash: Hash32;
  /** What BASEFEE shows, where a client asks for another than 0 (D7). */
  readonly baseFeeAtoken?: Atoken;
  /** What BLOBBASEFEE shows, where a client asks for another than 1. */
  readonly blobBaseFeeAtoken?: Atoken;
  /** Absent where the chain has no contracts of its own: in Ethereum's state tests. */
  readonly native?: NativeFacts;
  /** Hash of one of the last 256 blocks. */
  blockHash(height: number): Promise<Hash32> | Hash32;
}

/** A message from outside: a transaction's, or a call's. */
export interface EvmMessage {
  readonly from: Address;
  readonly to: Address | undefined;
  readonly valueAtoken: Atoken;
  readonly data: Uint8Array;
  /** Gas left after the intrinsic gas. */
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: Atoken;
  readonly accessList: readonly AccessListEntry[];
}
