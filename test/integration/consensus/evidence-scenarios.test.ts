/** The tables of CometBFT 0.38.17's evidence/verify_test.go and pool_test.go, on a real store. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  type DuplicateVoteEvidence,
  encodeDuplicateVote,
  hashEvidence,
  orderVotes,
} from "../../../chain/consensus/evidence.js";
import type { BlockId } from "../../../chain/consensus/block-id.js";
import { type Vote, VOTE_TYPE, voteSignBytes } from "../../../chain/consensus/vote.js";
import type { Hash32 } from "../../../chain/hex.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import type { ChainTip } from "../../../node/blocks/chain-tip.js";
import { loadTip } from "../../../node/consensus/consensus-archive.js";
import { consensusParamsOf } from "../../../node/settings/genesis.js";
import { EvidencePool } from "../../../node/consensus/evidence-pool.js";
import { ConsensusStore } from "../../../node/store/consensus-store.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";

const { genesis, seeds } = validatorGenesis(4);
const limits = { evidenceMaxAgeBlocks: 20, evidenceMaxAgeNs: 1_200_000_000_000n };
const params = { ...consensusParamsOf(genesis.params), ...limits };
const log = createLogger({ component: "test", level: "silent" });
const NS_PER_MINUTE = 60_000_000_000n;

let node: ValidatorNode;
let chain: SignedChain;
let store: ConsensusStore;
let pool: EvidencePool;

beforeAll(async () => {
  node = await ValidatorNode.open({ genesis, seed: undefined });
  chain = new SignedChain(genesis, seeds, node.view.head().hash);
  store = new ConsensusStore(node.stores.database);
  for (let height = 1; height <= 4; height++) {
    const decided = chain.decide(chain.makeBlock());
    await node.consensus.apply(decided);
    chain.follow(decided, { appHash: node.view.head().hash });
  }
});

afterAll(() => node.stop());

/** Each test has a pool of its own; what it kept is taken out of the store again. */
beforeEach(async () => {
  const kept = (await store.pendingEvidence()).map((evidence) => {
    return { evidence, hash: hashEvidence(evidence) };
  });
  await node.stores.database.write(store.evidenceWrites([], kept), { durable: true });
  pool = await EvidencePool.open(store, log);
  expect(pool.waiting()).toEqual([]);
});

function tip(change: Partial<ChainTip> = {}): ChainTip {
  const { height, stores } = node;
  const { genesisTimeMs, cosmosChainId: chainId } = genesis;
  const own = { chainId, params, genesisTimeMs, height, appVersion: 1 };
  return { ...loadTip({ store, blocks: stores.blocks }, own), ...change };
}

const bytes = (name: string) => `0x${Buffer.from(name).toString("hex").padEnd(64, "0")}` as Hash32;
const idOf = (name: string, total: number, parts: string): BlockId => {
  return { hash: bytes(name), parts: { total, hash: bytes(parts) } };
};

/** A vote that any of the validators signs for any chain. */
function vote(change: Partial<Vote> & { readonly who?: number; readonly chainId?: string }): Vote {
  const { who = 0, chainId = genesis.cosmosChainId, ...content } = change;
  const plain = chain.vote(who, {
    type: VOTE_TYPE.prevote,
    height: 3,
    round: 2,
    blockId: idOf("blockhash", 1_000, "partshash"),
    timeNs: 5n,
    ...content,
  });
  const signature = chain.keys[who]?.sign(voteSignBytes(chainId, plain));
  if (signature === undefined) throw new Error("no key");
  return { ...plain, signature };
}

function evidenceOf(one: Vote, other: Vote, change: Partial<DuplicateVoteEvidence> = {}) {
  const [voteA, voteB] = orderVotes(one, other);
  const timeNs = store.record(one.height)?.header.timeNs ?? 0n;
  return { voteA, voteB, totalPower: 40n, validatorPower: 10n, timeNs, ...change };
}

/** Why a block with this evidence would be refused; "valid" when it would not. */
function verdict(evidence: DuplicateVoteEvidence): string {
  try {
    allAtOnce(pool.checkSteps([evidence], tip()));
    return "valid";
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
}

const other = idOf("blockhash2", 1_000, "partshash");

describe("a pair of votes (VerifyDuplicateVoteEvidence)", () => {
  it.each<[string, Parameters<typeof vote>[0], string | RegExp]>([
    ["for another block", { blockId: other }, "valid"],
    ["for another number of parts", { blockId: idOf("blockhash", 10_000, "partshash") }, "valid"],
    ["for other parts", { blockId: idOf("blockhash", 10_000, "partshash2") }, "valid"],
    ["for nil", { blockId: undefined }, "valid"],
    ["at another time", { blockId: other, timeNs: 1_577_836_800_000_000_000n }, "valid"],
    ["for the same block", {}, /the votes agree/],
    ["for the same block at another time", { timeNs: 6n }, /the votes agree/],
    ["on another chain", { blockId: other, chainId: "mychain2" }, /signature is false/],
    ["of another height", { blockId: other, height: 4 }, /differ in height/],
    ["of another round", { blockId: other, round: 3 }, /differ in round/],
    ["of another step", { blockId: other, type: VOTE_TYPE.precommit }, /differ in type/],
    ["of another validator", { blockId: other, who: 1 }, /differ in validatorAddress/],
  ])("proves what it should: %s", (_, change, expected) => {
    expect(verdict(evidenceOf(vote({}), vote(change)))).toMatch(expected);
  });

  it("proves nothing with another's signature, powers or time", () => {
    const [one, two] = [vote({}), vote({ blockId: other })];
    const { signature } = vote({ blockId: other, who: 1 });
    expect(verdict(evidenceOf(one, { ...two, signature }))).toMatch(/signature is false/);
    expect(verdict(evidenceOf({ ...one, signature }, two))).toMatch(/signature is false/);
    const { timeNs } = evidenceOf(one, two);
    expect(verdict(evidenceOf(one, two, { validatorPower: 1n }))).toMatch(/another power/);
    expect(verdict(evidenceOf(one, two, { totalPower: 1n }))).toMatch(/total power/);
    const later = { timeNs: timeNs + NS_PER_MINUTE };
    expect(verdict(evidenceOf(one, two, later))).toMatch(/not of the block's time/);
  });
});

describe("evidence that comes in", () => {
  const piece = () => evidenceOf(vote({}), vote({ blockId: other }));

  it("is offered within the size of a block, to the byte (EvidencePoolBasic)", async () => {
    expect(pool.forBlock(tip())).toEqual([]);
    const evidence = piece();
    expect(await pool.receive(evidence, tip())).toBe("new");
    const { length } = encodeDuplicateVote(evidence);
    const room = (evidenceMaxBytes: number) => tip({ params: { ...params, evidenceMaxBytes } });
    expect(pool.forBlock(room(length))).toEqual([evidence]);
    expect(pool.forBlock(room(length - 1))).toEqual([]);
    expect(await pool.receive(evidence, tip())).toBe("known");
    expect(pool.forBlock(tip())).toEqual([evidence]);
  });

  it.each<[string, number, bigint, string]>([
    ["fresh", 0, 0n, "new"],
    ["of an old height", 100, 0n, "new"],
    ["of an old time", 0, 100n, "new"],
    ["at the bounds of both", 20, 20n, "new"],
    ["a block beyond", 21, 20n, "new"],
    ["a minute beyond", 20, 21n, "new"],
    ["beyond both", 21, 21n, "useless"],
  ])("is refused only where it is too old by both: %s (AddExpiredEvidence)", async (...row) => {
    const [, ageBlocks, minutes, expected] = row;
    const evidence = piece();
    const height = evidence.voteA.height + ageBlocks;
    const timeNs = evidence.timeNs + minutes * NS_PER_MINUTE;
    expect(await pool.receive(evidence, tip({ height, timeNs }))).toBe(expected);
  });

  it("passes in a block, and not twice in one (VerifyPendingEvidencePasses)", async () => {
    const evidence = piece();
    await pool.receive(evidence, tip());
    expect(verdict(evidence)).toBe("valid");
    // VerifyDuplicatedEvidenceFails
    expect(() => allAtOnce(pool.checkSteps([evidence, evidence], tip()))).toThrow(/there twice/);
  });

  it("is forgotten with the blocks that take it or outlive it (EvidencePoolUpdate)", async () => {
    const [old, taken] = [piece(), chain.doubleVote(1, 4)];
    for (const one of [old, taken]) expect(await pool.receive(one, tip())).toBe("new");
    const later = tip({ height: 24, timeNs: old.timeNs + 21n * NS_PER_MINUTE });
    await node.stores.database.write(pool.writesOf([taken], later), { durable: true });
    await pool.afterBlock(later, [taken]);
    expect([pool.waiting(), await store.pendingEvidence()]).toEqual([[], []]);
    expect(verdict(taken)).toMatch(/in a block already/);
    expect(verdict(old)).toBe("valid");
  });

  it("is offered again after a restart unless it is too old (RecoverPendingEvidence)", async () => {
    const [good, expired] = [chain.doubleVote(3, 4), chain.doubleVote(2, 1)];
    for (const one of [good, expired]) expect(await pool.receive(one, tip())).toBe("new");
    const again = await EvidencePool.open(store, log);
    expect(again.waiting()).toHaveLength(2);
    const timeNs = expired.timeNs + 21n * NS_PER_MINUTE;
    expect(again.forBlock(tip({ height: 22, timeNs }))).toEqual([good]);
  });
});

describe("votes that consensus reports", () => {
  it("become one piece however often they are told (ReportConflictingVotes)", async () => {
    const [one, two] = [vote({}), vote({ blockId: other })];
    pool.report(one, two);
    pool.report(one, two);
    pool.report(two, one);
    expect(pool.waiting()).toEqual([]);
    expect(await pool.afterBlock(tip(), [])).toEqual([evidenceOf(one, two)]);
    expect(pool.forBlock(tip())).toEqual([evidenceOf(one, two)]);
  });
});
