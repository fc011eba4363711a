/** Calls, estimates, traces and their errors. */
import { describe, expect, it, jest } from "@jest/globals";
import { AbiCoder, Interface } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { parseHexBytes, ZERO_HASH } from "../../../../chain/hex.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import { ALICE, BOB, createTestNode, signLegacy } from "./fixture.js";

const node = createTestNode();
const bob = parseAddress(BOB.address);

async function priced(fields: object): Promise<bigint | undefined> {
  await node.call("eth_call", { to: BOB.address, ...fields });
  return node.calls.last?.request.gasPriceAtoken;
}

describe("calls", () => {
  it("parses what cast, ethers and viem send", async () => {
    node.calls.result = { outcome: "success", returnData: Uint8Array.of(7), gasUsed: 1n };
    const request = {
      from: ALICE.address,
      to: BOB.address,
      gas: "0x5208",
      gasPrice: "0x17d7840",
      value: "0x1",
      input: "0x1234",
      data: "0x1234",
      nonce: "0x0",
      chainId: "0x1b1c",
      type: "0x0",
      accessList: [{ address: BOB.address, storageKeys: [ZERO_HASH] }],
    };
    expect(await node.call("eth_call", request, "pending", {}, {})).toBe("0x07");
    expect(node.calls.last?.request).toEqual({
      from: parseAddress(ALICE.address),
      to: bob,
      valueAtoken: 1n,
      gasPriceAtoken: 25_000_000n,
      gasLimit: 21_000n,
      nonce: 0n,
      data: parseHexBytes("0x1234"),
      accessList: [{ address: bob, storageKeys: [ZERO_HASH] }],
    });
    expect(await node.call("eth_estimateGas", { to: null, data: "0x6000" })).toBe("0x5208");
    expect(node.calls.last?.request).toMatchObject({
      to: undefined,
      gasPriceAtoken: 0n,
      gasLimit: undefined,
    });
  });

  it("takes an empty text for no bytes (geth 1.16.3)", async () => {
    expect(await node.call("eth_estimateGas", { to: BOB.address, data: "" })).toBe("0x5208");
    expect(await node.call("web3_sha3", "")).toBe(
      "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
    );
  });

  it("prices dynamic-fee calls at the smaller of cap and tip", async () => {
    expect(await priced({ maxFeePerGas: "0x5", maxPriorityFeePerGas: "0x3" })).toBe(3n);
    expect(await priced({ maxFeePerGas: "0x5" })).toBe(0n);
  });

  // internal/ethapi/transaction_args.go: a plain error there, which is -32000.
  it("refuses another chain's id as go-ethereum does", async () => {
    const message = "chainId does not match node's (have=1, want=6940)";
    for (const method of ["eth_call", "eth_estimateGas", "eth_createAccessList"]) {
      const { error } = await node.ask(method, { to: BOB.address, chainId: "0x1" });
      expect([method, error]).toEqual([method, { code: -32000, message }]);
    }
  });

  // core/types/gen_access_tuple.go: both members are required.
  it("refuses an access list whose entries leave something out", async () => {
    const address = BOB.address;
    for (const [entry, text] of [
      [{ address }, "missing required field 'storageKeys' for AccessTuple"],
      [{ address, storageKeys: null }, "missing required field 'storageKeys' for AccessTuple"],
      [{ storageKeys: [] }, "missing required field 'address' for AccessTuple"],
      [{ address: null, storageKeys: [] }, "missing required field 'address' for AccessTuple"],
    ] as const) {
      for (const method of ["eth_call", "eth_estimateGas", "eth_createAccessList"]) {
        const { error } = await node.ask(method, { to: address, accessList: [entry] });
        const message = `invalid argument 0: accessList: ${text}`;
        expect([method, error]).toEqual([method, { code: -32602, message }]);
      }
    }
    await node.call("eth_call", { to: address, accessList: [{ address, storageKeys: [] }] });
    expect(node.calls.last?.request.accessList).toEqual([{ address: bob, storageKeys: [] }]);
  });

  it("refuses contradictions", async () => {
    const cases: [object, string][] = [
      [{ data: "0x1", to: BOB.address }, "invalid argument 0: data: hex string of odd length"],
      [
        { data: "0x12", input: "0x34" },
        'both "data" and "input" are set and not equal. Please use "input" to pass transaction call data',
      ],
      [
        { gasPrice: "0x1", maxFeePerGas: "0x1" },
        "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
      ],
      [
        { maxFeePerGas: "0x1", maxPriorityFeePerGas: "0x2" },
        "maxFeePerGas (1) < maxPriorityFeePerGas (2)",
      ],
      [{ value: 5 }, "invalid argument 0: value: non-string"],
    ];
    for (const [request, message] of cases) {
      expect((await node.ask("eth_call", request)).error?.message).toBe(message);
    }
    const overrides: [object, string][] = [
      [{ nubmer: "0x5" }, 'invalid argument 3: unknown block override "nubmer"'],
      [{ number: "5" }, "invalid argument 3: number: hex string without 0x prefix"],
      [{ time: "0x20000000000000" }, "invalid argument 3: time: number too large"],
    ];
    for (const [override, message] of overrides) {
      const answer = await node.ask("eth_call", {}, "latest", {}, override);
      expect(answer.error).toEqual({ code: -32602, message });
    }
  });

  it("passes block overrides on, by their present and former names", async () => {
    const facts = {
      height: 5,
      timestampSeconds: 6,
      gasLimit: 7n,
      coinbase: bob,
      baseFeeAtoken: 8n,
    };
    const hash = `0x${"12".repeat(32)}`;
    const expected = { ...facts, mixHash: hash, blobBaseFeeAtoken: 9n };
    const common = { number: "0x5", time: "0x6", gasLimit: "0x7", blobBaseFee: "0x9" };
    const named = { feeRecipient: BOB.address, baseFeePerGas: "0x8", prevRandao: hash };
    const former = { coinbase: BOB.address, baseFee: "0x8", random: hash, difficulty: "0x1" };
    for (const names of [named, former]) {
      await node.call("eth_call", {}, "latest", {}, { ...common, ...names, withdrawals: [] });
      expect(node.calls.last?.options).toMatchObject({ blockOverrides: expected });
    }
  });

  it("passes state overrides on", async () => {
    await node.call("eth_call", { to: BOB.address }, "latest", {
      [BOB.address]: {
        balance: "0x5",
        nonce: "0x1",
        code: "0x6000",
        stateDiff: { [ZERO_HASH]: ZERO_HASH },
      },
    });
    const options = node.calls.last?.options as
      | { overrides: ReadonlyMap<string, object> }
      | undefined;
    expect(options?.overrides.get(bob)).toMatchObject({
      balanceAtoken: 5n,
      nonce: 1n,
      code: Uint8Array.of(0x60, 0),
      stateDiff: new Map([[ZERO_HASH, 0n]]),
    });
  });

  it("bounds the storage slots that a request overrides, however many accounts have them", async () => {
    const slots = (count: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, slot) => [`0x${slot.toString(16)}`, "0x1"]),
      );
    const address = (index: number) => `0x${index.toString(16).padStart(40, "0")}`;
    const overrides = (...counts: readonly number[]) =>
      Object.fromEntries(
        counts.map((count, index) => [address(index), { stateDiff: slots(count) }]),
      );
    const call = (set: object) => node.ask("eth_call", { to: BOB.address }, "latest", set);
    const message = "at most 16384 storage slots are allowed in all overrides";
    expect((await call(overrides(16_384))).error).toBeUndefined();
    expect((await call(overrides(8_192, 8_192))).error).toBeUndefined();
    const refused = { code: -32602, message: `invalid argument 2: stateDiff: ${message}` };
    expect((await call(overrides(16_385))).error).toEqual(refused);
    expect((await call(overrides(8_192, 8_193))).error).toEqual(refused);

    const blockStateCalls = [8_192, 8_193].map((count) => ({ stateOverrides: overrides(count) }));
    const simulated = await node.ask("eth_simulateV1", { blockStateCalls });
    expect(simulated.error).toMatchObject({
      code: -32602,
      message: expect.stringContaining(message),
    });
  });

  it("reports a revert as code 3 with its reason and data, in eth_call and eth_estimateGas", async () => {
    const coder = AbiCoder.defaultAbiCoder();
    const errorData = new Interface(["error Error(string)"]).encodeErrorResult("Error", [
      "no coins",
    ]);
    const panicData = `0x4e487b71${coder.encode(["uint256"], [1]).slice(2)}`;
    const custom = `0xdeadbeef${"00".repeat(32)}`;
    const lying = `0x08c379a0${"ff".repeat(64)}`;
    // Nobody reads it, and each of its bytes would be six in the message.
    const long = new Interface(["error Error(string)"]).encodeErrorResult("Error", [
      "\u0000".repeat(65_537),
    ]);
    const cases: [string, string][] = [
      [errorData, "execution reverted: no coins"],
      [panicData, "execution reverted: assert(false)"],
      [custom, "execution reverted"],
      [lying, "execution reverted"],
      [long, "execution reverted"],
      ["0x", "execution reverted"],
    ];
    for (const [data, message] of cases) {
      node.calls.result = { outcome: "revert", returnData: parseHexBytes(data), gasUsed: 1n };
      for (const name of ["eth_call", "eth_estimateGas"]) {
        expect((await node.ask(name, { to: BOB.address })).error).toEqual({
          code: 3,
          message,
          data,
        });
      }
    }
    node.calls.result = { outcome: "error", error: "out of gas", gasUsed: 1n };
    expect((await node.ask("eth_call", { to: BOB.address })).error).toEqual({
      code: -32000,
      message: "out of gas",
    });
  });

  it("lists accesses", async () => {
    expect(await node.call("eth_createAccessList", { to: BOB.address })).toEqual({
      accessList: [],
      gasUsed: "0x5208",
    });
  });
});

describe("traces", () => {
  it("passes tracer options on and finds the transaction's place", async () => {
    const raw = await signLegacy(ALICE, { nonce: 0, to: BOB.address });
    const { block } = node.chain.add([{ raw }]);
    const hash = block.transactions[0]?.tx.hash;
    const calls = { tracer: "callTracer", tracerConfig: { onlyTopCall: true, withLog: true } };
    expect(await node.call("debug_traceTransaction", hash, calls)).toEqual({
      height: 1,
      index: 0,
      kind: { tracer: "callTracer", onlyTopCall: true, withLog: true },
    });
    const struct = { disableStack: true, enableMemory: true };
    expect(await node.call("debug_traceBlockByNumber", "0x1", struct)).toEqual([
      {
        txHash: ZERO_HASH,
        result: {
          height: 1,
          kind: {
            tracer: "structLogger",
            limit: 0,
            enableMemory: true,
            disableStack: true,
            disableStorage: false,
            enableReturnData: false,
          },
        },
      },
    ]);
    expect(
      await node.call("debug_traceCall", { to: BOB.address }, "latest", {
        tracer: "prestateTracer",
      }),
    ).toEqual({
      to: bob,
      kind: {
        tracer: "prestateTracer",
        diffMode: false,
        disableCode: false,
        disableStorage: false,
        includeEmpty: false,
      },
    });
  });

  it("reads options as go-ethereum's client writes them", async () => {
    // Sent by gethclient 1.17.10: its TraceConfig names no members for JSON, and its node takes any case.
    const frames = { EnableMemory: false, Limit: 0, Tracer: "callTracer", Timeout: null };
    const calls = { ...frames, TracerConfig: { onlyTopCall: true, withLog: false } };
    expect(await node.call("debug_traceBlockByNumber", "0x1", calls)).toMatchObject([
      { result: { kind: { tracer: "callTracer", onlyTopCall: true, withLog: false } } },
    ]);
    const memory = { EnableMemory: true, DisableStack: false, DisableStorage: true, Limit: 3 };
    const struct = { ...memory, EnableReturnData: true, Tracer: null, TracerConfig: null };
    expect(await node.call("debug_traceCall", {}, "latest", struct)).toMatchObject({
      kind: {
        tracer: "structLogger",
        limit: 3,
        enableMemory: true,
        disableStack: false,
        disableStorage: true,
        enableReturnData: true,
      },
    });
    const diff = { Tracer: "prestateTracer", TracerConfig: { DiffMode: true } };
    const mux = { tracer: "muxTracer", tracerConfig: { prestateTracer: { DiffMode: true } } };
    const kind = { tracer: "prestateTracer", diffMode: true };
    expect(await node.call("debug_traceCall", {}, "latest", diff)).toMatchObject({ kind });
    expect(await node.call("debug_traceCall", {}, "latest", mux)).toMatchObject({
      kind: { tracers: [["prestateTracer", kind]] },
    });
    for (const [options, text] of [
      [{ TxIndex: "0x1" }, "txIndex is not supported"],
      [{ StateOverrides: { "0x": {} } }, "stateOverrides: "],
      [{ BlockOverrides: { number: "1" } }, "blockOverrides: "],
    ] as const) {
      const { error } = await node.ask("debug_traceCall", {}, "latest", options);
      expect(error?.message).toContain(text);
    }
  });

  it("knows whose a trace is", async () => {
    const traced = jest.spyOn(node.calls, "traceBlock");
    const raw = await node.call<string>("debug_getRawBlock", "0x1");
    type Block = { readonly hash: string; readonly transactions: readonly string[] };
    const { hash, transactions } = await node.call<Block>("eth_getBlockByNumber", "0x1", false);
    const asked = [
      ["debug_traceTransaction", transactions[0]],
      ["debug_traceBlockByNumber", "0x1"],
      ["debug_traceBlockByHash", hash],
      ["debug_traceBlock", raw],
    ];
    for (const [method, param] of asked) {
      const context = new RequestContext(5_000, undefined, { remoteAddress: "192.0.2.1" });
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [param] });
      await node.api.dispatcher.handle(Buffer.from(body), context);
      context.finish();
    }
    // Of the fixture's kind, which takes no options.
    const options = traced.mock.calls.map((values: readonly unknown[]) => values[3]);
    expect(options).toEqual(asked.map(() => expect.objectContaining({ client: "192.0.2.1" })));
    traced.mockRestore();
  });

  it("traces a block that is given as its bytes", async () => {
    const raw = await node.call<string>("debug_getRawBlock", "0x1");
    const calls = { tracer: "callTracer" };
    expect(await node.call("debug_traceBlock", raw, calls)).toEqual(
      await node.call("debug_traceBlockByNumber", "0x1", calls),
    );
    const genesis = await node.call<string>("debug_getRawBlock", "0x0");
    expect((await node.ask("debug_traceBlock", genesis)).error?.message).toBe(
      "genesis is not traceable",
    );
    // A list of an empty header, no transactions and no uncles.
    const hash = keccak256Hex(Uint8Array.of(0xc0));
    expect((await node.ask("debug_traceBlock", "0xc3c0c0c0")).error).toEqual({
      code: -32000,
      message: `block ${hash} not found`,
    });
    for (const bytes of ["0x", "0x01", "0xc1c0", `${raw}00`, raw.slice(0, -2)]) {
      const { error } = await node.ask("debug_traceBlock", bytes);
      expect(error?.code).toBe(-32000);
      expect(error?.message).toMatch(/^could not decode block: /);
    }
    expect((await node.ask("debug_traceBlock", "0x1")).error?.code).toBe(-32602);
  });

  it("refuses unknown transactions, unknown tracers and genesis", async () => {
    expect((await node.ask("debug_traceTransaction", ZERO_HASH)).error?.message).toBe(
      "transaction not found",
    );
    // As execution-apis' trace-block-not-found.io has it, and go-ethereum by number.
    expect((await node.ask("debug_traceBlockByHash", ZERO_HASH)).error?.message).toBe(
      `block ${ZERO_HASH} not found`,
    );
    expect((await node.ask("debug_traceBlockByNumber", "0xffff")).error?.message).toBe(
      "block #65535 not found",
    );
    expect((await node.ask("debug_traceBlockByNumber", "0x0")).error?.message).toBe(
      "genesis is not traceable",
    );
    expect(
      (await node.ask("debug_traceBlockByNumber", "0x1", { tracer: "none" })).error?.message,
    ).toBe("tracer not found");
    const script = { tracer: "{step: function() {}, fault: function() {}, result: function() {}}" };
    const refused = (await node.ask("debug_traceBlockByNumber", "0x1", script)).error;
    expect(refused?.message).toContain("JavaScript tracers are not served");
    expect(refused).not.toHaveProperty("data");
    const both = { tracer: "prestateTracer", tracerConfig: { diffMode: true, includeEmpty: true } };
    expect((await node.ask("debug_traceBlockByNumber", "0x1", both)).error?.message).toBe(
      "cannot use diffMode with includeEmpty",
    );
  });

  it("reads the options of several tracers at once", async () => {
    const mux = {
      tracer: "muxTracer",
      tracerConfig: { callTracer: { withLog: true }, "4byteTracer": null },
    };
    expect(await node.call("debug_traceBlockByNumber", "0x1", mux)).toMatchObject([
      {
        result: {
          kind: {
            tracer: "muxTracer",
            tracers: [
              ["callTracer", { tracer: "callTracer", onlyTopCall: false, withLog: true }],
              ["4byteTracer", { tracer: "4byteTracer" }],
            ],
          },
        },
      },
    ]);
  });
});

describe("options that are not carried out", () => {
  it("are refused as parameters, as geth 1.16.7 does with a limit that is no number", async () => {
    const hash = node.chain.block(1)?.block.transactions[0]?.tx.hash;
    for (const limit of ["0x3", -1, 1.5, 2 ** 40]) {
      const { error } = await node.ask("debug_traceTransaction", hash, { limit });
      expect({ limit, code: error?.code }).toEqual({ limit, code: -32602 });
    }
    const onIndex = await node.ask("debug_traceCall", {}, "latest", { txIndex: "0x0" });
    expect(onIndex.error?.code).toBe(-32602);
  });

  it("are refused for delegations of accounts, which this chain does not have", async () => {
    const call = { to: BOB.address, authorizationList: [] };
    for (const method of ["eth_call", "eth_estimateGas", "eth_createAccessList"]) {
      expect((await node.ask(method, call)).error).toEqual({
        code: -32602,
        message: "invalid argument 0: EIP-7702 is not supported",
      });
    }
  });
});

describe("fee history", () => {
  it("always answers: zero base fees, real gas ratios, percentiles of prices paid", async () => {
    expect(await node.call("eth_feeHistory", "0x2", "latest", [0, 50, 100])).toEqual({
      oldestBlock: "0x0",
      baseFeePerGas: ["0x0", "0x0", "0x0"],
      gasUsedRatio: [0, 0.000035],
      reward: [
        ["0x0", "0x0", "0x0"],
        ["0x17d7840", "0x17d7840", "0x17d7840"],
      ],
    });
    const clamped = await node.call<{ gasUsedRatio: number[] }>("eth_feeHistory", 5_000, "latest");
    expect(clamped.gasUsedRatio).toHaveLength(2);
    expect(clamped).not.toHaveProperty("reward");
    expect(await node.call("eth_feeHistory", "0x2", "latest", [])).toEqual(clamped);
    for (const two of ["2", "0x02", 2]) {
      expect(await node.call("eth_feeHistory", two, "latest")).toEqual(clamped);
    }
    for (const wrong of ["two", "-1", "0x", "1.5", -1, null]) {
      expect((await node.ask("eth_feeHistory", wrong, "latest")).error?.code).toBe(-32602);
    }
  });

  // go-ethereum 1.16.7: {"oldestBlock":"0x0","gasUsedRatio":null}. Lists are never null here (D7).
  it("names no block that is not there for a history of none", async () => {
    expect(await node.call("eth_feeHistory", "0x0", "latest", [10])).toEqual({
      oldestBlock: "0x0",
      baseFeePerGas: ["0x0"],
      gasUsedRatio: [],
      reward: [],
    });
  });

  it("begins at the oldest block that is here", async () => {
    const pruned = createTestNode();
    for (let height = 1; height <= 9; height++) pruned.chain.add([]);
    const { oldest } = pruned.chain;
    const outline = pruned.chain.outline.bind(pruned.chain);
    pruned.chain.oldest = () => ({ ...oldest(), block: 7 });
    expect(await pruned.call("eth_feeHistory", "0x8", "latest")).toEqual({
      oldestBlock: "0x7",
      baseFeePerGas: ["0x0", "0x0", "0x0", "0x0"],
      gasUsedRatio: [0, 0, 0],
    });
    expect(await pruned.call("eth_feeHistory", "0x3", "0x0")).toMatchObject({ oldestBlock: "0x0" });
    const gone = { code: 4444, message: "pruned history unavailable" };
    expect((await pruned.ask("eth_feeHistory", "0x2", "0x6")).error).toEqual(gone);
    // Deleted while the history is made.
    pruned.chain.outline = (height) => (height === 8 ? undefined : outline(height));
    expect((await pruned.ask("eth_feeHistory", "0x8", "latest")).error).toEqual(gone);
  });

  it("refuses percentiles out of order and blocks beyond the head", async () => {
    // eth/gasprice/feehistory.go: "%w: %f" and "%w: #%d:%f >= #%d:%f".
    const cases = [
      [[50, 20], "#0:50.000000 >= #1:20.000000"],
      [[10, 20.5, 20.5], "#1:20.500000 >= #2:20.500000"],
      [[101], "101.000000"],
      [[-0.5], "-0.500000"],
    ] as const;
    for (const [percentiles, text] of cases) {
      expect((await node.ask("eth_feeHistory", "0x1", "latest", percentiles)).error).toEqual({
        code: -32602,
        message: `invalid reward percentile: ${text}`,
      });
    }
    expect((await node.ask("eth_feeHistory", "0x1", "0x63")).error?.message).toBe(
      "request beyond head block: requested 99, head 1",
    );
  });
});
