/** Decided blocks as a node follows them: what it takes, and every rule that it refuses by. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { msToNs } from "../../../chain/consensus/block-id.js";
import { COMMIT_FLAG, type Commit, EMPTY_COMMIT } from "../../../chain/consensus/commit.js";
import {
  executionResult,
  executionResultSteps,
} from "../../../chain/consensus/execution-result.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { encodeConsensusBlock, splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import { type Hash32, parseHexBytes } from "../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { decodeTransaction, recoverSender } from "../../../chain/transaction.js";
import type { DecidedBlock, ReceivedBlock } from "../../../node/consensus/consensus-ports.js";
import { type BlockChoice, idOf, SignedChain } from "../../helpers/chains/signed-chain.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";
import { countedBytes } from "../../helpers/effort/counted-bytes.js";

const faucet = new Wallet(`0x${"11".repeat(32)}`);
const { genesis, seeds } = validatorGenesis(4, { faucet: faucet.address });

let node: ValidatorNode;
let chain: SignedChain;

beforeEach(async () => {
  node = await ValidatorNode.open({ genesis, seed: undefined });
  chain = new SignedChain(genesis, seeds, node.view.head().hash);
});

afterEach(() => node.stop());

/** The node takes a block, and the test's chain goes on with it. */
async function take(choice: BlockChoice = {}): Promise<DecidedBlock> {
  const decided = chain.decide(chain.makeBlock(choice));
  await node.consensus.apply(decided);
  const committed = node.view.block(decided.block.header.height);
  if (committed === undefined) throw new Error("the block is not published");
  const results = committed.receipts.map((receipt, index) => {
    const tx = committed.block.transactions[index]?.tx;
    if (tx === undefined) throw new Error("a receipt without a transaction");
    return executionResult(tx, receipt);
  });
  const resultsHash = allAtOnce(executionResultSteps(results));
  chain.follow(decided, { appHash: committed.block.hash, resultsHash });
  return decided;
}

/** Of a block that two thirds have signed: it is this node that cannot take it. */
async function refuses(decided: ReceivedBlock, reason: RegExp): Promise<void> {
  await refusesBy("DECIDED_BLOCK_REFUSED", decided, reason);
}

/** Of a block that its commit does not prove: who sent it made it up. */
async function blames(decided: ReceivedBlock, reason: RegExp): Promise<void> {
  await refusesBy("BLOCK_INVALID", decided, reason);
}

async function refusesBy(code: string, decided: ReceivedBlock, reason: RegExp): Promise<void> {
  const { height } = node;
  await expect(node.consensus.apply(decided)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(reason),
  });
  expect(node.height).toBe(height);
}

async function transfer(
  nonce: number,
  change: { chainId?: bigint; gasLimit?: bigint; value?: bigint } = {},
): Promise<Uint8Array> {
  const raw = await faucet.signTransaction({
    type: 0,
    chainId: genesis.evmChainId,
    nonce,
    gasPrice: 25_000_000n,
    gasLimit: 21_000n,
    to: `0x${"77".repeat(20)}`,
    value: 5n,
    ...change,
  });
  const tx = decodeTransaction(parseHexBytes(raw));
  return encodeSdkTransaction(tx, recoverSender(tx));
}

describe("a commit as a proof that the network has gone on", () => {
  it("needs two thirds where the validators of its height are known", async () => {
    await take();
    const { timeNs } = chain;
    const isProof = (height: number, who: readonly number[]) => {
      const commit = chain.commitFor(idOf(chain.makeBlock()), { height, timeNs }, who);
      return node.consensus.isProof(commit);
    };
    // Two of four may have signed a block that was never decided.
    const half = [0, 1];
    const most = [0, 1, 2];
    expect([2, 3].map((height) => [isProof(height, half), isProof(height, most)])).toEqual([
      [false, true],
      [false, true],
    ]);
  });
});

describe("following decided blocks", () => {
  it("takes block after block, and gives them back as they were decided", async () => {
    const taken = [await take()];
    const transactions = [await transfer(0), await transfer(1)];
    taken.push(await take({ transactions }), await take(), await take());
    expect(node.height).toBe(4);
    expect(node.view.block(2)?.block.transactions).toHaveLength(2);
    for (const { block, commit } of taken) {
      const { height } = block.header;
      const loaded = node.consensus.load(height);
      expect(loaded?.block).toEqual(block);
      expect(idOf(loaded?.block ?? block)).toEqual(idOf(block));
      expect(loaded?.commit).toEqual(commit);
      expect(node.consensus.validators(height)?.hash()).toBe(chain.validators(height).hash());
      expect(node.consensus.validators(height)?.proposer).toEqual(
        chain.validators(height).proposer,
      );
    }
    // D8: the header of the next height has the EVM block's hash.
    expect(taken[3]?.block.header.appHash).toBe(node.view.block(3)?.block.hash);
    expect(node.consensus.validators(6)?.proposer).toEqual(chain.validators(6).proposer);
    expect(node.consensus.validators(7)).toBeUndefined();
    expect(node.consensus.load(5)).toBeUndefined();
    expect([node.consensus.base(), node.consensus.height()]).toEqual([1, 4]);
  });

  it("goes on after a restart from what is stored", async () => {
    for (let height = 1; height <= 5; height++) await take();
    await node.stop({ keep: true });
    node = await ValidatorNode.open({ genesis, seed: undefined, home: node.home });
    expect(node.consensus.load(5)?.commit).toEqual(chain.lastCommit);
    await take();
    expect(node.height).toBe(6);
  });

  it("knows the validators of every height, turns included", async () => {
    // Past the height at which a whole set is stored again.
    for (let height = 1; height <= 135; height++) await take();
    await node.stop({ keep: true });
    node = await ValidatorNode.open({ genesis, seed: undefined, home: node.home });
    for (const height of [1, 2, 3, 126, 127, 128, 129, 135, 136, 137]) {
      const [stored, own] = [node.consensus.validators(height), chain.validators(height)];
      expect({ height, validators: stored?.validators }).toEqual({
        height,
        validators: own.validators,
      });
      expect(stored?.proposer).toEqual(own.proposer);
    }
    await take();
  });

  it("takes a commit of three out of four, one of two not", async () => {
    await take();
    const block = chain.makeBlock();
    await blames(chain.decide(block, [0, 3]), /no two thirds/);
    const { height } = node;
    await node.consensus.apply(chain.decide(block, [0, 1, 3]));
    expect(node.height).toBe(height + 1);
  });

  const wrong = `0x${"99".repeat(32)}` as never;
  const headerFaults: readonly (readonly [string, BlockChoice, RegExp])[] = [
    ["block version", { header: { blockVersion: 10 } }, /version/],
    ["application version", { header: { appVersion: 2 } }, /version/],
    ["chain id", { header: { chainId: "chain_6941-1" } }, /chain_id/],
    ["last block id", { header: { lastBlockId: undefined } }, /last_block_id/],
    ["last commit hash", { header: { lastCommitHash: wrong } }, /last_commit_hash/],
    ["data hash", { header: { dataHash: wrong } }, /data_hash/],
    ["validators hash", { header: { validatorsHash: wrong } }, /validators_hash/],
    ["next validators hash", { header: { nextValidatorsHash: wrong } }, /next_validators_hash/],
    ["consensus hash", { header: { consensusHash: wrong } }, /consensus_hash/],
    ["app hash", { header: { appHash: wrong } }, /app_hash/],
    ["last results hash", { header: { lastResultsHash: wrong } }, /last_results_hash/],
    ["evidence hash", { header: { evidenceHash: wrong } }, /evidence_hash/],
    ["proposer", { header: { proposerAddress: `0x${"99".repeat(20)}` as never } }, /proposer/],
    ["time", { header: { timeNs: 1_750_000_000_123_000_000n } }, /median time/],
  ];

  it.each(headerFaults)("refuses another %s", async (_, choice, reason) => {
    await take();
    await refuses(chain.decide(chain.makeBlock(choice)), reason);
    await take();
  });

  it("refuses another height, also with a commit for that height", async () => {
    await take();
    const block = chain.makeBlock({ header: { height: 3 } });
    const commit = chain.commitFor(idOf(block), { height: 2, timeNs: 0n });
    await refuses({ block, commit }, /height is wrong/);
    await blames(chain.decide(chain.makeBlock({ header: { height: 1 } })), /another height/);
  });

  it("refuses a first block of another time or with a commit", async () => {
    const later = { timeNs: chain.timeNs + 1n };
    await refuses(chain.decide(chain.makeBlock({ header: later })), /time of the first block/);
    const genesisTime = { timeNs: msToNs(genesis.genesisTimeMs) };
    await refuses(
      chain.decide(chain.makeBlock({ header: genesisTime })),
      /time of the first block/,
    );
    const blockId = idOf(chain.makeBlock());
    const lastCommit = chain.commitFor(blockId, { height: 1, timeNs: 0n });
    await refuses(chain.decide(chain.makeBlock({ lastCommit })), /first block/);
  });

  it.each<[string, Partial<Commit>]>([
    ["height", { height: 7 }],
    ["round", { round: 3 }],
    ["block", { blockId: { hash: wrong, parts: { total: 1, hash: wrong } } }],
    ["signature", { signatures: [{ flag: COMMIT_FLAG.absent }] }],
  ])("refuses a first block whose empty last commit names a %s", async (_, change) => {
    const lastCommit = { ...EMPTY_COMMIT, ...change };
    const reason = /the last commit of the first block is wrong/;
    await refuses(chain.decide(chain.makeBlock({ lastCommit })), reason);
    await take();
  });

  it("has block 1 later than block 0, in whole seconds too, and times that rise", async () => {
    for (let height = 1; height <= 3; height++) await take();
    const times = [0, 1, 2, 3].map((height) => {
      const block = node.view.block(height)?.block;
      if (block === undefined) throw new Error("no block");
      return { ms: block.timeMs, seconds: block.header.timestampSeconds };
    });
    const [zero, first] = times;
    expect(zero).toEqual({ ms: genesis.genesisTimeMs, seconds: genesis.genesisTimeMs / 1_000 });
    expect(first?.seconds).toBe((zero?.seconds ?? 0) + 1);
    expect(times.every(({ ms }, index) => ms > (times[index - 1]?.ms ?? 0))).toBe(true);
  });

  it("refuses a last commit that is not that of the last block", async () => {
    await take();
    await take();
    const { lastBlockId, lastCommit } = chain;
    if (lastBlockId === undefined) throw new Error("no block");
    const place = { height: 2, timeNs: chain.timeNs };
    const [first, ...others] = lastCommit.signatures;
    if (first === undefined || first.flag === COMMIT_FLAG.absent) throw new Error("no signature");
    const broken = Uint8Array.from(first.signature);
    broken[3] = (broken[3] ?? 0) ^ 1;
    const other = { ...lastBlockId, hash: wrong };
    const cases: readonly (readonly [Commit, RegExp])[] = [
      [chain.commitFor(lastBlockId, place, [0, 1]), /no two thirds/],
      [chain.commitFor(other, place), /another block/],
      [{ ...lastCommit, height: 1 }, /another height/],
      [{ ...lastCommit, round: 1 }, /signature 0 of the commit is false/],
      [{ ...lastCommit, signatures: others }, /number of validators/],
      [
        { ...lastCommit, signatures: [{ ...first, signature: broken }, ...others] },
        /signature 0 of the commit is false/,
      ],
      [
        { ...lastCommit, signatures: [{ ...first, validatorAddress: wrong }, ...others] },
        /another validator/,
      ],
    ];
    for (const [commit, reason] of cases) {
      await refuses(chain.decide(chain.makeBlock({ lastCommit: commit })), reason);
    }
    await take();
  });

  it("refuses a commit for another block than the one that came", async () => {
    await take();
    const { commit } = chain.decide(chain.makeBlock());
    const block = chain.makeBlock({ transactions: [await transfer(0)] });
    await blames({ block, commit }, /another block/);
  });

  it("refuses transactions that cannot be executed one and all", async () => {
    await take();
    const first = await transfer(0);
    const bad: readonly (readonly [string, readonly Uint8Array[], RegExp])[] = [
      ["a gap in nonces", [await transfer(1)], /nonce too high/],
      ["the same one twice", [first, first], /nonce too low/],
      ["more than there is", [await transfer(0, { value: 10n ** 40n })], /insufficient funds/],
      ["another chain's", [await transfer(0, { chainId: 1n })], /INVALID_CHAIN_ID/],
      ["too much gas", [await transfer(0, { gasLimit: 30_000_001n })], /GAS_LIMIT_EXCEEDED/],
      ["too little gas", [await transfer(0, { gasLimit: 20_999n })], /INTRINSIC_GAS/],
      ["bytes that are none", [Buffer.from("0102", "hex")], /cannot be read/],
      ["a longer encoding", [Buffer.concat([first, Buffer.from([0x1a, 0])])], /transaction/],
    ];
    for (const [name, transactions, reason] of bad) {
      const { height } = node;
      const decided = chain.decide(chain.makeBlock({ transactions }));
      await expect(node.consensus.apply(decided)).rejects.toMatchObject({
        code: "DECIDED_BLOCK_REFUSED",
        message: expect.stringMatching(reason),
      });
      expect({ name, height: node.height }).toEqual({ name, height });
      expect(node.consensus.refusedBlocks()[0]?.reason).toMatch(reason);
    }
    await take({ transactions: [first] });
  });

  it("refuses a transaction in another's name", async () => {
    await take();
    const raw = decodeTransaction(
      parseHexBytes(
        await faucet.signTransaction({
          type: 0,
          chainId: genesis.evmChainId,
          nonce: 0,
          gasPrice: 25_000_000n,
          gasLimit: 21_000n,
          to: `0x${"77".repeat(20)}`,
        }),
      ),
    );
    const transactions = [encodeSdkTransaction(raw, `0x${"ab".repeat(20)}` as never)];
    await refuses(chain.decide(chain.makeBlock({ transactions })), /another sender/);
  });
});

describe("evidence in blocks", () => {
  it("removes the validator two heights later, and is not taken twice", async () => {
    await take();
    await take();
    const evidence = [chain.doubleVote(1, 2)];
    await take({ evidence });
    expect(node.consensus.validators(4)?.size).toBe(4);
    expect(node.consensus.validators(5)?.size).toBe(3);
    await refuses(chain.decide(chain.makeBlock({ evidence })), /in a block already/);
    await take();
    // The three that are left decide alone.
    await take();
    expect(node.height).toBe(5);
    expect(node.consensus.load(5)?.commit.signatures).toHaveLength(3);
    expect(node.consensus.load(3)?.block.evidence).toEqual(evidence);
  });

  it("is refused when it proves nothing", async () => {
    await take();
    await take();
    const good = chain.doubleVote(1, 1);
    const { voteA, voteB } = good;
    const stranger = { ...voteB, signature: chain.doubleVote(2, 1).voteB.signature };
    const bad: readonly (readonly [string, typeof good, RegExp])[] = [
      ["a height to come", { ...good, voteA: { ...voteA, height: 9 } }, /unknown height/],
      ["another time", { ...good, timeNs: good.timeNs + 1n }, /time/],
      ["another power", { ...good, validatorPower: 11n }, /another power/],
      ["another total", { ...good, totalPower: 41n }, /total power/],
      ["a false signature", { ...good, voteB: stranger }, /signature is false/],
      ["votes of two rounds", { ...good, voteB: { ...voteB, round: 1 } }, /differ in round/],
      ["another place", { ...good, voteA: { ...voteA, validatorIndex: 3 } }, /place in the set/],
    ];
    for (const [name, evidence, reason] of bad) {
      const decided = chain.decide(chain.makeBlock({ evidence: [evidence] }));
      await expect(node.consensus.apply(decided)).rejects.toMatchObject({
        code: "DECIDED_BLOCK_REFUSED",
        message: expect.stringMatching(reason),
      });
      expect({ name, height: node.height }).toEqual({ name, height: 2 });
    }
    await refuses(chain.decide(chain.makeBlock({ evidence: [good, good] })), /twice/);
    await take({ evidence: [good] });
  });
});

describe("a block as it came from a peer", () => {
  /** As a later version might write it: with a field more. */
  function unreadable(who?: readonly number[]) {
    const block = chain.makeBlock();
    const blockBytes = Buffer.concat([encodeConsensusBlock(block), Buffer.from("4801", "hex")]);
    const blockId = { hash: idOf(block).hash, parts: splitIntoParts(blockBytes).header };
    return { blockBytes, commit: chain.commitFor(blockId, block.header, who) };
  }

  it("is the own fault where two thirds have signed bytes that cannot be read", async () => {
    await take();
    await refuses(unreadable(), /decided block 2, and this node cannot read it.*field 9.*version/);
    await refuses(unreadable([0, 2, 3]), /cannot read it/);
    await take();
  });

  it("is taken where it can be read, and read only where they have signed it", async () => {
    const block = chain.makeBlock();
    const decided = chain.decide(block);
    const { commit } = decided;
    const watched = () => countedBytes(Uint8Array.from(encodeConsensusBlock(block)));
    const unsigned = watched();
    const few = chain.commitFor(idOf(block), block.header, [0, 1]);
    await blames({ blockBytes: unsigned.bytes, commit: few }, /no two thirds/);
    const signed = watched();
    await node.consensus.apply({ blockBytes: signed.bytes, commit });
    expect(node.consensus.load(1)).toEqual(decided);
    // One piece for the block's one part; whoever reads it takes a piece for each field.
    expect([unsigned.pieces(), signed.pieces() > 4]).toEqual([1, true]);
  });

  it("is refused where two thirds have signed its bytes under another hash", async () => {
    const block = chain.makeBlock();
    const blockBytes = encodeConsensusBlock(block);
    const blockId = { ...idOf(block), hash: `0x${"ab".repeat(32)}` as Hash32 };
    const commit = chain.commitFor(blockId, block.header);
    await refuses({ blockBytes, commit }, /decided block 1.*header has another hash/);
  });

  it("is the sender's fault where they have not", async () => {
    await take();
    await blames(unreadable([0, 1]), /no two thirds/);
    const { blockBytes, ...signed } = unreadable();
    const others = Buffer.concat([blockBytes, Buffer.from("5001", "hex")]);
    await blames({ ...signed, blockBytes: others }, /commit is for another block/);
    const { commit } = signed;
    await blames({ ...signed, blockBytes, commit: { ...commit, height: 3 } }, /another height/);
    const nil = { ...commit, blockId: undefined };
    await blames({ ...signed, blockBytes, commit: nil }, /another block/);
    await take();
  });
});
