import { beforeAll, describe, expect, it } from "@jest/globals";
import { SigningKey, Transaction, type TransactionLike, ZeroAddress } from "ethers";
import { stepsOn } from "./client.js";
import { FACTS, KEY, pair, RECIPIENT, signatureOf } from "./steps.js";
import { transferData, WALLET } from "./steps.js";
import { CURRENCY, GOLD } from "../../../helpers/chains/known-tokens.js";
import type { ReplyPayload } from "../replies.js";
import { call, offlineServer } from "../servers.js";

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

const server = offlineServer();
const { good, codeOf } = stepsOn(() => server);

const OPERATIONS = pair(WALLET.address, RECIPIENT, 250n);

describe("payloads of a native transfer", () => {
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
    const signature = signatureOf(KEY, payload);
    expect(await refused([])).toBe(310);
    expect(await refused([signature, signature])).toBe(310);
  });

  it("refuses another key, another signer's name and another digest", async () => {
    const signature = signatureOf(KEY, payload);
    const other = new SigningKey(`0x${"22".repeat(32)}`);
    expect(await refused([signatureOf(other, payload)])).toBe(311);
    const claimed = { ...signatureOf(other, payload), public_key: signature.public_key };
    expect(await refused([claimed])).toBe(311);
    const named = { ...payload, account_identifier: { address: RECIPIENT } };
    expect(await refused([{ ...signature, signing_payload: named }])).toBe(311);
    const digest = { ...payload, hex_bytes: "ab".repeat(32) };
    expect(await refused([{ ...signatureOf(KEY, digest), signing_payload: digest }])).toBe(312);
    expect(
      await refused(
        [signatureOf(KEY, digest)].map((made) => ({ ...made, signing_payload: payload })),
      ),
    ).toBe(311);
  });

  it("refuses a high s, a wrong recovery id, other lengths and other types", async () => {
    const signature = signatureOf(KEY, payload);
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
    const signature = [signatureOf(KEY, payload)];
    const blob = JSON.parse(unsigned);
    expect(await refused(signature, "{")).toBe(305);
    expect(await refused(signature, JSON.stringify({ ...blob, note: 1 }))).toBe(305);
    expect(await refused(signature, JSON.stringify(blob, null, 1))).toBe(305);
    expect(await refused(signature, JSON.stringify({ ...blob, version: 2 }))).toBe(305);
    const otherCurrency = { ...blob, currency: { symbol: "GOLD", decimals: 18 } };
    expect(await refused(signature, JSON.stringify(otherCurrency))).toBe(208);
    // The same unknown fields say "token": its calldata would be another.
    expect(await refused(signature, JSON.stringify({ ...blob, currency: GOLD }))).toBe(305);
    expect(await refused(signature, JSON.stringify({ ...blob, data: "0X" }))).toBe(305);
    expect(await refused(signature, JSON.stringify({ ...blob, chain_id: "1" }))).toBe(307);
    expect(await refused(signature, JSON.stringify({ ...blob, value: "251" }))).toBe(312);
  });
});

describe("an account that pays itself", () => {
  const { contractAddress } = GOLD.metadata;
  const data = transferData(WALLET.address, 250n);

  it("is in no unsigned text: no operations ask for it", async () => {
    for (const currency of [CURRENCY, GOLD]) {
      const operations = pair(WALLET.address, RECIPIENT, 250n, currency);
      const built = await good("payloads", { operations, metadata: { ...FACTS, data: undefined } });
      const blob = { ...JSON.parse(built.unsigned_transaction), to: WALLET.address };
      const text = JSON.stringify(currency === GOLD ? { ...blob, data } : blob);
      expect(await codeOf("parse", { signed: false, transaction: text })).toBe(305);
      expect(await codeOf("combine", { unsigned_transaction: text, signatures: [] })).toBe(305);
    }
  });

  it("is a CALL where it is signed, with the data of a token's transfer", async () => {
    const fields = { type: 0, chainId: 6940, nonce: 7, gasLimit: 25_200n, gasPrice: 25_000_000n };
    const coins = await WALLET.signTransaction({ ...fields, to: WALLET.address, value: 5n });
    const paid = await good("parse", { signed: true, transaction: coins });
    expect(paid.operations).toEqual(pair(WALLET.address, WALLET.address, 5n));
    const tokens = await WALLET.signTransaction({ ...fields, to: contractAddress, data });
    const called = await good("parse", { signed: true, transaction: tokens });
    const operations = pair(WALLET.address, contractAddress, 0n);
    expect(called).toMatchObject({ operations, metadata: { data } });
    // These operations give the very same bytes.
    const metadata = { ...FACTS, data };
    const { unsigned_transaction, payloads } = await good("payloads", { operations, metadata });
    const signatures = [signatureOf(KEY, payloads[0])];
    const combined = await good("combine", { unsigned_transaction, signatures });
    expect(combined.signed_transaction).toBe(tokens);
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
    // Unsigned RLP names no sender, so there is no intent to read from it.
    const bare = Transaction.from(raw).unsignedSerialized;
    expect(await codeOf("parse", { signed: false, transaction: bare })).toBe(305);
    const { unsigned_transaction } = await good("payloads", {
      operations: OPERATIONS,
      metadata: FACTS,
    });
    expect(await codeOf("parse", { signed: true, transaction: unsigned_transaction })).toBe(306);
  });
});

describe("what cast signed with the same key (recorded)", () => {
  const native =
    "0xf8660784017d784082627094fb6916095ca1df60bb79ce92ce3ea74c37c5d35981fa8082365ba0" +
    "86379a595509baad8288eabae921b27520095d23cb6baac03b1d685cf8d91e3ba06da765ff6a4be8" +
    "739d96936c7d6284a6c6beb9f0fda98c1cbe23852b89389ec0";
  const token =
    "0xf8aa0784017d784082ea60946b175474e89094c44da98b954eedeac495271d0f80b844a9059cbb" +
    "000000000000000000000000fb6916095ca1df60bb79ce92ce3ea74c37c5d3590000000000000000" +
    "0000000000000000000000000000000000000000000000fa82365ca029b8864985ba39307cff950d" +
    "8f55ecb09658c2531c3be7d0b2bc98ceb7dbcf18a00dab7b39cb4338eae2085005a8846dc108ba26" +
    "a3310e63cdf21a23bf090f3147";

  it.each([
    ["a native transfer", native, pair(WALLET.address, RECIPIENT, 250n), FACTS],
    [
      "an ERC-20 transfer",
      token,
      pair(WALLET.address, RECIPIENT, 250n, GOLD),
      { ...FACTS, gas_limit: "60000", data: transferData(RECIPIENT, 250n) },
    ],
  ])("is what combine makes of its signature: %s", async (_name, raw, operations, metadata) => {
    const { unsigned_transaction, payloads } = await good("payloads", { operations, metadata });
    const { r, s, yParity } = Transaction.from(raw).signature ?? { r: "", s: "", yParity: 0 };
    const signature = {
      ...signatureOf(KEY, payloads[0]),
      hex_bytes: `${r.slice(2)}${s.slice(2)}0${yParity}`,
    };
    const combined = await good("combine", { unsigned_transaction, signatures: [signature] });
    expect(combined.signed_transaction).toBe(raw);
    const parsed = await good("parse", { signed: true, transaction: raw });
    expect(parsed.operations).toEqual(operations);
    expect(parsed.metadata).toEqual(metadata);
  });
});

describe("payloads of an ERC-20 transfer", () => {
  const operations = pair(WALLET.address, RECIPIENT, 250n, GOLD);
  const data = transferData(RECIPIENT, 250n);

  it("need no calldata, and take only the transfer's own", async () => {
    const { data: _none, ...facts } = FACTS;
    const without = await good("payloads", { operations, metadata: facts });
    const own = await good("payloads", { operations, metadata: { ...FACTS, data } });
    expect(own).toEqual(without);
    for (const other of ["0x", transferData(RECIPIENT, 251n), `${data}00`]) {
      const metadata = { ...FACTS, data: other };
      expect(await codeOf("payloads", { operations, metadata })).toBe(304);
    }
  });

  it("refuse calldata that makes a CALL a token transfer", async () => {
    const disguised = pair(WALLET.address, GOLD.metadata.contractAddress, 0n);
    const metadata = { ...FACTS, data };
    expect(await codeOf("payloads", { operations: disguised, metadata })).toBe(304);
    // Nor does a wrapper from elsewhere get it past parse.
    const { unsigned_transaction } = await good("payloads", {
      operations: disguised,
      metadata: FACTS,
    });
    const wrapper = { ...JSON.parse(unsigned_transaction), data };
    const transaction = JSON.stringify(wrapper);
    expect(await codeOf("parse", { signed: false, transaction })).toBe(305);
  });
});

describe("parse of a raw call to a registered token", () => {
  const data = transferData(RECIPIENT, 250n);
  const contract = GOLD.metadata.contractAddress;
  const parse = async (more: TransactionLike) => {
    const fields = { type: 0, chainId: 6940, gasLimit: 60_000n, gasPrice: 2n };
    const transaction = await WALLET.signTransaction({ ...fields, to: contract, data, ...more });
    return good("parse", { signed: true, transaction });
  };

  it("is an ERC20_TRANSFER where the bytes are exactly a transfer", async () => {
    const { operations, metadata } = await parse({});
    expect(operations).toEqual(pair(WALLET.address, RECIPIENT, 250n, GOLD));
    expect(metadata["data"]).toBe(data);
    const all = 2n ** 256n - 1n;
    expect((await parse({ data: transferData(RECIPIENT, all) })).operations).toEqual(
      pair(WALLET.address, RECIPIENT, all, GOLD),
    );
  });

  const dirty = `${data.slice(0, 10)}01${data.slice(12)}`;
  it.each([
    ["trailing bytes", { data: `${data}00` }],
    ["a cut amount", { data: data.slice(0, -2) }],
    ["dirty address bytes", { data: dirty }],
    ["another method", { data: `0x23b872dd${data.slice(10)}` }],
    ["no data", { data: "0x" }],
    ["the zero address as recipient", { data: transferData(ZeroAddress, 250n) }],
    ["native coins with it", { value: 1n }],
    ["a contract that is not registered", { to: RECIPIENT }],
  ])("is a CALL that shows its data: %s", async (_name, more) => {
    const { operations, metadata } = await parse(more);
    const { to = contract, value = 0n, data: sent = data } = { data, ...more } as TransactionLike;
    expect(operations).toEqual(pair(WALLET.address, String(to), BigInt(value ?? 0n)));
    expect(metadata["data"]).toBe(sent);
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
