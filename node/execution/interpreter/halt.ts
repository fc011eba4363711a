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

/** An instruction, or the memory that it needs, costs more than is left. */
export const OUT_OF_GAS = new Halt("out of gas");

/** The transaction has used up its compute units (D21): every frame of it ends. */
export const OUT_OF_COMPUTE = new Halt("out of compute");

/** INVALID, or a byte that is no opcode. */
export const INVALID_OPCODE = new Halt("invalid opcode");

/** An instruction finds fewer items than it takes. */
export const STACK_UNDERFLOW = new Halt("stack underflow");

/** More than 1,024 items. */
export const STACK_OVERFLOW = new Halt("stack overflow");

/** A jump to anything but a JUMPDEST. */
export const INVALID_JUMP = new Halt("invalid JUMP");

/** A change of state below a STATICCALL. */
export const STATIC_STATE_CHANGE = new Halt("static state change");

/** RETURNDATACOPY behind the end (EIP-211). */
export const RETURN_DATA_BOUNDS = new Halt("value out of range");

/** A creation where a contract is. */
export const CREATE_COLLISION = new Halt("create collision");

/** More code than EIP-170 allows. */
export const CODE_TOO_LARGE = new Halt("code size to deposit exceeds maximum code size");

/** More creation code than EIP-3860 allows. */
export const INIT_CODE_TOO_LARGE = new Halt("initcode exceeds max initcode size");

/** Code that starts with 0xEF (EIP-3541). */
export const INVALID_CODE = new Halt("invalid bytecode deployed");

/** The sender of a message does not have its value. */
export const INSUFFICIENT_BALANCE = new Halt("insufficient balance");

/** A precompile did not take its input. */
export const PRECOMPILE_FAILED = new Halt("precompile failed");
