import { beforeAll, describe, expect, it } from "@jest/globals";
import { getAddress, SigningKey, Transaction, type TransactionLike, Wallet } from "ethers";
import { serializeTransaction } from "viem";
import type { HttpServer } from "../../../runtime/http-server.js";
import type { ReplyPayload } from "./replies.js";
import { call, offlineServer } from "./servers.js";

const CURRENCY = { symbol: "TOKEN", decimals: 18 };
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** Seeded numbers (mulberry32): the same intents in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = seeded(3);

function randomHex(bytes: number): string {
  return Array.from({ length: bytes }, () =>
    Math.floor(random() * 256)
      .toString(16)
      .padStart(2, "0"),
  ).join("");
}

function randomUpTo(bits: number): bigint {
  const size = Math.floor(random() * (bits + 1));
  return size === 0 ? 0n : BigInt(`0x${randomHex(32)}`) >> BigInt(256 - size);
}

function pair(from: string, to: string, value: bigint) {
  return [
    {
      operation_identifier: { index: 0 },
      type: "CALL",
      account: { address: from },
      amount: { value: (-value).toString(), currency: CURRENCY },
    },
    {
      operation_identifier: { index: 1 },
      related_operations: [{ index: 0 }],
      type: "CALL",
      account: { address: to },
      amount: { value: value.toString(), currency: CURRENCY },
    },
  ];
}

/** The same transaction as viem writes it. */
function viemBytes(expected: Transaction): string {
  const { signature, to, data } = expected;
  return serializeTransaction(
    {
      type: "legacy",
      chainId: Number(expected.chainId),
      nonce: expected.nonce,
      gasPrice: expected.gasPrice ?? 0n,
      gas: expected.gasLimit,
      to: to as `0x${string}`,
      value: expected.value,
      data: data as `0x${string}`,
    },
    {
      r: signature?.r as `0x${string}`,
      s: signature?.s as `0x${string}`,
      v: 35n + 2n * expected.chainId + BigInt(signature?.yParity ?? 0),
    },
  );
}

let server: HttpServer;

beforeAll(() => {
  server = offlineServer();
});

const post = async (path: string, fields: Record<string, unknown>) => {
  const { status, body } = await call(server, `/construction/${path}`, fields);
  return { status, body };
};

/** The reply's body, or a failure that shows the error. */
const good = async (path: string, fields: Record<string, unknown>) => {
  const { status, body } = await post(path, fields);
  expect({ path, status, body }).toMatchObject({ status: 200 });
  return body;
};

const codeOf = async (path: string, fields: Record<string, unknown>) => {
  const { status, body } = await post(path, fields);
  expect(status).toBe(500);
  return body.code;
};

const FACTS = {
  chain_id: "6940",
  nonce: "7",
  gas_price: "25000000",
  gas_limit: "25200",
  data: "0x",
};

const WALLET = new Wallet(`0x${"11".repeat(32)}`);
const RECIPIENT = getAddress("0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359");
const OPERATIONS = pair(WALLET.address, RECIPIENT, 250n);

function signatureOf(key: SigningKey, payload: ReplyPayload, recovery?: number) {
  const signature = key.sign(`0x${payload.hex_bytes}`);
  const v = (recovery ?? signature.yParity).toString(16).padStart(2, "0");
  return {
    signing_payload: payload,
    public_key: { hex_bytes: key.compressedPublicKey.slice(2), curve_type: "secp256k1" },
    signature_type: "ecdsa_recovery",
    hex_bytes: `${signature.r.slice(2)}${signature.s.slice(2)}${v}`,
  };
}

describe("a native transfer, built offline", () => {
  it("comes out as ethers and viem build it, for 200 random intents", async () => {
    for (let round = 0; round < 200; round++) {
      const key = new SigningKey(`0x${randomHex(32)}`);
      const wallet = new Wallet(key);
      const to = getAddress(`0x${randomHex(20)}`);
      const value = randomUpTo(256);
      const withData = round % 3 === 0;
      const facts = {
        chain_id: "6940",
        // ethers and viem take nonces as numbers.
        nonce: randomUpTo(53).toString(),
        gas_price: randomUpTo(90).toString(),
        gas_limit: randomUpTo(40).toString(),
        data: withData ? `0x${randomHex(1 + Math.floor(random() * 300))}` : "0x",
      };
      const operations = pair(wallet.address, to, value);
      const { unsigned_transaction, payloads } = await good("payloads", {
        operations,
        metadata: facts,
      });
      const unsignedParse = await good("parse", {
        signed: false,
        transaction: unsigned_transaction,
      });
      const { signed_transaction } = await good("combine", {
        unsigned_transaction,
        signatures: [signatureOf(key, payloads[0])],
      });
      const expected = Transaction.from({
        type: 0,
        chainId: 6940n,
        nonce: Number(facts.nonce),
        gasPrice: BigInt(facts.gas_price),
        gasLimit: BigInt(facts.gas_limit),
        to,
        value,
        data: facts.data,
      });
      expect({ round, digest: payloads[0].hex_bytes }).toEqual({
        round,
        digest: expected.unsignedHash.slice(2),
      });
      expected.signature = key.sign(expected.unsignedHash);
      expect({ round, raw: signed_transaction }).toEqual({ round, raw: expected.serialized });
      expect({ round, raw: signed_transaction }).toEqual({ round, raw: viemBytes(expected) });
      const parsed = await good("parse", { signed: true, transaction: signed_transaction });
      expect({ round, operations: parsed.operations }).toEqual({ round, operations });
      expect(parsed.account_identifier_signers).toEqual([{ address: wallet.address }]);
      expect(unsignedParse).toMatchObject({ operations, account_identifier_signers: [] });
      const { transaction_identifier } = await good("hash", { signed_transaction });
      expect({ round, hash: transaction_identifier.hash }).toEqual({ round, hash: expected.hash });
    }
  });

  it("gives the same bytes for the same input", async () => {
    const fields = { operations: OPERATIONS, metadata: FACTS };
    expect(await good("payloads", fields)).toEqual(await good("payloads", fields));
    expect((await good("payloads", fields)).payloads).toEqual([
      {
        account_identifier: { address: WALLET.address },
        hex_bytes: expect.stringMatching(/^[0-9a-f]{64}$/),
        signature_type: "ecdsa_recovery",
      },
    ]);
  });

  it("takes the receiving operation first and a status of empty text", async () => {
    const [payer, payee] = OPERATIONS;
    const swapped = [
      { ...payee, operation_identifier: { index: 0 }, related_operations: undefined, status: "" },
      { ...payer, operation_identifier: { index: 1 }, related_operations: [{ index: 0 }] },
    ];
    const swappedReply = await good("payloads", { operations: swapped, metadata: FACTS });
    const reply = await good("payloads", { operations: OPERATIONS, metadata: FACTS });
    expect(swappedReply).toEqual(reply);
  });
});

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

describe("payloads", () => {
  it.each([
    ["another chain", { chain_id: "6941" }, 307],
    ["no nonce", { nonce: undefined }, 304],
    ["an unknown field", { gas: "1" }, 304],
    ["a gas limit beyond 2^64", { gas_limit: (2n ** 64n).toString() }, 304],
  ])("refuses metadata with %s", async (_name, fields, code) => {
    const metadata = { ...FACTS, ...fields };
    expect(await codeOf("payloads", { operations: OPERATIONS, metadata })).toBe(code);
  });

  it("refuses a key of somebody else", async () => {
    const key = new SigningKey(`0x${"22".repeat(32)}`).compressedPublicKey.slice(2);
    const fields = {
      operations: OPERATIONS,
      metadata: FACTS,
      public_keys: [{ hex_bytes: key, curve_type: "secp256k1" }],
    };
    expect(await codeOf("payloads", fields)).toBe(311);
  });
});

describe("combine", () => {
  const key = new SigningKey(WALLET.privateKey);
  let unsigned: string;
  let payload: ReplyPayload;

  beforeAll(async () => {
    const body = await good("payloads", { operations: OPERATIONS, metadata: FACTS });
    unsigned = body.unsigned_transaction;
    payload = body.payloads[0];
  });

  const refused = (signatures: unknown[], text = unsigned) =>
    codeOf("combine", { unsigned_transaction: text, signatures });

  it("refuses none and two signatures", async () => {
    const signature = signatureOf(key, payload);
    expect(await refused([])).toBe(310);
    expect(await refused([signature, signature])).toBe(310);
  });

  it("refuses another key, another signer's name and another digest", async () => {
    const signature = signatureOf(key, payload);
    const other = new SigningKey(`0x${"22".repeat(32)}`);
    expect(await refused([signatureOf(other, payload)])).toBe(311);
    const claimed = { ...signatureOf(other, payload), public_key: signature.public_key };
    expect(await refused([claimed])).toBe(311);
    const named = { ...payload, account_identifier: { address: RECIPIENT } };
    expect(await refused([{ ...signature, signing_payload: named }])).toBe(311);
    const digest = { ...payload, hex_bytes: "ab".repeat(32) };
    expect(await refused([{ ...signatureOf(key, digest), signing_payload: digest }])).toBe(312);
    expect(
      await refused(
        [signatureOf(key, digest)].map((made) => ({ ...made, signing_payload: payload })),
      ),
    ).toBe(311);
  });

  it("refuses a high s, a wrong recovery id, other lengths and other types", async () => {
    const signature = signatureOf(key, payload);
    const bytes = signature.hex_bytes;
    const highS = (ORDER - BigInt(`0x${bytes.slice(64, 128)}`)).toString(16).padStart(64, "0");
    const flipped = bytes.endsWith("00") ? "01" : "00";
    for (const [hexBytes, code] of [
      [`${bytes.slice(0, 64)}${highS}${flipped}`, 310],
      [`${bytes.slice(0, 128)}${flipped}`, 311],
      [`${bytes.slice(0, 128)}1b`, 310],
      [bytes.slice(0, 128), 310],
      [`${"00".repeat(32)}${bytes.slice(64)}`, 310],
    ] as const) {
      const got = await refused([{ ...signature, hex_bytes: hexBytes }]);
      // A flipped recovery id recovers another key, or none at all.
      expect({ hexBytes, ok: got === code || (code === 311 && got === 310) }).toEqual({
        hexBytes,
        ok: true,
      });
    }
    expect(await refused([{ ...signature, signature_type: "ecdsa" }])).toBe(310);
    const typed = { ...payload, signature_type: "ed25519" };
    expect(await refused([{ ...signature, signing_payload: typed }])).toBe(312);
  });

  it("refuses unsigned transactions that payloads did not write", async () => {
    const signature = [signatureOf(key, payload)];
    const blob = JSON.parse(unsigned);
    expect(await refused(signature, "{")).toBe(305);
    expect(await refused(signature, JSON.stringify({ ...blob, note: 1 }))).toBe(305);
    expect(await refused(signature, JSON.stringify(blob, null, 1))).toBe(305);
    expect(await refused(signature, JSON.stringify({ ...blob, version: 2 }))).toBe(305);
    const otherCurrency = { ...blob, currency: { symbol: "GOLD", decimals: 18 } };
    expect(await refused(signature, JSON.stringify(otherCurrency))).toBe(305);
    expect(await refused(signature, JSON.stringify({ ...blob, chain_id: "1" }))).toBe(307);
    expect(await refused(signature, JSON.stringify({ ...blob, value: "251" }))).toBe(312);
  });
});

describe("parse and hash of what others signed", () => {
  const fields = { to: RECIPIENT, value: 5n, nonce: 1, gasLimit: 21_000n, gasPrice: 2n };
  const sign = (more: TransactionLike) => WALLET.signTransaction({ ...fields, ...more });

  it("take raw RLP hex with and without prefix and read the memo", async () => {
    const raw = await sign({
      type: 0,
      chainId: 6940,
      data: `0x${Buffer.from("hi").toString("hex")}`,
    });
    for (const text of [raw, raw.slice(2), raw.toUpperCase().replace("0X", "0x")]) {
      const body = await good("parse", { signed: true, transaction: text });
      expect(body.operations).toEqual(pair(WALLET.address, RECIPIENT, 5n));
      expect(body.metadata).toEqual({
        chain_id: "6940",
        nonce: "1",
        gas_price: "2",
        gas_limit: "21000",
        data: "0x6869",
        memo: "hi",
      });
      const { transaction_identifier } = await good("hash", { signed_transaction: text });
      expect(transaction_identifier.hash).toBe(Transaction.from(raw).hash);
    }
  });

  it("refuse other chains, types, unprotected and damaged ones", async () => {
    const { gasPrice: _price, ...typed } = fields;
    const raw = await sign({ type: 0, chainId: 6940 });
    const decoded = Transaction.from(raw);
    const unprotected = Transaction.from({ ...fields, type: 0, chainId: 0n });
    unprotected.signature = new SigningKey(WALLET.privateKey).sign(unprotected.unsignedHash);
    const cases: readonly (readonly [string, number])[] = [
      [await sign({ type: 0, chainId: 6941 }), 307],
      [await sign({ type: 1, chainId: 6940 }), 308],
      [
        await WALLET.signTransaction({
          ...typed,
          type: 2,
          chainId: 6940,
          maxFeePerGas: 2n,
          maxPriorityFeePerGas: 1n,
        }),
        308,
      ],
      ["0x03c0", 308],
      [unprotected.serialized, 309],
      [await sign({ type: 0, chainId: 6940, to: null, data: "0x00" }), 303],
      [`${raw}00`, 306],
      [raw.slice(0, -2), 306],
      [decoded.unsignedSerialized, 310],
      ["hello", 306],
      ["0x", 306],
    ];
    for (const [text, code] of cases) {
      const got = await codeOf("parse", { signed: true, transaction: text });
      expect({ text, got }).toEqual({ text, got: code });
      expect(await codeOf("hash", { signed_transaction: text })).toBe(code);
    }
  });

  it("do not take a signed transaction for an unsigned one or the other way round", async () => {
    const raw = await sign({ type: 0, chainId: 6940 });
    expect(await codeOf("parse", { signed: false, transaction: raw })).toBe(305);
    const { unsigned_transaction } = await good("payloads", {
      operations: OPERATIONS,
      metadata: FACTS,
    });
    expect(await codeOf("parse", { signed: true, transaction: unsigned_transaction })).toBe(306);
  });
});

describe("the offline server", () => {
  it("answers list and options, and refuses everything that needs a node", async () => {
    expect((await call(server, "/network/list", {}, null)).body).toEqual({
      network_identifiers: [{ blockchain: "token", network: "testnet" }],
    });
    expect((await call(server, "/network/options")).status).toBe(200);
    const raw = await WALLET.signTransaction({ to: RECIPIENT, type: 0, chainId: 6940 });
    const requests: readonly (readonly [string, Record<string, unknown>])[] = [
      ["/network/status", {}],
      ["/block", { block_identifier: {} }],
      ["/account/balance", { account_identifier: { address: RECIPIENT } }],
      ["/mempool", {}],
      ["/construction/metadata", { options: {} }],
      ["/construction/submit", { signed_transaction: raw }],
    ];
    for (const [path, fields] of requests) {
      const { status, body } = await call(server, path, fields);
      expect({ path, status, code: body.code, retriable: body.retriable }).toEqual({
        path,
        status: 500,
        code: 3,
        retriable: false,
      });
    }
  });
});
