/**
 * Contracts of the chain itself: what they are, and how a call of one ends. They run in the frame of
 * the call that names them, on the state's own journal, so that a failed frame undoes coins, words
 * of modules, logs and events alike.
 */
import { MessageFailure } from "../../modules/module-context.js";
import { Halt, REVERTED } from "../interpreter/halt.js";
import { NativeCall } from "./native-call.js";
import type { NativeHost, NativeMessage } from "./native-host.js";
import { revertData } from "./revert-data.js";

const NO_BYTES = new Uint8Array(0);

/** A contract of the chain; both engines run the same ones. */
export interface NativeContract {
  /**
   * Answers one call. Throws `MessageFailure` where it refuses, which reverts the frame with the
   * fault's log as reason, and `Halt` where the frame is lost.
   */
  answer(call: NativeCall): Uint8Array;
}

/** How a call ended. */
export interface NativeEnd {
  /** Undefined for success. */
  readonly halt: Halt | undefined;
  readonly gasUsed: number;
  readonly output: Uint8Array;
}

/** Runs a call. Who asks for it undoes what it did where it did not end well. */
export function runNative(
  contract: NativeContract,
  message: NativeMessage,
  host: NativeHost,
): NativeEnd {
  const { state } = host;
  const call = new NativeCall(message, host);
  state.wordListener = call;
  try {
    const output = contract.answer(call);
    return { halt: undefined, gasUsed: call.gasUsed, output };
  } catch (error) {
    if (error instanceof Halt) return { halt: error, gasUsed: message.gas, output: NO_BYTES };
    if (!(error instanceof MessageFailure)) throw error;
    return { halt: REVERTED, gasUsed: call.gasUsed, output: revertData(error.fault.log) };
  } finally {
    state.wordListener = undefined;
  }
}
