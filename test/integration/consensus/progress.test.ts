/** The height in progress as servers see it, of a validator at work and of a node that follows. */
import { afterEach, describe, expect, it } from "@jest/globals";
import type { HeightProgress } from "../../../node/consensus/consensus-ports.js";
import { STEP } from "../../../node/consensus/machine/consensus-state.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";
import { until } from "../../helpers/until.js";

const { genesis, seeds } = validatorGenesis(1, { blockIntervalMs: 50 });
let node: ValidatorNode | undefined;

afterEach(() => node?.stop());

describe("the height in progress", () => {
  it("shows proposal, block, lock and votes of a validator that decides", async () => {
    node = await ValidatorNode.open({ genesis, seed: seeds[0] });
    const { consensus } = node;
    const seen = new Map<string, HeightProgress>();
    consensus.onMoment(({ height, step }) => {
      const isWanted = height === 3 && step === STEP.precommit;
      if (isWanted && !seen.has("locked")) seen.set("locked", consensus.progress());
    });
    node.start(() => undefined);
    await until(() => seen.has("locked") && consensus.height() >= 3, { timeoutMs: 20_000 });
    const progress = seen.get("locked");
    const decided = consensus.load(3);
    const blockId = decided?.commit.blockId;
    expect(progress).toMatchObject({
      height: 3,
      round: 0,
      proposal: { height: 3, blockId },
      proposalBlock: { id: blockId, block: decided?.block, parts: [true] },
      validRound: 0,
      validBlock: { id: blockId },
      commitRound: -1,
    });
    expect(progress?.votes[0]?.prevotes[0]?.blockId).toEqual(blockId);
    // The commit of height 2 is what block 3 carries.
    const last = progress?.lastCommit?.[0];
    const [carried] = decided?.block.lastCommit.signatures ?? [];
    expect(carried).toMatchObject({ signature: last?.signature });
    expect(progress?.commitTimeMs).toBeGreaterThan(0);
  });

  it("is the next one, with nothing in it, on a node that follows", async () => {
    node = await ValidatorNode.open({ genesis, seed: undefined });
    expect(node.consensus.progress()).toMatchObject({ height: 1, step: 1, lastCommit: undefined });
    const chain = new SignedChain(genesis, seeds, node.view.head().hash);
    const decided = chain.decide(chain.makeBlock());
    await node.consensus.apply(decided);
    const { height, round, lastCommit, votes } = node.consensus.progress();
    expect([height, round, votes]).toEqual([
      2,
      0,
      [{ round: 0, prevotes: [undefined], precommits: [undefined] }],
    ]);
    expect(lastCommit?.[0]?.blockId).toEqual(decided.commit.blockId);
  });
});
