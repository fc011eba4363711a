/**
 * A validator whose process ends between any two records of its log (TestWALCrash of CometBFT
 * 0.38.17's consensus/replay_test.go): whatever of the log is left, it decides the same block and
 * signs nothing that it did not sign before.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { encodeConsensusBlock, splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import { type Vote, VOTE_TYPE } from "../../../chain/consensus/vote.js";
import { ZERO_HASH } from "../../../chain/hex.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import type { WalRecord } from "../../../node/consensus/log/records.js";
import { Wal } from "../../../node/consensus/log/wal.js";
import { idOf, SignedChain } from "../../helpers/chains/signed-chain.js";
import { until } from "../../helpers/until.js";
import {
  PATIENT_TIMEOUTS,
  validatorGenesis,
  ValidatorNode,
} from "../../helpers/chains/validator-node.js";

const { genesis, seeds } = validatorGenesis(4);
const chain = new SignedChain(genesis, seeds, ZERO_HASH);
const proposer = chain.proposerOf(1);
const own = (proposer + 1) % 4;
const others = [0, 1, 2, 3].filter((one) => one !== own);

/** The home of a validator that stopped one precommit before its first decision. */
let template = "";
/** What it had signed by then. */
let signed: readonly Vote[] = [];
/** What the others say at height 1, the proposal first. */
let messages: readonly ConsensusMessage[] = [];
let homes: string[] = [];

const walOf = (home: string) => path.join(home, "data", "cs.wal", "wal");

async function open(home?: string) {
  const node = await ValidatorNode.open({
    genesis,
    seed: seeds[own],
    timeouts: PATIENT_TIMEOUTS,
    ...(home === undefined ? {} : { home }),
  });
  const said: Vote[] = [];
  node.start((message) => {
    if (message.type === "vote") said.push(message.vote);
  });
  const tell = (message: ConsensusMessage) => node.consensus.receive(message, "peer");
  return { node, said, tell };
}

/** Ends of the log's records, 0 for none; a record is checksum, length and data. */
function recordEnds(wal: Buffer): number[] {
  const ends = [0];
  for (let at = 0; at < wal.length; ends.push(at)) at += 8 + wal.readUInt32BE(at + 4);
  return ends;
}

beforeAll(async () => {
  const { node, said, tell } = await open();
  template = node.home;
  chain.appHash = node.view.head().hash;
  const block = chain.makeBlock();
  const blockId = idOf(block);
  const { header, parts } = splitIntoParts(encodeConsensusBlock(block));
  const place = { height: 1, round: 0 };
  const vote =
    (type: Vote["type"]) =>
    (who: number): ConsensusMessage => {
      return { type: "vote", vote: chain.vote(who, { type, ...place, blockId, timeNs: 9n }) };
    };
  const content = { ...place, polRound: -1, blockId, timeNs: 5n };
  messages = [
    { type: "proposal", proposal: chain.proposal(proposer, content) },
    ...parts.map((part): ConsensusMessage => ({ type: "part", ...place, header, part })),
    ...others.map(vote(VOTE_TYPE.prevote)),
    ...others.map(vote(VOTE_TYPE.precommit)),
  ];
  await until(() => node.consensus.status().step >= 3, { timeoutMs: 30_000, what: "round 0" });
  // With the own precommit the next one would decide.
  for (const message of messages.slice(0, -2)) await tell(message);
  await until(() => said.length >= 2, { timeoutMs: 30_000, what: "its two votes" });
  await node.stop({ keep: true });
  signed = said;
  expect(node.height).toBe(0);
});

afterEach(() => {
  for (const home of homes) fs.rmSync(home, { recursive: true, force: true });
  homes = [];
});

afterAll(() => fs.rmSync(template, { recursive: true, force: true }));

/** A copy of the home with so much of its log. */
function copyWithLog(lengthBytes: number): string {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-replay-"));
  homes.push(home);
  fs.cpSync(template, home, { recursive: true });
  fs.truncateSync(walOf(home), lengthBytes);
  return home;
}

describe("a validator with a part of its log", () => {
  it("decides the same block from every record on, and contradicts itself nowhere", async () => {
    const wal = fs.readFileSync(walOf(template));
    const ends = recordEnds(wal);
    const { tail } = await reopen(template, 0);
    // Timeout, proposal, part, two own votes and those that came in were all written.
    expect(ends.length - 1).toBeGreaterThanOrEqual(8);
    expect(tail.cutBytes).toBe(0);
    expect(signed.map(({ type }) => type)).toEqual([VOTE_TYPE.prevote, VOTE_TYPE.precommit]);
    const hashes = new Set<string>();
    for (const [index, end] of ends.entries()) {
      // Every other time the next record is torn.
      const isTorn = index % 2 === 1 && end < wal.length;
      const home = copyWithLog(isTorn ? end + 5 : end);
      const { node, said, tell } = await open(home);
      await until(() => node.consensus.status().step >= 3, { timeoutMs: 30_000 });
      // What is in the log need not be said again.
      const kept = tail.records.slice(0, index).filter(isFromPeer).length;
      for (const message of messages.slice(kept)) await tell(message);
      await until(() => node.height === 1, { timeoutMs: 30_000, what: `height 1 from ${index}` });
      hashes.add(node.view.head().hash);
      await node.stop({ keep: true });
      const atHeight1 = said.filter(({ height }) => height === 1);
      const contradicts = atHeight1.filter((one) => !isAmong(one));
      const after = await reopen(home, 1);
      expect({ index, contradicts, halts: node.halts, tail: after.tail }).toMatchObject({
        index,
        contradicts: [],
        halts: [],
        tail: { endHeight: 1, cutBytes: 0 },
      });
    }
    expect(hashes.size).toBe(1);
  });
});

const isFromPeer = (record: WalRecord) => record.type === "message" && !record.isOwn;

function isAmong({ type, round, blockId, signature }: Vote): boolean {
  return signed.some((one) => {
    const isSame = one.type === type && one.round === round && one.blockId?.hash === blockId?.hash;
    return isSame && Buffer.compare(one.signature, signature) === 0;
  });
}

async function reopen(home: string, storedHeight: number) {
  const opened = await Wal.open(path.dirname(walOf(home)), storedHeight);
  await opened.wal.close();
  return opened;
}
