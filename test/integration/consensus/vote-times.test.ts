/**
 * Times of precommits that would take the chain's time back: a liar may sign any, and one whose clock
 * is behind and who has not seen the block votes nil with what its clock says.
 */
import { afterEach, describe, expect, it } from "@jest/globals";
import { msToNs } from "../../../chain/consensus/block-id.js";
import {
  decodeConsensusBlock,
  encodeConsensusBlock,
  splitIntoParts,
} from "../../../chain/consensus/consensus-block.js";
import { type Vote, VOTE_TYPE, type VoteType } from "../../../chain/consensus/vote.js";
import { ZERO_HASH } from "../../../chain/hex.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { idOf, SignedChain } from "../../helpers/chains/signed-chain.js";
import { until } from "../../helpers/until.js";
import {
  PATIENT_TIMEOUTS,
  validatorGenesis,
  ValidatorNode,
} from "../../helpers/chains/validator-node.js";

const { genesis, seeds } = validatorGenesis(4);
const chain = new SignedChain(genesis, seeds, ZERO_HASH);
const proposer = chain.proposerOf(2);
const [honest, liar, late] = [0, 1, 2, 3].filter((one) => one !== proposer) as [
  number,
  number,
  number,
];

let nodes: ValidatorNode[] = [];

afterEach(async () => {
  for (const node of nodes) await node.stop();
  nodes = [];
});

async function open(who: number) {
  const node = await ValidatorNode.open({ genesis, seed: seeds[who], timeouts: PATIENT_TIMEOUTS });
  nodes.push(node);
  const said: ConsensusMessage[] = [];
  node.start((message) => said.push(message));
  await until(() => node.consensus.status().step >= 3, { timeoutMs: 30_000, what: "round 0" });
  const tell = async (messages: readonly ConsensusMessage[]) => {
    for (const message of messages) await node.consensus.receive(message, "peer");
  };
  const votes = (height: number): Vote[] =>
    said.flatMap((one) => (one.type === "vote" && one.vote.height === height ? [one.vote] : []));
  return { node, said, tell, votes };
}

type Speaker = Awaited<ReturnType<typeof open>>;

/** Has a validator decide block 1, told what the others say of it. */
async function decideFirst({ node, tell }: Speaker, others: readonly number[]) {
  chain.appHash = node.view.head().hash;
  const block = chain.makeBlock();
  const blockId = idOf(block);
  const { header, parts } = splitIntoParts(encodeConsensusBlock(block));
  const place = { height: 1, round: 0 };
  const content = { ...place, polRound: -1, blockId, timeNs: 5n };
  const startNs = msToNs(genesis.genesisTimeMs);
  const vote = (type: VoteType, who: number): ConsensusMessage => {
    // Who came late saw the block in the votes of others alone.
    const isNil = who === late;
    const timeNs = who === liar ? 9n : isNil ? startNs : block.header.timeNs + 1_000_000n;
    const said = { type, ...place, blockId: isNil ? undefined : blockId, timeNs };
    return { type: "vote", vote: chain.vote(who, said) };
  };
  await tell([
    { type: "proposal", proposal: chain.proposal(chain.proposerOf(1), content) },
    ...parts.map((part): ConsensusMessage => ({ type: "part", ...place, header, part })),
    ...others.map((who) => vote(VOTE_TYPE.prevote, who)),
    // The vote that is behind counts before the block is decided without it.
    ...[late, ...others].map((who) => vote(VOTE_TYPE.precommit, who)),
  ]);
  await until(() => node.height === 1, { timeoutMs: 30_000, what: "block 1" });
  return block;
}

describe("a proposer", () => {
  it("makes a block that others take, whatever times a liar and a late one have signed", async () => {
    const own = await open(proposer);
    const first = await decideFirst(own, [honest, liar, late]);
    await until(() => own.votes(2).length > 0, { timeoutMs: 30_000, what: "its own block" });
    const offered = own.said.filter((one) => {
      if (one.type === "proposal") return one.proposal.height === 2;
      return one.type === "part" && one.height === 2;
    });
    const parts = offered.flatMap((one) => (one.type === "part" ? [one.part.bytes] : []));
    const { header } = decodeConsensusBlock(Buffer.concat(parts));
    expect(header.timeNs).toBeGreaterThan(first.header.timeNs);
    // Nobody else can make a better one of the same precommits: without this the chain stands still.
    const other = await open(honest);
    await decideFirst(other, [proposer, liar, late]);
    await until(() => other.node.consensus.status().height === 2, { timeoutMs: 30_000 });
    await until(() => other.node.consensus.status().step >= 3, { timeoutMs: 30_000 });
    await other.tell(offered);
    await until(() => other.votes(2).length > 0, { timeoutMs: 30_000, what: "a prevote" });
    expect(other.votes(2)[0]?.blockId?.hash).toBeDefined();
  });
});
