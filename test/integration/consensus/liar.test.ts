/**
 * One liar among four, spoken by the test with its key: CometBFT 0.38.17's byzantine_test.go,
 * invalid_test.go and evidence/reactor_test.go.
 */
import { afterEach, describe, expect, it } from "@jest/globals";
import type { BlockId } from "../../../chain/consensus/block-id.js";
import { encodeConsensusBlock, splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import { type DuplicateVoteEvidence, orderVotes } from "../../../chain/consensus/evidence.js";
import {
  type Vote,
  VOTE_TYPE,
  type VoteContent,
  voteSignBytes,
} from "../../../chain/consensus/vote.js";
import { type Hash32, ZERO_HASH } from "../../../chain/hex.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { idOf, SignedChain } from "../../helpers/chains/signed-chain.js";
import { until } from "../../helpers/until.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import {
  PATIENT_TIMEOUTS,
  TEST_TIMEOUTS,
  validatorGenesis,
} from "../../helpers/chains/validator-node.js";

const { genesis, seeds } = validatorGenesis(4);
const probe = new SignedChain(genesis, seeds, ZERO_HASH);
/** The proposer of the first round; the others are honest. */
const liar = probe.proposerOf(1);
const honest = [0, 1, 2, 3].filter((one) => one !== liar);
const liarAddress = genesis.validators[liar]?.address;

let cleanUp: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const step of cleanUp.toReversed()) await step();
  cleanUp = [];
});

async function threeOfFour(
  passes: ValidatorNetwork["passes"] = () => true,
  timeouts = TEST_TIMEOUTS,
): Promise<ValidatorNetwork> {
  const net = new ValidatorNetwork(genesis, seeds);
  cleanUp.push(() => net.close());
  net.passes = passes;
  await Promise.all(honest.map((index) => net.start(index, { timeouts })));
  return net;
}

const nodeOf = (net: ValidatorNetwork, index: number) => {
  const node = net.nodes[index];
  if (node === undefined) throw new Error("the node is down");
  return node;
};

/** A vote with the liar's key. No validator leaves before the lie is punished. */
function lie(content: VoteContent): Vote {
  const key = signingKeyOf(seeds[liar] ?? Buffer.alloc(0));
  const signature = key.sign(voteSignBytes(genesis.cosmosChainId, content));
  if (liarAddress === undefined) throw new Error("no liar");
  const validatorIndex = probe.validators(1).indexOf(liarAddress);
  return { ...content, signature, validatorAddress: liarAddress, validatorIndex };
}

function tell(net: ValidatorNetwork, to: readonly number[], ...messages: ConsensusMessage[]): void {
  for (const index of to) {
    for (const message of messages) void nodeOf(net, index).consensus.receive(message, "liar");
  }
}

const said = (vote: Vote): ConsensusMessage => ({ type: "vote", vote });

/** Calls with each proposal once, when it is first sent. */
function onProposal(
  net: ValidatorNetwork,
  listener: (place: { height: number; round: number; blockId: BlockId }) => void,
): void {
  const seen = new Set<string>();
  net.passes = (_from, _to, message) => {
    if (message.type !== "proposal") return true;
    const { height, round, blockId } = message.proposal;
    const name = `${height}/${round}`;
    if (!seen.has(name)) {
      seen.add(name);
      listener({ height, round, blockId });
    }
    return true;
  };
}

/** Evidence in the blocks that a node has. */
function committedBy(net: ValidatorNetwork, index: number): DuplicateVoteEvidence[] {
  const { consensus, height } = nodeOf(net, index);
  return Array.from(
    { length: height },
    (_, at) => consensus.load(at + 1)?.block.evidence ?? [],
  ).flat();
}

async function expectPunished(net: ValidatorNetwork): Promise<void> {
  const isGone = () =>
    honest.every((index) => {
      const { consensus } = nodeOf(net, index);
      return consensus.validators(consensus.height() + 1)?.size === 3;
    });
  await until(isGone, { timeoutMs: 60_000, what: "the liar is removed" });
  const [first = 0] = honest;
  const { height } = nodeOf(net, first);
  await net.reach(height + 2);
  const hashes = honest.map((index) => nodeOf(net, index).view.block(height + 2)?.block.hash);
  expect(new Set(hashes).size).toBe(1);
  const guilty = committedBy(net, first).map(({ voteA }) => voteA.validatorAddress);
  expect(new Set(guilty)).toEqual(new Set([liarAddress]));
}

describe("a validator that", () => {
  it("prevotes a block and nil is proven and removed (ByzantinePrevoteEquivocation)", async () => {
    const net = await threeOfFour();
    onProposal(net, ({ height, round, blockId }) => {
      if (height !== 2) return;
      const content = { type: VOTE_TYPE.prevote, height, round, timeNs: 7n } as const;
      tell(net, honest, said(lie({ ...content, blockId })));
      tell(net, honest, said(lie({ ...content, blockId: undefined })));
    });
    await expectPunished(net);
    expect(committedBy(net, honest[1] ?? 0).map(({ voteA }) => voteA.height)).toContain(2);
  });

  it("precommits another unknown block at each height holds up nothing", async () => {
    // ReactorInvalidPrecommit
    const net = await threeOfFour();
    const lies: Vote[] = [];
    onProposal(net, ({ height, round }) => {
      const hash = `0x${(1_000 * height + round).toString(16).padStart(64, "0")}` as Hash32;
      const blockId = { hash, parts: { total: 1, hash } };
      const vote = lie({ type: VOTE_TYPE.precommit, height, round, blockId, timeNs: 7n });
      lies.push(vote);
      tell(net, honest, said(vote));
    });
    await net.reach(5);
    expect(lies.length).toBeGreaterThanOrEqual(5);
    const [first = 0] = honest;
    const commit = nodeOf(net, first).consensus.load(4)?.commit;
    expect(commit?.signatures.map(({ flag }) => flag).toSorted()).toEqual([1, 2, 2, 2]);
    expect(committedBy(net, first)).toEqual([]);
  });

  it("proposes two blocks to two halves makes no fork (ByzantineConflictingProposals)", async () => {
    const [alone = 0, ...others] = honest;
    let isHealed = false;
    const passes = (from: number, to: number) => isHealed || (from === alone) === (to === alone);
    // Its turn must not be over before it has spoken, however slow this machine is.
    const timeouts = { ...TEST_TIMEOUTS, proposeMs: PATIENT_TIMEOUTS.proposeMs };
    const net = await threeOfFour(passes, timeouts);
    const chain = new SignedChain(genesis, seeds, nodeOf(net, alone).view.head().hash);
    const place = { height: 1, round: 0 };
    const offer = async (to: readonly number[], proposer: number) => {
      const { address } = genesis.validators[proposer] ?? {};
      if (address === undefined) throw new Error("no proposer");
      const block = chain.makeBlock({ header: { proposerAddress: address } });
      const blockId = idOf(block);
      const { header, parts } = splitIntoParts(encodeConsensusBlock(block));
      const content = { ...place, polRound: -1, blockId, timeNs: 5n };
      const vote = (type: Vote["type"]) => said(lie({ ...place, type, blockId, timeNs: 9n }));
      const proposal: ConsensusMessage = {
        type: "proposal",
        proposal: chain.proposal(liar, content),
      };
      for (const index of to) {
        const isTaken = async () =>
          (await nodeOf(net, index).consensus.receive(proposal, "liar")) !== "useless";
        await until(isTaken, { timeoutMs: 30_000, what: "the proposal is taken" });
      }
      tell(
        net,
        to,
        ...parts.map((part): ConsensusMessage => ({ type: "part", ...place, header, part })),
        vote(VOTE_TYPE.prevote),
        vote(VOTE_TYPE.precommit),
      );
      return blockId.hash;
    };
    await offer([alone], liar);
    const decided = await offer(others, alone);
    const isDecided = (index: number) => nodeOf(net, index).height >= 1;
    await until(() => others.every(isDecided), { timeoutMs: 30_000, what: "one half decides" });
    expect(nodeOf(net, alone).height).toBe(0);
    // Nobody waits for what it does not propose later.
    timeouts.proposeMs = TEST_TIMEOUTS.proposeMs;
    isHealed = true;
    await net.reach(3);
    for (const index of honest) {
      expect(nodeOf(net, index).consensus.load(1)?.commit.blockId?.hash).toBe(decided);
    }
    await expectPunished(net);
  });
});

describe("evidence", () => {
  it("told to one node is in the blocks of all, and told no more after", async () => {
    // ReactorBroadcastEvidence, ReactorsGossipNoCommittedEvidence
    const net = await threeOfFour();
    await net.reach(2);
    const [first = 0] = honest;
    const timeNs = nodeOf(net, first).consensus.load(2)?.block.header.timeNs;
    if (timeNs === undefined) throw new Error("no block");
    const hash = `0x${"12".repeat(32)}` as Hash32;
    const content = { type: VOTE_TYPE.precommit, height: 2, round: 0, timeNs: 7n } as const;
    const [voteA, voteB] = orderVotes(
      lie({ ...content, blockId: { hash, parts: { total: 1, hash } } }),
      lie({ ...content, blockId: undefined }),
    );
    const evidence = { voteA, voteB, totalPower: 40n, validatorPower: 10n, timeNs };
    const message: ConsensusMessage = { type: "evidence", evidence };
    const told = () => net.sent.filter(({ type }) => type === "evidence").length;
    // Its own proposal could punish the liar before it has a reason to tell anybody.
    net.passes = (from, _to, { type }) => from !== first || type !== "proposal" || told() > 0;
    expect(await nodeOf(net, first).consensus.receive(message, "peer")).toBe("new");
    await expectPunished(net);
    for (const index of honest) expect(committedBy(net, index)).toEqual([evidence]);
    const before = told();
    expect(before).toBeGreaterThan(0);
    await net.reach(nodeOf(net, first).height + 3);
    expect(told()).toBe(before);
  });
});
