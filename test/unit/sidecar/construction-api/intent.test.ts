import { describe, expect, it } from "@jest/globals";
import { SigningKey, Transaction, ZeroAddress } from "ethers";
import { stepsOn } from "./client.js";
import { FACTS, pair, RECIPIENT, transferData, WALLET } from "./steps.js";
import { CURRENCY, GOLD, SILVER } from "../../../helpers/chains/known-tokens.js";
import { offlineServer } from "../servers.js";

const server = offlineServer();
const { post, good, codeOf } = stepsOn(() => server);

const OPERATIONS = pair(WALLET.address, RECIPIENT, 250n);

describe("derive", () => {
  it.each([
    ["compressed", new SigningKey(WALLET.privateKey).compressedPublicKey],
    ["uncompressed", new SigningKey(WALLET.privateKey).publicKey],
  ])("gives EIP-55 and bech32 of a %s key", async (_name, key) => {
    const body = await good("derive", {
      public_key: { hex_bytes: key.slice(2), curve_type: "secp256k1" },
    });
    expect(body.account_identifier).toEqual({ address: WALLET.address });
    expect(body.metadata.bech32).toMatch(/^addr1[02-9ac-hj-np-z]{38}$/);
  });

  it.each([
    ["a private key", "11".repeat(32), "secp256k1", 301],
    ["a key that is no point", `02${"ff".repeat(32)}`, "secp256k1", 301],
    ["64 bytes", "11".repeat(64), "secp256k1", 301],
    ["odd hex", "123", "secp256k1", 301],
    ["another curve", "11".repeat(32), "edwards25519", 301],
    ["no bytes", "", "secp256k1", 1],
  ])("refuses %s", async (_name, hexBytes, curve, code) => {
    const fields = { public_key: { hex_bytes: hexBytes, curve_type: curve } };
    expect(await codeOf("derive", fields)).toBe(code);
  });
});

const amount = (value: string, currency: unknown = CURRENCY) => ({ amount: { value, currency } });

describe("preprocess", () => {
  it("carries the intent and every override as decimal strings", async () => {
    const body = await good("preprocess", {
      operations: OPERATIONS,
      metadata: {
        nonce: "9",
        gas_price: "30",
        gas_limit: "50000",
        max_fee: "1500000",
        suggested_fee_multiplier: 1.5,
        memo: "invoice 7 – danke",
      },
    });
    expect(body.options).toEqual({
      from: WALLET.address,
      to: RECIPIENT,
      value: "250",
      currency: CURRENCY,
      data: `0x${Buffer.from("invoice 7 – danke").toString("hex")}`,
      nonce: "9",
      gas_price: "30",
      gas_limit: "50000",
      max_fee: "1500000",
      suggested_fee_multiplier: 1.5,
    });
  });

  it("takes max_fee and multiplier in their older places, if they agree", async () => {
    const older = {
      operations: OPERATIONS,
      max_fee: [{ value: "77", currency: CURRENCY }],
      suggested_fee_multiplier: 2,
    };
    const { options } = await good("preprocess", older);
    expect(options).toMatchObject({ max_fee: "77", suggested_fee_multiplier: 2 });
    expect(await codeOf("preprocess", { ...older, metadata: { max_fee: "78" } })).toBe(304);
  });

  it("builds a contract call of no value from data", async () => {
    const { options } = await good("preprocess", {
      operations: pair(WALLET.address, RECIPIENT, 0n),
      metadata: { data: "0xA9059CBB" },
    });
    expect(options).toMatchObject({ from: WALLET.address, value: "0", data: "0xa9059cbb" });
  });

  it("takes network_index, which has no meaning, as it takes none", async () => {
    const [payer, payee] = OPERATIONS;
    const operations = [
      { ...payer, operation_identifier: { index: 0, network_index: 0 } },
      {
        ...payee,
        operation_identifier: { index: 1, network_index: 7 },
        related_operations: [{ index: 0, network_index: 0 }],
      },
    ];
    const plain = await good("preprocess", { operations: OPERATIONS });
    expect(await good("preprocess", { operations })).toEqual(plain);
  });

  const change = (index: 0 | 1, fields: Record<string, unknown>) =>
    OPERATIONS.map((operation, position) =>
      position === index ? { ...operation, ...fields } : operation,
    );

  it.each([
    ["one operation", OPERATIONS.slice(0, 1), 302],
    [
      "three operations",
      [...OPERATIONS, { ...OPERATIONS[1], operation_identifier: { index: 2 } }],
      302,
    ],
    ["amounts that do not cancel", change(1, amount("251")), 302],
    ["twice the same sign", change(0, amount("250")), 302],
    ["the same account twice", change(1, { account: { address: WALLET.address } }), 302],
    ["a wrong index", change(1, { operation_identifier: { index: 2 } }), 302],
    [
      "a network_index that is no index",
      change(0, { operation_identifier: { index: 0, network_index: -1 } }),
      1,
    ],
    ["a later related operation", change(0, { related_operations: [{ index: 1 }] }), 302],
    [
      "a related operation twice",
      change(1, { related_operations: [{ index: 0 }, { index: 0 }] }),
      302,
    ],
    ["a status", change(0, { status: "SUCCESS" }), 302],
    ["a number with a plus", change(1, amount("+250")), 302],
    ["a number with a leading zero", change(1, amount("0250")), 302],
    ["a fraction", change(1, amount("250.0")), 302],
    [
      "minus zero",
      pair(WALLET.address, RECIPIENT, 0n).map((side) => ({ ...side, ...amount("-0") })),
      302,
    ],
    ["2^256", pair(WALLET.address, RECIPIENT, 2n ** 256n), 302],
    ["no amount", change(0, { amount: undefined }), 302],
    ["no account", change(0, { account: undefined }), 302],
    ["an unknown type", change(0, { type: "TRANSFER" }), 302],
    ["a token type with native coins", change(0, { type: "ERC20_TRANSFER" }), 302],
    ["a listed type that is not constructed", change(0, { type: "DELEGATE" }), 303],
    ["metadata that would be lost", change(0, { metadata: { note: "x" } }), 302],
    ["a wrong checksum", change(1, { account: { address: RECIPIENT.replace("fB6", "Fb6") } }), 206],
    [
      "a sub-account",
      change(1, { account: { address: RECIPIENT, sub_account: { address: "x" } } }),
      207,
    ],
    ["another currency", change(1, amount("250", { symbol: "GOLD", decimals: 18 })), 208],
  ])("refuses %s", async (_name, operations, code) => {
    expect(await codeOf("preprocess", { operations })).toBe(code);
  });

  it.each([
    ["an unknown override", { gas: "1" }],
    ["a number where a string belongs", { nonce: 1 }],
    ["hex", { gas_price: "0x10" }],
    ["a nonce beyond EIP-2681", { nonce: (2n ** 64n - 1n).toString() }],
    ["memo beside data", { memo: "a", data: "0x01" }],
    ["a memo that cannot be read back", { memo: "a\u0007b" }],
    ["half a character", { memo: "\ud800" }],
    ["an empty memo", { memo: "" }],
    ["a long memo", { memo: "x".repeat(1_025) }],
    ["odd data", { data: "0x123" }],
    ["a negative multiplier", { suggested_fee_multiplier: -1 }],
    ["a text as multiplier", { suggested_fee_multiplier: "1.1" }],
  ])("refuses %s", async (_name, metadata) => {
    expect(await codeOf("preprocess", { operations: OPERATIONS, metadata })).toBe(304);
  });
});

describe("a gas limit that cannot suffice", () => {
  // EIP-2028: 21,000, and 16 for each byte of calldata that is not zero, 4 for each that is.
  it.each<[string, typeof OPERATIONS, Record<string, string>, bigint]>([
    ["a transfer", OPERATIONS, {}, 21_000n],
    ["a call", OPERATIONS, { data: "0x00ff" }, 21_020n],
    ["a memo", OPERATIONS, { memo: "abc" }, 21_048n],
    ["tokens", pair(WALLET.address, RECIPIENT, 250n, GOLD), {}, 21_000n + tokenGas()],
  ])("is refused for %s, and the least that can is not", async (_name, operations, more, least) => {
    const withLimit = (gas: bigint) => ({ ...more, gas_limit: gas.toString() });
    expect(await codeOf("preprocess", { operations, metadata: withLimit(least - 1n) })).toBe(405);
    const { options } = await good("preprocess", { operations, metadata: withLimit(least) });
    expect(options.gas_limit).toBe(least.toString());
  });
});

describe("what no node of the chain takes", () => {
  const call = (bytes: number) => ({
    operations: pair(WALLET.address, RECIPIENT, 0n),
    data: `0x${"00".repeat(bytes)}`,
  });
  const LARGEST = 128 * 1024;

  /** Bytes of a signed transaction beside its calldata. */
  const around = (data: string, facts: typeof FACTS) => {
    const { nonce, gas_price: gasPrice, gas_limit: gasLimit, chain_id: chainId } = facts;
    const most = { r: `0x${"ff".repeat(32)}`, s: `0x${"7f".repeat(32)}`, yParity: 1 as const };
    const legacy = { type: 0, nonce: Number(nonce), gasPrice, gasLimit, chainId, to: RECIPIENT };
    const made = Transaction.from({ ...legacy, data, signature: most });
    return (made.serialized.length - data.length) / 2;
  };

  it("is not built with less gas than its bytes cost", async () => {
    for (const [operations, data, least] of [
      [OPERATIONS, "0x", 21_000n],
      [OPERATIONS, "0x00ff", 21_020n],
      [pair(WALLET.address, RECIPIENT, 250n, GOLD), undefined, 21_000n + tokenGas()],
    ] as const) {
      const { data: _none, ...facts } = FACTS;
      const withGas = (gas: bigint) => ({
        operations,
        metadata: { ...facts, ...(data && { data }), gas_limit: gas.toString() },
      });
      for (const gas of [0n, least - 1n]) {
        const { body } = await post("payloads", withGas(gas));
        const details = { gas_limit: gas.toString(), needed: least.toString() };
        expect(body).toMatchObject({ code: 405, details });
      }
      const { unsigned_transaction: text } = await good("payloads", withGas(least));
      const lowered = JSON.stringify({ ...JSON.parse(text), gas_limit: `${least - 1n}` });
      expect(await codeOf("parse", { signed: false, transaction: lowered })).toBe(405);
      const fields = { unsigned_transaction: lowered, signatures: [] };
      expect(await codeOf("combine", fields)).toBe(405);
    }
  });

  it("is not prepared with data of more bytes", async () => {
    const { operations, data } = call(LARGEST + 1);
    const { body } = await post("preprocess", { operations, metadata: { data } });
    expect(body).toMatchObject({ code: 409, details: { limit_bytes: LARGEST } });
    const fits = call(LARGEST - 200);
    await good("preprocess", { operations, metadata: { data: fits.data } });
  });

  it("is not built with more bytes than it has when it is signed", async () => {
    const facts = { ...FACTS, gas_limit: "3000000" };
    const room = LARGEST - around(call(LARGEST - 200).data, facts);
    const { operations, data } = call(room);
    const { unsigned_transaction: text } = await good("payloads", {
      operations,
      metadata: { ...facts, data },
    });
    const longer = `${data}00`;
    const { body } = await post("payloads", { operations, metadata: { ...facts, data: longer } });
    const details = { size_bytes: LARGEST + 1, limit_bytes: LARGEST };
    expect(body).toMatchObject({ code: 409, details });
    const changed = JSON.stringify({ ...JSON.parse(text), data: longer });
    expect(await codeOf("parse", { signed: false, transaction: changed })).toBe(409);
    const fields = { unsigned_transaction: changed, signatures: [] };
    expect(await codeOf("combine", fields)).toBe(409);
  });
});

/** Calldata gas of `transfer(RECIPIENT, 250)`. */
function tokenGas(): bigint {
  const bytes = transferData(RECIPIENT, 250n).slice(2).match(/../g) ?? [];
  return bytes.reduce((sum, byte) => sum + (byte === "00" ? 4n : 16n), 0n);
}

describe("preprocess of an ERC-20 transfer", () => {
  const operations = pair(WALLET.address, RECIPIENT, 250n, GOLD);
  const withCurrency = (currency: unknown) =>
    operations.map(({ amount: { value }, ...rest }) => ({ ...rest, amount: { value, currency } }));

  it("carries the whole currency, and fees in the native token", async () => {
    const { options } = await good("preprocess", {
      operations,
      metadata: { gas_limit: "90000" },
      max_fee: [{ value: "77", currency: CURRENCY }],
    });
    expect(options).toEqual({
      from: WALLET.address,
      to: RECIPIENT,
      value: "250",
      currency: GOLD,
      data: "0x",
      gas_limit: "90000",
      max_fee: "77",
    });
  });

  it("takes the contract in lower case and answers it checksummed", async () => {
    const contractAddress = GOLD.metadata.contractAddress.toLowerCase();
    const { options } = await good("preprocess", {
      operations: withCurrency({ ...GOLD, metadata: { contractAddress } }),
    });
    expect(options.currency).toEqual(GOLD);
  });

  const contractAddress = `0x${"12".repeat(20)}`;
  it.each([
    ["a contract that is not registered", { ...GOLD, metadata: { contractAddress } }, 208],
    ["another symbol", { ...GOLD, symbol: "GOLDX" }, 208],
    ["other decimals", { ...GOLD, decimals: 18 }, 208],
    ["more metadata", { ...GOLD, metadata: { ...GOLD.metadata, note: 1 } }, 208],
    ["a wrong checksum", { ...GOLD, metadata: { contractAddress: upper(GOLD) } }, 206],
    ["no contract", { symbol: "GOLD", decimals: 6 }, 208],
    ["the native token", CURRENCY, 302],
  ])("refuses %s", async (_name, currency, code) => {
    expect(await codeOf("preprocess", { operations: withCurrency(currency) })).toBe(code);
  });

  it("refuses two currencies, a CALL of tokens and the zero address", async () => {
    const [paid] = operations;
    const [, received] = pair(WALLET.address, RECIPIENT, 250n, SILVER);
    expect(await codeOf("preprocess", { operations: [paid, received] })).toBe(302);
    const calls = operations.map((operation) => ({ ...operation, type: "CALL" }));
    expect(await codeOf("preprocess", { operations: calls })).toBe(302);
    const burnt = pair(WALLET.address, ZeroAddress, 250n, GOLD);
    expect(await codeOf("preprocess", { operations: burnt })).toBe(302);
    // Tokens sent to their own contract are lost as a rule, but the contract says whether.
    const own = pair(WALLET.address, GOLD.metadata.contractAddress, 250n, GOLD);
    expect((await good("preprocess", { operations: own })).options.value).toBe("250");
  });

  it.each([
    ["a memo", { memo: "invoice 7" }],
    ["data", { data: "0x01" }],
    ["the very calldata", { data: transferData(RECIPIENT, 250n) }],
  ])("refuses %s, which it could not carry", async (_name, metadata) => {
    expect(await codeOf("preprocess", { operations, metadata })).toBe(304);
  });

  it("refuses a fee in tokens and a CALL that is a transfer in disguise", async () => {
    const max_fee = [{ value: "77", currency: GOLD }];
    expect(await codeOf("preprocess", { operations, max_fee })).toBe(304);
    const call = (value: bigint, data: string) => ({
      operations: pair(WALLET.address, GOLD.metadata.contractAddress, value),
      metadata: { data },
    });
    const data = transferData(RECIPIENT, 250n);
    expect(await codeOf("preprocess", call(0n, data))).toBe(304);
    // With a value, with bytes behind it, or at another contract it is no such transfer.
    for (const fields of [
      call(1n, data),
      call(0n, `${data}00`),
      { operations: pair(WALLET.address, RECIPIENT, 0n), metadata: { data } },
    ]) {
      expect((await good("preprocess", fields)).options.currency).toEqual(CURRENCY);
    }
  });
});

/** A checksummed address with one letter in the wrong case. */
function upper({ metadata }: typeof GOLD): string {
  return metadata.contractAddress.replace("d0F", "D0F");
}
