/** eth_call, eth_estimateGas and eth_createAccessList over a fixed state. */
import { describe, expect, it } from "@jest/globals";
import { AbiCoder, getAddress } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { contractAddressOf } from "../../../../chain/evm/contract-address.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { bytesToBigint, bytesToHex, hexToBytes, type Hash32 } from "../../../../chain/hex.js";
import { callInPlace } from "../../../../node/execution/calls/call-jobs.js";
import type { CallRequest } from "../../../../node/execution/calls/call-port.js";
import { revertReason } from "../../../../chain/evm/revert-reason.js";
import {
  ALICE,
  BLOCK,
  BOB,
  call,
  callCode,
  CONTRACT,
  estimate,
  execute,
  type FixtureAccount,
  MemoryState,
  OTHER,
  push,
  request,
  SETTINGS,
  slot,
  TEN,
  traceCall,
  transaction,
  work,
} from "../call-fixture.js";

const alice: FixtureAccount = { balanceAtoken: TEN };
const withCode = (code: string, more: Record<string, FixtureAccount> = {}) =>
  new MemoryState({ [ALICE]: alice, [CONTRACT]: { code, balanceAtoken: 5n }, ...more });
/** Returns the top of the stack. */
const RETURN_TOP = "5f5260205ff3";

describe("eth_call", () => {
  it("returns what the code returns and the gas a transaction would use", async () => {
    const state = withCode(`6001600201${RETURN_TOP}`);
    const result = await call(state, {});
    const { receipts } = await execute(state, [transaction({ gasLimit: 100_000n })]);
    expect(result).toMatchObject({ outcome: "success", gasUsed: receipts[0]?.gasUsed });
    expect(result.outcome === "success" && bytesToBigint(result.returnData)).toBe(3n);
  });

  it("returns the data of a revert", async () => {
    // Error(string) "no", as ethers encodes it, copied from the code's tail.
    const data = `08c379a0${AbiCoder.defaultAbiCoder().encode(["string"], ["no"]).slice(2)}`;
    const size = data.length / 2;
    const head = `${push(size)}600a5f39${push(size)}5ffd`;
    const result = await call(withCode(`${head}${data}`), {});
    expect(result.outcome).toBe("revert");
    if (result.outcome !== "revert") return;
    expect(bytesToHex(result.returnData)).toBe(`0x${data}`);
    expect(revertReason(result.returnData)).toBe("no");
  });

  it.each([
    ["5b5f56", "out of gas"],
    ["01", "stack underflow (0 <=> 2)"],
    ["5b5f5f5f56", "stack limit reached 1024 (1023)"],
    ["600556", "invalid jump destination"],
    ["fe", "invalid opcode: INVALID"],
    ["0c", "invalid opcode: opcode 0xc not defined"],
    ["60015f5f3e", "return data out of bounds"],
  ])("fails in geth's words for code %s", async (code, error) => {
    const result = await call(withCode(code), { gasLimit: 100_000n });
    expect(result).toMatchObject({ outcome: "error", error, gasUsed: 100_000n });
  });

  it("names a write in a static frame and a creation that cannot pay for its code", async () => {
    const inner = withCode(`${callCode("fa", OTHER)}00`, { [OTHER]: { code: "5f5f5500" } });
    const trace = { tracer: "callTracer", onlyTopCall: false, withLog: false } as const;
    const traced = await traceCall(inner, {}, trace);
    expect(traced).toMatchObject({ calls: [{ error: "write protection" }] });
    const creation = { to: undefined, data: hexToBytes("0x6160005ff3"), gasLimit: 90_000n };
    const stored = await call(withCode(""), creation);
    expect(stored).toMatchObject({ error: "contract creation code storage out of gas" });
  });

  it("keeps no codes of contracts that a call has looked at: tens of thousands have no room", async () => {
    // EXTCODECOPY of one byte, twice of the same account: its code is asked for each time.
    const copy = `60015f5f73${OTHER.slice(2)}3c`;
    const state = withCode(`${copy}${copy}00`, { [OTHER]: { code: "5b" } });
    const read: Uint8Array[] = [];
    const codeOf = state.code.bind(state);
    state.code = (codeHash) => {
      const code = codeOf(codeHash).slice();
      read.push(code);
      return code;
    };
    expect(await call(state, {})).toMatchObject({ outcome: "success" });
    expect(read.filter((code) => code[0] === 0x5b)).not.toHaveLength(1);
  });

  it("says it where a message needs more compute units than a transaction may have", async () => {
    const hungry = withCode(`5b${"5f5f2050".repeat(40)}5f56`);
    const error = "out of compute";
    expect(await call(hungry, {})).toMatchObject({ outcome: "error", error });
    expect(await estimate(hungry, {})).toMatchObject({ outcome: "error", error });
    const list = await work(hungry, { kind: "createAccessList", request: request() });
    expect(list).toMatchObject({ accessList: [], error });
  });

  it("charges the intrinsic gas", async () => {
    expect(await call(withCode(""), { gasLimit: 20_000n })).toEqual({
      outcome: "error",
      error: "err: intrinsic gas too low: have 20000, want 21000 (supplied gas 20000)",
      gasUsed: 0n,
    });
  });

  it("needs balance for the value, and for gas only when a price is named", async () => {
    const poor = { from: BOB };
    expect(await call(withCode(""), poor)).toMatchObject({ outcome: "success" });
    await expect(call(withCode(""), { ...poor, valueAtoken: 1n })).rejects.toMatchObject({
      code: "INSUFFICIENT_FUNDS",
      message:
        "err: insufficient funds for gas * price + value: address " +
        `${getAddress(BOB)} have 0 want 1 (supplied gas 50000000)`,
    });
    const priced = { ...poor, gasPriceAtoken: 1n, gasLimit: 30_000n };
    await expect(call(withCode(""), priced)).rejects.toMatchObject({ code: "INSUFFICIENT_FUNDS" });
  });

  it("refuses a tip above the fee cap, as a simulation does", async () => {
    const dynamicFees = { maxFeePerGasAtoken: 0n, maxPriorityFeePerGasAtoken: 2n };
    const error =
      "max priority fee per gas higher than max fee per gas: address " +
      `${getAddress(ALICE)}, maxPriorityFeePerGas: 2, maxFeePerGas: 0`;
    expect(await call(withCode(""), { dynamicFees, gasLimit: 21_000n })).toMatchObject({
      error: `err: ${error} (supplied gas 21000)`,
    });
    expect(await estimate(withCode(""), { dynamicFees })).toMatchObject({
      error: `failed with 10000000 gas: ${error}`,
    });
  });

  it("holds the balance against the fee cap, and takes the effective price (geth's buyGas)", async () => {
    // A tenth of the cap is paid: what the code sees of its balance lacks that much.
    const dynamicFees = {
      maxFeePerGasAtoken: TEN / 100_000n,
      maxPriorityFeePerGasAtoken: TEN / 1_000_000n,
    };
    const most = { dynamicFees, gasLimit: 100_000n };
    const seen = withCode(`73${ALICE.slice(2)}31${RETURN_TOP}`);
    const balance = await call(seen, most);
    expect(balance.outcome === "success" && bytesToBigint(balance.returnData)).toBe(
      (TEN * 9n) / 10n,
    );
    await expect(call(seen, { ...most, gasLimit: 100_001n })).rejects.toMatchObject({
      code: "INSUFFICIENT_FUNDS",
      details: { balanceAtoken: TEN, wantedAtoken: (TEN / 100_000n) * 100_001n },
    });
    const capOnly = { maxFeePerGasAtoken: TEN / 100_000n, maxPriorityFeePerGasAtoken: 0n };
    await expect(call(seen, { dynamicFees: capOnly, gasLimit: 100_001n })).rejects.toMatchObject({
      code: "INSUFFICIENT_FUNDS",
    });
  });

  it("caps the gas at the node's cap and shows the price to the code", async () => {
    const gas = await call(withCode(`5a${RETURN_TOP}`), { gasLimit: 10n ** 18n });
    // GAS itself costs 2, the message 21,000.
    expect(gas.outcome === "success" && bytesToBigint(gas.returnData)).toBe(49_978_998n);
    const price = await call(withCode(`3a${RETURN_TOP}`), {
      gasPriceAtoken: 77n,
      gasLimit: 50_000n,
    });
    expect(price.outcome === "success" && bytesToBigint(price.returnData)).toBe(77n);
  });

  it("sees the block it is asked for", async () => {
    const result = await call(withCode("43".concat(RETURN_TOP)), {});
    expect(result.outcome === "success" && bytesToBigint(result.returnData)).toBe(7n);
    const hash = await call(withCode(`600640${RETURN_TOP}`), {});
    expect(hash.outcome === "success" && bytesToHex(hash.returnData)).toBe(
      keccak256Hex(Buffer.from("block 6")),
    );
  });

  it("calls precompiles", async () => {
    const sha256 = parseAddress(`0x${"00".repeat(19)}02`);
    const result = await call(withCode(""), { to: sha256, data: Buffer.from("abc") });
    expect(result.outcome === "success" && bytesToHex(result.returnData)).toBe(
      "0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
  });

  it("leaves no trace and reads each value once", async () => {
    const state = withCode(`5f546001015f555f54${RETURN_TOP}`);
    const first = await call(state, {});
    expect(await call(state, {})).toEqual(first);
    expect(first.outcome === "success" && bytesToBigint(first.returnData)).toBe(1n);
    state.reads = 0;
    await estimate(state, {});
    expect(state.reads).toBeLessThan(12);
  });
});

describe("state overrides", () => {
  const read = `5f545f5260015460205260405ff3`;
  const stored = { [CONTRACT]: { code: read, storage: { 0: 11n, 1: 22n } } };
  const words = async (overrides: Parameters<typeof call>[2]) => {
    const result = await call(new MemoryState(stored), {}, overrides);
    if (result.outcome !== "success") throw new Error(JSON.stringify(result.outcome));
    const { returnData } = result;
    return [bytesToBigint(returnData.subarray(0, 32)), bytesToBigint(returnData.subarray(32))];
  };

  it("replace all storage, or single slots", async () => {
    expect(await words(new Map())).toEqual([11n, 22n]);
    const slots = new Map<Hash32, bigint>([[slot(1), 5n]]);
    expect(await words(new Map([[CONTRACT, { state: slots }]]))).toEqual([0n, 5n]);
    expect(await words(new Map([[CONTRACT, { stateDiff: slots }]]))).toEqual([11n, 5n]);
  });

  it("clear the way for a contract that is made anew where one is", async () => {
    const made = contractAddressOf(ALICE, 0n);
    const there = { code: "00", nonce: 1n, storage: { 0: 7n }, storageRoot: slot(1) };
    const state = new MemoryState({ [made]: there });
    // Returns its slot 0.
    const creation = { to: undefined, data: hexToBytes(`0x5f54${RETURN_TOP}`) };
    const gone = { code: new Uint8Array(0), nonce: 0n };
    const collision = "contract address collision";
    expect(await call(state, creation, new Map([[made, gone]]))).toMatchObject({
      error: collision,
    });
    const created = await call(state, creation, new Map([[made, { ...gone, state: new Map() }]]));
    expect(created).toMatchObject({ outcome: "success" });
    expect(created.outcome === "success" && bytesToBigint(created.returnData)).toBe(0n);
  });

  it("replace balance, nonce and code", async () => {
    const code = hexToBytes(`0x3331${RETURN_TOP}`);
    const overrides = new Map([
      [BOB, { balanceAtoken: 99n }],
      [OTHER, { code }],
    ]);
    const state = new MemoryState({});
    const result = await call(state, { from: BOB, to: OTHER, valueAtoken: 9n }, overrides);
    expect(result.outcome === "success" && bytesToBigint(result.returnData)).toBe(90n);
    const creation = { from: BOB, to: undefined, data: hexToBytes(`0x30${RETURN_TOP}`) };
    const at = async (nonce: bigint) => {
      const created = await call(state, creation, new Map([[BOB, { nonce }]]));
      return created.outcome === "success" && bytesToHex(created.returnData);
    };
    expect(await at(1n)).not.toBe(await at(2n));
  });
});

describe("eth_estimateGas", () => {
  it("answers 21000 for a transfer to an account without code", async () => {
    const transfer = { to: BOB, valueAtoken: 1n };
    expect(await estimate(withCode(""), transfer)).toEqual({ outcome: "success", gas: 21_000n });
  });

  /** Code that spends gas in ways that make the limit differ from the use. */
  const spend = "5f546001015f55";
  /** Fails unless the frame succeeds. */
  const need = (frame: string) => `${frame}${push(frame.length / 2 + 4)}57fe5b00`;
  const cases: readonly (readonly [string, string, string])[] = [
    ["storage", `${spend}00`, "00"],
    ["a refund", "60015f555f5f5500", "00"],
    ["a frame that needs its 64th", need(callCode("f1", OTHER)), spend],
    ["value with a stipend", `${callCode("f1", OTHER, { value: 1n })}00`, "00"],
    ["a fixed gas for the frame", need(callCode("f1", OTHER, { gas: "61fde8" })), spend],
  ];
  it.each(cases)("is enough, and one less is not: %s", async (name, code, other) => {
    const state = withCode(code, { [OTHER]: { code: other } });
    const result = await estimate(state, {});
    if (result.outcome !== "success") throw new Error(`${name}: ${JSON.stringify(result.outcome)}`);
    const status = async (gasLimit: bigint) =>
      (await execute(state, [transaction({ gasLimit })])).receipts[0]?.status;
    expect([name, await status(result.gas)]).toEqual([name, 1]);
    const outcome = await call(state, { gasLimit: result.gas - 1n });
    expect([name, outcome.outcome]).toEqual([name, "error"]);
  });

  it("is enough for a call whose failure the code takes for an answer", async () => {
    // As a multicall that may fail in parts: without its 64th the frame would not have stored anything.
    const state = withCode(`${callCode("f1", OTHER)}5000`, { [OTHER]: { code: spend } });
    const result = await estimate(state, {});
    if (result.outcome !== "success") throw new Error(result.outcome);
    const storedWith = async (gasLimit: bigint) => {
      const after = await execute(state, [transaction({ gasLimit })]);
      return bytesToBigint(after.state.storageNow(OTHER, slot(0)));
    };
    expect(await storedWith(result.gas)).toBe(1n);
    expect(await storedWith(result.gas - 1n)).toBe(0n);
  });

  it("does not look for gas that a call fails with as well", async () => {
    const state = withCode(`${callCode("f1", OTHER, { gas: "6103e8" })}5000`, {
      [OTHER]: { code: spend },
    });
    const result = await estimate(state, {});
    expect(result).toMatchObject({ outcome: "success" });
    expect(result.outcome === "success" && result.gas < 30_000n).toBe(true);
  });

  it("covers a creation", async () => {
    const data = hexToBytes("0x6160005ff3");
    const state = withCode("");
    const result = await estimate(state, { to: undefined, data });
    if (result.outcome !== "success") throw new Error(result.outcome);
    const creation = transaction({ to: undefined, data, gasLimit: result.gas });
    expect((await execute(state, [creation])).receipts[0]?.status).toBe(1);
    expect(await call(state, { to: undefined, data, gasLimit: result.gas - 1n })).toMatchObject({
      outcome: "error",
    });
  });

  it("tells failures apart", async () => {
    expect(await estimate(withCode("5f5ffd"), {})).toMatchObject({ outcome: "revert" });
    expect(await estimate(withCode("fe"), {})).toMatchObject({
      outcome: "error",
      error: "invalid opcode: INVALID",
    });
    await expect(estimate(withCode("5b5f56"), {})).rejects.toMatchObject({
      code: "GAS_ALLOWANCE_EXCEEDED",
      message: "gas required exceeds allowance (10000000)",
      details: { allowance: 10_000_000n },
    });
    await expect(estimate(withCode(""), { from: BOB, valueAtoken: 1n })).rejects.toMatchObject({
      code: "INSUFFICIENT_FUNDS",
    });
  });

  it("says what a sender without any coins lacks, also where it sends none (geth 1.16.3)", async () => {
    const penniless = estimate(withCode(""), { from: BOB, gasPriceAtoken: 1n });
    await expect(penniless).rejects.toMatchObject({
      code: "INSUFFICIENT_FUNDS",
      message: "insufficient funds for transfer",
    });
  });

  it("is limited by what the balance buys at the named price", async () => {
    const priced = { gasPriceAtoken: TEN / 30_000n, data: new Uint8Array(0) };
    await expect(estimate(withCode(`60015f5500`), priced)).rejects.toMatchObject({
      code: "GAS_ALLOWANCE_EXCEEDED",
      details: { allowance: 30_000n },
    });
  });

  it("is limited by what the balance buys at the fee cap, as a block demands", async () => {
    for (const maxPriorityFeePerGasAtoken of [0n, 1n]) {
      const dynamicFees = { maxFeePerGasAtoken: TEN / 30_000n, maxPriorityFeePerGasAtoken };
      const priced = { gasPriceAtoken: maxPriorityFeePerGasAtoken, dynamicFees };
      await expect(estimate(withCode(`60015f5500`), priced)).rejects.toMatchObject({
        code: "GAS_ALLOWANCE_EXCEEDED",
        details: { allowance: 30_000n },
      });
      await expect(estimate(withCode(""), { ...priced, from: BOB })).rejects.toMatchObject({
        code: "INSUFFICIENT_FUNDS",
        message: "insufficient funds for transfer",
      });
    }
  });

  it("leaves out what of a balance is locked, as a block does", async () => {
    const lockedAtoken = (TEN * 9n) / 10n;
    const locks = new Map([
      [ALICE, { originalAtoken: lockedAtoken, startTimeMs: undefined, endTimeMs: 2e12 }],
    ]);
    const circumstances = { block: BLOCK, settings: { ...SETTINGS, locks } };
    const vesting = (changes: Partial<CallRequest>, code = "00") =>
      work(withCode(code), { kind: "estimateGas", request: request(changes) }, circumstances);
    const priced = { gasPriceAtoken: (TEN - lockedAtoken) / 30_000n };
    expect(await vesting(priced)).toEqual({ outcome: "success", gas: 21_000n });
    await expect(vesting(priced, "60015f5500")).rejects.toMatchObject({
      code: "GAS_ALLOWANCE_EXCEEDED",
      details: { allowance: 30_000n },
    });
    const all = vesting({ gasPriceAtoken: 1n, valueAtoken: TEN - lockedAtoken });
    await expect(all).rejects.toMatchObject({
      code: "INSUFFICIENT_FUNDS",
      details: { balanceAtoken: TEN - lockedAtoken },
    });
  });
});

describe("eth_createAccessList", () => {
  const list = (state: MemoryState, changes = {}) =>
    work(state, { kind: "createAccessList", request: request(changes) });

  it("names slots and foreign accounts, not what is warm anyway", async () => {
    const code = `6007545073${BOB.slice(2)}3150${callCode("fa", OTHER)}5030315000`;
    const state = withCode(code, { [OTHER]: { code: "60035400" } });
    const { accessList, gasUsed, error } = await list(state);
    expect(error).toBeUndefined();
    expect(new Map(accessList.map((entry) => [entry.address, entry.storageKeys]))).toEqual(
      new Map([
        [CONTRACT, [slot(7)]],
        [BOB, []],
        [OTHER, [slot(3)]],
      ]),
    );
    const sent = transaction({ accessList, gasLimit: gasUsed });
    expect((await execute(state, [sent])).receipts[0]).toMatchObject({ status: 1, gasUsed });
  });

  it("begins with the message's own list, without what is of no use in it", async () => {
    const named = withCode(`73${BOB.slice(2)}3100`);
    const useless = [{ address: CONTRACT, storageKeys: [] }];
    expect(await list(named, { accessList: useless })).toEqual(await list(named));
    expect((await list(named)).accessList).toEqual([{ address: BOB, storageKeys: [] }]);
    const slots = [7, 8].map((key) => ({ address: CONTRACT, storageKeys: [slot(key)] }));
    const { accessList } = await list(withCode("600754600854600954"), { accessList: slots });
    expect(accessList).toEqual([{ address: CONTRACT, storageKeys: [slot(7), slot(8), slot(9)] }]);
  });

  it("follows code that reads more with every listed slot", async () => {
    // SLOAD(SLOAD(0)): the second slot is known only after the first was read.
    const state = new MemoryState({ [CONTRACT]: { code: "5f545450", storage: { 0: 9n } } });
    const { accessList } = await list(state);
    expect(accessList).toEqual([{ address: CONTRACT, storageKeys: [slot(0), slot(9)] }]);
  });

  it("reports the failure of the message beside the list", async () => {
    const { accessList, error } = await list(withCode("60015450fe"));
    expect([accessList.length, error]).toEqual([1, "invalid opcode: INVALID"]);
  });

  it("is refused where the message cannot be executed, or not with its list, as by go-ethereum", async () => {
    const refused = (have: number, want: number) => ({
      code: "INVALID_MESSAGE",
      message: `failed to apply transaction: err: intrinsic gas too low: have ${have}, want ${want}`,
    });
    const state = withCode("60075450");
    await expect(list(state, { gasLimit: 20_000n })).rejects.toMatchObject(refused(20_000, 21_000));
    await expect(list(state, { gasLimit: 23_500n })).rejects.toMatchObject(refused(23_500, 25_300));
  });
});

it("leaves calls with many listed keys to the workers, in one entry or in several", () => {
  const settings = { ...SETTINGS, gasCap: 10n ** 9n };
  const environment = { settings, reader: withCode(""), blockHash: () => BLOCK.hash };
  const answer = (...keys: readonly number[]) => {
    const accessList = keys.map((count) => ({
      address: BOB,
      storageKeys: Array.from({ length: count }, (_, key) => slot(key)),
    }));
    return callInPlace(request({ accessList }), BLOCK, environment, 1e9)?.outcome;
  };
  expect(answer(128, 128)).toBe("success");
  expect(answer(257)).toBeUndefined();
  expect(answer(128, 129)).toBeUndefined();
});
