/**
 * What may watch an execution. Without a watcher nothing of this costs anything: frames take the
 * step by step way (`stepping.ts`) only where a watcher asks for steps when they begin.
 */
import type { Address } from "../../../chain/address.js";
import type { Log } from "../../../chain/receipt.js";
import type { Atoken } from "../../../chain/units.js";
import type { Message } from "./frame-message.js";
import type { Halt } from "./halt.js";

/** How a message ended. */
export interface MessageEnd {
  /** Undefined for success. */
  readonly halt: Halt | undefined;
  /** Gas that the message used of its own. */
  readonly gasUsed: number;
  readonly output: Uint8Array;
}

/** What of a frame can be looked at. */
export interface WatchedFrame {
  /** The account that it acts as. */
  readonly self: Address;
  readonly message: Message;
  /** Items on the stack. */
  readonly stackHeight: number;
  /** The item so many places below the top; there must be one. */
  peek(depth: number): bigint;
  /** A copy of all items, the top last. */
  stackItems(): bigint[];
  readonly memory: { readonly words: number; view(offset: number, size: number): Uint8Array };
  /** Output of the last child. */
  readonly returnData: Uint8Array;
  readonly execution: { readonly substate: { readonly refundGas: number } };
}

/** An instruction, as it is found. */
export interface Step {
  /** As it stands now: what is to be known of it before the instruction is copied before it. */
  readonly frame: WatchedFrame;
  readonly opcode: number;
  /** Place of the instruction in the code. */
  readonly place: number;
  /** Gas that is left before it. */
  readonly gas: number;
}

/** How an instruction went. */
export interface StepEnd {
  /** Gas that it costs, with what it hands to a called frame; where it failed, what was asked. */
  readonly cost: number;
  /** Why it could not begin: stack, gas or compute units. */
  readonly refusal: Halt | undefined;
}

/** Told of each instruction, also of those in frames that are undone later. */
export interface StepWatcher {
  /** Nothing of the instruction has happened. */
  before(step: Step): void;
  /** Its effects are there, unless it failed; a frame that it calls has not begun. */
  after?(step: Step, end: StepEnd): void;
}

/** Steps for nobody: frames that take them find failures as they are found one by one. */
export const EXACT_STEPS: StepWatcher = {
  before() {
    // Nobody asks.
  },
};

/** All of it is optional. What is told happens in order, and may still be undone by a frame above. */
export interface Watcher {
  /** A message, also one that cannot begin; `address` is whom it names, or the contract to be. */
  enter?(message: Message, address: Address): void;
  /** The message that was entered last and has not left. */
  leave?(message: Message, end: MessageEnd): void;
  log?(log: Log): void;
  /** A module is about to touch an account, or a slot of it, for the message on top. */
  touch?(address: Address, slot: bigint | undefined): void;
  /** A module moved coins for the message on top; without `to` they ceased to be. */
  moved?(from: Address, to: Address | undefined, amountAtoken: Atoken): void;
  selfdestruct?(self: Address, heir: Address, balanceAtoken: Atoken): void;
  readonly steps?: StepWatcher | undefined;
}
