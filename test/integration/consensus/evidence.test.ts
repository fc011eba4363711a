/** The evidence pool on a real store (CometBFT 0.38.17's evidence/pool_test.go). */
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { type DuplicateVoteEvidence, hashEvidence } from "../../../chain/consensus/evidence.js";
import { ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { VOTE_TYPE } from "../../../chain/consensus/vote.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { executeBlock } from "../../../node/blocks/block-validity.js";
import type { ChainTip } from "../../../node/blocks/chain-tip.js";
import { loadTip } from "../../../node/consensus/consensus-archive.js";
import { consensusParamsOf } from "../../../node/settings/genesis.js";
import { EvidencePool, isEvidenceExpired } from "../../../node/consensus/evidence-pool.js";
import { ConsensusStore } from "../../../node/store/consensus-store.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";
import { turnsOf } from "../../helpers/effort/turns.js";

const { genesis, seeds } = validatorGenesis(4);
const params = consensusParamsOf(genesis.params);
const log = createLogger({ component: "test", level: "silent" });

let node: ValidatorNode;
let chain: SignedChain;
let store: ConsensusStore;
let pool: EvidencePool;

beforeEach(async () => {
  node = await ValidatorNode.open({ genesis, seed: undefined });
  chain = new SignedChain(genesis, seeds, node.view.head().hash);
  store = new ConsensusStore(node.stores.database);
  pool = await EvidencePool.open(store, log);
  for (let height = 1; height <= 3; height++) await take();
});

afterEach(() => node.stop());

async function take(): Promise<void> {
  const decided = chain.decide(chain.makeBlock());
  await node.consensus.apply(decided);
  chain.follow(decided, { appHash: node.view.head().hash });
}

function tip(): ChainTip {
  const { height } = node;
  const { genesisTimeMs, cosmosChainId: chainId } = genesis;
  const { blocks } = node.stores;
  return loadTip({ store, blocks }, { chainId, params, genesisTimeMs, height, appVersion: 1 });
}

describe("evidence from peers", () => {
  it("is kept once, offered to blocks, and known after a restart", async () => {
    const evidence = chain.doubleVote(2, 2);
    expect(await pool.receive(evidence, tip())).toBe("new");
    expect(await pool.receive(evidence, tip())).toBe("known");
    const again = await EvidencePool.open(store, log);
    expect(again.waiting()).toEqual([evidence]);
    expect(again.forBlock(tip())).toEqual([evidence]);
    expect(await again.receive(evidence, tip())).toBe("known");
  });

  it("of a height to come is of no use yet, a false one is its sender's fault", async () => {
    const good = chain.doubleVote(2, 3);
    const early = {
      ...good,
      voteA: { ...good.voteA, height: 9 },
      voteB: { ...good.voteB, height: 9 },
    };
    expect(await pool.receive(early, tip())).toBe("useless");
    const { voteA, voteB } = good;
    const other = chain.doubleVote(1, 3);
    for (const bad of [
      { ...good, timeNs: good.timeNs + 1n },
      { ...good, validatorPower: 1n },
      { ...good, voteB: { ...voteB, signature: voteA.signature } },
      { ...good, voteB: other.voteB },
      { ...good, voteA: { ...voteA, type: VOTE_TYPE.precommit } },
      { ...good, voteB: voteA },
    ]) {
      expect(await pool.receive(bad, tip())).toBe("invalid");
    }
    expect(pool.waiting()).toEqual([]);
  });

  it("is judged without the turns of proposers since its set was stored, which take long", async () => {
    const good = chain.doubleVote(2, 3);
    const bad = { ...good, voteB: { ...good.voteB, signature: good.voteA.signature } };
    const now = tip();
    const again = await EvidencePool.open(new ConsensusStore(node.stores.database), log);
    const turns = jest.spyOn(ValidatorSet.prototype, "advance");
    expect(await again.receive(bad, now)).toBe("invalid");
    expect(await again.receive(good, now)).toBe("new");
    expect(turns).not.toHaveBeenCalled();
    turns.mockRestore();
  });

  it("fills no more than a block's share", async () => {
    for (const who of [0, 1, 2]) await pool.receive(chain.doubleVote(who, 2), tip());
    expect(pool.forBlock(tip())).toHaveLength(3);
    const small = { ...tip(), params: { ...params, evidenceMaxBytes: 800 } };
    expect(pool.forBlock(small)).toHaveLength(2);
  });
});

describe("a validator that signed twice again and again", () => {
  it("costs a block one piece, and nothing once it is out of the set", async () => {
    const pieces = ["1", "2", "3"].map((name) => chain.doubleVote(2, 2, name));
    for (const one of pieces) expect(await pool.receive(one, tip())).toBe("new");
    expect(pool.forBlock(tip())).toEqual(pieces.slice(0, 1));
    const decided = chain.decide(chain.makeBlock({ evidence: pieces.slice(0, 1) }));
    await node.consensus.apply(decided);
    await pool.afterBlock(tip(), pieces.slice(0, 1));
    expect(pool.waiting()).toEqual([]);
    expect(await pool.receive(chain.doubleVote(2, 3), tip())).toBe("useless");
  });
});

describe("a validator that signs any number of pairs", () => {
  it("takes no places from what is true of others", async () => {
    for (let name = 0; name < 1_600; name++)
      await pool.receive(chain.doubleVote(1, 2, `${name}`), tip());
    const other = chain.doubleVote(2, 2);
    expect(await pool.receive(other, tip())).toBe("new");
    const liars = pool.forBlock(tip()).map(({ voteA }) => voteA.validatorAddress);
    expect(liars).toEqual([
      pool.waiting()[0]?.voteA.validatorAddress,
      other.voteA.validatorAddress,
    ]);
    expect(pool.waiting().length).toBeLessThan(5);
  });

  it("takes none from what this node saw itself", async () => {
    for (let name = 0; name < 4; name++)
      await pool.receive(chain.doubleVote(1, 2, `${name}`), tip());
    const content = { type: VOTE_TYPE.precommit, height: 3, round: 0, timeNs: 3n } as const;
    const [one, other] = [chain.lastBlockId, undefined].map((blockId) => ({ ...content, blockId }));
    for (const who of [1, 3]) {
      if (one !== undefined && other !== undefined) {
        pool.report(chain.vote(who, one), chain.vote(who, other));
      }
    }
    const fresh = await pool.afterBlock(tip(), []);
    expect(fresh.map(({ voteA }) => voteA.validatorIndex)).toEqual([3]);
  });
});

describe("conflicting votes", () => {
  it("become evidence when their height is decided", async () => {
    const content = { type: VOTE_TYPE.precommit, height: 4, round: 1, timeNs: 3n } as const;
    const blockId = chain.lastBlockId;
    pool.report(
      chain.vote(1, { ...content, blockId }),
      chain.vote(1, { ...content, blockId: undefined }),
    );
    expect(await pool.afterBlock(tip(), [])).toEqual([]);
    await take();
    const [fresh, ...others] = await pool.afterBlock(tip(), []);
    expect(others).toEqual([]);
    expect(fresh).toMatchObject({ totalPower: 40n, validatorPower: 10n, timeNs: chain.timeNs });
    // Nil sorts first, as in CometBFT.
    expect(fresh?.voteA.blockId).toBeUndefined();
    expect(pool.waiting()).toEqual([fresh]);
    expect(await pool.afterBlock(tip(), [])).toEqual([]);
  });
});

describe("evidence in a block", () => {
  it("waits no longer, and is refused from then on", async () => {
    const evidence = chain.doubleVote(2, 2);
    await pool.receive(evidence, tip());
    await node.stores.database.write(pool.writesOf([evidence], tip()), { durable: true });
    await pool.afterBlock(tip(), [evidence]);
    expect(pool.waiting()).toEqual([]);
    expect(store.isCommitted(hashEvidence(evidence))).toBe(true);
    const listed: unknown[] = [];
    for await (const one of store.committedEvidence()) listed.push(one);
    expect(listed).toEqual([{ hash: hashEvidence(evidence), voteHeight: 2 }]);
    const again = await EvidencePool.open(store, log);
    expect(again.waiting()).toEqual([]);
    expect(await again.receive(evidence, tip())).toBe("known");
    expect(() => allAtOnce(again.checkSteps([evidence], tip()))).toThrow(/in a block already/);
  });

  const pieces = () => Array.from({ length: 12 }, (_, at) => chain.doubleVote(at % 4, 2, `${at}`));

  /** Judges the next block with this evidence; rejects with `accepted` where its execution would follow. */
  function judge(evidence: readonly DuplicateVoteEvidence[]): Promise<unknown> {
    const application = { execute: () => Promise.reject(accepted) };
    return executeBlock({ application, evidence: pool }, tip(), chain.makeBlock({ evidence }));
  }
  const accepted = new Error("valid, and now executed");

  it("is compared as a whole before the first signature is verified, which takes long", async () => {
    const [first, ...others] = pieces();
    const last = others.at(-1);
    if (first === undefined || last === undefined) throw new Error("no pieces");
    await expect(judge([first, ...others])).rejects.toBe(accepted);
    const { voteA, voteB } = first;
    const unsigned = { ...first, voteB: { ...voteB, signature: voteA.signature } };
    await expect(judge([unsigned, ...others])).rejects.toThrow(/a signature is false/);
    const late = { ...last, timeNs: last.timeNs + 1n };
    await expect(judge([unsigned, ...others, late])).rejects.toThrow(/not of the block's time/);
    await expect(judge([unsigned, last, last])).rejects.toThrow(/there twice/);
  });

  it("is verified in steps between which others have their turns", async () => {
    const [none, all] = [[], pieces()];
    const turns = (evidence: typeof all) => turnsOf(() => judge(evidence).catch(() => undefined));
    expect((await turns(all)) - (await turns(none))).toBeGreaterThanOrEqual(3);
  });
});

describe("the age of evidence", () => {
  it("counts only when evidence is too old by blocks and by time", async () => {
    const evidence = { height: 10, timeNs: 0n };
    const limits = { evidenceMaxAgeBlocks: 20, evidenceMaxAgeNs: 1_000n };
    const at = (height: number, timeNs: bigint) =>
      isEvidenceExpired(evidence, { height, timeNs }, limits);
    expect(at(30, 1_000n)).toBe(false);
    expect(at(31, 1_000n)).toBe(false);
    expect(at(30, 1_001n)).toBe(false);
    expect(at(31, 1_001n)).toBe(true);
    // What is too old is dropped, from the store too.
    await pool.receive(chain.doubleVote(2, 2), tip());
    const late = { ...tip(), height: 200_000, timeNs: tip().timeNs + 10n ** 18n };
    expect(pool.forBlock(late)).toEqual([]);
    expect(() => allAtOnce(pool.checkSteps(pool.waiting(), late))).toThrow(/too old/);
    await node.stores.database.write(pool.writesOf([], late), { durable: true });
    await pool.afterBlock(late, []);
    expect(pool.waiting()).toEqual([]);
    expect((await EvidencePool.open(store, log)).waiting()).toEqual([]);
  });
});
