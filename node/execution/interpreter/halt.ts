/**
 * Why a frame ends other than well. The texts are those that @ethereumjs/evm uses: they stand in
 * balance journals, and both engines write the same ones.
 */

/** Ends the frame that runs; whoever made the frame sees it, nobody above. */
export class Halt extends Error {
  override readonly name = "Halt";
}

/** REVERT: the frame's effects are undone, its remaining gas goes back. */
export const REVERTED = new Halt("revert");

export const OUT_OF_GAS = new Halt("out of gas");
export const OUT_OF_COMPUTE = new Halt("out of compute");
export const INVALID_OPCODE = new Halt("invalid opcode");
export const STACK_UNDERFLOW = new Halt("stack underflow");
export const STACK_OVERFLOW = new Halt("stack overflow");
export const INVALID_JUMP = new Halt("invalid JUMP");
export const STATIC_STATE_CHANGE = new Halt("static state change");
export const RETURN_DATA_BOUNDS = new Halt("value out of range");
export const CREATE_COLLISION = new Halt("create collision");
export const CODE_TOO_LARGE = new Halt("code size to deposit exceeds maximum code size");
export const CODE_DEPOSIT_GAS = new Halt("code store out of gas");
export const INIT_CODE_TOO_LARGE = new Halt("initcode exceeds max initcode size");
export const INVALID_CODE = new Halt("invalid bytecode deployed");
export const INSUFFICIENT_BALANCE = new Halt("insufficient balance");
export const PRECOMPILE_FAILED = new Halt("precompile failed");
