/** What a contract of the chain is called with, and what an engine lends for the call. */
import type { Address } from "../../../chain/address.js";
import type { ComputeWeights } from "../../../chain/evm/compute-weights.js";
import type { Log } from "../../../chain/receipt.js";
import type { Atoken } from "../../../chain/units.js";
import type { BalanceRecorder } from "../../state/balance-recorder.js";
import type { JournaledState } from "../../state/journaled-state.js";
import type { Watcher } from "../interpreter/watcher.js";
import type { BlockContext, NativeFacts } from "../message.js";

/** A call as its maker sends it. */
export interface NativeMessage {
  readonly caller: Address;
  readonly input: Uint8Array;
  readonly gas: number;
  readonly valueAtoken: Atoken;
  readonly isStatic: boolean;
  /** False for DELEGATECALL and CALLCODE, which would act as somebody else. */
  readonly isDirect: boolean;
}

/** What an engine lends for a call. */
export interface NativeHost {
  readonly state: JournaledState;
  readonly block: BlockContext;
  readonly facts: NativeFacts;
  /** What compute units are counted by. */
  readonly weights: ComputeWeights;
  /** Who sent the transaction. */
  readonly origin: Address;
  readonly recorder: BalanceRecorder | undefined;
  readonly watcher: Watcher | undefined;
  /** Warms an address (EIP-2929). @returns true when it was cold */
  warmAddress(address: Address): boolean;
  /** Warms a slot. @returns true when it was cold */
  warmSlot(address: Address, slot: bigint): boolean;
  /** Takes compute units. @throws OUT_OF_COMPUTE */
  spend(ns: number): void;
  /** A log of the frame. */
  log(log: Log): void;
}
