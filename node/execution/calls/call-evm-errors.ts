/** geth's words for what went wrong in the EVM; clients match on them. */
import { EVMError, type ExecResult } from "@ethereumjs/evm";
import { EVM_FAILURE, EVM_FAILURE_START } from "../../../chain/evm/evm-failure.js";

const MESSAGES = EVMError.errorMessages;
const OPCODE_RETURNDATACOPY = 0x3e;
const OPCODE_RETURN = 0xf3;
const OPCODE_INVALID = 0xfe;
const STACK_LIMIT = 1_024;

/** Text of a REVERT, in every place where geth names it. */
export const EXECUTION_REVERTED = "execution reverted";
/** A CALL or CREATE at the deepest level. */
export const DEPTH_EXCEEDED = EVM_FAILURE.depthExceeded;
/** A frame that would move more than its caller has. */
export const INSUFFICIENT_BALANCE = EVM_FAILURE.insufficientBalance;

/** Texts that do not depend on the frame. */
const TEXTS = new Map<string, string>([
  [MESSAGES.CODESIZE_EXCEEDS_MAXIMUM, EVM_FAILURE.codeTooLarge],
  [MESSAGES.REVERT, EXECUTION_REVERTED],
  [MESSAGES.STATIC_STATE_CHANGE, EVM_FAILURE.writeProtection],
  [MESSAGES.CREATE_COLLISION, EVM_FAILURE.addressCollision],
  [MESSAGES.INSUFFICIENT_BALANCE, INSUFFICIENT_BALANCE],
  [MESSAGES.INVALID_BYTECODE_RESULT, EVM_FAILURE.invalidCode],
  [MESSAGES.INITCODE_SIZE_VIOLATION, EVM_FAILURE.initcodeTooLarge],
]);

/** Stack items that each opcode takes, by opcode; the sixteen rows are the high hex digit. */
const TAKEN_BY_OPCODE: readonly string[] = [
  "0222222233220000",
  "2222212222122200",
  "2000000000000000",
  "0100010303011403",
  "1000000001000000",
  "1122121200001230",
];

function itemsTaken(opcode: number): number {
  if (opcode >= 0x80 && opcode <= 0x8f) return opcode - 0x7f;
  if (opcode >= 0x90 && opcode <= 0x9f) return opcode - 0x8e;
  if (opcode >= 0xa0 && opcode <= 0xa4) return opcode - 0x9e;
  const calls = new Map([
    [0xf0, 3],
    [0xf1, 7],
    [0xf2, 7],
    [0xf3, 2],
    [0xf4, 6],
    [0xf5, 4],
    [0xfa, 6],
    [0xfd, 2],
    [0xff, 1],
  ]);
  const taken = calls.get(opcode) ?? Number(TAKEN_BY_OPCODE[opcode >> 4]?.charAt(opcode & 15));
  if (Number.isNaN(taken)) throw new TypeError(`opcode ${opcode} takes nothing from the stack`);
  return taken;
}

/** True when the frame ended by REVERT. */
export function isRevert(result: ExecResult): boolean {
  return result.exceptionError?.error === MESSAGES.REVERT;
}

/** True when the frame ran out of gas. */
export function isOutOfGas(result: ExecResult): boolean {
  return result.exceptionError?.error === MESSAGES.OUT_OF_GAS;
}

/** geth's text for the failure of a frame; undefined when it succeeded. */
export function frameErrorText(result: ExecResult): string | undefined {
  const error = result.exceptionError?.error;
  if (error === undefined) return undefined;
  // Precompiles have no opcodes; they only ever run out of gas.
  const opcode = result.runState?.opCode ?? OPCODE_INVALID;
  // The library adds the place to this one.
  if (error.startsWith(MESSAGES.INVALID_JUMP)) return EVM_FAILURE.invalidJump;
  switch (error) {
    case MESSAGES.STACK_UNDERFLOW:
      return `${EVM_FAILURE_START.stackUnderflow}${stackDepth(result)} <=> ${itemsTaken(opcode)})`;
    case MESSAGES.STACK_OVERFLOW:
      return `${EVM_FAILURE_START.stackOverflow}${stackDepth(result)} (${STACK_LIMIT - 1})`;
    case MESSAGES.INVALID_OPCODE:
      return `${EVM_FAILURE_START.invalidOpcode}${invalidOpcodeName(opcode)}`;
    case MESSAGES.OUT_OF_GAS:
      return outOfGasText(opcode, result.gas ?? 0n);
    default:
      return TEXTS.get(error) ?? `${EVM_FAILURE_START.other}${error}`;
  }
}

function stackDepth({ runState }: ExecResult): number {
  if (runState === undefined) throw new TypeError("only opcodes take from the stack");
  return runState.stack.length;
}

/** The library says "out of gas" to more than geth does; these two leave gas in the frame. */
function outOfGasText(opcode: number, gasLeft: bigint): string {
  if (gasLeft > 0n && opcode === OPCODE_RETURNDATACOPY) return EVM_FAILURE.returnDataOutOfBounds;
  // A creation that could run, but not pay for its code.
  if (gasLeft > 0n && opcode === OPCODE_RETURN) return EVM_FAILURE.codeStoreOutOfGas;
  return EVM_FAILURE.outOfGas;
}

function invalidOpcodeName(opcode: number): string {
  return opcode === OPCODE_INVALID ? "INVALID" : `opcode 0x${opcode.toString(16)} not defined`;
}
