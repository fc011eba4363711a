/** eth_simulateV1 where this chain goes its own way, and its bounds; the rest is in geth-answers. */
import { describe, expect, it } from "@jest/globals";
import {
  ALICE,
  BLOCK,
  BOB,
  COINBASE,
  CONTRACT,
  InProcessCalls,
  MemoryState,
  push,
  SETTINGS,
} from "../../../execution/call-fixture.js";
import { createTestNode } from "../fixture.js";

interface Simulated extends Record<string, unknown> {
  readonly hash: string;
  readonly calls: readonly {
    readonly logs: readonly Record<string, unknown>[];
    readonly returnData: string;
  }[];
}

function nodeWith(gasCap = SETTINGS.gasCap) {
  const settings = { ...SETTINGS, gasCap };
  return createTestNode({}, new InProcessCalls(new MemoryState({}), BLOCK, settings));
}
const node = nodeWith();
const simulate = (...blockStateCalls: readonly object[]) =>
  node.call<Simulated[]>("eth_simulateV1", { blockStateCalls, traceTransfers: true });
const number = (value: unknown) => Number(value);

describe("simulated blocks", () => {
  it("follow each other as blocks of this chain do", async () => {
    const [first, second] = await simulate({}, { blockOverrides: { feeRecipient: BOB } });
    expect(first).toMatchObject({
      parentHash: BLOCK.hash,
      mixHash: BLOCK.hash,
      miner: COINBASE,
      difficulty: "0x0",
      gasUsed: "0x0",
      stateRoot: `0x${"00".repeat(32)}`,
    });
    expect(second).toMatchObject({ parentHash: first?.hash, mixHash: first?.hash, miner: BOB });
    expect([number(first?.["number"]), number(second?.["number"])]).toEqual([8, 9]);
    expect(number(first?.["timestamp"])).toBe(BLOCK.timestampSeconds + 2);
    expect(number(second?.["timestamp"])).toBe(BLOCK.timestampSeconds + 4);
    expect(first).not.toHaveProperty("baseFeePerGas");
    expect((await simulate({}))[0]?.hash).toBe(first?.hash);
  });

  it("see the hashes of the simulated blocks before them, and of the real one below", async () => {
    // BLOCKHASH(calldata) to memory, returned.
    const state = { [CONTRACT]: { code: "0x5f35405f5260205ff3" } };
    const ask = (height: number) => ({
      from: ALICE,
      to: CONTRACT,
      input: `0x${height.toString(16).padStart(64, "0")}`,
    });
    const [first, second] = await simulate(
      { stateOverrides: state, calls: [ask(7), ask(8)] },
      { calls: [ask(7), ask(8), ask(9)] },
    );
    const none = `0x${"00".repeat(32)}`;
    expect(first?.calls.map(({ returnData }) => returnData)).toEqual([BLOCK.hash, none]);
    expect(second?.calls.map(({ returnData }) => returnData)).toEqual([
      BLOCK.hash,
      first?.hash,
      none,
    ]);
  });

  it("count logs as receipts would: those of failed frames leave no gap", async () => {
    const reverting = "60015f5260205fa05f5ffd";
    const stateOverrides = {
      [ALICE]: { balance: "0x64" },
      [CONTRACT]: { code: `0x${reverting}` },
    };
    const calls = [
      { from: ALICE, to: CONTRACT, value: "0x1" },
      { from: ALICE, to: BOB, value: "0x1" },
      { from: ALICE, to: BOB, value: "0x1" },
    ];
    const [block] = await simulate({ stateOverrides, calls });
    const logs = block?.calls.flatMap((call) => call.logs) ?? [];
    expect(logs.map(({ logIndex }) => logIndex)).toEqual(["0x0", "0x1"]);
    expect(logs[0]).toMatchObject({ blockHash: block?.hash, transactionIndex: "0x1" });
  });
});

describe("bounds of a simulation", () => {
  const error = async (...blockStateCalls: readonly object[]) =>
    (await node.ask("eth_simulateV1", { blockStateCalls })).error;
  const calls = (count: number) => ({ calls: Array.from({ length: count }, () => ({})) });

  it("are go-ethereum's for calls", async () => {
    expect(await error(calls(5_001))).toEqual({
      code: -38026,
      message: "too many calls in block: 5001 > 5000",
    });
    expect(await error(calls(5_000), calls(5_000), calls(1))).toEqual({
      code: -38026,
      message: "too many calls: 10001 > 10000",
    });
  });

  it("name the last nonce as such where it is not checked against the state, too", async () => {
    const nonce = `0x${"f".repeat(16)}`;
    const refusal = await error({ calls: [{ from: ALICE, to: BOB, nonce }] });
    expect(refusal?.message).toMatch(/^err: nonce has max value: address 0x/);
  });

  it("tell what of a balance can be spent", async () => {
    const locks = new Map([
      [ALICE, { originalAtoken: 80n, startTimeMs: undefined, endTimeMs: 2e12 }],
    ]);
    const state = new MemoryState({ [ALICE]: { balanceAtoken: 100n } });
    const vesting = createTestNode({}, new InProcessCalls(state, BLOCK, { ...SETTINGS, locks }));
    const blockStateCalls = [{ calls: [{ from: ALICE, to: BOB, value: "0x32" }] }];
    const answer = await vesting.ask("eth_simulateV1", { blockStateCalls });
    expect(answer.error?.message).toContain("have 20 want 50");
  });

  it("hold for the size of the answer", async () => {
    // 32 logs of 400,000 bytes each, as JSON far above what a worker may answer.
    const size = push(400_000);
    const code = `0x${`${size}5fa0`.repeat(32)}00`;
    const rich = nodeWith(10n ** 9n);
    const blockStateCalls = [
      { stateOverrides: { [CONTRACT]: { code } }, calls: [{ to: CONTRACT }] },
    ];
    expect((await rich.ask("eth_simulateV1", { blockStateCalls })).error).toEqual({
      code: -32003,
      message: "the answer is too large; ask for less of it",
    });
  });

  it("hold for the times of blocks, which are counted exactly", async () => {
    const most = { blockOverrides: { time: "0x1fffffffffffff" } };
    const [last] = await simulate(most);
    expect(last).toMatchObject({ timestamp: "0x1fffffffffffff" });
    const refusal = {
      code: -38021,
      message: "no block can follow one with the timestamp 9007199254740991: it is too large",
    };
    expect(await error(most, {})).toEqual(refusal);
    expect(await error(most, { blockOverrides: { number: "0x10" } })).toEqual(refusal);
  });

  it("name a call that takes more compute units to begin than a transaction has", async () => {
    const settings = { ...SETTINGS, maxTransactionComputeNs: 1_000_000 };
    const poor = createTestNode({}, new InProcessCalls(new MemoryState({}), BLOCK, settings));
    const storageKeys = Array.from(
      { length: 200 },
      (_, n) => `0x${n.toString(16).padStart(64, "0")}`,
    );
    const call = { to: CONTRACT, accessList: [{ address: BOB, storageKeys }] };
    expect(
      (await poor.ask("eth_simulateV1", { blockStateCalls: [{ calls: [call] }] })).error,
    ).toEqual({
      code: -32000,
      message: expect.stringMatching(/^out of compute/),
    });
  });

  it("refuse what would be another question", async () => {
    expect(await error({ blockOverrides: { nubmer: "0x9" } })).toMatchObject({
      code: -32602,
      message: expect.stringContaining('unknown block override "nubmer"'),
    });
    const withdrawals = [{ index: "0x0", validatorIndex: "0x0", address: BOB, amount: "0x1" }];
    expect(await error({ blockOverrides: { withdrawals } })).toMatchObject({ code: -32000 });
  });
});

describe("overridden base fees", () => {
  it("show themselves also to calls that name no price", async () => {
    const overrides = { [CONTRACT]: { code: "0x485f5260205ff3" } };
    const answer = await node.call("eth_call", { to: CONTRACT }, "latest", overrides, {
      baseFeePerGas: "0x7",
    });
    expect(Number(answer)).toBe(7);
  });
});

it("estimates under block overrides, exactly", async () => {
  // Fails unless NUMBER is 16.
  const overrides = { [CONTRACT]: { code: `0x43${push(16)}14${push(8)}57fe5b00` } };
  const estimate = (...more: readonly object[]) =>
    node.ask("eth_estimateGas", { to: CONTRACT }, "latest", overrides, ...more);
  expect((await estimate()).error).toMatchObject({ message: "invalid opcode: INVALID" });
  expect((await estimate({ number: "0x10" })).result).toBe("0x521e");
});
