/**
 * What consensus_state, dump_consensus_state and net_info answer, held against what CometBFT
 * 0.38.17's own code makes of the same height (test/fixtures/consensus/round-state.go).
 */
import fs from "node:fs";
import { describe, expect, it } from "@jest/globals";
import type { BlockId } from "../../../../chain/consensus/block-id.js";
import { type Commit, COMMIT_FLAG, hashCommit } from "../../../../chain/consensus/commit.js";
import {
  blockIdOf,
  type ConsensusBlock,
  encodeConsensusBlock,
  hashTransactions,
  splitIntoParts,
} from "../../../../chain/consensus/consensus-block.js";
import { hashEvidenceList } from "../../../../chain/consensus/evidence.js";
import { validatorAddress, ValidatorSet } from "../../../../chain/consensus/validator-set.js";
import {
  type Vote,
  VOTE_TYPE,
  type VoteType,
  voteSignBytes,
} from "../../../../chain/consensus/vote.js";
import { signingKeyOf } from "../../../../chain/consensus/ed25519.js";
import type { Hash32 } from "../../../../chain/hex.js";
import type { HeightProgress } from "../../../../node/consensus/consensus-ports.js";
import { STEP } from "../../../../node/consensus/machine/consensus-state.js";
import { connectionJson } from "../../../../node/rpc/comet/json/connection-json.js";
import {
  fullRoundText,
  peerStateJson,
  simpleRoundJson,
} from "../../../../node/rpc/comet/json/round-json.js";
import { emptyProgress, voteList } from "../../../helpers/chains/height-progress.js";

const expected = JSON.parse(
  fs.readFileSync("test/fixtures/consensus/cometbft-round-state.json", "utf8"),
) as Record<string, unknown>;

const CHAIN_ID = "chain_6940-1";
const TIME_MS = 1_700_000_000_123;
const TIME_NS = BigInt(TIME_MS) * 1_000_000n;

const keys = [0, 1, 2].map((index) => signingKeyOf(Buffer.alloc(32, index + 1)));
const set = ValidatorSet.genesis(
  keys.map(({ publicKey }, index) => ({ publicKey, power: BigInt(10 + index) })),
);
const hashOf = (value: number) => `0x${value.toString(16).padStart(2, "0").repeat(32)}` as Hash32;
const last: BlockId = { hash: hashOf(4), parts: { total: 1, hash: hashOf(4) } };

function vote(place: number, height: number, type: VoteType, blockId: BlockId | undefined): Vote {
  const address = set.at(place)?.address;
  const key = keys.find(({ publicKey }) => validatorAddress(publicKey) === address);
  if (address === undefined || key === undefined) throw new Error("no such validator");
  const content = { type, height, round: 1, blockId, timeNs: TIME_NS + BigInt(place) };
  const signature = key.sign(voteSignBytes(CHAIN_ID, content));
  return { ...content, validatorAddress: address, validatorIndex: place, signature };
}

function blockOf(): ConsensusBlock {
  const signatures = [{ flag: COMMIT_FLAG.absent }];
  const lastCommit: Commit = { height: 6, round: 1, blockId: last, signatures };
  const transactions = [Buffer.from("a transaction")];
  const header = {
    blockVersion: 11,
    appVersion: 1,
    chainId: CHAIN_ID,
    height: 7,
    timeNs: TIME_NS,
    lastBlockId: last,
    lastCommitHash: hashCommit(lastCommit),
    dataHash: hashTransactions(transactions),
    validatorsHash: set.hash(),
    nextValidatorsHash: set.hash(),
    consensusHash: hashOf(7),
    appHash: hashOf(8),
    lastResultsHash: hashOf(9),
    evidenceHash: hashEvidenceList([]),
    proposerAddress: set.at(0)?.address ?? set.proposer.address,
  };
  return { header, transactions, evidence: [], lastCommit };
}

function busy(): HeightProgress {
  const block = blockOf();
  const parts = splitIntoParts(encodeConsensusBlock(block));
  const id = blockIdOf(block, parts);
  const known = { id, block, parts: parts.parts.map(() => true) };
  const none = voteList(set, []);
  const prevotes = [vote(0, 7, VOTE_TYPE.prevote, id), vote(1, 7, VOTE_TYPE.prevote, undefined)];
  const precommits = [vote(2, 7, VOTE_TYPE.precommit, id)];
  const lastCommit = [0, 1].map((place) => vote(place, 6, VOTE_TYPE.precommit, last));
  return emptyProgress(7, set, {
    round: 1,
    step: STEP.prevote,
    startTimeMs: TIME_MS,
    commitTimeMs: TIME_MS - 1_000,
    proposal: {
      height: 7,
      round: 1,
      polRound: -1,
      blockId: id,
      timeNs: TIME_NS,
      signature: new Uint8Array(64).fill(5),
    },
    proposalBlock: known,
    lockedRound: 0,
    lockedBlock: known,
    validRound: 0,
    validBlock: known,
    votes: [
      { round: 0, prevotes: none, precommits: none },
      { round: 1, prevotes: voteList(set, prevotes), precommits: voteList(set, precommits) },
    ],
    lastCommit: voteList(set, lastCommit),
    lastValidators: set,
    isPrecommitTimeoutSet: true,
  });
}

/** As it goes over the wire, members in their order. */
const wire = (value: unknown) => JSON.stringify(value, undefined, 1);

const full = async (progress: HeightProgress) =>
  wire(JSON.parse((await fullRoundText(progress, [])).toString()));

describe("the height in progress", () => {
  it("is told in full, in the middle of a round", async () => {
    expect(await full(busy())).toBe(wire({ round_state: expected["busy"], peers: [] }));
    expect(wire(simpleRoundJson(busy()))).toBe(wire(expected["busySimple"]));
  });

  it("has the transactions of one block once, however many places show it", async () => {
    const { pieces } = await fullRoundText(busy(), []);
    const transactions = pieces.filter((piece) => typeof piece !== "string");
    expect([transactions.length, new Set(transactions).size]).toEqual([3, 1]);
  });

  it("is told before the first block", async () => {
    const idle = emptyProgress(1, set, { startTimeMs: TIME_MS });
    expect(await full(idle)).toBe(wire({ round_state: expected["idle"], peers: [] }));
    expect(wire(simpleRoundJson(idle))).toBe(wire(expected["idleSimple"]));
  });

  it("rounds shares of power as Go does", () => {
    const shares = (powers: readonly bigint[]) => {
      const some = ValidatorSet.genesis(
        powers.map((power, index) => ({ publicKey: keys[index]?.publicKey ?? keyless, power })),
      );
      const first = some.validators.findIndex(({ power }) => power === powers[0]);
      const address = some.at(first)?.address ?? some.proposer.address;
      const one = { ...vote(0, 7, VOTE_TYPE.prevote, undefined), validatorAddress: address };
      const prevotes = voteList(some, [{ ...one, validatorIndex: first }]);
      const votes = [{ round: 0, prevotes, precommits: voteList(some, []) }];
      return simpleRoundJson(emptyProgress(7, some, { votes })).height_vote_set[0]
        ?.prevotes_bit_array;
    };
    // fmt.Sprintf("%.2f"): 0.125 is a half that a double holds, 0.165 is none.
    expect(shares([1n, 7n])).toMatch(/1\/8 = 0\.12$/);
    expect(shares([3n, 5n])).toMatch(/3\/8 = 0\.38$/);
    expect(shares([33n, 167n])).toMatch(/33\/200 = 0\.17$/);
    expect(shares([2n, 1n])).toMatch(/2\/3 = 0\.67$/);
  });
});

const keyless = new Uint8Array(32);

describe("a peer", () => {
  const flow = {
    startTimeMs: TIME_MS,
    totalBytes: 1_500,
    sampleCount: 3,
    instantRate: 700,
    currentRate: 600,
    averageRate: 500,
    peakRate: 900,
    durationMs: 3_000,
    idleMs: 40,
  };
  const peer = {
    nodeId: "cd".repeat(20),
    listenAddress: "tcp://127.0.0.1:26756",
    moniker: "peer",
    network: CHAIN_ID,
    version: "0.38.17",
    rpcAddress: "",
    isOutbound: true,
    remoteIp: "127.0.0.1",
    connectedMs: 3_000,
    receivedBytes: 1_500,
    sentBytes: 1_500,
    receiving: flow,
    sending: flow,
    unsentBytes: 77,
    maxUnsentBytes: 16_777_216,
    round: {
      status: {
        height: 7,
        round: 1,
        step: STEP.prevote,
        hasProposal: true,
        parts: { header: { total: 2, hash: hashOf(3) }, have: [false, true] },
        prevotes: [true, true, false],
        precommits: [false, false, false],
        earlier: [],
      },
      sinceMs: TIME_MS,
      voteCount: 12,
      partCount: 3,
    },
  };

  it("is told with what it has of the round, and with the rates of its connection", () => {
    const { node_address, peer_state } = peerStateJson(peer);
    expect(node_address).toBe(`${"cd".repeat(20)}@127.0.0.1:26756`);
    expect(wire(peer_state)).toBe(wire(expected["peer"]));
    expect(wire(connectionJson(peer))).toBe(wire(expected["connection"]));
  });
});
