/** geth's words for what went wrong in the EVM; clients match on them. */
import { EVMError, type ExecResult } from "@ethereumjs/evm";

const MESSAGES = EVMError.errorMessages;
const OPCODE_RETURNDATACOPY = 0x3e;
const OPCODE_RETURN = 0xf3;
const OPCODE_INVALID = 0xfe;
const STACK_LIMIT = 1_024;

/** Text of a REVERT, in every place where geth names it. */
export const EXECUTION_REVERTED = "execution reverted";
/** A CALL or CREATE at the deepest level. */
export const DEPTH_EXCEEDED = "max call depth exceeded";
/** A frame that would move more than its caller has. */
export const INSUFFICIENT_BALANCE = "insufficient balance for transfer";

/** Texts that do not depend on the frame. */
const TEXTS = new Map<string, string>([
  [MESSAGES.CODESIZE_EXCEEDS_MAXIMUM, "max code size exceeded"],
  [MESSAGES.REVERT, EXECUTION_REVERTED],
  [MESSAGES.STATIC_STATE_CHANGE, "write protection"],
  [MESSAGES.CREATE_COLLISION, "contract address collision"],
  [MESSAGES.INSUFFICIENT_BALANCE, INSUFFICIENT_BALANCE],
  [MESSAGES.INVALID_BYTECODE_RESULT, "invalid code: must not begin with 0xef"],
  [MESSAGES.INITCODE_SIZE_VIOLATION, "max initcode size exceeded"],
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
  return calls.get(opcode) ?? Number(TAKEN_BY_OPCODE[opcode >> 4]?.charAt(opcode & 15) ?? 0);
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
  const { runState } = result;
  const opcode = runState?.opCode ?? OPCODE_INVALID;
  const depth = runState?.stack.length ?? 0;
  // The library adds the place to this one.
  if (error.startsWith(MESSAGES.INVALID_JUMP)) return "invalid jump destination";
  switch (error) {
    case MESSAGES.STACK_UNDERFLOW:
      return `stack underflow (${depth} <=> ${itemsTaken(opcode)})`;
    case MESSAGES.STACK_OVERFLOW:
      return `stack limit reached ${depth} (${STACK_LIMIT - 1})`;
    case MESSAGES.INVALID_OPCODE:
      return `invalid opcode: ${invalidOpcodeName(opcode)}`;
    case MESSAGES.OUT_OF_GAS:
      return outOfGasText(opcode, result.gas ?? 0n);
    default:
      return TEXTS.get(error) ?? error;
  }
}

/** The library says "out of gas" to more than geth does; these two leave gas in the frame. */
function outOfGasText(opcode: number, gasLeft: bigint): string {
  if (gasLeft > 0n && opcode === OPCODE_RETURNDATACOPY) return "return data out of bounds";
  // A creation that could run, but not pay for its code.
  if (gasLeft > 0n && opcode === OPCODE_RETURN) return "contract creation code storage out of gas";
  return "out of gas";
}

function invalidOpcodeName(opcode: number): string {
  return opcode === OPCODE_INVALID ? "INVALID" : `opcode 0x${opcode.toString(16)} not defined`;
}
