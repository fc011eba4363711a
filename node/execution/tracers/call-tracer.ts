/** geth's callTracer: the tree of message frames, precompiles and self-destructs included. */
import type { Address } from "../../../chain/address.js";
import { bytesToHex, type Hex, toQuantity } from "../../../chain/hex.js";
import { revertReason } from "../../../chain/evm/revert-reason.js";
import type { Log } from "../../../chain/receipt.js";
import type { Atoken } from "../../../chain/units.js";
import { type Message, MESSAGE_OPCODES } from "../interpreter/frame-message.js";
import { REVERTED } from "../interpreter/halt.js";
import { EXACT_STEPS, type MessageEnd, type Watcher } from "../interpreter/watcher.js";
import { opcodeName } from "./opcode-names.js";
import {
  MAX_JSON_UNIT_BYTES,
  type TraceBudget,
  type TracedMessage,
  type Tracer,
  type TraceSummary,
} from "./tracer.js";

/** JSON of a frame without its data, and of a log. */
const FRAME_BYTES = 320;
const LOG_BYTES = 120;
const TOPIC_BYTES = 70;

interface FrameLog {
  readonly address: Address;
  readonly topics: readonly Hex[];
  readonly data: Hex;
  /** In the block, as receipts count; of a message that is in no block from 0. */
  readonly index: Hex;
  /** Calls of the frame that came before the log. */
  readonly position: Hex;
}

/** One message frame, or a self-destruct. */
export interface CallFrame {
  readonly type: string;
  readonly isCreation: boolean;
  readonly from: Address;
  to: Address | undefined;
  readonly input: Hex;
  readonly gas: bigint;
  gasUsed: bigint;
  /** Undefined for STATICCALL, which has none. */
  readonly value: bigint | undefined;
  output: Hex;
  error: string | undefined;
  revertReason: string | undefined;
  readonly calls: CallFrame[];
  readonly logs: FrameLog[];
}

/** Options as in geth's tracerConfig. */
export interface CallTracerOptions {
  readonly onlyTopCall: boolean;
  readonly withLog: boolean;
}

/** Records messages as they are entered and left. */
export class CallTracer implements Tracer {
  readonly watcher: Watcher;
  private readonly open: CallFrame[] = [];
  private top: CallFrame | undefined;
  private gasLimit = 0n;
  /** Index that the next log gets. */
  private logIndex = 0;
  /** What it was when each message began that is not over: a failed one has no logs. */
  private readonly logIndexes: number[] = [];

  constructor(
    private readonly options: CallTracerOptions,
    private readonly budget: TraceBudget,
  ) {
    this.watcher = {
      enter: (message, address) => this.enter(message, address),
      leave: (message, end) => this.leave(message, end),
      selfdestruct: (self, heir, balanceAtoken) => this.selfDestruct(self, heir, balanceAtoken),
      log: (log) => this.log(log),
      // Failures are told with what was found.
      steps: EXACT_STEPS,
    };
  }

  start({ gasLimit, place }: TracedMessage): void {
    this.open.length = 0;
    this.top = undefined;
    this.gasLimit = gasLimit;
    this.logIndex = place?.firstLogIndex ?? 0;
    this.logIndexes.length = 0;
  }

  finish(summary: TraceSummary): unknown {
    return toJson(this.topFrame(summary), false);
  }

  /** The frame of the message itself, with all others in it. */
  topFrame({ gasUsed }: TraceSummary): CallFrame {
    const { top } = this;
    if (top === undefined) throw new TypeError("no message was traced");
    top.gasUsed = gasUsed;
    return top;
  }

  private enter(message: Message, address: Address): void {
    const { depth, opcode, input, gas, valueAtoken, caller, to } = message;
    this.logIndexes.push(this.logIndex);
    if (this.options.onlyTopCall && depth > 0) return;
    const isDelegated = opcode === MESSAGE_OPCODES.DELEGATECALL;
    const frame: CallFrame = {
      type: opcodeName(opcode),
      isCreation: to === undefined,
      // The sender of a DELEGATECALL shows its own caller to the code, and is who calls here.
      from: isDelegated ? (to ?? caller) : caller,
      to: address,
      input: bytesToHex(input),
      gas: depth === 0 ? this.gasLimit : BigInt(gas),
      gasUsed: 0n,
      value: opcode === MESSAGE_OPCODES.STATICCALL ? undefined : valueAtoken,
      output: "0x",
      error: undefined,
      revertReason: undefined,
      calls: [],
      logs: [],
    };
    this.add(frame);
    this.open.push(frame);
    this.top ??= frame;
  }

  private add(frame: CallFrame): void {
    this.budget.take(FRAME_BYTES + frame.input.length);
    this.open.at(-1)?.calls.push(frame);
  }

  private leave({ depth }: Message, { halt, gasUsed, output }: MessageEnd): void {
    const logIndex = this.logIndexes.pop();
    if (halt !== undefined && logIndex !== undefined) this.logIndex = logIndex;
    if (this.options.onlyTopCall && depth > 0) return;
    const frame = this.open.pop();
    if (frame === undefined) throw new TypeError("a message was left that was not entered");
    frame.gasUsed = BigInt(gasUsed);
    if (halt === undefined || halt === REVERTED) {
      this.budget.take(2 * output.length);
      frame.output = bytesToHex(output);
    }
    if (halt === undefined) return;
    frame.error = halt.text;
    if (frame.isCreation) frame.to = undefined;
    if (halt !== REVERTED) return;
    frame.revertReason = revertReason(output);
    this.budget.take(MAX_JSON_UNIT_BYTES * (frame.revertReason?.length ?? 0));
  }

  private selfDestruct(self: Address, heir: Address, balanceAtoken: Atoken): void {
    if (this.options.onlyTopCall) return;
    this.add({
      type: "SELFDESTRUCT",
      isCreation: false,
      from: self,
      to: heir,
      input: "0x",
      gas: 0n,
      gasUsed: 0n,
      value: balanceAtoken,
      output: "0x",
      error: undefined,
      revertReason: undefined,
      calls: [],
      logs: [],
    });
  }

  private log({ address, topics, data }: Log): void {
    const { onlyTopCall, withLog } = this.options;
    const frame = this.open.at(-1);
    const index = toQuantity(this.logIndex++);
    const isBelowTop = this.logIndexes.length > 1;
    if (!withLog || frame === undefined || (onlyTopCall && isBelowTop)) return;
    this.budget.take(LOG_BYTES + 2 * data.length + TOPIC_BYTES * topics.length);
    frame.logs.push({
      address,
      topics,
      data: bytesToHex(data),
      index,
      position: toQuantity(frame.calls.length),
    });
  }
}

/** Keys in geth's order; what geth leaves out when empty is left out. */
function toJson(frame: CallFrame, hasParentFailed: boolean): unknown {
  const hasFailed = hasParentFailed || frame.error !== undefined;
  const { to, output, error, revertReason: reason, value } = frame;
  // Logs of a failed frame, or below one, were never emitted.
  const logs = hasFailed ? [] : frame.logs;
  return {
    from: frame.from,
    gas: toQuantity(frame.gas),
    gasUsed: toQuantity(frame.gasUsed),
    ...(to === undefined ? {} : { to }),
    input: frame.input,
    ...(output === "0x" ? {} : { output }),
    ...(error === undefined ? {} : { error }),
    ...(reason === undefined || reason === "" ? {} : { revertReason: reason }),
    ...(frame.calls.length === 0
      ? {}
      : { calls: frame.calls.map((call) => toJson(call, hasFailed)) }),
    ...(logs.length === 0 ? {} : { logs }),
    ...(value === undefined ? {} : { value: toQuantity(value) }),
    type: frame.type,
  };
}
