/** Metrics of validators, counted from blocks whose signers the test chooses. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { registerConsensusMetrics } from "../../../node/compose/consensus-metrics.js";
import { createMetrics, type Metrics } from "../../../runtime/process/metrics.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { until } from "../../helpers/until.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";

/** The own key's place among the test's keys. */
const OWN = 1;

let metrics: Metrics;

beforeEach(() => {
  metrics = createMetrics({ processMetrics: false });
});

/** Value of a line of the page; undefined when it is not there. */
async function read(name: string, labels = ""): Promise<number | undefined> {
  const start = `cometbft_${name}${labels} `;
  const line = (await metrics.page()).split("\n").find((one) => one.startsWith(start));
  return line === undefined ? undefined : Number(line.slice(start.length));
}

describe("metrics of decided blocks", () => {
  const { genesis, seeds } = validatorGenesis(4);
  let node: ValidatorNode;
  let chain: SignedChain;

  beforeEach(async () => {
    node = await ValidatorNode.open({ genesis, seed: seeds[OWN] });
    chain = new SignedChain(genesis, seeds, node.view.head().hash);
    registerConsensusMetrics(metrics, node.consensus);
  });

  afterEach(() => node.stop());

  async function take(
    who: readonly number[],
    choice?: Parameters<SignedChain["makeBlock"]>[0],
  ): Promise<void> {
    const decided = chain.decide(chain.makeBlock(choice), who);
    await node.consensus.apply(decided);
    chain.follow(decided, { appHash: node.view.head().hash });
  }

  it("tell who was missing and whether the own key has signed", async () => {
    const own = `{validator_address="${node.consensus.ownAddress()?.slice(2).toUpperCase() ?? ""}"}`;
    await take([0, OWN, 2, 3]);
    // The first block has no commit that anybody could be missing in.
    expect(await read("consensus_missing_validators")).toBe(0);
    expect(await read("consensus_validator_last_signed_height", own)).toBeUndefined();
    await take([0, OWN, 2]);
    expect(await read("consensus_validator_last_signed_height", own)).toBe(2);
    expect(await read("consensus_validator_missed_blocks", own)).toBe(0);
    await take([0, 2, 3]);
    expect(await read("consensus_missing_validators")).toBe(1);
    expect(await read("consensus_missing_validators_power")).toBe(10);
    expect(await read("consensus_validator_last_signed_height", own)).toBe(3);
    await take([0, OWN, 2, 3]);
    expect(await read("consensus_validator_last_signed_height", own)).toBe(3);
    expect(await read("consensus_validator_missed_blocks", own)).toBe(1);
    expect(await read("consensus_validator_power", own)).toBe(10);
    await take([0, OWN, 2, 3]);
    expect(await read("consensus_missing_validators")).toBe(0);
  });

  it("tell of double signers in the block that names them, and of sizes and times", async () => {
    for (let height = 1; height <= 3; height++) await take([0, OWN, 2, 3]);
    expect(await read("consensus_byzantine_validators")).toBe(0);
    await take([0, OWN, 2, 3], { evidence: [chain.doubleVote(2, 2)] });
    expect(await read("consensus_byzantine_validators")).toBe(1);
    expect(await read("consensus_byzantine_validators_power")).toBe(10);
    const sizeBytes = (await read("consensus_block_size_bytes")) ?? 0;
    // Evidence alone holds two signed votes.
    expect(sizeBytes).toBeGreaterThan(700);
    expect(await read("consensus_chain_size_bytes")).toBeGreaterThan(sizeBytes);
    for (const method of ["process_proposal", "commit"]) {
      const labels = `{method="${method}",type="sync"}`;
      expect(await read("abci_connection_method_timing_seconds_count", labels)).toBe(4);
    }
    expect(await read("state_block_processing_time_count")).toBe(4);
  });
});

describe("metrics of rounds", () => {
  it("count proposals, own ones included, and votes that come late", async () => {
    const { genesis, seeds } = validatorGenesis(2);
    const network = new ValidatorNetwork(genesis, seeds);
    try {
      const node = await network.start(0);
      registerConsensusMetrics(metrics, node.consensus);
      expect(await read("consensus_proposal_receive_count", '{status="rejected"}')).toBe(0);
      expect(await read("consensus_late_votes", '{vote_type="prevote"}')).toBe(0);
      await network.start(1);
      await network.reach(4);
      const vote = network.sent.find((message) => {
        return message.type === "vote" && message.vote.height === 2;
      });
      if (vote === undefined) throw new Error("a vote of height 2");
      await node.consensus.receive(vote, "1");
      const late = async () => {
        const counts = ["prevote", "precommit"].map((type) => {
          return read("consensus_late_votes", `{vote_type="${type}"}`);
        });
        return (await Promise.all(counts)).reduce<number>((sum, count) => sum + (count ?? 0), 0);
      };
      expect(await late()).toBeGreaterThan(0);
      const accepted = () => read("consensus_proposal_receive_count", '{status="accepted"}');
      expect(await accepted()).toBeGreaterThanOrEqual(4);
      await until(async () => ((await accepted()) ?? 0) > 5, { timeoutMs: 20_000 });
      const build = '{method="prepare_proposal",type="sync"}';
      expect(await read("abci_connection_method_timing_seconds_count", build)).toBeGreaterThan(0);
    } finally {
      await network.close();
    }
  });
});
