/** geth's flatCallTracer: the calls of a transaction as one list, as Parity's traces have them. */
import { PRECOMPILE_ADDRESSES } from "../../../chain/evm/precompiles.js";
import { toQuantity } from "../../../chain/hex.js";
import type { Watcher } from "../interpreter/watcher.js";
import { REVERTED } from "../interpreter/halt.js";
import { type CallFrame, CallTracer } from "./call-tracer.js";
import type { TraceBudget, TracedMessage, Tracer, TracePlace, TraceSummary } from "./tracer.js";

/** Options as in geth's tracerConfig. */
export interface FlatCallTracerOptions {
  /** Errors in Parity's words. */
  readonly convertParityErrors: boolean;
  readonly includePrecompiles: boolean;
}

/** JSON of an entry beside what its frame was counted with, and of a number of its address. */
const ENTRY_BYTES = 300;
const ADDRESS_NUMBER_BYTES = 5;

const PARITY_ERRORS: ReadonlyMap<string, string> = new Map([
  ["contract creation code storage out of gas", "Out of gas"],
  ["out of gas", "Out of gas"],
  ["gas uint64 overflow", "Out of gas"],
  ["max code size exceeded", "Out of gas"],
  ["invalid jump destination", "Bad jump destination"],
  ["execution reverted", "Reverted"],
  ["return data out of bounds", "Out of bounds"],
  ["stack limit reached 1024 (1023)", "Out of stack"],
  ["precompiled failed", "Built-in failed"],
  ["invalid input length", "Built-in failed"],
]);

/** Errors that have more behind these words. */
const PARITY_PREFIXES = [
  ["out of gas:", "Out of gas"],
  ["invalid opcode:", "Bad instruction"],
  ["stack underflow", "Stack underflow"],
] as const;

/** The frames of `CallTracer`, one after the other. */
export class FlatCallTracer implements Tracer {
  readonly watcher: Watcher;
  private readonly calls: CallTracer;
  private place: TracePlace | undefined;

  constructor(
    private readonly options: FlatCallTracerOptions,
    private readonly budget: TraceBudget,
  ) {
    this.calls = new CallTracer({ onlyTopCall: false, withLog: false }, budget);
    this.watcher = this.calls.watcher;
  }

  start(message: TracedMessage): void {
    this.place = message.place;
    this.calls.start(message);
  }

  finish(summary: TraceSummary): unknown {
    const entries: unknown[] = [];
    this.add(this.calls.topFrame(summary), [], entries);
    return entries;
  }

  private add(frame: CallFrame, traceAddress: readonly number[], entries: unknown[]): void {
    this.budget.take(ENTRY_BYTES + ADDRESS_NUMBER_BYTES * traceAddress.length);
    const calls = this.options.includePrecompiles ? frame.calls : frame.calls.filter(isShown);
    const { error } = frame;
    const isResultShown = error === undefined || error === REVERTED.text;
    const { type, action, result } = describe(frame);
    entries.push({
      action,
      blockHash: this.place?.blockHash ?? null,
      blockNumber: this.place?.blockNumber ?? 0,
      ...(error === undefined ? {} : { error: this.inWords(error) }),
      ...(result === undefined || !isResultShown ? {} : { result }),
      subtraces: calls.length,
      traceAddress,
      transactionHash: this.place?.transactionHash ?? null,
      transactionPosition: this.place?.transactionPosition ?? 0,
      type,
    });
    for (const [index, call] of calls.entries()) this.add(call, [...traceAddress, index], entries);
  }

  private inWords(error: string): string {
    if (!this.options.convertParityErrors) return error;
    const prefixed = PARITY_PREFIXES.find(([prefix]) => error.startsWith(prefix));
    return PARITY_ERRORS.get(error) ?? prefixed?.[1] ?? error;
  }
}

/** Parity's traces leave out plain calls of precompiles. */
function isShown({ type, to }: CallFrame): boolean {
  const isPlain = type === "CALL" || type === "STATICCALL";
  return !isPlain || to === undefined || !PRECOMPILE_ADDRESSES.has(to);
}

interface Described {
  readonly type: string;
  readonly action: object;
  readonly result?: object;
}

/** Keys in geth's order. */
function describe(frame: CallFrame): Described {
  const { from, to, input, output } = frame;
  const [gas, gasUsed] = [toQuantity(frame.gas), toQuantity(frame.gasUsed)];
  const value = toQuantity(frame.value ?? 0n);
  if (frame.type === "SELFDESTRUCT") {
    const action = { address: from, balance: value, refundAddress: to };
    return { type: "suicide", action };
  }
  const callType = frame.type.toLowerCase();
  if (frame.isCreation) {
    const address = to === undefined ? {} : { address: to };
    return {
      type: "create",
      action: { creationMethod: callType, from, gas, init: input, value },
      result: { ...address, code: output, gasUsed },
    };
  }
  const action = { callType, from, gas, input, to, value };
  return { type: "call", action, result: { gasUsed, output } };
}
