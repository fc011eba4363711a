/**
 * Which codes a block keeps ready, as frames pay for them (version 5 of the weights): those that the
 * block's own transactions ran last, whatever was tried beside them.
 */
import { describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { type ComputeWeights, weightsOf } from "../../../../chain/evm/compute-weights.js";
import { hexToBytes, ZERO_HASH } from "../../../../chain/hex.js";
import { Engine } from "../../../../node/execution/interpreter/engine.js";
import { JournaledState } from "../../../../node/state/journaled-state.js";
import { createRandom } from "../../../helpers/random.js";
import { ALICE, BLOCK, MemoryState, TEN } from "../call-fixture.js";

const NEWEST = weightsOf(5);
/** Only codes are to tell one run from another. */
const WEIGHTS: ComputeWeights = { ...NEWEST, seenAccountNs: NEWEST.coldAccountNs };
/** The same, with code that costs nothing. */
const FREE: ComputeWeights = { ...WEIGHTS, codeByteNs: 0, keptCodeBytes: 0 };
const CODE_BYTES = 24_576;
/** As many as are kept: 21 x 24,576 bytes are 516,096 of 524,288. */
const ROOM = 21;
/** Contracts of the largest size, each with a code of its own, which stop at once. */
const CONTRACTS = 45;

const contractAt = (index: number): Address =>
  parseAddress(`0x${"ee".repeat(18)}${(0x1000 + index).toString(16)}`);

/** Creation code that calls them one after the other: PUSH0 x5, PUSH20, GAS, CALL, POP. */
const callsOf = (contracts: readonly number[]): string =>
  contracts.map((index) => `5f5f5f5f5f73${contractAt(index).slice(2)}5af150`).join("");

const CODES = Object.fromEntries(
  Array.from({ length: CONTRACTS }, (_, index) => [
    contractAt(index),
    { code: `00${index.toString(16).padStart(4, "0")}`.padEnd(2 * CODE_BYTES, "5b") },
  ]),
);

class Block {
  private readonly state = new JournaledState(
    new MemoryState({ [ALICE]: { balanceAtoken: TEN }, ...CODES }),
  );
  private readonly engine = this.engineOf(WEIGHTS);
  private readonly free = this.engineOf(FREE);

  /** A transaction that calls contracts. @returns how many of their codes it paid for */
  run(contracts: readonly number[], isIncluded = true): number {
    const creation = hexToBytes(`0x${callsOf(contracts)}`);
    const otherNs = this.message(this.free, creation, false);
    const computeNs = this.message(this.engine, creation, isIncluded);
    const paidBytes = (computeNs - otherNs) / WEIGHTS.codeByteNs - creation.length;
    return paidBytes / CODE_BYTES;
  }

  private message(engine: Engine, data: Uint8Array, isIncluded: boolean): number {
    this.state.checkpoint();
    const message = { from: ALICE, to: undefined, valueAtoken: 0n, data, gasPriceAtoken: 1n };
    const { computeNs, error } = engine.run(
      { ...message, gasLimit: 20_000_000n, accessList: [] },
      { ...BLOCK, blockHash: () => ZERO_HASH },
      { limitNs: 1e10 },
    );
    expect(error).toBeUndefined();
    if (isIncluded) this.state.commit();
    else this.state.revert();
    engine.finish(isIncluded);
    return computeNs;
  }

  private engineOf(weights: ComputeWeights): Engine {
    return new Engine({ chainId: 6_940n, state: this.state, weights });
  }
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, item) => from + item);

describe("codes that a block keeps", () => {
  it("are paid for once, in one transaction and in those behind it", () => {
    const block = new Block();
    expect(block.run([3, 3, 3])).toBe(1);
    expect(block.run([3, 4, 3])).toBe(1);
    expect(block.run([4, 3])).toBe(0);
  });

  it("are not those of a transaction that is in no block", () => {
    const block = new Block();
    expect(block.run([3, 3], false)).toBe(1);
    expect(block.run([3])).toBe(1);
    expect(block.run([3], false)).toBe(0);
    expect(block.run([3])).toBe(0);
  });

  it("are those that ran last, as many as there is room for", () => {
    const block = new Block();
    expect(block.run(range(0, ROOM))).toBe(ROOM);
    expect(block.run([0])).toBe(0);
    // One more: what was not used for longest goes, which is 1.
    expect(block.run([40])).toBe(1);
    expect(block.run([0, 40, ...range(2, ROOM)])).toBe(0);
    expect(block.run([1])).toBe(1);
  });

  it("are the first ones of a transaction that runs more than there is room for", () => {
    const block = new Block();
    const all = range(0, 40);
    expect(block.run([...all, ...all])).toBe(40 + (40 - ROOM));
    expect(block.run(range(0, ROOM))).toBe(0);
    expect(block.run([ROOM])).toBe(1);
  });

  it("are the same for who proposes, with all that was tried, and for who executes the block", () => {
    const seed = Date.now() % 1_000_000;
    console.log(`seed ${seed}`);
    const random = createRandom(seed);
    const [proposer, other] = [new Block(), new Block()];
    for (let transaction = 0; transaction < 150; transaction++) {
      const count = random.integer(random.integer(4) === 0 ? 40 : 5);
      const contracts = Array.from({ length: count }, () => random.integer(CONTRACTS));
      const isIncluded = random.integer(3) > 0;
      const paid = proposer.run(contracts, isIncluded);
      if (isIncluded) expect([transaction, other.run(contracts)]).toEqual([transaction, paid]);
    }
  });
});
