/** What becomes of transactions whose compute units are not enough: theirs, or the block's (D21). */
import { afterEach, describe, expect, it } from "@jest/globals";
import { toBeHex, Wallet } from "ethers";
import { NEWEST_WEIGHTS, weightsOf } from "../../../../chain/evm/compute-weights.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { hexToBytes, ZERO_HASH } from "../../../../chain/hex.js";
import { withoutSignature } from "../../../../chain/transaction.js";
import { Engine } from "../../../../node/execution/interpreter/engine.js";
import {
  type ComputeRoom,
  executeTransaction,
} from "../../../../node/execution/transaction-executor.js";
import { JournaledState } from "../../../../node/state/journaled-state.js";
import { ExecutionChain, testGenesis } from "../../../helpers/chains/execution-chain.js";
import { ALICE, BLOCK, BOB, CONTRACT, FEE_COLLECTOR, MemoryState, TEN } from "../call-fixture.js";

const CHAIN_ID = 6_940n;
const GAS = 5_000_000n;
const WEIGHTS = weightsOf(NEWEST_WEIGHTS);
/** JUMPDEST PUSH0 JUMP: for ever. */
const LOOP = "5b5f56";

async function execute(to: Address, compute: ComputeRoom, dataBytes = 0) {
  const reader = new MemoryState({ [ALICE]: { balanceAtoken: TEN }, [CONTRACT]: { code: LOOP } });
  const state = new JournaledState(reader);
  const engine = new Engine({ chainId: CHAIN_ID, state, weights: WEIGHTS });
  const tx = withoutSignature({
    type: 0,
    chainId: CHAIN_ID,
    nonce: 0n,
    to,
    valueAtoken: 1n,
    data: new Uint8Array(dataBytes),
    gasLimit: GAS,
    maxFeePerGasAtoken: 1n,
    maxPriorityFeePerGasAtoken: 1n,
    accessList: [],
  });
  const outcome = await executeTransaction(
    { tx: { ...tx, hash: keccak256Hex(Buffer.from("one")) }, from: ALICE },
    {
      state,
      engine: () => engine,
      block: { ...BLOCK, blockHash: () => ZERO_HASH },
      limits: { chainId: CHAIN_ID, maxTransactionGas: 30_000_000n },
      feeCollector: FEE_COLLECTOR,
      compute,
      computeWeights: NEWEST_WEIGHTS,
    },
  );
  return { outcome, changed: state.changedAccounts().size, depth: state.depth() };
}

describe("a transaction that runs for ever", () => {
  it("is in the block, fails and pays its gas limit, once it has used up its share", async () => {
    const maxTransactionNs = 1_000_000;
    const { outcome } = await execute(CONTRACT, { blockLeftNs: 1e9, maxTransactionNs });
    if (!outcome.included) throw new Error(outcome.reason);
    expect(outcome.receipt).toMatchObject({ status: 0, gasUsed: GAS, logs: [] });
    expect([outcome.feeAtoken, outcome.computeNs]).toEqual([GAS, maxTransactionNs]);
  });

  it("waits for another block, and changes nothing, where this one has less than its share", async () => {
    const compute = { blockLeftNs: 999_999, maxTransactionNs: 1_000_000 };
    const { outcome, changed, depth } = await execute(CONTRACT, compute);
    expect(outcome).toMatchObject({ included: false, code: "OUT_OF_BLOCK_COMPUTE" });
    expect([changed, depth]).toEqual([0, 0]);
  });
});

describe("blocks of both engines", () => {
  const wallet = new Wallet(`0x${"11".repeat(32)}`);
  const counter = parseAddress(`0x${"cc".repeat(20)}`);
  /** Counts its first word of input down, then stores it: PUSH0 CALLDATALOAD .. PUSH1 1 PUSH0 SSTORE. */
  const COUNTDOWN = "5f355b600190038060025760015f5500";
  let chain: ExecutionChain;

  afterEach(() => chain.close());

  it("end a transaction alike that its gas would have carried further than its units", async () => {
    const genesis = testGenesis(wallet.address);
    const params = { ...genesis.params, maxTransactionComputeNs: 2_000_000 };
    const code = { balanceAtoken: 0n, code: `0x${COUNTDOWN}` as const, storage: new Map() };
    const alloc = new Map([...genesis.alloc, [counter, code]]);
    chain = await ExecutionChain.open({ ...genesis, params, alloc });
    const rounds = [10, 100_000, 20];
    const raws = await Promise.all(
      rounds.map((count, nonce) =>
        wallet.signTransaction({
          type: 0,
          chainId: genesis.evmChainId,
          nonce,
          gasPrice: 25_000_000n,
          gasLimit: 10_000_000n,
          to: counter,
          data: toBeHex(count, 32),
        }),
      ),
    );
    const [own, library] = [
      await chain.execute(raws),
      await chain.execute(raws, [], "ethereumjs"),
    ].map(({ executed, outcomes }) => ({
      hash: executed.committed.block.hash,
      journal: executed.committed.journal,
      units: outcomes.map((outcome) => outcome.included && outcome.computeNs),
      receipts: executed.committed.receipts.map(({ status, gasUsed }) => [status, gasUsed]),
    }));
    expect(own?.receipts.map(([status]) => status)).toEqual([1, 0, 1]);
    expect(own?.receipts[1]?.[1]).toBe(10_000_000n);
    expect(library).toEqual(own);
  });
});

describe("a slot that a transaction changed which is in no block", () => {
  /** Stores its first word of input: PUSH0 CALLDATALOAD PUSH0 SSTORE. */
  const STORING = "5f355f55";

  it("counts as one that the block has not touched", () => {
    const reader = new MemoryState({
      [ALICE]: { balanceAtoken: TEN },
      [CONTRACT]: { code: STORING },
    });
    const state = new JournaledState(reader);
    const engine = new Engine({ chainId: CHAIN_ID, state, weights: WEIGHTS });
    const block = { ...BLOCK, blockHash: () => ZERO_HASH };
    const store = (value: number, isIncluded: boolean): number => {
      state.checkpoint();
      const message = {
        from: ALICE,
        to: CONTRACT,
        valueAtoken: 0n,
        data: hexToBytes(toBeHex(value, 32)),
        gasLimit: GAS,
        gasPriceAtoken: 1n,
        accessList: [],
      };
      const { computeNs, error } = engine.run(message, block, { limitNs: 1e9 });
      expect(error).toBeUndefined();
      if (isIncluded) state.commit();
      else state.revert();
      return computeNs;
    };
    const first = store(1, false);
    expect(store(2, true)).toBe(first);
    const { coldSlotNs, changedSlotNs, slotChangeNs, slotChangeAgainNs } = WEIGHTS;
    const saved = coldSlotNs - changedSlotNs + (slotChangeNs - slotChangeAgainNs);
    expect(saved).toBeGreaterThan(0);
    expect(store(3, true)).toBe(first - saved);
  });
});

describe("a plain transfer", () => {
  it("takes its base and its bytes, and no less may be left", async () => {
    const needed = WEIGHTS.transactionNs + 10 * WEIGHTS.dataByteNs;
    const room = (blockLeftNs: number) => ({ blockLeftNs, maxTransactionNs: 1_000_000 });
    const { outcome } = await execute(BOB, room(needed), 10);
    expect(outcome).toMatchObject({ included: true, computeNs: needed });
    const refused = await execute(BOB, room(needed - 1), 10);
    expect(refused.outcome).toMatchObject({ included: false, code: "OUT_OF_BLOCK_COMPUTE" });
    expect(refused.changed).toBe(0);
  });
});
