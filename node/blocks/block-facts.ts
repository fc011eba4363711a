/** What consensus tells the modules of a block: from the tip, and from what the block carries. */
import { type Commit, COMMIT_FLAG } from "../../chain/consensus/commit.js";
import type { DuplicateVoteEvidence } from "../../chain/consensus/evidence.js";
import type { BlockFacts } from "../modules/modules.js";
import type { ChainTip } from "./chain-tip.js";

/** Facts of the block that follows the tip with this commit and evidence. */
export function blockFactsOf(
  { lastValidators }: Pick<ChainTip, "lastValidators">,
  lastCommit: Commit,
  evidence: readonly DuplicateVoteEvidence[],
): BlockFacts {
  const votes = (lastValidators?.validators ?? []).map(({ address, power }, index) => {
    const flag = lastCommit.signatures[index]?.flag ?? COMMIT_FLAG.absent;
    return { consensusAddress: address, power, isSigned: flag !== COMMIT_FLAG.absent };
  });
  const misbehavior = evidence.map(({ voteA, validatorPower }) => ({
    consensusAddress: voteA.validatorAddress,
    height: voteA.height,
    power: validatorPower,
  }));
  return { votes, misbehavior };
}
