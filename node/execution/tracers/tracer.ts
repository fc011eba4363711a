/** What all tracers share: their life around one transaction, and the bound of their output. */
import type { EVM, ExecResult } from "@ethereumjs/evm";
import type { Address } from "../../../chain/address.js";
import { CallError } from "../calls/call-error.js";

/**
 * Most bytes of one trace, about as JSON. The answer crosses to the main thread, where nothing a
 * client asks may hold up a block for long: this much takes about a tenth of a second.
 */
const MAX_TRACE_BYTES = 16 * 1024 * 1024;

/** Room of one answer; all its transactions share it. */
export class TraceBudget {
  private leftBytes: number;

  constructor(maxBytes: number = MAX_TRACE_BYTES) {
    this.leftBytes = maxBytes;
  }

  /** Takes room for so many bytes of JSON. Throws TRACE_TOO_LARGE. */
  take(bytes: number): void {
    this.leftBytes -= bytes;
    if (this.leftBytes < 0) {
      throw new CallError("TRACE_TOO_LARGE", "the answer is too large; ask for less of it");
    }
  }
}

/** The message that the trace is about. */
export interface TracedMessage {
  readonly from: Address;
  /** Undefined creates a contract. */
  readonly to: Address | undefined;
  readonly valueAtoken: bigint;
  readonly data: Uint8Array;
  readonly gasLimit: bigint;
  /** Where a creation's contract comes to lie. */
  readonly contractAddress: Address | undefined;
}

/** How the message ended. */
export interface TraceSummary {
  readonly gasUsed: bigint;
  readonly returnData: Uint8Array;
  /** geth's text; undefined for success. */
  readonly error: string | undefined;
  readonly isRevert: boolean;
}

/** A tracer is attached to one EVM; it records between `start` and `finish`, any number of times. */
export interface Tracer {
  start(message: TracedMessage): void | Promise<void>;
  /** geth's JSON of this tracer. The state must still be as the message left it. */
  finish(summary: TraceSummary): unknown;
}

/** Interpreter state that opcode watchers may look at. */
export type RunState = NonNullable<ExecResult["runState"]>;

/**
 * Calls `watch` before each execution of an opcode, when its gas is already paid. Cheaper than
 * step events, which copy the whole memory for every opcode.
 */
export function watchOpcode(evm: EVM, opcode: number, watch: (runState: RunState) => void): void {
  const entry = evm["_opcodeMap"][opcode];
  if (entry === undefined) throw new TypeError(`the EVM has no opcode ${opcode}`);
  const handler = entry.opHandler;
  entry.opHandler = (runState, common) => {
    watch(runState);
    return handler(runState, common);
  };
}

/** Bytes of memory without trusting the offset of an empty range. */
export function readMemory(runState: RunState, offset: bigint, length: bigint): Uint8Array {
  if (length === 0n) return new Uint8Array(0);
  return runState.memory.read(Number(offset), Number(length));
}
