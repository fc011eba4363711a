/** A validator of four among messages that the test signs for the others. */
import { encodeConsensusBlock, splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import { type Vote, VOTE_TYPE } from "../../../chain/consensus/vote.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import type { ChainParams } from "../../../node/settings/genesis.js";
import { until } from "../until.js";
import { type BlockChoice, idOf, SignedChain } from "./signed-chain.js";
import { PATIENT_TIMEOUTS, validatorGenesis, ValidatorNode } from "./validator-node.js";

/**
 * A validator at a height in whose round 0 it does not propose, and everything it says.
 * @param params what of the chain's parameters is not as usual
 */
export async function listeningValidator(height = 1, params: Partial<ChainParams> = {}) {
  const { genesis: usual, seeds } = validatorGenesis(4);
  const genesis = { ...usual, params: { ...usual.params, ...params } };
  const probe = new SignedChain(genesis, seeds, `0x${"00".repeat(32)}` as never);
  const proposer = probe.proposerOf(height);
  const own = (proposer + 1) % 4;
  const others = [0, 1, 2, 3].filter((one) => one !== own);
  const node = await ValidatorNode.open({ genesis, seed: seeds[own], timeouts: PATIENT_TIMEOUTS });
  const chain = new SignedChain(genesis, seeds, node.view.head().hash);
  while (chain.height + 1 < height) {
    const decided = chain.decide(chain.makeBlock());
    await node.consensus.apply(decided);
    chain.follow(decided, { appHash: node.view.head().hash });
  }
  const said: ConsensusMessage[] = [];
  node.start((message) => said.push(message));
  await until(() => node.consensus.status().step >= 3, { timeoutMs: 10_000, what: "round 0" });
  const tell = (message: ConsensusMessage) => node.consensus.receive(message, "peer");
  /** Proposal and parts of a block, as its proposer sends them. */
  const offer = (choice: BlockChoice = {}, who = proposer) => {
    const block = chain.makeBlock(choice);
    const blockId = idOf(block);
    const content = { height, round: 0, polRound: -1, blockId, timeNs: 5n };
    const { header, parts } = splitIntoParts(encodeConsensusBlock(block));
    const proposal: ConsensusMessage = {
      type: "proposal",
      proposal: chain.proposal(who, content),
    };
    const partMessages = parts.map((part): ConsensusMessage => {
      return { type: "part", height, round: 0, header, part };
    });
    return { block, blockId, proposal, parts: partMessages };
  };
  const vote = (who: number, change: Partial<Vote> = {}): Vote => {
    const content = {
      type: VOTE_TYPE.prevote,
      height,
      round: 0,
      blockId: undefined,
      timeNs: 9n,
    };
    return { ...chain.vote(who, { ...content, ...change }) };
  };
  const votes = () => said.flatMap((one) => (one.type === "vote" ? [one.vote] : []));
  return { node, chain, said, tell, offer, vote, votes, proposer, own, others };
}
