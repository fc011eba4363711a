/** The driver among signed messages of the test: what it takes, says, and refuses to go on from. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { MAX_BLOCK_BYTES, splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import { orderVotes } from "../../../chain/consensus/evidence.js";
import { VOTE_TYPE } from "../../../chain/consensus/vote.js";
import { present } from "../../../chain/errors.js";
import type { BlockApplication } from "../../../node/blocks/block-application.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { Wal } from "../../../node/consensus/log/wal.js";
import type { ChainParams } from "../../../node/settings/genesis.js";
import { StoreError } from "../../../node/store/database.js";
import { listeningValidator } from "../../helpers/chains/listening-validator.js";
import type { BlockChoice, SignedChain } from "../../helpers/chains/signed-chain.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { until } from "../../helpers/until.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import {
  validatorGenesis,
  ValidatorNode,
  writeValidatorHome,
} from "../../helpers/chains/validator-node.js";

const MNEMONIC = "test test test test test test test test test test test junk";

let cleanUp: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const step of cleanUp.toReversed()) await step();
  cleanUp = [];
});

/** See `listeningValidator`; it is stopped behind the test. */
async function listener(...choice: Parameters<typeof listeningValidator>) {
  const all = await listeningValidator(...choice);
  cleanUp.push(() => all.node.stop());
  return all;
}

describe("messages", () => {
  it("are taken once, and judged by signature, place and proof", async () => {
    const { tell, offer, vote, proposer, own, others } = await listener();
    const [first = 0, second = 0] = others;
    expect(await tell({ type: "vote", vote: vote(first) })).toBe("new");
    expect(await tell({ type: "vote", vote: vote(first) })).toBe("known");
    const broken = { ...vote(second), signature: vote(first).signature };
    expect(await tell({ type: "vote", vote: broken })).toBe("invalid");
    const strange = { ...vote(second), validatorIndex: 17 };
    expect(await tell({ type: "vote", vote: strange })).toBe("invalid");
    const foreign = { ...vote(second), validatorAddress: vote(first).validatorAddress };
    expect(await tell({ type: "vote", vote: foreign })).toBe("invalid");
    const far = vote(second);
    expect(await tell({ type: "vote", vote: { ...far, height: 7 } })).toBe("useless");

    const { proposal, parts } = offer();
    const [part] = parts;
    if (part?.type !== "part") throw new Error("no part");
    expect(await tell(offer({}, own).proposal)).toBe("invalid");
    expect(await tell({ ...part, height: 9 })).toBe("useless");
    expect(await tell(proposal)).toBe("new");
    expect(await tell(proposal)).toBe("known");
    const damaged = { ...part, part: { ...part.part, bytes: Buffer.from("something else") } };
    expect(await tell(damaged)).toBe("invalid");
    expect(await tell({ ...part, header: { ...part.header, total: 9 } })).toBe("useless");
    expect(await tell(part)).toBe("new");
    expect(await tell(part)).toBe("known");
    expect(proposer).not.toBe(own);
  });

  it("of a liar fill neither log nor memory", async () => {
    const { node, tell, vote, others } = await listener();
    const [liar = 0] = others;
    const file = path.join(node.home, "data", "cs.wal", "wal");
    const receptions: string[] = [];
    for (let index = 0; index < 40; index++) {
      const hash = `0x${index.toString(16).padStart(64, "0")}` as never;
      const blockId = { hash, parts: { total: 1, hash } };
      receptions.push(await tell({ type: "vote", vote: vote(liar, { blockId }) }));
      receptions.push(await tell({ type: "vote", vote: vote(liar, { round: index + 2 }) }));
    }
    // Two votes of the round, and one each in two rounds far ahead.
    expect(receptions.filter((one) => one === "new")).toHaveLength(4);
    expect(receptions.filter((one) => one === "useless")).toHaveLength(76);
    expect(fs.statSync(file).size).toBeLessThan(2_000);
  });

  it("beyond what may wait are turned away at once", async () => {
    const { tell, vote, others } = await listener();
    const [who = 0] = others;
    const far = { ...vote(who), height: 99 };
    const asked = Array.from({ length: 10_000 }, () => tell({ type: "vote", vote: far }));
    expect(new Set(await Promise.all(asked))).toEqual(new Set(["useless"]));
    expect(await tell({ type: "vote", vote: vote(who) })).toBe("new");
  });

  /** What a proposal of so many parts is taken for, by a chain with such parameters. */
  async function tellParts(total: number, params: Partial<ChainParams> = {}) {
    const { tell, chain, proposer, offer } = await listener(1, params);
    const { hash, parts } = offer().blockId;
    const blockId = { hash, parts: { ...parts, total } };
    const content = { height: 1, round: 0, polRound: -1, blockId, timeNs: 5n };
    return tell({ type: "proposal", proposal: chain.proposal(proposer, content) });
  }

  it("of proposals with more parts than a block has are the proposer's fault", async () => {
    expect(await tellParts(257)).toBe("invalid");
    expect(await tellParts(256)).toBe("new");
  });

  it("of proposals with more parts than peers take are, too, whatever the genesis says", async () => {
    const params = { maxBytes: 2 * MAX_BLOCK_BYTES };
    expect(await tellParts(337, params)).toBe("invalid");
    expect(await tellParts(336, params)).toBe("new");
  });

  it("about what is to come are kept and taken when it begins", async () => {
    const { node, tell, offer, vote, others, chain, votes } = await listener();
    const { block, blockId, proposal, parts } = offer();
    // Parts before their proposal.
    for (const part of parts) expect(await tell(part)).toBe("useless");
    await tell(proposal);
    await until(() => votes().length > 0, { timeoutMs: 10_000, what: "its prevote" });
    expect(votes()[0]?.blockId).toEqual(blockId);
    for (const type of [VOTE_TYPE.prevote, VOTE_TYPE.precommit]) {
      for (const who of others) await tell({ type: "vote", vote: vote(who, { type, blockId }) });
    }
    await until(() => node.height === 1, { timeoutMs: 10_000, what: "height 1" });
    expect(node.consensus.load(1)?.block).toEqual(block);
    expect(chain.height).toBe(0);
  });
});

describe("evidence of the height in progress", () => {
  it("is kept and taken when that is decided: who has decided it tells nobody twice", async () => {
    const { node, tell, offer, vote, others } = await listener();
    const [liar = 0] = others;
    const { block, blockId, proposal, parts } = offer();
    const type = VOTE_TYPE.precommit;
    const [voteA, voteB] = orderVotes(
      vote(liar, { type, round: 3, blockId }),
      vote(liar, { type, round: 3 }),
    );
    const { timeNs } = block.header;
    const evidence = { voteA, voteB, totalPower: 40n, validatorPower: 10n, timeNs };
    expect(await tell({ type: "evidence", evidence })).toBe("useless");
    for (const message of [proposal, ...parts]) await tell(message);
    for (const who of others) await tell({ type: "vote", vote: vote(who, { type, blockId }) });
    await until(() => node.height === 1, { timeoutMs: 10_000, what: "height 1" });
    // Behind what waits for the height by then.
    await tell({ type: "vote", vote: { ...vote(liar), height: 9 } });
    expect(await tell({ type: "evidence", evidence })).toBe("known");
  });
});

describe("a proposal with more than any pool takes", () => {
  const address = toBech32(parseAddress(Wallet.fromPhrase(MNEMONIC).address));
  const coins = Array.from({ length: 1_000 }, () => ({ denom: "", amount: "" }));
  const value = {
    inputs: [{ address, coins: [] }],
    outputs: Array.from({ length: 50 }, () => ({ address, coins })),
  };
  const [crowded] = signWithCosmJs(MNEMONIC, [
    {
      messages: [{ typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend", value }],
      chainId: "chain_6940-1",
      gas: 2_000_000,
      fee: [],
    },
  ]);
  const piles: readonly (readonly [string, (chain: SignedChain, own: number) => BlockChoice])[] = [
    [
      "evidence against one validator",
      (chain, own) => ({ evidence: [1, 2, 3, 4].map((one) => chain.doubleVote(own, 1, `${one}`)) }),
    ],
    ["messages in each other", () => ({ transactions: [present(crowded, "not signed").raw] })],
  ];

  it.each(piles)("of %s is not looked at, and taken where two thirds want it", async (of, pile) => {
    const { node, chain, tell, offer, vote, votes, own, others } = await listener(2);
    const { block, blockId, proposal, parts } = offer(pile(chain, own));
    for (const message of [proposal, ...parts]) expect(await tell(message)).toBe("new");
    expect(votes()).toEqual([]);
    const refused = () => node.consensus.refusedBlocks().map(({ reason }) => reason);
    expect(refused()).toEqual([expect.stringMatching(new RegExp(`more ${of} than`))]);
    // A vote of one changes nothing, and does not have it judged again.
    const [first, ...more] = others;
    if (first === undefined) throw new Error("nobody");
    expect(await tell({ type: "vote", vote: vote(first, { blockId }) })).toBe("new");
    expect([votes(), refused()]).toEqual([[], [expect.anything()]]);

    for (const who of more) await tell({ type: "vote", vote: vote(who, { blockId }) });
    await until(() => votes().length > 1, { timeoutMs: 10_000, what: "its precommit" });
    expect(votes().map((one) => [one.type, one.blockId])).toEqual([
      [VOTE_TYPE.prevote, blockId],
      [VOTE_TYPE.precommit, blockId],
    ]);
    const type = VOTE_TYPE.precommit;
    for (const who of others) await tell({ type: "vote", vote: vote(who, { type, blockId }) });
    await until(() => node.height === 2, { timeoutMs: 10_000, what: "height 2" });
    expect([node.consensus.load(2)?.block, node.halts]).toEqual([block, []]);
  });

  it.each(piles)(
    "of %s is taken where it is decided: by who hears the votes first, and by who follows",
    async (_, pile) => {
      const { node, chain, tell, offer, vote, own, others } = await listener(2);
      const { block, blockId, parts } = offer(pile(chain, own));
      const type = VOTE_TYPE.precommit;
      for (const who of others) await tell({ type: "vote", vote: vote(who, { type, blockId }) });
      for (const part of parts) expect(await tell(part)).toBe("new");
      await until(() => node.height === 2, { timeoutMs: 10_000, what: "height 2" });
      expect(node.consensus.refusedBlocks()).toEqual([]);

      const { genesis } = chain;
      const follower = await ValidatorNode.open({ genesis, seed: undefined });
      cleanUp.push(() => follower.stop());
      for (const height of [1, 2]) {
        const decided = node.consensus.load(height);
        if (decided === undefined) throw new Error("not decided");
        await follower.consensus.apply(decided);
      }
      expect(follower.consensus.load(2)?.block).toEqual(block);
    },
  );
});

describe("votes of a validator on a proposal", () => {
  it("are for a good block, and later than its time", async () => {
    const { tell, offer, votes } = await listener();
    const { blockId, block, proposal, parts } = offer();
    for (const message of [proposal, ...parts]) await tell(message);
    await until(() => votes().length > 0, { timeoutMs: 10_000, what: "its prevote" });
    const [prevote] = votes();
    expect(prevote).toMatchObject({ type: VOTE_TYPE.prevote, blockId });
    expect(prevote?.timeNs).toBeGreaterThanOrEqual(block.header.timeNs + 1_000_000n);
  });

  it.each<[string, BlockChoice]>([
    ["another app hash", { header: { appHash: `0x${"99".repeat(32)}` as never } }],
    ["a transaction that cannot be read", { transactions: [Buffer.from("00", "hex")] }],
    ["another time", { header: { timeNs: 1n } }],
  ])("are for nil at once where the block has %s", async (_, choice) => {
    const { node, tell, offer, votes } = await listener();
    const { proposal, parts } = offer(choice);
    for (const message of [proposal, ...parts]) await tell(message);
    await until(() => votes().length > 0, { timeoutMs: 10_000, what: "its prevote" });
    expect(votes()[0]).toMatchObject({ type: VOTE_TYPE.prevote, blockId: undefined });
    expect(node.halts).toEqual([]);
  });

  it("are for nil where the parts are no block at all", async () => {
    const { tell, chain, proposer, votes } = await listener();
    const { header, parts } = splitIntoParts(Buffer.from("no block"));
    const [part] = parts;
    if (part === undefined) throw new Error("no part");
    const blockId = { hash: `0x${"12".repeat(32)}` as never, parts: header };
    const content = { height: 1, round: 0, polRound: -1, blockId, timeNs: 5n };
    await tell({ type: "proposal", proposal: chain.proposal(proposer, content) });
    expect(await tell({ type: "part", height: 1, round: 0, header, part })).toBe("new");
    await until(() => votes().length > 0, { timeoutMs: 10_000, what: "its prevote" });
    expect(votes()[0]?.blockId).toBeUndefined();
  });
});

describe("a decision", () => {
  it("in a later round is taken by who has had its block since an earlier one", async () => {
    const { node, chain, tell, offer, vote, votes, own, others } = await listener();
    const { blockId, proposal, parts } = offer();
    for (const message of [proposal, ...parts]) await tell(message);
    await until(() => votes().length > 0, { timeoutMs: 10_000, what: "its prevote" });
    // It heard no prevotes of the others, who offered the block again and decided.
    const round = [1, 2].find((one) => chain.proposerOf(1, one) !== own) ?? 1;
    const type = VOTE_TYPE.precommit;
    for (const who of others)
      await tell({ type: "vote", vote: vote(who, { type, round, blockId }) });
    // Peers that look at what it says that it lacks have nothing more to give.
    for (const part of parts) await tell(part);
    await until(() => node.height === 1, { timeoutMs: 10_000, what: "height 1" });
    expect(node.halts).toEqual([]);
  });
});

describe("a halt", () => {
  it("follows two thirds behind an invalid block, and nothing is said any more", async () => {
    const { node, tell, offer, vote, others, said } = await listener();
    const { blockId, proposal, parts } = offer({ header: { timeNs: 1n } });
    for (const message of [proposal, ...parts]) await tell(message);
    for (const who of others) await tell({ type: "vote", vote: vote(who, { blockId }) });
    await until(() => node.halts.length > 0, { timeoutMs: 10_000, what: "the halt" });
    expect(node.halts[0]).toMatch(/invalid block/);
    expect(node.consensus.refusedBlocks()).toMatchObject([
      { block: { header: { height: 1, timeNs: 1n } }, reason: expect.stringMatching(/time/) },
    ]);
    await node.ended();
    const before = said.length;
    expect(await tell({ type: "vote", vote: vote(others[0] ?? 0, { round: 1 }) })).toBe("useless");
    expect(said).toHaveLength(before);
    expect(node.height).toBe(0);
  });

  it("is not for a store that cannot be read for now: the process ends, to be started anew", async () => {
    const { genesis, seeds } = validatorGenesis(1);
    const unread = new StoreError("STORE_READ_FAILED", "cannot read: too many open files");
    const watch = (application: BlockApplication): BlockApplication => ({
      ...application,
      build: () => Promise.reject(unread),
    });
    const node = await ValidatorNode.open({ genesis, seed: seeds[0], watch });
    cleanUp.push(() => node.stop());
    node.start(() => undefined);
    await expect(node.ended()).rejects.toBe(unread);
    expect(node.halts).toEqual([]);
  });

  it("is better than a store that lost heights which the log knows of", async () => {
    const { genesis, seeds } = validatorGenesis(1);
    const node = await ValidatorNode.open({ genesis, seed: seeds[0] });
    cleanUp.push(() => node.stop());
    const { wal } = await Wal.open(path.join(node.home, "data", "cs.wal"), 5);
    await wal.endHeight(5);
    await wal.close();
    node.start(() => undefined);
    await until(() => node.halts.length > 0, { timeoutMs: 10_000, what: "the halt" });
    expect(node.halts[0]).toMatch(/has height 5, the store only 0/);
    expect(node.height).toBe(0);
  });

  it("is told with what to do where an older copy of a single validator's store was put back", async () => {
    const { genesis, seeds } = validatorGenesis(1);
    const options = { genesis, seed: seeds[0] };
    const first = await ValidatorNode.open(options);
    cleanUp.push(async () => fs.rmSync(first.home, { recursive: true, force: true }));
    const data = (name: string): string => path.join(first.home, "data", name);
    const untilHeight = async (node: ValidatorNode, height: number): Promise<number> => {
      node.start(() => undefined);
      await until(() => node.height >= height, { timeoutMs: 20_000, what: `height ${height}` });
      await node.stop({ keep: true });
      return node.height;
    };
    const copied = await untilHeight(first, 2);
    fs.cpSync(data("chain"), data("chain.copy"), { recursive: true });
    const home = { ...options, home: first.home };
    const newest = await untilHeight(await ValidatorNode.open(home), copied + 2);
    fs.rmSync(data("chain"), { recursive: true });
    fs.renameSync(data("chain.copy"), data("chain"));

    const older = await ValidatorNode.open(home);
    older.start(() => undefined);
    await until(() => older.halts.length > 0, { timeoutMs: 10_000, what: "the halt" });
    await older.stop({ keep: true });
    const [said = ""] = older.halts;
    expect(said).toContain(`has height ${newest}, the store only ${copied}`);
    const stateFile = data("priv_validator_state.json");
    expect(said).toContain(stateFile);

    // The last remedy of those that it names, word for word.
    const [state = ""] = /\{.*\}/.exec(said) ?? [];
    expect(said).toContain("move data/cs.wal away");
    fs.renameSync(data("cs.wal"), data("cs.wal.away"));
    fs.writeFileSync(stateFile, state);
    expect(await untilHeight(await ValidatorNode.open(home), newest + 1)).toBeGreaterThan(newest);
  });
});

describe("double signing", () => {
  it("by a copied home is proven, and its validator removed", async () => {
    const { genesis, seeds } = validatorGenesis(4);
    // The fifth node has the key of the fourth and an empty state file.
    const net = new ValidatorNetwork(genesis, [...seeds, seeds[3]]);
    cleanUp.push(() => net.close());
    // Each half hears one of the two twins, so that both have their say.
    net.passes = (from, to) => (from === 3 ? to < 2 : from === 4 ? to >= 2 : true);
    for (const index of [0, 1, 2, 3]) await net.start(index);
    await net.reach(2);
    await net.start(4);
    const removed = () => {
      const { consensus } = net.nodes[0] ?? {};
      const height = consensus?.height() ?? 0;
      return consensus?.validators(height + 1)?.size === 3;
    };
    await until(removed, { timeoutMs: 60_000, what: "the validator is removed" });
    await net.halt(3);
    await net.halt(4);
    const height = net.nodes[0]?.height ?? 0;
    await net.reach(height + 4);
    const { consensus } = net.nodes[0] ?? {};
    const pieces = Array.from(
      { length: height },
      (_, at) => consensus?.load(at + 1)?.block.evidence,
    );
    const guilty = pieces.flat().map((one) => one?.voteA.validatorAddress);
    expect(guilty.length).toBeGreaterThan(0);
    expect(new Set(guilty)).toEqual(new Set([genesis.validators[3]?.address]));
  });

  it("is not done where peers have shown what the key signed, and its home does not know", async () => {
    const { tell, offer, vote, votes, own, others } = await listener();
    const { blockId, proposal, parts } = offer();
    // What it said before its home came back older: nothing.
    expect(await tell({ type: "vote", vote: vote(own) })).toBe("new");
    for (const message of [proposal, ...parts]) await tell(message);
    for (const one of others) await tell({ type: "vote", vote: vote(one, { blockId }) });
    await until(() => votes().length > 0, { timeoutMs: 10_000, what: "its precommit" });
    const said = votes().map((one) => [one.type, one.blockId]);
    expect(said).toEqual([[VOTE_TYPE.precommit, blockId]]);
  });

  it("is made unlikely by a look at the last blocks before the start", async () => {
    const { genesis, seeds } = validatorGenesis(1);
    const node = await ValidatorNode.open({ genesis, seed: seeds[0] });
    expect(node.consensus.hasSignedHere()).toBe(false);
    node.start(() => undefined);
    await until(() => node.height >= 3, { timeoutMs: 20_000 });
    expect(node.consensus.hasSignedHere()).toBe(true);
    await node.stop({ keep: true });
    const options = { genesis, seed: seeds[0], home: node.home };
    const careful = await ValidatorNode.open({ ...options, doubleSignCheckBlocks: 10 });
    careful.start(() => undefined);
    await expect(careful.ended()).rejects.toMatchObject({ code: "DOUBLE_SIGN_RISK" });
    expect(careful.consensus.hasSignedHere()).toBe(false);
    await careful.stop({ keep: true });
    // Without the look it signs on: the state file knows what it signed.
    const bold = await ValidatorNode.open(options);
    cleanUp.push(() => bold.stop());
    bold.start(() => undefined);
    await until(() => bold.height > node.height, { timeoutMs: 20_000 });
    expect(fs.existsSync(path.join(node.home, "data", "cs.wal", "wal"))).toBe(true);
  });
});

describe("a key whose state file is gone", () => {
  it("does not sign where it may have signed, and the file's remedy is taken", async () => {
    const { genesis: older, seeds } = validatorGenesis(1);
    const genesis = { ...older, genesisTimeMs: Date.now() - 60_000 };
    const node = await ValidatorNode.open({ genesis, seed: seeds[0] });
    const stateFile = path.join(node.home, "data", "priv_validator_state.json");
    // Nobody has signed anything on a chain without blocks that has only just begun.
    fs.rmSync(stateFile);
    node.start(() => undefined);
    await until(() => node.height >= 2, { timeoutMs: 20_000 });
    await node.stop({ keep: true });
    fs.rmSync(stateFile);
    const options = { genesis, seed: seeds[0], home: node.home };
    const lost = await ValidatorNode.open(options);
    const said: ConsensusMessage[] = [];
    lost.start((message) => said.push(message));
    await expect(lost.ended()).rejects.toMatchObject({ code: "VALIDATOR_STATE_MISSING" });
    expect([said, fs.existsSync(stateFile)]).toEqual([[], false]);
    await lost.stop({ keep: true });
    fs.writeFileSync(stateFile, '{"height": "0", "round": 0, "step": 0}');
    const told = await ValidatorNode.open(options);
    cleanUp.push(() => told.stop());
    told.start(() => undefined);
    await until(() => told.height > node.height, { timeoutMs: 20_000 });
  });

  it("does not sign the first block of a chain that began long ago: its blocks may be lost as well", async () => {
    const { genesis, seeds } = validatorGenesis(1);
    const home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-lost-state-"));
    cleanUp.push(async () => fs.rmSync(home, { recursive: true, force: true }));
    writeValidatorHome(home, seeds[0] ?? Buffer.of());
    const stateFile = path.join(home, "data", "priv_validator_state.json");
    fs.rmSync(stateFile);
    const options = { genesis, seed: seeds[0], home };
    const lost = await ValidatorNode.open(options);
    const said: ConsensusMessage[] = [];
    lost.start((message) => said.push(message));
    let fault: unknown;
    lost.ended().catch((error: unknown) => (fault = error));
    await until(() => fault !== undefined || lost.height > 0, { timeoutMs: 20_000 });
    await lost.stop({ keep: true });
    expect(fault).toMatchObject({ code: "VALIDATOR_STATE_MISSING" });
    expect([said, fs.existsSync(stateFile)]).toEqual([[], false]);

    const [remedy = ""] = /\{.*\}/.exec(String(fault)) ?? [];
    fs.writeFileSync(stateFile, remedy);
    const told = await ValidatorNode.open(options);
    cleanUp.push(() => told.stop());
    told.start(() => undefined);
    await until(() => told.height > 0, { timeoutMs: 20_000, what: "the first block" });
  });
});

describe("a bad network", () => {
  it("is survived: a third of all messages lost, one validator cut off for a while", async () => {
    const { genesis, seeds } = validatorGenesis(4);
    const net = new ValidatorNetwork(genesis, seeds);
    cleanUp.push(() => net.close());
    let count = 0;
    let isCutOff = false;
    net.passes = (from, to) => {
      if (isCutOff && (from === 2 || to === 2)) return false;
      return ++count % 3 !== 0;
    };
    for (const index of [0, 1, 2, 3]) await net.start(index);
    await net.reach(4);
    isCutOff = true;
    const before = net.nodes[0]?.height ?? 0;
    const others = () => [0, 1, 3].every((index) => (net.nodes[index]?.height ?? 0) >= before + 5);
    await until(others, { timeoutMs: 60_000, what: "three go on" });
    isCutOff = false;
    await net.reach(before + 8);
    const hashes = net.nodes.map((node) => node?.view.block(before + 8)?.block.hash);
    expect(new Set(hashes).size).toBe(1);
  });
});
