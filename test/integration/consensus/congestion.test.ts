/** Blocks shrink while rounds fail or work on them takes too long, so that a starved network gets out of its own backlog. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { decodeConsensusBlock } from "../../../chain/consensus/consensus-block.js";
import { type Vote, VOTE_TYPE } from "../../../chain/consensus/vote.js";
import { parseHexBytes, ZERO_HASH } from "../../../chain/hex.js";
import { Congestion } from "../../../node/consensus/proposals/congestion.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { until } from "../../helpers/until.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";

const FULL = 600_000_000n;
const faucet = new Wallet(`0x${"11".repeat(32)}`);

/** Of a machine that is quick, as its first blocks have shown. */
function quickMachine(): Congestion {
  const congestion = new Congestion();
  for (let height = 0; height < 2; height++) {
    congestion.onDecided(0, { workMs: 100, blockIntervalMs: 2_000, filling: 0.5 });
  }
  return congestion;
}

describe("the room of a new block", () => {
  it("halves with each round, to a least", () => {
    const congestion = quickMachine();
    const rooms = [0, 1, 2, 8, 9, 100].map((round) => congestion.gasOf(round, FULL));
    expect(rooms).toEqual([FULL, FULL / 2n, FULL / 4n, FULL / 256n, 2_100_000n, 2_100_000n]);
    expect(congestion.gasOf(5, 1_000_000n)).toBe(1_000_000n);
  });

  it("stays small after a height that took rounds, and grows back with each that took none", () => {
    const congestion = quickMachine();
    congestion.onDecided(2);
    expect(congestion.gasOf(0, FULL)).toBe(FULL / 4n);
    expect(congestion.gasOf(1, FULL)).toBe(FULL / 8n);
    congestion.onDecided(0);
    expect(congestion.gasOf(0, FULL)).toBe(FULL / 2n);
    congestion.onDecided(0);
    congestion.onDecided(0);
    expect(congestion.gasOf(0, FULL)).toBe(FULL);
  });

  it("is full again soon where one of four proposers is dead", () => {
    const congestion = quickMachine();
    const rooms = Array.from({ length: 40 }, (_, height) => {
      const room = congestion.gasOf(0, FULL);
      congestion.onDecided(height % 4 === 0 ? 1 : 0);
      return room;
    });
    expect(rooms.filter((room) => room === FULL)).toHaveLength(30);
    expect(rooms.filter((room) => room === FULL / 2n)).toHaveLength(10);
  });
});

describe("a machine that is slower than the one of the compute units", () => {
  const blockIntervalMs = 2_000;

  /** Blocks that hold so much of their room, whose work takes so long for all that a block may hold. */
  function worksOf(
    congestion: Congestion,
    { fullMs, blocks, of = 1 }: { fullMs: number; blocks: number; of?: number },
  ): number[] {
    return Array.from({ length: blocks }, () => {
      const filling = (of * Number(congestion.gasOf(0, FULL))) / Number(FULL);
      const workMs = filling * fullMs;
      congestion.onDecided(0, { workMs, blockIntervalMs, filling });
      return workMs;
    });
  }

  it("begins with half of the room: how fast it is only a block can tell", () => {
    expect(new Congestion().gasOf(0, FULL)).toBe(FULL / 2n);
  });

  it.each([2_000, 3_000, 5_400, 9_000])(
    "makes blocks that are in time, full ones take %d ms",
    (fullMs) => {
      const works = worksOf(new Congestion(), { fullMs, blocks: 12 });
      expect(works[0]).toBe(fullMs / 2);
      const settled = works.slice(3);
      expect(Math.max(...settled)).toBeLessThanOrEqual(1_801);
      // And no smaller than that needs.
      expect(Math.min(...settled)).toBeGreaterThan(1_700);
    },
  );

  it("still knows it after hours in which little is asked for", () => {
    const congestion = new Congestion();
    worksOf(congestion, { fullMs: 9_000, blocks: 12 });
    const room = congestion.gasOf(0, FULL);
    for (let height = 0; height < 1_000; height++) {
      congestion.onDecided(0, { workMs: 4, blockIntervalMs, filling: 0.001 });
    }
    expect(congestion.gasOf(0, FULL)).toBe(room);
    expect(worksOf(congestion, { fullMs: 9_000, blocks: 1 })[0]).toBeLessThanOrEqual(1_801);
  });

  it("learns it from blocks that are not full, too", () => {
    const congestion = new Congestion();
    worksOf(congestion, { fullMs: 9_000, blocks: 12, of: 0.1 });
    expect(worksOf(congestion, { fullMs: 9_000, blocks: 1 })[0]).toBeLessThanOrEqual(1_801);
  });

  it("makes full ones again when the work is quick", () => {
    const congestion = new Congestion();
    worksOf(congestion, { fullMs: 9_000, blocks: 12 });
    worksOf(congestion, { fullMs: 1_000, blocks: 10 });
    expect(congestion.gasOf(0, FULL)).toBe(FULL);
  });

  it("makes smaller ones where even next to nothing is late", () => {
    const congestion = quickMachine();
    congestion.onDecided(0, { workMs: 10_000, blockIntervalMs, filling: 0 });
    expect(congestion.gasOf(0, FULL)).toBe(FULL / 2n);
  });

  it("always leaves room for the largest transaction", () => {
    const congestion = new Congestion();
    worksOf(congestion, { fullMs: 1e9, blocks: 100 });
    expect(congestion.gasOf(0, FULL)).toBe(FULL / 8n);
  });

  it("is no slower for a chain of short intervals", () => {
    const congestion = quickMachine();
    congestion.onDecided(0, { workMs: 900, blockIntervalMs: 100, filling: 1 });
    expect(congestion.gasOf(0, FULL)).toBe(FULL);
  });

  it("does not count what failed rounds did", () => {
    const congestion = quickMachine();
    congestion.onDecided(1, { workMs: 60_000, blockIntervalMs, filling: 1 });
    congestion.onDecided(0);
    expect(congestion.gasOf(0, FULL)).toBe(FULL);
  });
});

describe("a validator whose blocks take long to store", () => {
  let node: ValidatorNode | undefined;

  afterEach(() => node?.stop());

  it("offers smaller ones until they are in time, and full ones afterwards", async () => {
    const chosen = validatorGenesis(1, { faucet: faucet.address });
    // A transfer is a sixteenth of a block.
    const [maxComputeNs, maxTransactionComputeNs] = [800_000, 100_000];
    const params = { ...chosen.genesis.params, maxComputeNs, maxTransactionComputeNs };
    let lateMs = 0;
    let heights = 0;
    const rooms: bigint[] = [];
    node = await ValidatorNode.open({
      genesis: { ...chosen.genesis, params },
      seed: chosen.seeds[0],
      // Work takes what the test says, and nothing else: not what a busy machine makes of it.
      clock: { nowMs: () => Date.now(), monotonicMs: () => lateMs },
      watch: (application) => ({
        ...application,
        build: (place, limits) => {
          rooms.push(limits.maxGas);
          return application.build(place, limits);
        },
        settle: async (...decision) => {
          const tip = await application.settle(...decision);
          heights += 1;
          if (heights <= 2) lateMs += 10_000;
          return tip;
        },
      }),
    });
    node.start(() => undefined);
    const { consensus, pool } = node;
    await until(() => consensus.status().height > 4, { timeoutMs: 20_000, what: "four blocks" });
    expect(rooms.slice(0, 4)).toEqual([FULL / 2n, FULL / 4n, FULL / 8n, FULL / 8n]);
    for (let nonce = 0; nonce < 8; nonce++) {
      const raw = await faucet.signTransaction({
        type: 0,
        chainId: chosen.genesis.evmChainId,
        nonce,
        gasPrice: 25_000_000n,
        gasLimit: 21_000n,
        to: `0x${"77".repeat(20)}`,
        value: 1n,
      });
      const [hash] = await pool.submit([parseHexBytes(raw)]);
      if (hash === undefined || hash instanceof Error) throw new Error(String(hash));
      const isIn = () => pool.status(hash).status === "included";
      await until(isIn, { timeoutMs: 20_000, what: `block of transfer ${nonce}` });
    }
    const count = rooms.length;
    await until(() => rooms.length > count, { timeoutMs: 20_000, what: "one more block" });
    expect(rooms.at(-1)).toBe(FULL);
  });
});

describe("a slow validator and a transaction that takes all that one may", () => {
  let node: ValidatorNode | undefined;

  afterEach(() => node?.stop());

  it("mines it: work makes no block smaller than that", async () => {
    const chosen = validatorGenesis(1, { faucet: faucet.address });
    const [maxComputeNs, maxTransactionComputeNs] = [40_000_000, 10_000_000];
    const params = { ...chosen.genesis.params, maxComputeNs, maxTransactionComputeNs };
    let lateMs = 0;
    const rooms: bigint[] = [];
    node = await ValidatorNode.open({
      genesis: { ...chosen.genesis, params },
      seed: chosen.seeds[0],
      clock: { nowMs: () => Date.now(), monotonicMs: () => lateMs },
      watch: (application) => ({
        ...application,
        build: (place, limits) => {
          rooms.push(limits.maxGas);
          return application.build(place, limits);
        },
        settle: async (...decision) => {
          const tip = await application.settle(...decision);
          lateMs += 60_000;
          return tip;
        },
      }),
    });
    node.start(() => undefined);
    const { consensus, pool } = node;
    await until(() => rooms.length > 4, { timeoutMs: 20_000, what: "blocks of a slow machine" });
    // JUMPDEST PUSH0 JUMP: runs until its share of the units is used up.
    const raw = await faucet.signTransaction({
      type: 0,
      chainId: chosen.genesis.evmChainId,
      nonce: 0,
      gasPrice: 25_000_000n,
      gasLimit: 30_000_000n,
      data: "0x5b5f56",
    });
    const [hash] = await pool.submit([parseHexBytes(raw)]);
    if (hash === undefined || hash instanceof Error) throw new Error(String(hash));
    const from = consensus.status().height;
    const isOver = () =>
      pool.status(hash).status === "included" || consensus.status().height > from + 8;
    await until(isOver, { timeoutMs: 20_000, what: "its block" });
    expect(pool.status(hash)).toMatchObject({ status: "included" });
    expect(rooms.at(-1)).toBe(FULL / 4n);
  });
});

describe("a transaction that takes more compute units than a whole block has", () => {
  let node: ValidatorNode | undefined;

  afterEach(() => node?.stop());

  it("leaves the pool, so that its sender can use the nonce again", async () => {
    const chosen = validatorGenesis(1, { faucet: faucet.address });
    const [maxComputeNs, maxTransactionComputeNs] = [1_000_000, 2_000_000];
    const params = { ...chosen.genesis.params, maxComputeNs, maxTransactionComputeNs };
    node = await ValidatorNode.open({
      genesis: { ...chosen.genesis, params },
      seed: chosen.seeds[0],
    });
    node.start(() => undefined);
    const { consensus, pool } = node;
    const submit = async (fields: { readonly data?: string; readonly to?: string }) => {
      const raw = await faucet.signTransaction({
        type: 0,
        chainId: chosen.genesis.evmChainId,
        nonce: 0,
        gasPrice: 25_000_000n,
        gasLimit: 1_000_000n,
        ...fields,
      });
      const [hash] = await pool.submit([parseHexBytes(raw)]);
      if (hash === undefined || hash instanceof Error) throw new Error(String(hash));
      return hash;
    };
    // JUMPDEST PUSH0 JUMP: for ever.
    const endless = await submit({ data: "0x5b5f56" });
    const from = consensus.status().height;
    const isOver = () =>
      pool.status(endless).status !== "pending" || consensus.status().height > from + 4;
    await until(isOver, { timeoutMs: 20_000, what: "its blocks" });
    const reason = "no block has as many compute units as it takes";
    expect(pool.status(endless)).toEqual({ status: "dropped", reason });
    const usual = await submit({ to: `0x${"77".repeat(20)}` });
    const isIn = () => pool.status(usual).status === "included";
    await until(isIn, { timeoutMs: 20_000, what: "another one's block" });
  });
});

describe("a proposer in a round after a failed one", () => {
  const transactions = 300;
  const chosen = validatorGenesis(4, { faucet: faucet.address });
  const { seeds } = chosen;
  // Round 0 has room for 400 transfers.
  const params = { ...chosen.genesis.params, maxGas: 8_400_000n, maxTransactionGas: 8_400_000n };
  const genesis = { ...chosen.genesis, params };
  let node: ValidatorNode | undefined;

  afterEach(() => node?.stop());

  it("offers half of what a block may hold", async () => {
    const chain = new SignedChain(genesis, seeds, ZERO_HASH);
    const own = chain.proposerOf(1, 1);
    const others = [0, 1, 2, 3].filter((one) => one !== own);
    node = await ValidatorNode.open({ genesis, seed: seeds[own] });
    const raws = await Promise.all(
      Array.from({ length: transactions }, (_, nonce) =>
        faucet.signTransaction({
          type: 0,
          chainId: genesis.evmChainId,
          nonce,
          gasPrice: 25_000_000n,
          gasLimit: 21_000n,
          to: `0x${"77".repeat(20)}`,
          value: 1n,
        }),
      ),
    );
    const answers = await node.pool.submit(raws.map(parseHexBytes));
    expect(answers.filter((answer) => answer instanceof Error)).toEqual([]);
    const said: ConsensusMessage[] = [];
    node.start((message) => said.push(message));
    const { consensus } = node;
    await until(() => consensus.status().step >= 3, { timeoutMs: 20_000, what: "round 0" });
    for (const who of others) {
      for (const type of [VOTE_TYPE.prevote, VOTE_TYPE.precommit]) {
        const content = { type, height: 1, round: 0, blockId: undefined, timeNs: 9n };
        const vote: Vote = chain.vote(who, content);
        await consensus.receive({ type: "vote", vote }, "peer");
      }
    }
    const parts = () => said.flatMap((one) => (one.type === "part" ? [one] : []));
    const isWhole = () => parts().length > 0 && parts().length === parts()[0]?.header.total;
    await until(isWhole, { timeoutMs: 20_000, what: "an own proposal" });
    expect(parts()[0]?.round).toBe(1);
    const bytes = Buffer.concat(parts().map(({ part }) => part.bytes));
    expect(decodeConsensusBlock(bytes).transactions).toHaveLength(transactions - 100);
  });
});
