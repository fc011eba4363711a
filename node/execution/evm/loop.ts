/**
 * The interpreter's loop, in place of the library's: the same handlers and gas functions, without
 * its two awaits for every opcode and without its analysis of all jump destinations in every
 * frame, which lets a small call cost as much time as a large contract is long.
 */
import { createEVM, type EVM, EVMError, type ExecResult } from "@ethereumjs/evm";

/** Interpreter state of a frame. */
export type RunState = NonNullable<ExecResult["runState"]>;
type Interpreter = RunState["interpreter"];
type OpcodeEntry = EVM["_opcodeMap"][number];

/** Parts of the library's class that are used or replaced here; not public in its types. */
interface InterpreterInside {
  readonly _runState: RunState;
  readonly _evm: EVM;
  readonly common: EVM["common"];
  run(code: Uint8Array): Promise<{ runState: RunState; exceptionError?: EVMError }>;
}

const { STOP, INVALID_OPCODE, OUT_OF_GAS } = EVMError.errorMessages;
const PROBE_OPCODE = 0x21;
const INVALID = 0xfe;
/** Memory grows by doubling from here: a frame that needs none gets none. */
const FIRST_MEMORY_BYTES = 512;
const NO_BYTES = new Uint8Array(0);
const JUMPDEST = 0x5b;
const PUSH1 = 0x60;
const PUSH32 = 0x7f;

/** Destinations by code: the state's cache of codes decides how long they are kept. */
const jumpTables = new WeakMap<Uint8Array, Uint8Array>();

/** One byte for each of the code's bytes: 1 where a jump may land. */
export function jumpTable(code: Uint8Array): Uint8Array {
  const known = jumpTables.get(code);
  if (known !== undefined) return known;
  const table = new Uint8Array(code.length);
  for (let index = 0; index < code.length; index++) {
    const opcode = code[index] ?? 0;
    if (opcode === JUMPDEST) table[index] = 1;
    else if (opcode >= PUSH1 && opcode <= PUSH32) index += opcode - PUSH1 + 1;
  }
  jumpTables.set(code, table);
  return table;
}

async function run(
  this: InterpreterInside,
  code: Uint8Array,
): Promise<{ runState: RunState; exceptionError?: EVMError }> {
  const { _runState: state, _evm: evm } = this;
  state.code = code;
  try {
    while (state.programCounter < code.length) {
      const pending = step(this, evm, state);
      if (pending !== undefined) await pending;
    }
    return { runState: state };
  } catch (error) {
    if (!(error instanceof EVMError)) throw error;
    return error.error === STOP ? { runState: state } : { runState: state, exceptionError: error };
  }
}

/**
 * One opcode; a promise only where its gas or its handler has to be waited for. The library's step event is
 * left out: traces are made by the chain's own EVM.
 */
function step(self: InterpreterInside, evm: EVM, state: RunState): Promise<void> | undefined {
  const opcode = state.code[state.programCounter] ?? 0;
  const entry = evm["_opcodeMap"][opcode];
  if (entry === undefined) throw new EVMError(INVALID_OPCODE);
  state.opCode = opcode;
  const { opcodeInfo } = entry;
  if (!opcodeInfo.dynamicGas) return finishStep(self, state, entry, opcodeInfo.feeBigInt);
  const gas = entry.gasHandler(state, opcodeInfo.feeBigInt, self.common);
  return typeof gas === "bigint"
    ? finishStep(self, state, entry, gas)
    : gas.then((charged) => finishStep(self, state, entry, charged));
}

function finishStep(
  self: InterpreterInside,
  state: RunState,
  entry: OpcodeEntry,
  gas: bigint,
): Promise<void> | undefined {
  if (entry.opcodeInfo.isInvalid) throw new EVMError(INVALID_OPCODE);
  state.gasLeft -= gas;
  if (state.gasLeft < 0n) {
    state.gasLeft = 0n;
    throw new EVMError(OUT_OF_GAS);
  }
  state.programCounter++;
  const done = entry.opHandler(state, self.common);
  return typeof done === "object" ? done : undefined;
}

/** The library does not export its interpreter: one opcode of our own shows an instance of it. */
async function sampleInterpreter(): Promise<Interpreter> {
  let seen: Interpreter | undefined;
  const probe = {
    opcode: PROBE_OPCODE,
    opcodeName: "PROBE",
    baseFee: 0,
    logicFunction: ({ interpreter }: RunState) => {
      seen = interpreter;
    },
  };
  const evm = await createEVM({ customOpcodes: [probe] });
  await evm.runCode({ code: Uint8Array.of(PROBE_OPCODE), gasLimit: 1n });
  if (seen === undefined) throw new TypeError("this version of @ethereumjs/evm runs no opcodes");
  return seen;
}

/** The parts of the library's class that are used here must be where they were. */
function prototypeOf(interpreter: Interpreter): InterpreterInside {
  const prototype: Partial<InterpreterInside> = Object.getPrototypeOf(interpreter);
  if (typeof prototype.run !== "function") {
    throw new TypeError("this version of @ethereumjs/evm has another interpreter");
  }
  return prototype as InterpreterInside;
}

const sample = await sampleInterpreter();
const prototype = prototypeOf(sample);
const Stack = sample["_runState"].stack.constructor as new () => RunState["stack"];
/** Frames of tuned EVMs only; other EVMs in the process keep the library's loop. */
const framePrototype: object = Object.assign(Object.create(prototype), { run });

/** Memory of a frame; what grows it has been paid for by the opcode's gas. */
class FrameMemory {
  private bytes: Uint8Array<ArrayBuffer> = NO_BYTES;

  /** The bytes themselves, under the library's name for them. */
  get _store(): Uint8Array<ArrayBuffer> {
    return this.bytes;
  }

  extend(offset: number, size: number): void {
    const end = offset + size;
    if (size === 0 || end <= this.bytes.length) return;
    const needed = Math.ceil(end / 32) * 32;
    const grown = new Uint8Array(Math.max(needed, 2 * this.bytes.length, FIRST_MEMORY_BYTES));
    grown.set(this.bytes);
    this.bytes = grown;
  }

  write(offset: number, size: number, value: Uint8Array): void {
    if (size === 0) return;
    this.extend(offset, size);
    if (value.length !== size) throw new RangeError("the value has another size");
    this.bytes.set(value, offset);
  }

  read(offset: number, size: number, isView?: boolean): Uint8Array<ArrayBuffer> {
    this.extend(offset, size);
    const view = this.bytes.subarray(offset, offset + size);
    return isView === true ? view : view.slice();
  }
}

/**
 * An interpreter as the library's constructor makes it, but without the 8 KiB of memory that it
 * gives to every frame, used or not.
 */
export function createInterpreter(evm: EVM, env: RunState["env"], gasLeft: bigint): Interpreter {
  const interpreter: Interpreter = Object.create(framePrototype);
  const runState: RunState = {
    programCounter: 0,
    opCode: INVALID,
    memory: new FrameMemory(),
    memoryWordCount: 0n,
    highestMemCost: 0n,
    stack: new Stack(),
    code: NO_BYTES,
    validJumps: NO_BYTES,
    cachedPushes: {},
    stateManager: evm.stateManager,
    blockchain: evm.blockchain,
    env,
    shouldDoJumpAnalysis: true,
    interpreter,
    gasRefund: env.gasRefund,
    gasLeft,
    stateGasSpilled: 0n,
    returnBytes: NO_BYTES,
  };
  return Object.assign(interpreter, {
    opDebuggers: {},
    _evm: evm,
    _stateManager: evm.stateManager,
    common: evm.common,
    journal: evm.journal,
    _env: env,
    _runState: runState,
    _result: { logs: [], returnValue: undefined, selfdestruct: new Map() },
  });
}
