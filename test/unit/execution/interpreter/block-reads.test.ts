/** What a transaction pays for what the block has read, changed and logged (version 5 of the weights). */
import { describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { weightsOf } from "../../../../chain/evm/compute-weights.js";
import { hexToBytes, ZERO_HASH } from "../../../../chain/hex.js";
import { Engine } from "../../../../node/execution/interpreter/engine.js";
import { EXACT_STEPS, type Watcher } from "../../../../node/execution/interpreter/watcher.js";
import { JournaledState } from "../../../../node/state/journaled-state.js";
import { createRandom } from "../../../helpers/random.js";
import { ALICE, BLOCK, CONTRACT, MemoryState, OTHER, TEN } from "../call-fixture.js";

const WEIGHTS = weightsOf(5);
/** Loads the slot that its first word names: PUSH0 CALLDATALOAD SLOAD. */
const LOADING = "5f3554";
/** Stores 1 in the slot that its first word names: PUSH1 1 PUSH0 CALLDATALOAD SSTORE. */
const STORING = "60015f3555";
/** Stores 1 in the slot that its first word names, then what was there: DUP1 SLOAD before it, SWAP1 SSTORE behind it. */
const MEETING = "5f358054600182559055";
/** Logs nothing with the topic that its first word names: PUSH0 CALLDATALOAD PUSH0 PUSH0 LOG1. */
const LOGGING = "5f355f5fa1";
/** Asks for the balance of whom its first word names: PUSH0 CALLDATALOAD BALANCE. */
const ASKING = "5f3531";

const SOMEBODY = 0xee_ee_01;
/** Contracts that store. */
const STORES = [
  parseAddress(`0x${"e0".repeat(20)}`),
  parseAddress(`0x${"e1".repeat(20)}`),
] as const;

/** Contracts that log. */
const LOGS = [parseAddress(`0x${"f0".repeat(20)}`), parseAddress(`0x${"f1".repeat(20)}`)] as const;
const MEETS = parseAddress(`0x${"e2".repeat(20)}`);

/**
 * Reads, asks, stores and logs, then hashes nothing 1,700 times: one block of instructions, for which who
 * watches sees the first ones happen, and nobody else does, where the gas does not reach for all.
 */
const LONG = parseAddress(`0x${"e3".repeat(20)}`);
const LONG_CODE = `${LOADING}50${ASKING}50${STORING}${LOGGING}${"5f5f2050".repeat(1_700)}`;
const TOO_LITTLE_GAS = 60_000n;

const CONTRACTS = [CONTRACT, OTHER, ...STORES, ...LOGS, MEETS];

/** How a transaction is run other than usually. */
interface CallTerms {
  readonly gasLimit?: bigint;
  readonly watcher?: Watcher;
}

class Block {
  private readonly state = new JournaledState(
    new MemoryState({
      [ALICE]: { balanceAtoken: TEN },
      [CONTRACT]: { code: LOADING },
      [OTHER]: { code: ASKING },
      [STORES[0]]: { code: STORING },
      [STORES[1]]: { code: STORING },
      [MEETS]: { code: MEETING },
      [LOGS[0]]: { code: LOGGING },
      [LOGS[1]]: { code: LOGGING },
      [LONG]: { code: LONG_CODE },
    }),
  );
  private readonly engine = new Engine({ chainId: 6_940n, state: this.state, weights: WEIGHTS });

  /** A transaction that reads one thing. @returns what it took */
  read(code: string, word: number, isIncluded = true): number {
    return this.call(code === LOADING ? CONTRACT : OTHER, word, isIncluded);
  }

  /** A transaction that calls a contract with a word. @returns what it took */
  call(to: Address, word: number, isIncluded = true, more: CallTerms = {}): number {
    const { gasLimit = 1_000_000n, watcher } = more;
    this.state.checkpoint();
    const data = hexToBytes(`0x${word.toString(16).padStart(64, "0")}`);
    const message = { from: ALICE, to, valueAtoken: 0n, data, gasPriceAtoken: 1n };
    const { computeNs } = this.engine.run(
      { ...message, gasLimit, accessList: [] },
      { ...BLOCK, blockHash: () => ZERO_HASH },
      { limitNs: 1e9, watcher },
    );
    if (isIncluded) this.state.commit();
    else this.state.revert();
    this.engine.finish(isIncluded);
    return computeNs;
  }
}

const KINDS = [
  { name: "an account", code: ASKING, saved: WEIGHTS.coldAccountNs - WEIGHTS.seenAccountNs },
  { name: "a slot", code: LOADING, saved: WEIGHTS.coldSlotNs - WEIGHTS.seenSlotNs },
];

describe.each(KINDS)("$name", ({ code, saved }) => {
  it("weighs less for a transaction behind the first one that read it", () => {
    const block = new Block();
    // The code is not kept by then, and is from here on.
    block.read(code, SOMEBODY + 1);
    const first = block.read(code, SOMEBODY);
    expect(saved).toBeGreaterThan(0);
    expect(block.read(code, SOMEBODY)).toBe(first - saved);
    expect(block.read(code, SOMEBODY + 2)).toBe(first);
  });

  it("is new to the block where only a transaction read it that is not in it", () => {
    const block = new Block();
    block.read(code, SOMEBODY + 1);
    const first = block.read(code, SOMEBODY, false);
    expect(block.read(code, SOMEBODY)).toBe(first);
    expect(block.read(code, SOMEBODY, false)).toBe(first - saved);
  });
});

describe("the storage of an account", () => {
  it("weighs more where the block changes it for the first time, whichever slot that is", () => {
    const block = new Block();
    const [one, other] = STORES;
    // Its code is not kept by then, and is from here on.
    block.call(one, 1);
    const later = block.call(one, 2);
    expect(block.call(one, 3)).toBe(later);
    expect(WEIGHTS.storageChangeNs).toBeGreaterThan(0);
    // It has the same code, which is kept.
    const first = block.call(other, 1, false);
    expect(first - later).toBe(WEIGHTS.storageChangeNs);
    expect(block.call(other, 1)).toBe(first);
    expect(block.call(other, 2)).toBe(later);
  });
});

describe("a slot that is changed and put back", () => {
  it("is paid for by the first transaction of the block that does it", () => {
    const block = new Block();
    // Code, account and slots are known from here on.
    block.call(MEETS, 1);
    block.read(LOADING, 1);
    const first = block.call(MEETS, 2);
    const later = block.call(MEETS, 2);
    expect(WEIGHTS.slotChangeBackNs).toBeLessThan(WEIGHTS.slotChangeNs);
    const read = WEIGHTS.coldSlotNs - WEIGHTS.seenSlotNs;
    expect(first - later).toBe(read + WEIGHTS.slotChangeNs - WEIGHTS.slotChangeBackNs);
    expect(block.call(MEETS, 2)).toBe(later);
  });

  it("is not where that transaction is not in the block", () => {
    const block = new Block();
    block.call(MEETS, 1);
    const first = block.call(MEETS, 2, false);
    expect(block.call(MEETS, 2)).toBe(first);
  });
});

describe("a log", () => {
  it("weighs more where its account has not logged with its first topic in the block", () => {
    const block = new Block();
    const [one, other] = LOGS;
    block.call(one, 1);
    const later = block.call(one, 1);
    expect(WEIGHTS.logTermNs).toBeGreaterThan(0);
    expect(block.call(one, 2, false)).toBe(later + WEIGHTS.logTermNs);
    expect(block.call(one, 2)).toBe(later + WEIGHTS.logTermNs);
    expect(block.call(one, 2)).toBe(later);
    expect(block.call(other, 2)).toBe(later + WEIGHTS.logTermNs);
    expect(block.call(other, 2)).toBe(later);
  });
});

describe("a frame that cannot pay for what it begins", () => {
  it("has read nothing for those behind it, also where it is watched to where it fails", () => {
    const unitsOf = (watcher: Watcher | undefined): number[] => {
      const block = new Block();
      const terms = watcher === undefined ? {} : { watcher };
      return [
        block.call(LONG, SOMEBODY, true, { ...terms, gasLimit: TOO_LITTLE_GAS }),
        block.call(LONG, SOMEBODY, true, terms),
        block.call(LONG, SOMEBODY, true, terms),
      ];
    };
    const units = unitsOf(undefined);
    expect(units[1]).toBeGreaterThan(units[2] ?? Infinity);
    expect(unitsOf({ steps: EXACT_STEPS })).toEqual(units);
  });
});

describe("who proposes and who executes the block", () => {
  it("come to the same units, whatever the one has tried beside it", () => {
    const seed = Date.now() % 1_000_000;
    console.log(`seed ${seed}`);
    const random = createRandom(seed);
    const [proposer, other] = [new Block(), new Block()];
    for (let transaction = 0; transaction < 500; transaction++) {
      const [to, word] = [random.pick(CONTRACTS), SOMEBODY + random.integer(40)];
      const isIncluded = random.integer(3) > 0;
      const took = proposer.call(to, word, isIncluded);
      if (isIncluded) expect([transaction, other.call(to, word)]).toEqual([transaction, took]);
    }
  });
});
