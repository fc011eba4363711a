/** Proofs of double signing as blocks see them: what a block may hold, and what it changes. */
import type { DuplicateVoteEvidence } from "../../chain/consensus/evidence.js";
import type { Steps } from "../../chain/steps/steps.js";
import type { StoreWrite } from "../store/database.js";
import type { ChainTip } from "./chain-tip.js";

/** The pool of evidence. */
export interface BlockEvidence {
  /**
   * Checks the evidence of a block, each signature in a step of its own.
   * @throws BLOCK_INVALID when a piece is false, too old, there twice or in a block already
   */
  checkSteps(list: readonly DuplicateVoteEvidence[], tip: ChainTip): Steps<void>;
  /**
   * Writes of a block that takes evidence; part of its one atomic write.
   * @param tip the tip with the block
   */
  writesOf(committed: readonly DuplicateVoteEvidence[], tip: ChainTip): StoreWrite[];
  /** After a block: forgets what it took and what is too old; the new pieces. */
  afterBlock(
    tip: ChainTip,
    committed: readonly DuplicateVoteEvidence[],
  ): Promise<DuplicateVoteEvidence[]>;
}
