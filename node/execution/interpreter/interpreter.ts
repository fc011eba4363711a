/**
 * Messages over frames: who calls whom, what a failed frame undoes, what its maker gets. Frames
 * wait for their children on a list of ours, so a deep call costs memory and no machine stack.
 */
import type { Address } from "../../../chain/address.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import { EMPTY_CODE_HASH, EMPTY_TRIE_ROOT, type Hash32 } from "../../../chain/hex.js";
import { EMPTY_ACCOUNT, isEmptyAccount } from "../../store/account-record.js";
import type { BalanceRecorder } from "../../state/balance-recorder.js";
import { type NativeContract, runNative } from "../native/native.js";
import type { NativeHost } from "../native/native-host.js";
import { type AnyPrecompile, isNative } from "../native/table.js";
import type { NativeFacts } from "../message.js";
import type { Precompile } from "../precompiles/precompile.js";
import { enterBlock, prepareCode } from "./code.js";
import { type Child, type Code, type Execution, Frame } from "./frame.js";
import type { Message } from "./frame-message.js";
import {
  CODE_OUT_OF_GAS,
  CODE_TOO_LARGE,
  CREATE_COLLISION,
  Halt,
  INSUFFICIENT_BALANCE,
  INVALID_CODE,
  OUT_OF_COMPUTE,
  OUT_OF_GAS,
  PRECOMPILE_FAILED,
  REVERTED,
} from "./halt.js";
import { CODE_BYTE_GAS, MAX_CODE_BYTES } from "./schedule.js";
import { SteppedFrame, stepUntilChild } from "./stepping.js";
import type { SubstateMark } from "./substate.js";

const NO_BYTES = new Uint8Array(0);
/** EIP-3541: code that stays must not start with it. */
const RESERVED_FIRST_BYTE = 0xef;

/** How a message ended. */
export interface MessageResult {
  /** Undefined for success. */
  readonly halt: Halt | undefined;
  readonly gasLeft: number;
  readonly output: Uint8Array;
  /** Of a creation that got as far as its address. */
  readonly createdAddress?: Address | undefined;
}

/** A message that is under way: its frame, if it has one, and the way back. */
interface Open {
  readonly message: Message;
  readonly mark: SubstateMark;
  readonly frame: Frame;
  readonly created: Address | undefined;
}

/** Runs messages of one transaction. */
export class Interpreter {
  private readonly open: Open[] = [];

  constructor(
    private readonly execution: Execution,
    private readonly precompiles: ReadonlyMap<Address, AnyPrecompile>,
    private readonly recorder: BalanceRecorder | undefined,
  ) {}

  /** Runs a message and all that it causes. State and substate hold its effects afterwards. */
  run(message: Message): MessageResult {
    let answer = this.begin(message);
    for (;;) {
      const current = this.open.at(-1);
      if (current === undefined) {
        if (answer === undefined) throw new TypeError("a message ends with an answer");
        return answer;
      }
      if (answer !== undefined) deliver(current.frame, answer);
      answer = this.proceed(current);
    }
  }

  /** Runs the frame on; an answer when it has ended, or its child has at once. */
  private proceed({ frame, message }: Open): MessageResult | undefined {
    const halt = frame instanceof SteppedFrame ? stepUntilChild(frame) : runUntilChild(frame);
    const { child } = frame;
    if (halt === undefined && child !== undefined) return this.begin(child.message);
    const ended = this.open.pop();
    if (ended === undefined) throw new TypeError("the frame that ends is open");
    const result = ended.created === undefined ? undefined : this.deposit(ended, halt);
    return this.close(ended.message, ended.mark, result ?? halt, {
      gasLeft: frame.gas,
      output: frame.output,
      createdAddress: message.to === undefined ? ended.created : undefined,
    });
  }

  /** Starts a message. What needs no frame is answered at once. */
  private begin(message: Message): MessageResult | undefined {
    const { substate, state } = this.execution;
    const { caller, to, valueAtoken, kind, codeAddress = to } = message;
    this.recorder?.enter({ caller, to, valueAtoken, kind });
    this.execution.watcher?.enter?.(message, codeAddress ?? caller);
    const mark = substate.mark();
    state.checkpoint();
    return to === undefined ? this.beginCreation(message, mark) : this.beginCall(message, to, mark);
  }

  private beginCall(message: Message, to: Address, mark: SubstateMark): MessageResult | undefined {
    const { state } = this.execution;
    const { gas, codeAddress = to } = message;
    if (!this.moveValue(message, to)) {
      const none = { gasLeft: gas, output: NO_BYTES };
      return this.close(message, mark, INSUFFICIENT_BALANCE, none);
    }
    const precompile = this.precompiles.get(codeAddress);
    if (precompile !== undefined) {
      if (!isNative(precompile)) return this.answerPrecompile(message, precompile, mark);
      const { native: facts } = this.execution.block;
      if (facts !== undefined) return this.answerNative(message, { precompile, facts, mark });
    }
    const codeHash = state.accountNow(codeAddress)?.codeHash ?? EMPTY_CODE_HASH;
    if (codeHash === EMPTY_CODE_HASH) {
      return this.close(message, mark, undefined, { gasLeft: gas, output: NO_BYTES });
    }
    const frame = this.openFrame(message, to, this.codeOf(codeHash));
    this.open.push({ message, mark, frame, created: undefined });
    return undefined;
  }

  /** A frame pays by the byte for code that is not kept, and halts at its first step where it cannot. */
  private codeOf(codeHash: Hash32): Code {
    const { reads, state } = this.execution;
    const { codes } = reads;
    const kept = codes.find(codeHash);
    if (kept !== undefined) return kept;
    const code = this.prepare(state.codeNow(codeHash));
    codes.use(codeHash, code);
    return code;
  }

  private prepare(bytes: Uint8Array): Code {
    const { meter, weights } = this.execution;
    meter.leftNs -= weights.codeByteNs * bytes.length;
    return prepareCode(bytes, weights.opcodesNs);
  }

  private openFrame(message: Message, self: Address, code: Code): Frame {
    const { execution } = this;
    const steps = execution.watcher?.steps;
    if (steps !== undefined) return new SteppedFrame(execution, message, self, code, steps);
    return new Frame(execution, message, self, code);
  }

  private answerPrecompile(
    message: Message,
    precompile: Precompile,
    mark: SubstateMark,
  ): MessageResult {
    const { input, gas } = message;
    const { meter, weights } = this.execution;
    const none = { gasLeft: 0, output: NO_BYTES };
    const cost = precompile.gas(input);
    if (!(cost <= gas)) return this.close(message, mark, OUT_OF_GAS, none);
    meter.leftNs -= precompile.computeNs(input, weights);
    if (!(meter.leftNs >= 0)) return this.close(message, mark, OUT_OF_COMPUTE, none);
    const output = precompile.run(input);
    const halt = output === undefined ? failureOf(precompile, input) : undefined;
    return this.close(message, mark, halt, { gasLeft: gas - cost, output: output ?? NO_BYTES });
  }

  /** A contract of the chain works on the state itself, in the checkpoint of its message. */
  private answerNative(
    message: Message,
    {
      precompile,
      facts,
      mark,
    }: {
      readonly precompile: NativeContract;
      readonly facts: NativeFacts;
      readonly mark: SubstateMark;
    },
  ): MessageResult {
    const isDirect = message.kind === "CALL";
    const end = runNative(precompile, { ...message, isDirect }, this.nativeHost(facts));
    const { halt, gasUsed, output } = end;
    return this.close(message, mark, halt, { gasLeft: message.gas - gasUsed, output });
  }

  private nativeHost(facts: NativeFacts): NativeHost {
    const { state, block, origin, watcher, substate, meter, weights } = this.execution;
    const { recorder } = this;
    return {
      state,
      block,
      facts,
      weights,
      origin,
      recorder,
      watcher,
      warmAddress: (address) => substate.warmAddress(address),
      warmSlot: (address, slot) => substate.warmSlot(address, slot),
      spend: (ns) => {
        meter.leftNs -= ns;
        if (!(meter.leftNs >= 0)) throw OUT_OF_COMPUTE;
      },
      log: (log) => {
        substate.logs.push(log);
        watcher?.log?.(log);
      },
    };
  }

  /** False where the caller does not have it. A call touches its target: an empty one goes. */
  private moveValue({ kind, caller, valueAtoken }: Message, to: Address): boolean {
    if (kind === "NO_TRANSFER") return true;
    const { state } = this.execution;
    if (valueAtoken > 0n) {
      if (!state.moveBalance(caller, -valueAtoken)) return false;
      state.moveBalance(to, valueAtoken);
      return true;
    }
    const target = state.accountNow(to);
    if (target !== undefined && isEmptyAccount(target)) state.putAccount(to, undefined);
    return true;
  }

  private beginCreation(message: Message, mark: SubstateMark): MessageResult | undefined {
    const { state, substate } = this.execution;
    const { caller, valueAtoken, gas, input } = message;
    const callerNonce = state.accountNow(caller)?.nonce ?? 0n;
    // Its nonce has gone up for this creation already.
    const created = message.codeAddress ?? contractAddressOf(caller, callerNonce - 1n);
    const there = state.accountNow(created) ?? EMPTY_ACCOUNT;
    const answer = { output: NO_BYTES, createdAddress: created };
    if (!state.moveBalance(caller, -valueAtoken)) {
      return this.close(message, mark, INSUFFICIENT_BALANCE, { ...answer, gasLeft: gas });
    }
    substate.markCreated(created);
    // EIP-7610: storage alone makes a collision, too.
    const { nonce, codeHash, storageRoot } = there;
    const isTaken = nonce > 0n || codeHash !== EMPTY_CODE_HASH || storageRoot !== EMPTY_TRIE_ROOT;
    // Code could give locked coins away in ways that no lock is asked about.
    if (isTaken || state.isLocking(created)) {
      return this.close(message, mark, CREATE_COLLISION, { ...answer, gasLeft: 0 });
    }
    state.wipeStorage(created);
    this.recorder?.created(created);
    state.putAccount(created, { ...there, nonce: 1n });
    if (valueAtoken > 0n) state.moveBalance(created, valueAtoken);
    const code = this.prepare(input);
    const frame = this.openFrame({ ...message, input: NO_BYTES }, created, code);
    this.open.push({ message, mark, frame, created });
    return undefined;
  }

  /** The output of a creation becomes code. @returns why it does not */
  private deposit({ frame, created }: Open, halt: Halt | undefined): Halt | undefined {
    if (halt !== undefined || created === undefined) return halt;
    const { output } = frame;
    if (output.length > MAX_CODE_BYTES) return CODE_TOO_LARGE;
    const cost = CODE_BYTE_GAS * output.length;
    if (output[0] === RESERVED_FIRST_BYTE) return INVALID_CODE;
    if (cost > frame.gas) return CODE_OUT_OF_GAS;
    const { state, meter, weights } = this.execution;
    meter.leftNs -= weights.codeDepositByteNs * output.length;
    if (meter.leftNs < 0) return OUT_OF_COMPUTE;
    frame.gas -= cost;
    const codeHash = state.putCode(output);
    state.putAccount(created, { ...(state.accountNow(created) ?? EMPTY_ACCOUNT), codeHash });
    return undefined;
  }

  /** Ends a message: its effects stay, or none of them. */
  private close(
    message: Message,
    mark: SubstateMark,
    halt: Halt | undefined,
    end: Omit<MessageResult, "halt">,
  ): MessageResult {
    const { state, substate } = this.execution;
    if (halt === undefined) state.commit();
    else {
      state.revert();
      substate.goBack(mark);
    }
    this.recorder?.leave(halt?.message);
    const result = resultOf(halt, end);
    const { gasLeft, output } = result;
    this.execution.watcher?.leave?.(message, { halt, gasUsed: message.gas - gasLeft, output });
    return result;
  }
}

function failureOf(precompile: Precompile, input: Uint8Array): Halt {
  const text = precompile.failure?.(input);
  return text === undefined ? PRECOMPILE_FAILED : new Halt(PRECOMPILE_FAILED.message, text);
}

function resultOf(halt: Halt | undefined, end: Omit<MessageResult, "halt">): MessageResult {
  const { createdAddress } = end;
  if (halt === undefined || halt === REVERTED) return { ...end, halt };
  // A message that never got its value moved costs nothing; every other failure costs all.
  const gasLeft = halt === INSUFFICIENT_BALANCE ? end.gasLeft : 0;
  return { halt, gasLeft, output: NO_BYTES, createdAddress };
}

/** Runs instructions until the frame ends or waits for a child. @returns why it failed */
function runUntilChild(frame: Frame): Halt | undefined {
  const { code } = frame;
  const { handlers } = code;
  frame.child = undefined;
  try {
    while (frame.isRunning && frame.child === undefined) {
      const place = frame.place++;
      const handler = handlers[place];
      if (handler !== undefined) handler(frame);
      else if (place < code.bytes.length) enterBlock(frame, place);
      else {
        // Behind the end of the code, also where its last instruction pushes bytes from there.
        frame.spend(0);
        frame.end(NO_BYTES);
      }
    }
    return undefined;
  } catch (error) {
    if (error instanceof Halt) return error;
    throw error;
  }
}

/** Hands a child's end to the frame that waits for it. */
function deliver(frame: Frame, answer: MessageResult): void {
  const { child } = frame;
  if (child === undefined) throw new TypeError("the frame waits for a child");
  const { halt, gasLeft, output, createdAddress } = answer;
  frame.gas += gasLeft;
  const isCreation = child.message.to === undefined;
  frame.returnData = isCreation && halt === undefined ? NO_BYTES : output;
  if (isCreation) frame.push(halt === undefined ? BigInt(createdAddress ?? 0) : 0n);
  else {
    writeOutput(frame, child, output);
    frame.push(halt === undefined ? 1n : 0n);
  }
}

/** As much of the output as there is, and as was asked for. */
function writeOutput({ memory }: Frame, { outOffset, outSize }: Child, output: Uint8Array): void {
  memory.write(outOffset, output, 0, Math.min(outSize, output.length));
}
