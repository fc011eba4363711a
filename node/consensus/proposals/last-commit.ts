/** The last commit of a new block: which of the precommits that are known go into it. */
import {
  type Commit,
  COMMIT_FLAG,
  type CommitSignature,
  EMPTY_COMMIT,
} from "../../../chain/consensus/commit.js";
import { timeAfterNs } from "../../blocks/block-validity.js";
import type { ChainTip } from "../../blocks/chain-tip.js";
import { makeCommit } from "../machine/commit-votes.js";
import type { DecidingVotes } from "../machine/consensus-state.js";

/**
 * All that are known, unless their median would take the chain's time back: then the block would be
 * nobody's, in every round. Votes for nil that are not later than the block are left out of such a
 * commit: who has not seen a block votes by a clock that may be behind. Of the votes for the block more
 * than half are honest, and honest ones are later than it, whatever times liars have signed: but where those
 * of barely two thirds are known, CometBFT's median, which halves the power downwards, can be a liar's.
 * @param known precommits that decided the tip; undefined at height 0
 */
export function lastCommitFor(tip: ChainTip, known: DecidingVotes | undefined): Commit {
  const { height, lastValidators, timeNs } = tip;
  if (known === undefined || lastValidators === undefined) return EMPTY_COMMIT;
  const commit = makeCommit(height, known, lastValidators);
  if (timeAfterNs(tip, commit) > timeNs) return commit;
  const isBehind = (one: CommitSignature) => one.flag === COMMIT_FLAG.nil && one.timeNs <= timeNs;
  const signatures = commit.signatures.map((one): CommitSignature => {
    return isBehind(one) ? { flag: COMMIT_FLAG.absent } : one;
  });
  return { ...commit, signatures };
}
