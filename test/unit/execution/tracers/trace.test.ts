/** geth's tracers over calls and over the transactions of a block. */
import { describe, expect, it } from "@jest/globals";
import { AbiCoder, getCreateAddress } from "ethers";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { bigintToWord, bytesToHex, hexToBytes } from "../../../../chain/hex.js";
import { TraceBudget } from "../../../../node/execution/tracers/tracer.js";
import {
  ALICE,
  BLOCK,
  BOB,
  callCode,
  CONTRACT,
  execute,
  FEE_COLLECTOR,
  MemoryState,
  OTHER,
  push,
  slot,
  TEN,
  traceBlock,
  traceCall,
  transaction,
} from "../call-fixture.js";

const CALLS = { tracer: "callTracer", onlyTopCall: false, withLog: false } as const;
const LOGS = { ...CALLS, withLog: true } as const;
const STEPS = {
  tracer: "structLogger",
  enableMemory: true,
  disableStack: false,
  disableStorage: false,
  enableReturnData: true,
  limit: 0,
} as const;
const PRESTATE = {
  tracer: "prestateTracer",
  diffMode: false,
  disableCode: false,
  disableStorage: false,
  includeEmpty: false,
} as const;
const DIFFERENCE = { ...PRESTATE, diffMode: true } as const;
const word = (value: number) => bytesToHex(bigintToWord(BigInt(value)));
const chain = (code: string, other = "", balanceAtoken = 5n) =>
  new MemoryState({
    [ALICE]: { balanceAtoken: TEN },
    [CONTRACT]: { code, balanceAtoken },
    [OTHER]: { code: other, balanceAtoken: 3n },
  });

describe("callTracer", () => {
  it("shows a plain transfer as one frame", async () => {
    const sent = transaction({ to: BOB, valueAtoken: 7n, gasLimit: 30_000n });
    const [trace] = await traceBlock(chain(""), [sent], CALLS);
    expect(trace).toEqual({
      transactionHash: sent.tx.hash,
      result: {
        from: ALICE,
        gas: "0x7530",
        gasUsed: "0x5208",
        to: BOB,
        input: "0x",
        value: "0x7",
        type: "CALL",
      },
    });
  });

  it("names the opcode of every frame, and gives value where geth does", async () => {
    const code = (["f1", "f2", "f4", "fa"] as const)
      .map(
        (opcode) => `${callCode(opcode, OTHER, { gas: opcode === "fa" ? "619000" : "611000" })}50`,
      )
      .join("");
    const sent = transaction({ gasLimit: 200_000n, valueAtoken: 2n });
    const [trace] = await traceBlock(chain(code, "6001600255"), [sent], CALLS);
    const frame = { from: CONTRACT, to: OTHER, input: "0x", gas: "0x1000", gasUsed: "0x1000" };
    expect(trace?.result).toMatchObject({
      type: "CALL",
      value: "0x2",
      calls: [
        { ...frame, type: "CALL", value: "0x0", error: "out of gas" },
        { ...frame, type: "CALLCODE", value: "0x0", error: "out of gas" },
        { ...frame, type: "DELEGATECALL", value: "0x2", error: "out of gas" },
        {
          ...frame,
          type: "STATICCALL",
          gas: "0x9000",
          gasUsed: "0x9000",
          error: "write protection",
        },
      ],
    });
    const { calls } = (trace?.result ?? {}) as { calls: object[] };
    expect(calls[3]).not.toHaveProperty("value");
  });

  it("tells a CALL from a STATICCALL below a static frame", async () => {
    const inner = `${callCode("f1", BOB)}50${callCode("fa", BOB)}50`;
    const result = await traceCall(chain(callCode("fa", OTHER), inner), {}, CALLS);
    expect(result).toMatchObject({
      calls: [{ type: "STATICCALL", calls: [{ type: "CALL" }, { type: "STATICCALL" }] }],
    });
  });

  it("shows output, revert data and reason", async () => {
    const data = `08c379a0${AbiCoder.defaultAbiCoder().encode(["string"], ["too poor"]).slice(2)}`;
    const size = push(data.length / 2);
    const head = `${size}600a5f39${size}5ffd`;
    const result = await traceCall(
      chain(`${callCode("f1", OTHER)}505f5260205ff3`, `${head}${data}`),
      {},
      CALLS,
    );
    expect(result).toMatchObject({
      calls: [{ error: "execution reverted", output: `0x${data}`, revertReason: "too poor" }],
    });
    const top = await traceCall(chain("5f5ffd"), {}, CALLS);
    expect(top).toMatchObject({ error: "execution reverted", gasUsed: "0x520c" });
    expect(top).not.toHaveProperty("output");
  });

  it("shows creations, and leaves out the address of one that failed", async () => {
    const created = getCreateAddress({ from: CONTRACT, nonce: 0 }).toLowerCase();
    // First creates a contract with code 00, then one whose constructor reverts.
    const code = "60015f5ff05060fd5f5360015f5ff000";
    const result = await traceCall(chain(code), {}, CALLS);
    expect(result).toMatchObject({
      calls: [
        { type: "CREATE", from: CONTRACT, to: created, value: "0x0", input: "0x00" },
        { type: "CREATE", from: CONTRACT, error: "stack underflow (0 <=> 2)", input: "0xfd" },
      ],
    });
    const { calls } = result as { calls: Record<string, unknown>[] };
    expect(calls[1]).not.toHaveProperty("to");
    const sent = transaction({ to: undefined, data: hexToBytes("0x00"), gasLimit: 90_000n });
    const [top] = await traceBlock(chain(""), [sent], CALLS);
    const to = getCreateAddress({ from: ALICE, nonce: 0 }).toLowerCase();
    expect(top?.result).toMatchObject({ type: "CREATE", to, gas: "0x15f90" });
  });

  it("shows calls that cannot start: no balance", async () => {
    const code = `${callCode("f1", BOB, { value: 6n, gas: "5f", inBytes: 2 })}505f5f6006f050`;
    const result = await traceCall(chain(code), {}, CALLS);
    const error = "insufficient balance for transfer";
    expect(result).toMatchObject({
      calls: [
        {
          type: "CALL",
          to: BOB,
          value: "0x6",
          error,
          gas: "0x8fc",
          gasUsed: "0x0",
          input: "0x0000",
        },
        { type: "CREATE", value: "0x6", error, gasUsed: "0x0" },
      ],
    });
  });

  it("shows self-destructs with heir and balance", async () => {
    const result = await traceCall(
      chain(callCode("f1", OTHER, { value: 1n }), `73${BOB.slice(2)}ff`),
      {},
      CALLS,
    );
    expect(result).toMatchObject({
      calls: [
        {
          to: OTHER,
          calls: [
            {
              type: "SELFDESTRUCT",
              from: OTHER,
              to: BOB,
              value: "0x4",
              gas: "0x0",
              gasUsed: "0x0",
            },
          ],
        },
      ],
    });
  });

  it("lists logs with their place among the calls, none of failed frames", async () => {
    // LOG1 of one byte of memory with topic 9.
    const log = "60aa5f53600960015fa1";
    const code = `${log}${callCode("f1", OTHER)}50${log}`;
    const result = await traceCall(chain(code, log), {}, LOGS);
    const seen = { data: "0xaa", topics: [word(9)] };
    expect(result).toMatchObject({
      calls: [{ logs: [{ address: OTHER, ...seen, index: "0x1", position: "0x0" }] }],
      logs: [
        { address: CONTRACT, ...seen, index: "0x0", position: "0x0" },
        { address: CONTRACT, ...seen, index: "0x2", position: "0x1" },
      ],
    });
    const failed = await traceCall(chain(callCode("f1", OTHER), `${log}fe`), {}, LOGS);
    expect(JSON.stringify(failed)).not.toContain("logs");
  });

  it("gives up where reasons alone are too large: each of their bytes may be six in JSON", async () => {
    // Error(string) of 60,000 zero bytes, a hundred times.
    const reverts = `6308c379a05f52602060205261ea6060405261eaa4601cfd`;
    const loop = `60645b${callCode("f1", OTHER)}50600190038060025700`;
    const trace = traceCall(chain(loop, reverts), {}, CALLS);
    await expect(trace).rejects.toMatchObject({ code: "TRACE_TOO_LARGE" });
  });

  it("shows only the top frame when asked", async () => {
    const nested = chain(`${callCode("f1", OTHER)}5000`, callCode("f1", BOB));
    const result = await traceCall(nested, {}, { ...CALLS, onlyTopCall: true });
    expect(result).toMatchObject({ from: ALICE, to: CONTRACT, type: "CALL" });
    expect(result).not.toHaveProperty("calls");
    expect(result).not.toHaveProperty("error");
  });
});

describe("a transaction that needs more compute units than it may have", () => {
  it("ends in a trace as it did in its block", async () => {
    // Reads a slot, then runs until its units are gone.
    const state = chain(`5f54505b${"5f5f2050".repeat(40)}600356`);
    const sent = transaction({ gasLimit: 10_000_000n });
    const { receipts } = await execute(state, [sent]);
    expect(receipts[0]).toMatchObject({ status: 0, gasUsed: 10_000_000n });
    const [trace] = await traceBlock(state, [sent], CALLS);
    const ended = { error: "out of compute", gas: "0x989680", gasUsed: "0x989680" };
    expect(trace?.result).toMatchObject(ended);
    const struct = { ...STEPS, disableStack: true, enableMemory: false, limit: 1 };
    const [steps] = await traceBlock(state, [sent], struct);
    expect(steps?.result).toMatchObject({ gas: 10_000_000, failed: true, returnValue: "0x" });
  });
});

describe("traces of a block", () => {
  // Counts in slot 0 and returns the count.
  const counter = "5f54600101805f525f5560205ff3";

  it("repeat the block's transactions: same gas, state from the transactions before", async () => {
    const state = chain(counter);
    const sent = [0n, 1n, 2n].map((nonce) =>
      transaction({ nonce, gasLimit: 100_000n, gasPriceAtoken: 3n }),
    );
    const { receipts } = await execute(state, sent);
    const traces = await traceBlock(state, sent, CALLS);
    expect(traces.map(({ result }) => result)).toMatchObject(
      receipts.map(({ gasUsed }, index) => ({
        gasUsed: `0x${gasUsed.toString(16)}`,
        output: word(index + 1),
      })),
    );
    const [last] = await traceBlock(state, sent, CALLS, 2);
    expect(last).toEqual(traces[2]);
  });

  it("say in each entry of a flat list where its transaction is, as geth 1.16.7", async () => {
    const state = chain(counter);
    const sent = [0n, 1n].map((nonce) => transaction({ nonce, gasLimit: 100_000n }));
    const flat = {
      tracer: "flatCallTracer",
      convertParityErrors: false,
      includePrecompiles: false,
    } as const;
    const traces = await traceBlock(state, sent, flat);
    expect(traces.map(({ result }) => result)).toMatchObject(
      sent.map(({ tx }, transactionPosition) => [
        {
          blockHash: BLOCK.hash,
          blockNumber: BLOCK.height,
          transactionHash: tx.hash,
          transactionPosition,
          traceAddress: [],
          subtraces: 0,
          type: "call",
        },
      ]),
    );
  });

  it("name logs by their index in the block, whatever failed before and whichever is shown", async () => {
    const log = "60aa5f53600960015fa1";
    // The call to OTHER logs and fails.
    const state = chain(`${log}${callCode("f1", OTHER)}50${log}`, `${log}fe`);
    const sent = [0n, 1n, 2n].map((nonce) => transaction({ nonce, gasLimit: 200_000n }));
    const { receipts } = await execute(state, sent);
    expect(receipts.map(({ logs }) => logs.length)).toEqual([2, 2, 2]);
    for (const kind of [LOGS, { ...LOGS, onlyTopCall: true }]) {
      const traces = await traceBlock(state, sent, kind);
      const indexes = traces.map(({ result }) =>
        (result as { logs: { index: string }[] }).logs.map(({ index }) => index),
      );
      expect(indexes).toEqual([
        ["0x0", "0x1"],
        ["0x2", "0x3"],
        ["0x4", "0x5"],
      ]);
      expect(await traceBlock(state, sent, kind, 2)).toEqual([traces[2]]);
    }
  });

  it("refuse a transaction that the state does not allow", async () => {
    const early = transaction({ nonce: 1n, gasLimit: 100_000n });
    await expect(traceBlock(chain(counter), [early], CALLS)).rejects.toMatchObject({
      code: "CALL_WORKER_FAILED",
    });
  });
});

describe("prestateTracer", () => {
  const counter = "5f546001015f5560015400";
  const sent = transaction({ gasLimit: 100_000n, gasPriceAtoken: 1n, valueAtoken: 1n });
  const state = () =>
    new MemoryState({
      [ALICE]: { balanceAtoken: TEN },
      [CONTRACT]: { code: counter, balanceAtoken: 5n, storage: { 0: 8n, 1: 9n } },
    });

  it.each([
    ["no code", { ...PRESTATE, disableCode: true }, 0],
    ["what has changed", DIFFERENCE, 0],
    ["codes", PRESTATE, 1],
  ] as const)("reads codes that it shows alone: %s", async (_name, kind, count) => {
    // EXTCODEHASH of an account, whose code nothing runs.
    const looked = chain(`73${OTHER.slice(2)}3f00`, "5b");
    const hash = keccak256Hex(hexToBytes("0x5b"));
    const read: string[] = [];
    const codeOf = looked.code.bind(looked);
    looked.code = (codeHash) => {
      read.push(codeHash);
      return codeOf(codeHash);
    };
    await traceCall(looked, {}, kind);
    expect(read.filter((codeHash) => codeHash === hash)).toHaveLength(count);
  });

  it("shows all that was touched, before the transaction", async () => {
    const [trace] = await traceBlock(state(), [sent], PRESTATE);
    expect(trace?.result).toEqual({
      [ALICE]: { balance: `0x${TEN.toString(16)}` },
      [CONTRACT]: {
        balance: "0x5",
        code: `0x${counter}`,
        codeHash: keccak256Hex(hexToBytes(`0x${counter}`)),
        storage: { [slot(0)]: word(8), [slot(1)]: word(9) },
      },
    });
  });

  it("shows only what changed in diff mode", async () => {
    const { receipts } = await execute(state(), [sent]);
    const gasUsed = receipts[0]?.gasUsed ?? 0n;
    const [trace] = await traceBlock(state(), [sent], DIFFERENCE);
    expect(trace?.result).toEqual({
      pre: {
        [ALICE]: { balance: `0x${TEN.toString(16)}` },
        [CONTRACT]: {
          balance: "0x5",
          code: `0x${counter}`,
          codeHash: keccak256Hex(hexToBytes(`0x${counter}`)),
          storage: { [slot(0)]: word(8) },
        },
      },
      post: {
        [ALICE]: { balance: `0x${(TEN - 1n - gasUsed).toString(16)}`, nonce: 1 },
        [CONTRACT]: { balance: "0x6", storage: { [slot(0)]: word(9) } },
        [FEE_COLLECTOR]: { balance: `0x${gasUsed.toString(16)}` },
      },
    });
  });

  it("shows a new contract only afterwards", async () => {
    const init = hexToBytes("0x60015f5560fe5f5360015ff3");
    const creation = transaction({ to: undefined, data: init, gasLimit: 200_000n });
    const made = getCreateAddress({ from: ALICE, nonce: 0 }).toLowerCase();
    const [trace] = await traceBlock(state(), [creation], DIFFERENCE);
    const { pre, post } = (trace?.result ?? {}) as Record<"pre" | "post", Record<string, unknown>>;
    expect(pre).not.toHaveProperty([made]);
    expect(post[made]).toEqual({
      code: "0xfe",
      codeHash: keccak256Hex(Uint8Array.of(0xfe)),
      nonce: 1,
      storage: { [slot(0)]: word(1) },
    });
  });
});

describe("structLogger", () => {
  it("lists every step with gas, stack, memory and storage", async () => {
    const sent = transaction({ gasLimit: 100_000n });
    const state = chain("602a5f5260025f5500");
    const [trace] = await traceBlock(state, [sent], STEPS);
    const key = "0".repeat(64);
    const memory = [word(42).slice(2)];
    expect(trace?.result).toEqual({
      gas: 43_116,
      failed: false,
      returnValue: "0x",
      structLogs: [
        { pc: 0, op: "PUSH1", gas: 79_000, gasCost: 3, depth: 1, stack: [] },
        { pc: 2, op: "PUSH0", gas: 78_997, gasCost: 2, depth: 1, stack: ["0x2a"] },
        { pc: 3, op: "MSTORE", gas: 78_995, gasCost: 6, depth: 1, stack: ["0x2a", "0x0"] },
        { pc: 4, op: "PUSH1", gas: 78_989, gasCost: 3, depth: 1, stack: [], memory },
        { pc: 6, op: "PUSH0", gas: 78_986, gasCost: 2, depth: 1, stack: ["0x2"], memory },
        {
          pc: 7,
          op: "SSTORE",
          gas: 78_984,
          gasCost: 22_100,
          depth: 1,
          stack: ["0x2", "0x0"],
          memory,
          storage: { [key]: word(2).slice(2) },
        },
        { pc: 8, op: "STOP", gas: 56_884, gasCost: 0, depth: 1, stack: [], memory },
      ],
    });
  });

  it("counts the gas given to a frame as the cost of the call, and marks the failing step", async () => {
    const code = `${callCode("fa", OTHER, { gas: "61ffff" })}00`;
    const result = await traceCall(chain(code, "60015f52015f"), { gasLimit: 200_000n }, STEPS);
    const { structLogs } = result as { structLogs: Record<string, unknown>[] };
    expect(structLogs.find(({ op }) => op === "STATICCALL")).toMatchObject({
      gasCost: 2_600 + 0xffff,
      depth: 1,
    });
    expect(structLogs.filter(({ depth }) => depth === 2).at(-1)).toMatchObject({
      op: "ADD",
      error: "stack underflow (0 <=> 2)",
    });
  });

  it("shows no step of a creation without code", async () => {
    const creation = await traceCall(chain(""), { to: undefined, data: new Uint8Array(0) }, STEPS);
    expect(creation).toMatchObject({ failed: false, structLogs: [] });
    const inner = await traceCall(chain("5f5f5ff000"), { gasLimit: 200_000n }, STEPS);
    const { structLogs } = inner as { structLogs: { op: string }[] };
    const ops = ["PUSH0", "PUSH0", "PUSH0", "CREATE", "STOP"];
    expect(structLogs.map(({ op }) => op)).toEqual(ops);
  });

  it("leaves out what was not asked for", async () => {
    const kind = { ...STEPS, enableMemory: false, disableStack: true, disableStorage: true };
    const result = await traceCall(chain("60015f5260015f5500"), {}, kind);
    const { structLogs } = result as { structLogs: object[] };
    const keys = new Set(structLogs.flatMap(Object.keys));
    expect([...keys].toSorted()).toEqual(["depth", "gas", "gasCost", "op", "pc"]);
  });

  it("gives up a trace that is too large", async () => {
    const endless = traceCall(chain("5b5f56"), {}, STEPS);
    await expect(endless).rejects.toMatchObject({ code: "TRACE_TOO_LARGE" });
    expect(() => new TraceBudget(10).take(11)).toThrow("too large");
  });
});
