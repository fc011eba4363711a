/** `/construction/metadata`: nonce, price, gas and fee of a transaction, and what would not be mined. */
import { describe, expect, it } from "@jest/globals";
import { Interface, SigningKey, Wallet } from "ethers";
import { ALICE, balanceAt, BOB } from "../../../helpers/chains/journal-chain.js";
import { CURRENCY, GOLD } from "../../../helpers/chains/known-tokens.js";
import { call } from "../servers.js";
import { FROM, OPTIONS, sidecarForTests } from "./asked-sidecar.js";

const WALLET = new Wallet(`0x${"11".repeat(32)}`);
const sidecar = sidecarForTests();
const { replace, refuse, metadata, price } = sidecar;

describe("/construction/metadata", () => {
  it("asks the node for the pending nonce, the price and an estimate with a margin", async () => {
    const { status, body } = await metadata({ data: "0xabcd" });
    expect(status).toBe(200);
    expect(body).toEqual({
      metadata: {
        chain_id: "6940",
        nonce: "9",
        gas_price: "25000000",
        gas_limit: "25200",
        data: "0xabcd",
      },
      suggested_fee: [{ value: "630000000000", currency: { symbol: "TOKEN", decimals: 18 } }],
    });
    const estimate = sidecar.node.calls.find((made) => made.method === "eth_estimateGas");
    expect(estimate?.params).toEqual([{ from: ALICE, to: BOB, value: "0x3e8", data: "0xabcd" }]);
  });

  it("takes overrides as they are, and looks whether the call succeeds with that gas", async () => {
    const { body } = await metadata({
      nonce: "5",
      gas_price: "7",
      gas_limit: "100000",
      max_fee: "700000",
      suggested_fee_multiplier: 9,
    });
    expect(body.metadata).toMatchObject({ nonce: "5", gas_price: "7", gas_limit: "100000" });
    expect(body.suggested_fee[0]?.value).toBe("700000");
    const estimate = sidecar.node.calls.find((made) => made.method === "eth_estimateGas");
    expect(estimate?.params).toEqual([{ from: ALICE, to: BOB, value: "0x3e8", gas: "0x186a0" }]);
  });

  it.each([
    [3, "execution reverted: no", 315, { reason: "execution reverted: no", data: "0x08c379a0" }],
    [
      -32000,
      "gas required exceeds allowance (100000)",
      405,
      { gas_limit: "100000", reason: "gas required exceeds allowance (100000)" },
    ],
    [-32000, "out of compute", 406, { reason: "out of compute" }],
  ])("refuses a chosen gas limit with which the next transaction fails: %i %s", async (...one) => {
    const [rpcCode, message, code, details] = one;
    refuse("eth_estimateGas", rpcCode, message, rpcCode === 3 ? "0x08c379a0" : undefined);
    const { body } = await metadata({ nonce: "5", gas_limit: "100000" });
    expect([body.code, body.details]).toEqual([code, details]);
  });

  it("believes a chosen gas limit behind transactions that are not mined", async () => {
    // A token that the one before approves: in the newest state the second one still fails.
    refuse("eth_estimateGas", 3, "execution reverted: allowance", "0x08c379a0");
    for (const nonce of [undefined, "6", "40"]) {
      const { status, body } = await metadata({ nonce, gas_limit: "100000" });
      expect([nonce, status, body.metadata?.["gas_limit"]]).toEqual([nonce, 200, "100000"]);
    }
    // Without one there is no gas to name.
    expect((await metadata({ nonce: "6" })).body.code).toBe(315);
    // A node that runs no call with so much cannot tell.
    refuse("eth_estimateGas", -32000, "gas required exceeds allowance (99999)");
    expect((await metadata({ nonce: "5", gas_limit: "100000" })).status).toBe(200);
  });

  it("refuses a price below the floor before it is signed, and believes a chosen nonce", async () => {
    const cheap = await metadata({ gas_price: "0" });
    expect([cheap.body.code, cheap.body.details]).toEqual([404, { gas_price: "0", minimum: "1" }]);
    expect(sidecar.node.calls.map((made) => made.method)).not.toContain("eth_estimateGas");
    for (const nonce of ["4", "5"]) {
      const { body } = await metadata({ nonce, gas_price: "1" });
      expect(body.metadata).toMatchObject({ nonce, gas_price: "1" });
    }
  });

  it("goes by the minimum that the node tells, and by its own where the node's is lower", async () => {
    replace("eth_gasPrice", () => "0x32");
    replace("eth_capabilities", () => ({ minimumGasPrice: "0x32" }));
    expect(await price(0.9)).toBe("50");
    expect(await price(1.1)).toBe("55");
    const cheap = await metadata({ gas_price: "49" });
    expect([cheap.body.code, cheap.body.details]).toEqual([
      404,
      { gas_price: "49", minimum: "50" },
    ]);
    expect((await metadata({ gas_price: "50" })).body.metadata["gas_price"]).toBe("50");
    replace("eth_capabilities", () => ({ minimumGasPrice: "0x0" }));
    expect(await price(0.9)).toBe("45");
    expect((await metadata({ gas_price: "0" })).body.details).toMatchObject({ minimum: "1" });
    // A node of another kind tells none.
    refuse("eth_capabilities", -32601, "the method eth_capabilities does not exist");
    expect((await metadata({ gas_price: "1" })).body.metadata["gas_price"]).toBe("1");
    replace("eth_capabilities", () => ({ minimumGasPrice: "cheap" }));
    expect((await metadata()).body.code).toBe(106);
  });

  it("takes no key but the payer's, as payloads does", async () => {
    const codeWith = async (hex_bytes: string) => {
      const options = { ...OPTIONS, from: WALLET.address };
      const public_keys = [{ hex_bytes, curve_type: "secp256k1" }];
      const fields = { options, public_keys };
      return (await call(sidecar.online.server, "/construction/metadata", fields)).body.code;
    };
    const own = WALLET.signingKey.compressedPublicKey.slice(2);
    const others = new SigningKey(`0x${"22".repeat(32)}`).compressedPublicKey.slice(2);
    expect(await codeWith(others)).toBe(311);
    expect(await codeWith("00".repeat(33))).toBe(301);
    expect(await codeWith("00")).toBe(301);
    expect(await codeWith(own)).not.toBe(311);
  });

  it("refuses a gas limit below what the transaction costs before any code", async () => {
    const { body } = await metadata({ gas_limit: "20999" });
    expect([body.code, body.details]).toEqual([405, { gas_limit: "20999", needed: "21000" }]);
    expect((await metadata({ gas_limit: "21000" })).status).toBe(200);
  });

  it("takes no options of a call that no operations tell", async () => {
    const claim = new Interface(["function claimRewards(address, uint32)"]);
    const data = claim.encodeFunctionData("claimRewards", [FROM, 3n]);
    const to = "0x0000000000000000000000000000000000000801";
    const { body } = await metadata({ to, value: "0", data });
    expect([body.code, body.details]).toEqual([
      304,
      {
        field: "options.data",
        expected: "no call of claimRewards: no operations say what it does",
      },
    ]);
    expect((await metadata({ value: "0", data })).status).toBe(200);
  });

  it("refuses more bytes than a pool takes, once it knows how many they are", async () => {
    const limit = 128 * 1024;
    replace("eth_estimateGas", () => "0x2dc6c0");
    const codeWith = async (bytes: number) =>
      (await metadata({ data: `0x${"00".repeat(bytes)}` })).body.code;
    expect(await codeWith(limit + 1)).toBe(409);
    // The sidecar itself looks at the head now and then.
    const isAsked = ({ method }: { readonly method: string }) => method !== "eth_getBlockByNumber";
    expect(sidecar.node.calls.filter(isAsked)).toEqual([]);
    // Beside its calldata it has some 110: some ten of them are nonce, gas and price.
    expect(await codeWith(limit - 105)).toBe(409);
    expect(sidecar.node.calls.map(({ method }) => method)).toContain("eth_estimateGas");
    expect(await codeWith(limit - 120)).toBeUndefined();
  });

  it("adds no margin beyond the gas that the chain lets a transaction name", async () => {
    replace("eth_capabilities", () => ({ transactionGas: "0x1c9c380" }));
    replace("eth_estimateGas", () => "0x1a00000");
    const { body } = await metadata();
    expect(body.metadata["gas_limit"]).toBe("30000000");
    replace("eth_estimateGas", () => "0x1000000");
    expect((await metadata()).body.metadata["gas_limit"]).toBe("20132660");
  });

  it("refuses a chosen gas limit that no node of the chain takes, before it is signed", async () => {
    replace("eth_capabilities", () => ({ transactionGas: "0x1c9c380" }));
    const { body } = await metadata({ gas_limit: "30000001" });
    expect([body.code, body.details]).toEqual([
      406,
      { gas_limit: "30000001", allowed: "30000000" },
    ]);
    expect((await metadata({ gas_limit: "30000000" })).status).toBe(200);
  });

  it("multiplies the suggested price, rounds up, and keeps the minimum", async () => {
    expect(await price(1.5)).toBe("37500000");
    expect(await price(0.00000009)).toBe("1");
    replace("eth_gasPrice", () => "0x3");
    expect(await price(1.1)).toBe("4");
  });

  it("does not lose atoken where 64 bits would", async () => {
    replace("eth_gasPrice", () => `0x${(10n ** 15n).toString(16)}`);
    const { body } = await metadata();
    expect(body.suggested_fee[0]?.value).toBe((25_200n * 10n ** 15n).toString());
  });

  it("refuses a fee above max_fee", async () => {
    const { body } = await metadata({ max_fee: "629999999999" });
    expect([body.code, body.details]).toEqual([
      313,
      { fee: "630000000000", max_fee: "629999999999" },
    ]);
  });

  it("refuses a value that leaves too little for the fee", async () => {
    const balance = balanceAt(2);
    const fits = balance - 630_000_000_000n;
    expect((await metadata({ value: fits.toString() })).status).toBe(200);
    expect((await metadata({ value: (fits + 1n).toString() })).body.code).toBe(314);
  });

  /** Executable transactions of the sender as `txpool_contentFrom` tells them. */
  const waiting = (...list: readonly { nonce: number; value: bigint; cap?: bigint }[]) => {
    const hex = (number: bigint | number) => `0x${number.toString(16)}`;
    const entries = list.map(({ nonce, value, cap }) => {
      const fees = { gasPrice: hex(10), ...(cap === undefined ? {} : { maxFeePerGas: hex(cap) }) };
      return [nonce, { nonce: hex(nonce), gas: hex(21_000), value: hex(value), ...fees }];
    });
    replace("txpool_contentFrom", () => ({ pending: Object.fromEntries(entries), queued: {} }));
  };

  it("leaves what the sender's transactions in the pool may cost, as the pool does", async () => {
    const earlier = 7n + 210_000n + 8n + 21_000n * 30n;
    waiting({ nonce: 5, value: 7n }, { nonce: 6, value: 8n, cap: 30n });
    const fits = balanceAt(2) - 630_000_000_000n - earlier;
    expect((await metadata({ value: fits.toString() })).status).toBe(200);
    const { body } = await metadata({ value: (fits + 1n).toString() });
    expect([body.code, body.details]).toEqual([
      314,
      {
        balance: balanceAt(2).toString(),
        needed: (balanceAt(2) + 1n).toString(),
        in_pool: earlier.toString(),
        currency: CURRENCY,
      },
    ]);
    expect(sidecar.node.calls.find((made) => made.method === "txpool_contentFrom")?.params).toEqual(
      [ALICE],
    );
  });

  it("does not count the transaction in the pool whose place a chosen nonce takes", async () => {
    waiting({ nonce: 5, value: balanceAt(2) / 2n }, { nonce: 6, value: 1n });
    const value = (balanceAt(2) - 10n ** 13n).toString();
    expect((await metadata({ value, nonce: "5" })).status).toBe(200);
    expect((await metadata({ value, nonce: "6" })).body.code).toBe(314);
  });

  it("counts nothing as spent where the node does not serve txpool_contentFrom", async () => {
    const value = (balanceAt(2) - 630_000_000_000n).toString();
    for (const [code, message] of [
      [-32601, "the method txpool_contentFrom does not exist/is not available"],
      [-32003, "response too large"],
    ] as const) {
      refuse("txpool_contentFrom", code, message);
      expect((await metadata({ value })).status).toBe(200);
    }
    // What is executable ends with the next nonce: there is nothing to ask for.
    waiting({ nonce: 5, value: balanceAt(2) });
    replace("eth_getTransactionCount", () => "0x5");
    expect((await metadata({ value })).status).toBe(200);
  });

  it("asks whether coins that are not locked pay value, fee and what is in the pool", async () => {
    waiting({ nonce: 5, value: 7n });
    const needed = 1_000n + 630_000_000_000n + 7n + 210_000n;
    const reason =
      `insufficient funds for gas * price + value: address ${FROM} ` +
      `have ${needed - 1n} want ${needed}`;
    const asked = () => sidecar.node.calls.find((made) => made.method === "eth_call");
    expect((await metadata()).status).toBe(200);
    const value = `0x${needed.toString(16)}`;
    expect(asked()?.params).toEqual([{ from: ALICE, to: ALICE, gas: "0x5208", value }, "latest"]);
    refuse("eth_call", -32000, reason);
    const { body } = await metadata();
    expect([body.code, body.details]).toEqual([
      314,
      { needed: needed.toString(), in_pool: "210007", currency: CURRENCY, reason },
    ]);
    // Code of the sender's own has no say, and a node without time says nothing of coins.
    refuse("eth_call", 3, "execution reverted: insufficient funds");
    expect((await metadata()).status).toBe(200);
    refuse("eth_call", -32005, "limit exceeded");
    expect((await metadata()).body.code).toBe(104);
  });

  it("names what is missing, and asks for no estimate that cannot succeed", async () => {
    const value = (balanceAt(2) + 1n).toString();
    const { body } = await metadata({ value });
    expect([body.code, body.details]).toEqual([
      314,
      { balance: balanceAt(2).toString(), needed: value, currency: CURRENCY },
    ]);
    expect(sidecar.node.calls.map((made) => made.method)).not.toContain("eth_estimateGas");
  });

  it.each<[string, () => unknown, number, boolean]>([
    [
      "a revert",
      () => refuse("eth_estimateGas", 3, "execution reverted: no", "0x08c379a0"),
      315,
      false,
    ],
    [
      "code that refuses by what is no instruction",
      () => refuse("eth_estimateGas", -32000, "invalid opcode: INVALID"),
      315,
      false,
    ],
    [
      "code that refuses by a jump to nowhere",
      () => refuse("eth_estimateGas", -32000, "invalid jump destination"),
      315,
      false,
    ],
    [
      "a call dearer than the chain allows",
      () => refuse("eth_estimateGas", -32000, "gas required exceeds allowance (600000000)"),
      406,
      false,
    ],
    [
      "too little money to estimate with",
      () => refuse("eth_estimateGas", -32000, "insufficient funds for transfer"),
      314,
      false,
    ],
    ["a node of another chain", () => replace("eth_chainId", () => "0x1b1d"), 105, false],
    [
      "a node that is behind",
      () => replace("eth_syncing", () => ({ highestBlock: "0x9" })),
      103,
      true,
    ],
    ["a node that has no time", () => refuse("eth_gasPrice", -32005, "limit exceeded"), 104, true],
    ["an unknown refusal", () => refuse("eth_gasPrice", -32603, "internal error"), 107, false],
    ["a malformed answer", () => replace("eth_gasPrice", () => 25_000_000), 106, false],
  ])("tells %s apart", async (_name, arrange, code, retriable) => {
    arrange();
    const { status, body } = await metadata();
    expect([status, body.code, body.retriable]).toEqual([500, code, retriable]);
  });

  it("tells a few bytes of a revert, and of many how many there are", async () => {
    const details = async (data: string) => {
      refuse("eth_estimateGas", 3, "execution reverted", data);
      return (await metadata()).body.details;
    };
    const reason = "execution reverted";
    expect(await details(`0x${"ab".repeat(16_384)}`)).toEqual({
      reason,
      data: `0x${"ab".repeat(16_384)}`,
    });
    expect(await details(`0x${"ab".repeat(16_385)}`)).toEqual({ reason, data_size_bytes: 16_385 });
  });

  it.each([
    ["no options", undefined],
    ["an unknown option", { ...OPTIONS, gas: "1" }],
    ["a negative value", { ...OPTIONS, value: "-1" }],
    ["no currency", { ...OPTIONS, currency: undefined }],
    ["data beside tokens", { ...OPTIONS, currency: GOLD, data: "0x01" }],
    ["tokens for the zero address", { ...OPTIONS, currency: GOLD, to: `0x${"00".repeat(20)}` }],
  ])("refuses %s", async (_name, options) => {
    const { body } = await call(sidecar.online.server, "/construction/metadata", { options });
    expect(body.code).toBe(304);
  });
});
