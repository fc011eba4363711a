/** geth's callTracer: the tree of message frames, precompiles and self-destructs included. */
import type { EVMResult, Message } from "@ethereumjs/evm";
import { type Address, bytesToAddress } from "../../../chain/address.js";
import { bigintToWord, bytesToHex, type Hex, toQuantity } from "../../../chain/hex.js";
import {
  DEPTH_EXCEEDED,
  frameErrorText,
  INSUFFICIENT_BALANCE,
  isRevert,
} from "../calls/call-evm-errors.js";
import { toAddress } from "../evm/evm-state.js";
import type { Machine } from "../evm/evm.js";
import { revertReason } from "../../../chain/evm/revert-reason.js";
import {
  readMemory,
  type RunState,
  type TraceBudget,
  type TracedMessage,
  type Tracer,
  type TraceSummary,
  watchOpcode,
} from "./tracer.js";

/** A frame that is in no other frame stands at this depth; calls from here on fail. */
const MAX_DEPTH = 1_024;
const CALL_STIPEND = 2_300n;
/** JSON of a frame without its data, and of a log. */
const FRAME_BYTES = 320;
const LOG_BYTES = 120;

const CALL_TYPES = new Map<number, FrameType>([
  [0xf0, "CREATE"],
  [0xf1, "CALL"],
  [0xf2, "CALLCODE"],
  [0xf4, "DELEGATECALL"],
  [0xf5, "CREATE2"],
  [0xfa, "STATICCALL"],
]);
const OPCODE_SELFDESTRUCT = 0xff;
const OPCODE_LOG0 = 0xa0;

type FrameType =
  | "CALL"
  | "CALLCODE"
  | "DELEGATECALL"
  | "STATICCALL"
  | "CREATE"
  | "CREATE2"
  | "SELFDESTRUCT";

interface FrameLog {
  readonly address: Address;
  readonly topics: readonly Hex[];
  readonly data: Hex;
  readonly index: Hex;
  /** Calls of the frame that came before the log. */
  readonly position: Hex;
}

interface Frame {
  readonly type: FrameType;
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
  readonly calls: Frame[];
  logs: FrameLog[];
}

/** Options as in geth's tracerConfig. */
export interface CallTracerOptions {
  readonly onlyTopCall: boolean;
  readonly withLog: boolean;
}

/** Records frames by the EVM's message events; which opcode made a frame is seen at the opcode. */
export class CallTracer implements Tracer {
  private isActive = false;
  private top: Frame | undefined;
  private readonly open: Frame[] = [];
  private nextType: FrameType = "CALL";
  private logCount = 0;
  private depth = 0;

  constructor(
    machine: Machine,
    private readonly options: CallTracerOptions,
    private readonly budget: TraceBudget,
  ) {
    const { evm } = machine;
    evm.events.on("beforeMessage", (message) => {
      if (this.isActive) this.enter(message);
    });
    evm.events.on("newContract", ({ address }) => {
      const frame = this.isActive ? this.open.at(-1) : undefined;
      if (frame !== undefined) frame.to = toAddress(address);
    });
    evm.events.on("afterMessage", (result) => {
      if (this.isActive) this.leave(result);
    });
    const watch = (opcode: number, action: (runState: RunState) => void) => {
      watchOpcode(evm, opcode, (runState) => {
        const isWanted = this.isActive && !(options.onlyTopCall && runState.env.depth > 0);
        if (isWanted) action(runState);
      });
    };
    for (const [opcode, type] of CALL_TYPES) {
      watch(opcode, (runState) => this.beforeCall(type, runState));
    }
    watch(OPCODE_SELFDESTRUCT, (runState) => this.selfDestruct(runState));
    if (!options.withLog) return;
    for (let topics = 0; topics <= 4; topics++) {
      watch(OPCODE_LOG0 + topics, (runState) => this.log(runState, topics));
    }
  }

  start(message: TracedMessage): void {
    this.isActive = true;
    this.open.length = 0;
    this.logCount = 0;
    this.depth = 0;
    const { from, to, valueAtoken, data, gasLimit, contractAddress } = message;
    this.budget.take(FRAME_BYTES + 2 * data.length);
    this.top = {
      type: to === undefined ? "CREATE" : "CALL",
      from,
      to: to ?? contractAddress,
      input: bytesToHex(data),
      gas: gasLimit,
      gasUsed: 0n,
      value: valueAtoken,
      output: "0x",
      error: undefined,
      revertReason: undefined,
      calls: [],
      logs: [],
    };
  }

  finish(summary: TraceSummary): unknown {
    this.isActive = false;
    const { top } = this;
    if (top === undefined) throw new TypeError("the tracer was not started");
    top.gasUsed = summary.gasUsed;
    this.end(top, summary);
    return toJson(top, false);
  }

  private enter(message: Message): void {
    const { top } = this;
    if (top === undefined) return;
    this.depth++;
    if (message.depth === 0) {
      this.open.push(top);
      return;
    }
    if (this.options.onlyTopCall) return;
    const isDelegated = this.nextType === "DELEGATECALL";
    const caller = toAddress(isDelegated ? (message.to ?? message.caller) : message.caller);
    const frame: Frame = {
      type: this.nextType,
      from: caller,
      to: message.to === undefined ? undefined : toAddress(message.codeAddress),
      input: bytesToHex(message.data),
      gas: message.gasLimit,
      gasUsed: 0n,
      value: this.nextType === "STATICCALL" ? undefined : message.value,
      output: "0x",
      error: undefined,
      revertReason: undefined,
      calls: [],
      logs: [],
    };
    this.add(frame);
    this.open.push(frame);
  }

  private add(frame: Frame): void {
    this.budget.take(FRAME_BYTES + frame.input.length);
    this.open.at(-1)?.calls.push(frame);
  }

  private leave({ execResult }: EVMResult): void {
    this.depth--;
    // With onlyTopCall the frames below the first are never opened.
    if (this.options.onlyTopCall && this.depth > 0) return;
    const frame = this.open.pop();
    if (frame === undefined || frame === this.top) return;
    frame.gasUsed = execResult.executionGasUsed;
    this.end(frame, {
      returnData: execResult.returnValue,
      error: frameErrorText(execResult),
      isRevert: isRevert(execResult),
    });
  }

  private end(frame: Frame, how: Omit<TraceSummary, "gasUsed">): void {
    if (how.error === undefined) {
      this.budget.take(2 * how.returnData.length);
      frame.output = bytesToHex(how.returnData);
      return;
    }
    frame.error = how.error;
    if (frame.type === "CREATE" || frame.type === "CREATE2") frame.to = undefined;
    if (!how.isRevert) return;
    this.budget.take(2 * how.returnData.length);
    frame.output = bytesToHex(how.returnData);
    frame.revertReason = revertReason(how.returnData);
  }

  /** Notes the opcode for the frame that follows; a call that cannot start gets its frame here. */
  private beforeCall(type: FrameType, runState: RunState): void {
    this.nextType = type;
    const { env, stack } = runState;
    const isCreation = type === "CREATE" || type === "CREATE2";
    const hasValue = type === "CALL" || type === "CALLCODE";
    const taken = stack.peek(isCreation ? 3 : hasValue ? 7 : 6);
    const value = (isCreation ? taken[0] : hasValue ? taken[2] : 0n) ?? 0n;
    const isTooDeep = env.depth >= MAX_DEPTH;
    if (!isTooDeep && env.contract.balance >= value) return;
    const at = isCreation ? 1 : hasValue ? 3 : 2;
    const stipend = hasValue && value > 0n ? CALL_STIPEND : 0n;
    this.add({
      type,
      from: toAddress(env.address),
      to: isCreation ? undefined : stackAddress(taken[1] ?? 0n),
      input: bytesToHex(readMemory(runState, taken[at] ?? 0n, taken[at + 1] ?? 0n)),
      gas: (runState.messageGasLimit ?? 0n) + stipend,
      gasUsed: 0n,
      value: type === "STATICCALL" ? undefined : type === "DELEGATECALL" ? env.callValue : value,
      output: "0x",
      error: isTooDeep ? DEPTH_EXCEEDED : INSUFFICIENT_BALANCE,
      revertReason: undefined,
      calls: [],
      logs: [],
    });
  }

  private selfDestruct({ env, stack }: RunState): void {
    if (this.options.onlyTopCall) return;
    const [beneficiary = 0n] = stack.peek(1);
    this.add({
      type: "SELFDESTRUCT",
      from: toAddress(env.address),
      to: stackAddress(beneficiary),
      input: "0x",
      gas: 0n,
      gasUsed: 0n,
      value: env.contract.balance,
      output: "0x",
      error: undefined,
      revertReason: undefined,
      calls: [],
      logs: [],
    });
  }

  private log(runState: RunState, topicCount: number): void {
    const frame = this.open.at(-1);
    if (frame === undefined) return;
    const [offset = 0n, length = 0n, ...topics] = runState.stack.peek(2 + topicCount);
    const data = bytesToHex(readMemory(runState, offset, length));
    this.budget.take(LOG_BYTES + data.length + 70 * topicCount);
    frame.logs.push({
      address: toAddress(runState.env.address),
      topics: topics.map((topic) => bytesToHex(bigintToWord(topic))),
      data,
      index: toQuantity(this.logCount++),
      position: toQuantity(frame.calls.length),
    });
  }
}

function stackAddress(value: bigint): Address {
  return bytesToAddress(bigintToWord(value).subarray(12));
}

/** Keys in geth's order; what geth leaves out when empty is left out. */
function toJson(frame: Frame, hasParentFailed: boolean): unknown {
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
