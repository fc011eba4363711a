/**
 * Why a frame ends other than well. The messages are those that @ethereumjs/evm uses: they stand in
 * balance journals, and both engines write the same ones. The texts are those that clients of
 * go-ethereum know.
 */
import { EVM_FAILURE, EVM_FAILURE_START } from "../../../chain/evm/evm-failure.js";

/** Text of a REVERT, in every place where go-ethereum names it. */
const EXECUTION_REVERTED = "execution reverted";

/** Ends the frame that runs; whoever made the frame sees it, nobody above. */
export class Halt extends Error {
  override readonly name = "Halt";

  /** @param text what clients are told */
  constructor(
    message: string,
    readonly text: string = message,
  ) {
    super(message);
  }
}

/** REVERT: the frame's effects are undone, its remaining gas goes back. */
export const REVERTED = new Halt("revert", EXECUTION_REVERTED);

/** An instruction, or the memory that it needs, costs more than is left. */
export const OUT_OF_GAS = new Halt("out of gas", EVM_FAILURE.outOfGas);

/** An SSTORE with no more gas than its stipend (EIP-2200). */
export const SENTRY_OUT_OF_GAS = new Halt(
  "out of gas",
  `${EVM_FAILURE_START.outOfGasBecause}not enough gas for reentrancy sentry`,
);

/** The transaction has used up its compute units (D21): every frame of it ends. */
export const OUT_OF_COMPUTE = new Halt("out of compute", EVM_FAILURE.outOfCompute);

/** INVALID, or a byte that is no opcode. */
export const INVALID_OPCODE = new Halt(
  "invalid opcode",
  `${EVM_FAILURE_START.invalidOpcode}INVALID`,
);

/** An instruction finds fewer items than it takes. */
export const STACK_UNDERFLOW = new Halt("stack underflow");

/** More than 1,024 items. */
export const STACK_OVERFLOW = new Halt("stack overflow");

/** A jump to anything but a JUMPDEST. */
export const INVALID_JUMP = new Halt("invalid JUMP", EVM_FAILURE.invalidJump);

/** A change of state below a STATICCALL. */
export const STATIC_STATE_CHANGE = new Halt("static state change", EVM_FAILURE.writeProtection);

/** RETURNDATACOPY behind the end (EIP-211). */
export const RETURN_DATA_BOUNDS = new Halt("value out of range", EVM_FAILURE.returnDataOutOfBounds);

/** A creation where a contract is. */
export const CREATE_COLLISION = new Halt("create collision", EVM_FAILURE.addressCollision);

/** More code than EIP-170 allows. */
export const CODE_TOO_LARGE = new Halt(
  "code size to deposit exceeds maximum code size",
  EVM_FAILURE.codeTooLarge,
);

/** A creation whose gas does not pay for its code. */
export const CODE_OUT_OF_GAS = new Halt("out of gas", EVM_FAILURE.codeStoreOutOfGas);

/** More creation code than EIP-3860 allows. */
export function initCodeTooLarge(sizeBytes: number): Halt {
  const what = `${EVM_FAILURE.initcodeTooLarge}: size ${sizeBytes}`;
  return new Halt(INIT_CODE_TOO_LARGE, `${EVM_FAILURE_START.outOfGasBecause}${what}`);
}

/** Message of such a failure. */
export const INIT_CODE_TOO_LARGE = "initcode exceeds max initcode size";

/** Code that starts with 0xEF (EIP-3541). */
export const INVALID_CODE = new Halt("invalid bytecode deployed", EVM_FAILURE.invalidCode);

/** The sender of a message does not have its value. */
export const INSUFFICIENT_BALANCE = new Halt(
  "insufficient balance",
  EVM_FAILURE.insufficientBalance,
);

/** A message below 1,024 others; it is never begun. */
export const TOO_DEEP = new Halt("max call depth exceeded", EVM_FAILURE.depthExceeded);

/** A creation by an account whose nonce cannot rise; it is never begun. */
export const NONCE_SPENT = new Halt("nonce overflow", EVM_FAILURE.nonceOverflow);

/** A precompile did not take its input. */
export const PRECOMPILE_FAILED = new Halt(
  "precompile failed",
  `${EVM_FAILURE_START.other}precompile failed`,
);
