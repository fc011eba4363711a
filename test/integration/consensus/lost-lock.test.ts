/**
 * A validator that has locked on a block and whose log is damaged before its next start: whatever
 * record is hit, it never prevotes another block in a later round, and never signs twice. And one
 * whose power fails: its log has on disk what led to each signature.
 *
 * @jest-environment ./test/helpers/faults/forced-files-environment.mjs
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type ConsensusBlock,
  encodeConsensusBlock,
  splitIntoParts,
} from "../../../chain/consensus/consensus-block.js";
import { type Vote, VOTE_TYPE, type VoteType } from "../../../chain/consensus/vote.js";
import { ZERO_HASH } from "../../../chain/hex.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import type { ConsensusFailpoint } from "../../../node/consensus/height-run.js";
import { idOf, SignedChain } from "../../helpers/chains/signed-chain.js";
import {
  validatorGenesis,
  ValidatorNode,
  writeValidatorHome,
} from "../../helpers/chains/validator-node.js";
import { installPowerCut, PowerCut } from "../../helpers/faults/power-cut.js";
import { withFlippedBit } from "../../helpers/raw-level.js";
import { until } from "../../helpers/until.js";

/** The others end a round by their precommits; nothing else does. */
const TIMEOUTS = {
  proposeMs: 60_000,
  proposeDeltaMs: 0,
  prevoteMs: 60_000,
  prevoteDeltaMs: 0,
  precommitMs: 20,
  precommitDeltaMs: 0,
};

const { genesis, seeds } = validatorGenesis(4);
const chain = new SignedChain(genesis, seeds, ZERO_HASH);
const [first, second, third] = [0, 1, 2].map((round) => chain.proposerOf(1, round)) as [
  number,
  number,
  number,
];
const own = [0, 1, 2, 3].find((one) => ![first, second, third].includes(one)) ?? 0;
const others = [0, 1, 2, 3].filter((one) => one !== own);

let template = "";
let locked: ConsensusBlock;
let rival: ConsensusBlock;
let homes: string[] = [];

const walOf = (home: string) => path.join(home, "data", "cs.wal", "wal");

async function open(home?: string, failpoint?: (name: ConsensusFailpoint) => void) {
  const seed = seeds[own];
  const options = {
    genesis,
    seed,
    timeouts: TIMEOUTS,
    ...(failpoint === undefined ? {} : { failpoint }),
  };
  const node = await ValidatorNode.open({ ...options, ...(home === undefined ? {} : { home }) });
  const said: Vote[] = [];
  node.start((message) => {
    if (message.type === "vote") said.push(message.vote);
  });
  const tell = async (messages: readonly ConsensusMessage[]) => {
    for (const message of messages) await node.consensus.receive(message, "peer");
  };
  return { node, said, tell };
}

/** A proposal of a round with its parts. */
function proposed(block: ConsensusBlock, round: number, who: number): ConsensusMessage[] {
  const place = { height: 1, round };
  const { header, parts } = splitIntoParts(encodeConsensusBlock(block));
  const content = { ...place, polRound: -1, blockId: idOf(block), timeNs: 5n };
  return [
    { type: "proposal", proposal: chain.proposal(who, content) },
    ...parts.map((part): ConsensusMessage => ({ type: "part", ...place, header, part })),
  ];
}

function votes(
  type: VoteType,
  round: number,
  who: readonly number[],
  block?: ConsensusBlock,
): ConsensusMessage[] {
  const blockId = block === undefined ? undefined : idOf(block);
  const content = { type, height: 1, round, blockId, timeNs: 9n };
  return who.map((one) => ({ type: "vote", vote: chain.vote(one, content) }));
}

/** Brings a validator to its lock on the first proposal. */
async function lock(home?: string, failpoint?: (name: ConsensusFailpoint) => void) {
  const { node, said, tell } = await open(home, failpoint);
  chain.appHash = node.view.head().hash;
  locked = chain.makeBlock();
  const proposerAddress = chain.validators(1).advance(1).proposer.address;
  rival = chain.makeBlock({ header: { proposerAddress } });
  await until(() => node.consensus.status().step >= 3, { timeoutMs: 30_000, what: "round 0" });
  await tell(proposed(locked, 0, first));
  await tell(votes(VOTE_TYPE.prevote, 0, others, locked));
  await until(() => said.length >= 2, { timeoutMs: 30_000, what: "its two votes" });
  await node.stop({ keep: true });
  return { home: node.home, said };
}

beforeAll(async () => {
  const { home, said } = await lock();
  template = home;
  expect(said.map(({ type, blockId }) => [type, blockId?.hash])).toEqual([
    [VOTE_TYPE.prevote, idOf(locked).hash],
    [VOTE_TYPE.precommit, idOf(locked).hash],
  ]);
});

afterEach(() => {
  for (const home of homes) fs.rmSync(home, { recursive: true, force: true });
  homes = [];
});

afterAll(() => fs.rmSync(template, { recursive: true, force: true }));

/** What the validator says in round 1, where another block is proposed and two others want it. */
async function roundOne(home: string): Promise<readonly Vote[]> {
  const { node, said, tell } = await open(home);
  await until(() => node.consensus.status().step >= 3, { timeoutMs: 30_000, what: "round 0" });
  await tell(votes(VOTE_TYPE.precommit, 0, others));
  await until(() => node.consensus.status().round === 1, { timeoutMs: 30_000, what: "round 1" });
  await tell(proposed(rival, 1, second));
  // Answered in order: when this one is, what it was told before has had its effect.
  await tell(votes(VOTE_TYPE.prevote, 1, others.slice(0, 1)));
  await node.stop({ keep: true });
  expect(node.halts).toEqual([]);
  return said;
}

function copyWith(log: Buffer | undefined): string {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-lost-lock-"));
  homes.push(home);
  fs.cpSync(template, home, { recursive: true });
  if (log === undefined) fs.rmSync(path.dirname(walOf(home)), { recursive: true });
  else fs.writeFileSync(walOf(home), log);
  return home;
}

const hashesOf = (list: readonly Vote[], round: number) =>
  list.filter((vote) => vote.round === round).map(({ blockId }) => blockId?.hash);

describe("a validator that has locked on a block", () => {
  it("prevotes it again in the next round where its log is whole", async () => {
    const said = await roundOne(copyWith(fs.readFileSync(walOf(template))));
    expect(hashesOf(said, 1)).toEqual([idOf(locked).hash]);
  });

  it("prevotes no other block whichever record of the log is damaged", async () => {
    const log = fs.readFileSync(walOf(template));
    for (let at = 0; at < log.length; at += 8 + log.readUInt32BE(at + 4)) {
      // Checksum, length and data of each record in turn.
      for (const offset of [at, at + 6, at + 12]) {
        const home = copyWith(withFlippedBit(log, offset * 8));
        const said = [...(await roundOne(home)), ...(await roundOne(home))];
        const contradictions = hashesOf(said, 1).filter((hash) => hash !== idOf(locked).hash);
        expect([offset, contradictions]).toEqual([offset, []]);
        const roundZero = new Set(hashesOf(said, 0));
        roundZero.delete(idOf(locked).hash);
        expect([offset, [...roundZero]]).toEqual([offset, []]);
      }
    }
  });

  it("prevotes no other block when its log is gone or cut anywhere", async () => {
    const log = fs.readFileSync(walOf(template));
    for (const part of [undefined, ...[0, 0.2, 0.5, 0.8].map((share) => share * log.length)]) {
      const home = copyWith(part === undefined ? undefined : log.subarray(0, part));
      const said = [...(await roundOne(home)), ...(await roundOne(home))];
      const contradictions = hashesOf(said, 1).filter((hash) => hash !== idOf(locked).hash);
      expect([part, contradictions]).toEqual([part, []]);
    }
  });
});

describe("a validator that has prevoted its lock once more", () => {
  /** Ends round 0 and proposes the locked block again. */
  async function again({ node, tell }: Awaited<ReturnType<typeof open>>) {
    await until(() => node.consensus.status().step >= 3, { timeoutMs: 30_000, what: "round 0" });
    await tell(votes(VOTE_TYPE.precommit, 0, others));
    await until(() => node.consensus.status().round === 1, { timeoutMs: 30_000, what: "round 1" });
    await tell(proposed(locked, 1, second));
    await tell(votes(VOTE_TYPE.prevote, 1, others.slice(0, 1)));
  }

  /** Ends round 1 and proposes another block. */
  async function roundTwo({ node, tell }: Awaited<ReturnType<typeof open>>) {
    await tell(votes(VOTE_TYPE.precommit, 1, others));
    await until(() => node.consensus.status().round === 2, { timeoutMs: 30_000, what: "round 2" });
    await tell(proposed(rival, 2, third));
    await tell(votes(VOTE_TYPE.prevote, 2, others.slice(0, 1)));
  }

  it("prevotes no other block where the log ends before the lock, between two records", async () => {
    const home = copyWith(fs.readFileSync(walOf(template)));
    const before = await open(home);
    await again(before);
    await before.node.stop({ keep: true });
    expect(hashesOf(before.said, 1)).toEqual([idOf(locked).hash]);
    const log = fs.readFileSync(walOf(home));
    const whole = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-lost-lock-"));
    homes.push(whole);
    fs.cpSync(home, whole, { recursive: true });
    let cuts = 0;
    for (let at = 0; at < log.length; at += 8 + log.readUInt32BE(at + 4)) {
      if (at === 0) continue;
      cuts += 1;
      // Once started on such a log, and once more on what that has added to it.
      for (const starts of [1, 2]) {
        const cut = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-lost-lock-"));
        homes.push(cut);
        fs.cpSync(whole, cut, { recursive: true });
        fs.writeFileSync(walOf(cut), log.subarray(0, at));
        const said: Vote[] = [];
        for (let start = 1; start <= starts; start++) {
          const after = await open(cut);
          await again(after);
          if (start === starts) await roundTwo(after);
          await after.node.stop({ keep: true });
          said.push(...after.said);
        }
        const blocks = [1, 2].flatMap((round) => hashesOf(said, round)).filter(Boolean);
        const contradictions = blocks.filter((hash) => hash !== idOf(locked).hash);
        expect([at, starts, contradictions]).toEqual([at, starts, []]);
      }
    }
    expect(cuts).toBeGreaterThan(5);
  });
});

describe("a validator whose power fails", () => {
  it.each(["consensus.after-precommit-signature", "consensus.after-own-precommit-logged"] as const)(
    "at %s knows its lock afterwards",
    async (place) => {
      const base = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "causeway-lost-power-"));
      homes.push(base);
      const home = path.join(base, "before");
      writeValidatorHome(home, seeds[own] ?? Buffer.of());
      const uninstall = installPowerCut();
      const cut = PowerCut.watch(home);
      let leaving = Promise.resolve();
      await lock(home, (name) => {
        if (name === place) leaving = cut.leave(path.join(base, "after"));
      });
      await leaving;
      uninstall();
      const said = await roundOne(path.join(base, "after"));
      expect(hashesOf(said, 1)).toEqual([idOf(locked).hash]);
    },
  );
});
