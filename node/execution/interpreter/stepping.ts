/**
 * Frames instruction by instruction, for watchers. Gas and compute units end up exactly as where
 * blocks of instructions are checked as a whole (`code.ts`): the block is paid for when it is
 * entered, and what of it has not run yet is shown as gas that is left. Where a block as a whole
 * cannot be paid for, the frame is lost; it runs on without compute units up to the instruction
 * that fails, as who executes one instruction after the other would find it.
 */
import { EVM_FAILURE, EVM_FAILURE_START } from "../../../chain/evm/evm-failure.js";
import type { Address } from "../../../chain/address.js";
import { canEnter, measureBlock, pushedBytes } from "./code.js";
import { type Code, type Execution, Frame } from "./frame.js";
import type { Message } from "./frame-message.js";
import {
  Halt,
  INIT_CODE_TOO_LARGE,
  INVALID_OPCODE,
  OUT_OF_COMPUTE,
  OUT_OF_GAS,
  SENTRY_OUT_OF_GAS,
  STACK_OVERFLOW,
  STACK_UNDERFLOW,
} from "./halt.js";
import { INVALID_INSTRUCTION, type Instruction, INSTRUCTIONS } from "./opcodes/instructions.js";
import { ACCOUNT_OPCODES, CALL_ITEMS, CALL_OPCODES } from "./opcodes/naming-opcodes.js";
import { COLD_ACCOUNT_GAS, WARM_GAS } from "./schedule.js";
import type { Step, StepWatcher } from "./watcher.js";
import { wordFrom, wordToAddress } from "./words.js";

const STOP = 0x00;
const JUMPDEST = 0x5b;
const INVALID = 0xfe;
const STACK_LIMIT = 1_024;
/** A range of memory that ends here or behind has an end that does not fit into 64 bits. */
const TOO_LARGE_BYTES = 2 ** 64;
/** Memory whose gas go-ethereum does not reckon. */
const MAX_GETH_MEMORY_BYTES = 0x1f_ffff_ffe0;

/** What runs behind the end of the code. */
const IMPLICIT_STOP: Instruction = {
  ...(INSTRUCTIONS[STOP] ?? INVALID_INSTRUCTION),
  run: (frame) => {
    frame.spend(0);
    frame.end(new Uint8Array(0));
  },
};

/** Memory of an offset or size that has no 64 bits. */
const GAS_OVERFLOW = new Halt(OUT_OF_GAS.message, EVM_FAILURE.gasOverflow);
/** Memory that is larger than gas is reckoned for. */
const MEMORY_OVERFLOW = new Halt(
  OUT_OF_GAS.message,
  `${EVM_FAILURE_START.outOfGasBecause}${EVM_FAILURE.gasOverflow}`,
);

/** Gas of opcodes whose split into a constant and a dynamic part go-ethereum makes elsewhere. */
const CONSTANT_GAS: ReadonlyMap<number, number> = new Map([
  [0x0a, 0],
  ...[0xa0, 0xa1, 0xa2, 0xa3, 0xa4].map((opcode) => [opcode, 0] as const),
  ...[...ACCOUNT_OPCODES, ...CALL_OPCODES].map((opcode) => [opcode, WARM_GAS] as const),
  [0xff, 5_000],
]);

/** A call that cannot pay for the first look at its target: go-ethereum says it twice. */
const COLD_OUT_OF_GAS = new Halt(
  OUT_OF_GAS.message,
  `${EVM_FAILURE_START.outOfGasBecause}${EVM_FAILURE.outOfGas}`,
);

/** Failures that go-ethereum finds before an instruction begins. */
const REFUSALS: ReadonlySet<Halt> = new Set([
  OUT_OF_GAS,
  COLD_OUT_OF_GAS,
  OUT_OF_COMPUTE,
  SENTRY_OUT_OF_GAS,
  GAS_OVERFLOW,
  MEMORY_OVERFLOW,
]);

/** A frame that is watched step by step. */
export class SteppedFrame extends Frame {
  /** Gas of instructions of the block that is paid and has not run. */
  private prepaidGas = 0;
  /** What the instruction has asked for so far. */
  private askedGas = 0;
  /** Set where the frame cannot but fail: the compute units as they are to be afterwards. */
  private leftNsOfLost: number | undefined;
  /** The next instruction begins a block. */
  private isAtStart = true;

  constructor(
    execution: Execution,
    message: Message,
    self: Address,
    code: Code,
    private readonly watcher: StepWatcher,
  ) {
    super(execution, message, self, code);
  }

  override charge(gas: number): void {
    this.askedGas += gas;
    // The whole of the block cannot be paid for: from here on each instruction pays for itself.
    if (!(gas <= this.gas) && this.prepaidGas > 0) this.lose();
    super.charge(gas);
  }

  override reserve(offset: number, size: number): void {
    if (size > 0) {
      const end = offset + size;
      if (end >= TOO_LARGE_BYTES) throw GAS_OVERFLOW;
      if (end > MAX_GETH_MEMORY_BYTES) throw MEMORY_OVERFLOW;
    }
    super.reserve(offset, size);
  }

  /** One instruction. @throws Halt */
  step(): void {
    const { bytes } = this.code;
    // As in go-ethereum, code of no bytes ends before a step.
    if (bytes.length === 0) {
      IMPLICIT_STOP.run(this);
      return;
    }
    const { place } = this;
    const opcode = bytes[place] ?? STOP;
    const isBehind = place >= bytes.length;
    const known = isBehind ? IMPLICIT_STOP : (INSTRUCTIONS[opcode] ?? INVALID_INSTRUCTION);
    const gas = this.gas + this.prepaidGas;
    const step: Step = { frame: this, opcode, place, gas };
    this.askedGas = known.gas;
    this.watcher.before(step);
    const isColdCall = this.cannotReach(step);
    try {
      this.execute(opcode, known, isBehind);
    } catch (found) {
      const error = isColdCall && found === OUT_OF_GAS ? COLD_OUT_OF_GAS : found;
      const refusal = error instanceof Halt && isRefusal(error) ? error : undefined;
      this.watcher.after?.(step, { cost: this.costOfFailed(step, refusal, known), refusal });
      throw error;
    }
    this.watcher.after?.(step, { cost: this.askedGas, refusal: undefined });
  }

  /** A call whose gas does not even pay for the first look at its target. */
  private cannotReach({ opcode, gas }: Step): boolean {
    if (!CALL_OPCODES.has(opcode) || gas < WARM_GAS || gas >= COLD_ACCOUNT_GAS) return false;
    if (this.stackHeight < CALL_ITEMS) return false;
    return !this.execution.substate.isWarmAddress(wordToAddress(this.peek(1)));
  }

  /** What go-ethereum shows: its constant part of the gas where it comes no further. */
  private costOfFailed(
    { opcode, gas }: Step,
    refusal: Halt | undefined,
    { gas: fixed }: Instruction,
  ) {
    if (refusal === undefined) return this.askedGas;
    const constant = CONSTANT_GAS.get(opcode) ?? fixed;
    return gas < constant || refusal !== OUT_OF_GAS ? constant : this.askedGas;
  }

  private execute(opcode: number, instruction: Instruction, isBehind: boolean): void {
    const { place } = this;
    const isEntry = this.isAtStart || opcode === JUMPDEST;
    this.isAtStart = instruction.endsBlock;
    const isPaid = isBehind || this.enterBlock(isEntry);
    this.checkStack(instruction);
    if (!isPaid) super.charge(instruction.gas);
    else if (!isBehind) this.prepaidGas -= instruction.gas;
    this.place = place + 1;
    const pushed = isBehind ? 0 : pushedBytes(opcode);
    if (pushed > 0) {
      this.push(wordFrom(this.code.bytes, place + 1, pushed));
      this.place += pushed;
    } else if (instruction === INVALID_INSTRUCTION) throw invalidOpcode(opcode);
    else instruction.run(this);
  }

  /** Pays for a block where one begins. @returns false where each instruction pays for itself */
  private enterBlock(isEntry: boolean): boolean {
    if (this.leftNsOfLost !== undefined) return false;
    if (!isEntry) return true;
    const block = measureBlock(this.code, this.place);
    if (!canEnter(block, this.stackHeight, this.gas)) {
      this.lose();
      return false;
    }
    this.gas -= block.gas;
    this.prepaidGas = block.gas;
    this.spend(block.computeNs);
    return true;
  }

  private lose(): void {
    const { meter, reads } = this.execution;
    reads.hold();
    this.gas += this.prepaidGas;
    this.prepaidGas = 0;
    this.leftNsOfLost = meter.leftNs;
    meter.leftNs = Number.POSITIVE_INFINITY;
  }

  /** The frame has failed: compute units and what the block has read are as if nobody had watched. */
  settle(): void {
    if (this.leftNsOfLost === undefined) return;
    this.execution.meter.leftNs = this.leftNsOfLost;
    this.execution.reads.release();
    this.leftNsOfLost = undefined;
  }

  private checkStack({ takes, gives }: Instruction): void {
    const { stackHeight } = this;
    if (stackHeight < takes) {
      const text = `${EVM_FAILURE_START.stackUnderflow}${stackHeight} <=> ${takes})`;
      throw new Halt(STACK_UNDERFLOW.message, text);
    }
    const limit = STACK_LIMIT + takes - gives;
    if (stackHeight > limit) {
      const text = `${EVM_FAILURE_START.stackOverflow}${stackHeight} (${limit})`;
      throw new Halt(STACK_OVERFLOW.message, text);
    }
  }
}

/** Runs instructions until the frame ends or waits for a child. @returns why it failed */
export function stepUntilChild(frame: SteppedFrame): Halt | undefined {
  frame.child = undefined;
  try {
    while (frame.isRunning && frame.child === undefined) frame.step();
    return undefined;
  } catch (error) {
    frame.settle();
    if (error instanceof Halt) return error;
    throw error;
  }
}

function isRefusal(halt: Halt): boolean {
  const { message } = halt;
  return (
    REFUSALS.has(halt) ||
    message === INIT_CODE_TOO_LARGE ||
    message === STACK_UNDERFLOW.message ||
    message === STACK_OVERFLOW.message
  );
}

function invalidOpcode(opcode: number): Halt {
  if (opcode === INVALID) return INVALID_OPCODE;
  const text = `${EVM_FAILURE_START.invalidOpcode}opcode 0x${opcode.toString(16)} not defined`;
  return new Halt(INVALID_OPCODE.message, text);
}
