/** What all tracers share: their life around one transaction, and the bound of their output. */
import type { Address } from "../../../chain/address.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import { CallError } from "../calls/call-error.js";
import type { Watcher } from "../interpreter/watcher.js";

/** Most bytes of one answer, about as JSON: what a worker holds of it as objects is several times that. */
const MAX_TRACE_BYTES = 16 * 1024 * 1024;

/** What JSON makes of a unit of a text that others have written, at most: an escape. */
export const MAX_JSON_UNIT_BYTES = 6;

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

/** Where the transaction that is traced is in the chain. */
export interface TracePlace {
  readonly blockHash: Hash32;
  readonly blockNumber: Height;
  readonly transactionHash: Hash32;
  readonly transactionPosition: number;
  /** Logs of the block before those of the transaction. */
  readonly firstLogIndex: number;
}

/** The message that the trace is about. */
export interface TracedMessage {
  readonly from: Address;
  /** Whom it names, or the contract that it makes. */
  readonly target: Address;
  readonly isCreation: boolean;
  /** Of the transaction, intrinsic gas included. */
  readonly gasLimit: bigint;
  /** Undefined for a message that is in no block. */
  readonly place?: TracePlace;
}

/** How the message ended. */
export interface TraceSummary {
  readonly gasUsed: bigint;
  readonly returnData: Uint8Array;
  /** geth's text; undefined for success. */
  readonly error: string | undefined;
  readonly isRevert: boolean;
}

/** Records between `start` and `finish`, any number of times, what its watcher is told. */
export interface Tracer {
  readonly watcher: Watcher;
  /** The state is as before the message: nothing is bought or moved. */
  start(message: TracedMessage): void;
  /** geth's JSON of this tracer. The state must still be as the message left it. */
  finish(summary: TraceSummary): unknown;
}
