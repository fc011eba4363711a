/** Faults of blocks: who is to blame decides what follows. */
import { AppError } from "../../chain/errors.js";

/** Codes of faults of blocks. */
export type BlockErrorCode =
  /** A block or its commit breaks a rule of the chain: its sender's fault. */
  | "BLOCK_INVALID"
  /**
   * Two thirds of the validators decided a block that this node cannot take: the fault is its own,
   * in its state or its version, and no other peer has another block.
   */
  | "DECIDED_BLOCK_REFUSED";

/** A fault of a block. */
export class BlockError extends AppError<BlockErrorCode> {}

/** The error for a block that breaks a rule. */
export function blockInvalid(reason: string): BlockError {
  return new BlockError("BLOCK_INVALID", `block refused: ${reason}`);
}
