/** Calls and estimates, their options and their errors. */
import { describe, expect, it } from "@jest/globals";
import { AbiCoder, Interface } from "ethers";
import { parseAddress } from "../../../../../chain/address.js";
import { parseHexBytes, ZERO_HASH } from "../../../../../chain/hex.js";
import { ALICE, BOB, createTestNode } from "../fixture.js";

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
