/** Transactions, addresses and hashes against ethers, viem and @ethereumjs/tx. */
import { describe, expect, it } from "@jest/globals";
import { createCustomCommon, Hardfork, Mainnet } from "@ethereumjs/common";
import { createTxFromRLP } from "@ethereumjs/tx";
import { getAddress, keccak256 as ethersKeccak, SigningKey, Transaction, Wallet } from "ethers";
import {
  bytesToAddress,
  parseAddress,
  parseBech32,
  parseStrictAddress,
  toBech32,
  toChecksumAddress,
} from "../../../chain/address.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import {
  createWasm,
  nobleSecp256k1,
  parsePublicKey,
  SECP256K1_ORDER,
  secp256k1,
} from "../../../chain/crypto.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { intrinsicGas } from "../../../chain/transaction-rules.js";
import { bytesToHex, hexToBytes, parseHexBytes } from "../../../chain/hex.js";
import { decodeRlp, rlpBytes, rlpInteger, rlpList } from "../../../chain/encoding/rlp.js";
import {
  decodeTransaction,
  effectiveGasPriceAtoken,
  encodeSignedLegacy,
  PACKED_SIGNATURE_BYTES,
  packSignature,
  recoverPacked,
  recoverSender,
  type SignedTransaction,
  signLegacy,
} from "../../../chain/transaction.js";
import { createRandom } from "../../helpers/random.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20261120);
const random = createRandom(SEED);
console.log(`transaction: seed ${SEED} (CAUSEWAY_TEST_SEED)`);

function intent() {
  const to = random.integer(10) === 0 ? undefined : bytesToAddress(random.bytes(20));
  return {
    chainId: random.integer(2) === 0 ? 6940n : 6941n,
    nonce: BigInt(random.integer(2 ** 31)),
    gasPriceAtoken: BigInt(random.integer(2 ** 40)),
    gasLimit: BigInt(21_000 + random.integer(1_000_000)),
    to,
    valueAtoken: BigInt(bytesToHex(random.bytes(1 + random.integer(31)))),
    data: random.bytes(random.integer(100)),
  };
}

describe("legacy transactions", () => {
  it("are byte for byte those of ethers, for 200 random intents", async () => {
    for (let round = 0; round < 200; round++) {
      const key = random.bytes(32);
      const fields = intent();
      const wallet = new Wallet(bytesToHex(key));
      const expected = await wallet.signTransaction({
        type: 0,
        chainId: fields.chainId,
        nonce: Number(fields.nonce),
        gasPrice: fields.gasPriceAtoken,
        gasLimit: fields.gasLimit,
        to: fields.to ?? null,
        value: fields.valueAtoken,
        data: bytesToHex(fields.data),
      });
      const raw = signLegacy(fields, key);
      expect([round, bytesToHex(raw)]).toEqual([round, expected]);
      const decoded = decodeTransaction(raw);
      const { gasPriceAtoken, data, ...same } = fields;
      expect(decoded).toMatchObject({ type: 0, ...same, maxFeePerGasAtoken: gasPriceAtoken });
      expect(bytesToHex(decoded.data)).toBe(bytesToHex(data));
      expect(toChecksumAddress(recoverSender(decoded))).toBe(wallet.address);
      expect(recoverSender(decoded, nobleSecp256k1)).toBe(privateKeyToAddress(key));
      expect(decoded.hash).toBe(Transaction.from(expected).hash);
    }
  });

  it("have the intrinsic gas that @ethereumjs/tx computes", async () => {
    const common = createCustomCommon({ chainId: 6940 }, Mainnet, { hardfork: Hardfork.Cancun });
    for (let round = 0; round < 50; round++) {
      const raw = signLegacy({ ...intent(), chainId: 6940n }, random.bytes(32));
      const oracle = createTxFromRLP(raw, { common });
      expect(intrinsicGas(decodeTransaction(raw))).toBe(oracle.getIntrinsicGas());
    }
  });

  it("are refused without replay protection, with high s, cut short or padded", async () => {
    const key = random.bytes(32);
    const wallet = new Wallet(bytesToHex(key));
    const raw = await wallet.signTransaction({ type: 0, chainId: 6940, gasLimit: 21_000n });
    const unprotected = Transaction.from(raw);
    unprotected.chainId = 0n;
    unprotected.signature = wallet.signingKey.sign(unprotected.unsignedHash);
    expect(() => decodeTransaction(parseHexBytes(unprotected.serialized))).toThrow(
      expect.objectContaining({ code: "UNPROTECTED_TRANSACTION" }),
    );
    const bytes = parseHexBytes(raw);
    for (const broken of [bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.of(0)])]) {
      expect(() => decodeTransaction(broken)).toThrow();
    }
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const s = decodeTransaction(bytes).s;
    const digits = (value: bigint) => value.toString(16).padStart(64, "0");
    const high = raw.replace(digits(s), digits(order - s));
    expect(high).not.toBe(raw);
    expect(() => decodeTransaction(parseHexBytes(high))).toThrow(
      expect.objectContaining({ code: "INVALID_SIGNATURE" }),
    );
  });
});

/** The rules for a signed legacy transaction, over the general decoder and in the plainest words. */
function generalLegacy(raw: Uint8Array) {
  const items = rlpList(decodeRlp(raw));
  if (items.length !== 9) throw new Error("not nine items");
  const [nonce, price, gas, to, value, data, v, r, s] = items;
  const toBytes = rlpBytes(to);
  if (toBytes.length !== 0 && toBytes.length !== 20) throw new Error("recipient");
  const found = {
    nonce: rlpInteger(nonce, 8),
    maxFeePerGasAtoken: rlpInteger(price),
    maxPriorityFeePerGasAtoken: rlpInteger(price),
    gasLimit: rlpInteger(gas, 8),
    to: toBytes.length === 0 ? undefined : bytesToHex(toBytes),
    valueAtoken: rlpInteger(value),
    data: bytesToHex(rlpBytes(data)),
    v: rlpInteger(v),
    r: rlpInteger(r),
    s: rlpInteger(s),
  };
  const half = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
  const isSignature = found.r > 0n && found.s > 0n && found.r <= half * 2n && found.s <= half;
  if (found.v < 35n || !isSignature) throw new Error("signature");
  return found;
}

/** One or two changes that a hostile or broken client may make. */
function mutated(raw: Uint8Array): Uint8Array {
  const bytes = [...raw];
  for (let count = 1 + random.integer(2); count > 0; count--) {
    // Headers and lengths are where a decoder errs: most changes hit the start of the list.
    const near = random.integer(3) === 0 ? bytes.length : Math.min(bytes.length, 12);
    const at = random.integer(near);
    const kind = random.integer(4);
    const byte = random.pick([0, 1, 0x7f, 0x80, 0x81, 0xb7, 0xb8, 0xc0, 0xf8, random.integer(256)]);
    if (kind === 0) bytes.splice(at, 1);
    else if (kind === 1) bytes.splice(at, 0, byte);
    else bytes[at] = byte;
    // Half of them with a length that fits again, so that what follows is looked at, too.
    if (random.integer(2) === 0 && bytes[0] === 0xf8) bytes[1] = bytes.length - 2;
  }
  return Uint8Array.from(bytes);
}

/** What two decoders can be compared by, as text; cheaper than thousands of matchers. */
function comparable(tx: ReturnType<typeof generalLegacy> | SignedTransaction | "refused"): string {
  if (tx === "refused") return tx;
  const { nonce, maxFeePerGasAtoken, maxPriorityFeePerGasAtoken, gasLimit, to } = tx;
  const data = typeof tx.data === "string" ? tx.data : bytesToHex(tx.data);
  const fees = [maxFeePerGasAtoken, maxPriorityFeePerGasAtoken, gasLimit];
  return [nonce, ...fees, to, tx.valueAtoken, data, tx.v, tx.r, tx.s].join();
}

function outcome<Value>(work: () => Value): Value | "refused" {
  try {
    return work();
  } catch {
    return "refused";
  }
}

describe("the decoder of legacy transactions", () => {
  it("takes and refuses exactly what the general rules do, for 8,000 mutated ones", () => {
    const faults: string[] = [];
    const tally = { taken: 0, refused: 0 };
    for (let round = 0; round < 8_000; round++) {
      const fields = { ...intent(), data: random.bytes(random.pick([0, 0, 1, 55, 56, 300])) };
      const fixed = { compact: random.bytes(64), recoveryId: random.integer(2) };
      const [r, s] = [fixed.compact.subarray(0, 32), fixed.compact.subarray(32)];
      s[0] = (s[0] ?? 0) & 0x7f;
      const raw = mutated(encodeSignedLegacy(fields, { r, s, recoveryId: fixed.recoveryId }));
      // What starts below 0xc0 is no legacy transaction.
      if ((raw[0] ?? 0) < 0xc0) continue;
      const expected = outcome(() => generalLegacy(raw));
      const got = outcome(() => decodeTransaction(raw));
      const said = comparable(got);
      if (said !== comparable(expected)) faults.push(bytesToHex(raw));
      tally[said === "refused" ? "refused" : "taken"]++;
    }
    expect(faults).toEqual([]);
    // Both halves were tried.
    expect(Math.min(tally.taken, tally.refused)).toBeGreaterThan(800);
  });

  it("refuses every other encoding of the same items", () => {
    // r and s of one byte: the whole list stays below 56 bytes, where its header is short.
    const items = [
      [5],
      [9],
      [0x52, 0x08],
      Array(20).fill(0x17),
      [],
      [1, 2],
      [0x36, 0x5b],
      [3],
      [4],
    ];
    const plain = (item: number[]) =>
      item.length === 1 && (item[0] ?? 0) < 0x80 ? item : [0x80 + item.length, ...item];
    const wrap = (parts: number[][]) => [0xc0 + parts.flat().length, ...parts.flat()];
    const encoded = items.map(plain);
    const payload = encoded.flat();
    const size = payload.length;
    const good = Uint8Array.from(wrap(encoded));
    expect(decodeTransaction(good)).toMatchObject({ nonce: 5n, v: 0x365bn, r: 3n, s: 4n });
    const others = [
      [0xf8, size, ...payload],
      [0xf9, 0, size, ...payload],
      [...good, 0],
      [0xc0 + size + 1, ...payload],
      [0xc0 + size - 1, ...payload],
      wrap(encoded.slice(0, 8)),
      wrap([...encoded, [1]]),
      wrap([...encoded.slice(0, 8), [0x80]]),
    ];
    for (const [index, item] of items.entries()) {
      const put = (other: number[]) => wrap(encoded.with(index, other));
      others.push(put([0xb8, item.length, ...item]), put([0xb9, 0, item.length, ...item]));
      others.push(put([0xc0 + item.length, ...item]));
      if (item.length === 1) others.push(put([0x81, ...item]));
      // Calldata may begin with zeros; no integer may, and no address has 21 bytes.
      if (index !== 5) others.push(put([0x81 + item.length, 0, ...item]));
    }
    // From 56 bytes on a length stands by itself, without leading zeros.
    const data = Array<number>(60).fill(0x55);
    const long = encoded.with(5, [0xb8, 60, ...data]).flat();
    expect(decodeTransaction(Uint8Array.of(0xf8, long.length, ...long)).data).toHaveLength(60);
    const longer = encoded.with(5, [0xb9, 0, 60, ...data]).flat();
    others.push([0xf9, 0, long.length, ...long], [0xf8, longer.length, ...longer]);
    for (const bytes of others) {
      const raw = Uint8Array.from(bytes);
      expect([bytesToHex(raw), outcome(() => generalLegacy(raw))]).toEqual([
        bytesToHex(raw),
        "refused",
      ]);
      expect([bytesToHex(raw), outcome(() => decodeTransaction(raw))]).toEqual([
        bytesToHex(raw),
        "refused",
      ]);
    }
  });

  it("reads what ethers reads, and finds its sender, where a mutation is still a transaction", async () => {
    const wallet = new Wallet(bytesToHex(random.bytes(32)));
    let taken = 0;
    for (let round = 0; round < 600; round++) {
      const fields = { type: 0, chainId: 6940, nonce: random.integer(300), gasLimit: 21_000n };
      const to = `0x${"17".repeat(20)}`;
      const signed = await wallet.signTransaction({ ...fields, gasPrice: 7n, to, data: "0x1234" });
      const raw = mutated(parseHexBytes(signed));
      if ((raw[0] ?? 0) < 0xc0) continue;
      const got = outcome(() => decodeTransaction(raw));
      if (got === "refused") continue;
      const oracle = outcome(() => Transaction.from(bytesToHex(raw)));
      // ethers takes its signature apart at once and refuses some that recover no key.
      if (oracle === "refused") continue;
      expect(got).toMatchObject({
        nonce: BigInt(oracle.nonce),
        gasLimit: oracle.gasLimit,
        maxFeePerGasAtoken: oracle.gasPrice,
        valueAtoken: oracle.value,
        to: oracle.to?.toLowerCase(),
        hash: oracle.hash,
      });
      const from = outcome(() => oracle.from);
      expect(outcome(() => toChecksumAddress(recoverSender(got)))).toBe(from);
      taken++;
    }
    expect(taken).toBeGreaterThan(30);
  });

  it("takes calldata of every length class, and recovers its sender", async () => {
    const key = random.bytes(32);
    const wallet = new Wallet(bytesToHex(key));
    for (const length of [0, 1, 55, 56, 255, 256, 65_535, 65_536, 70_000]) {
      for (const first of [0x00, 0x7f, 0x80]) {
        const data = new Uint8Array(length).fill(first);
        const tx = decodeTransaction(signLegacy({ ...intent(), data }, key));
        expect([length, bytesToHex(tx.data)]).toEqual([length, bytesToHex(data)]);
        expect([length, toChecksumAddress(recoverSender(tx))]).toEqual([length, wallet.address]);
      }
    }
  });
});

describe("packed signatures", () => {
  it("give the sender wherever they lie, and none for a signature that is nobody's", () => {
    const key = random.bytes(32);
    const tx = decodeTransaction(signLegacy(intent(), key));
    // No point of the curve has the x coordinate 5.
    const nobody = { ...tx, r: 5n };
    const packed = new Uint8Array(3 * PACKED_SIGNATURE_BYTES);
    packSignature(nobody, packed, 0);
    packSignature(tx, packed, PACKED_SIGNATURE_BYTES);
    for (const backend of [secp256k1, nobleSecp256k1]) {
      expect(recoverPacked(packed, 0, backend)).toBeUndefined();
      const address = recoverPacked(packed, PACKED_SIGNATURE_BYTES, backend);
      expect(bytesToHex(address ?? new Uint8Array(0))).toBe(privateKeyToAddress(key));
    }
    expect(() => recoverSender(nobody)).toThrow(
      expect.objectContaining({ code: "INVALID_SIGNATURE" }),
    );
  });
});

describe("typed transactions", () => {
  it("of types 1 and 2 decode and recover as ethers signed them", async () => {
    const wallet = new Wallet(bytesToHex(random.bytes(32)));
    const accessList = [{ address: `0x${"12".repeat(20)}`, storageKeys: [`0x${"34".repeat(32)}`] }];
    const common = { chainId: 6940, nonce: 3, gasLimit: 50_000n, to: `0x${"56".repeat(20)}` };
    const one = await wallet.signTransaction({ ...common, type: 1, gasPrice: 9n, accessList });
    const two = await wallet.signTransaction({
      ...common,
      type: 2,
      maxFeePerGas: 10n,
      maxPriorityFeePerGas: 4n,
      accessList,
    });
    for (const [raw, price] of [
      [one, 9n],
      [two, 4n],
    ] as const) {
      const tx = decodeTransaction(parseHexBytes(raw));
      expect(toChecksumAddress(recoverSender(tx))).toBe(wallet.address);
      expect(tx.hash).toBe(ethersKeccak(raw));
      expect(effectiveGasPriceAtoken(tx)).toBe(price);
      expect(tx.accessList).toEqual(accessList);
    }
  });

  it("of types 3 and 4 are refused", () => {
    for (const type of ["03", "04", "7f", "00"]) {
      expect(() => decodeTransaction(hexToBytes(`0x${type}c0`))).toThrow(
        expect.objectContaining({ code: "UNSUPPORTED_TRANSACTION_TYPE" }),
      );
    }
  });
});

describe("addresses and hashes", () => {
  it("have ethers' checksum and refuse a wrong one where money depends on it", () => {
    for (let round = 0; round < 50; round++) {
      const address = bytesToAddress(random.bytes(20));
      expect(toChecksumAddress(address)).toBe(getAddress(address));
      expect(parseStrictAddress(getAddress(address))).toBe(address);
      expect(parseStrictAddress(address)).toBe(address);
      const upper = `0x${address.slice(2).toUpperCase()}`;
      if (upper !== address && upper !== getAddress(address)) {
        expect(() => parseStrictAddress(upper)).toThrow();
        expect(parseAddress(upper)).toBe(address);
      }
    }
  });

  it("convert to bech32 and back; BIP-173's checksum is kept", () => {
    const address = parseAddress("0x751e76e8199196d454941c45d1b3a323f1433bd6");
    // The 20 bytes of BIP-173's P2WPKH example, under this chain's prefix.
    const text = toBech32(address);
    expect(text.startsWith("addr1w508d6qejxtdg4y5r3zarvary0c5xw7k")).toBe(true);
    expect(parseBech32(text)).toBe(address);
    expect(() => parseBech32(`${text.slice(0, -1)}${text.endsWith("q") ? "p" : "q"}`)).toThrow();
    expect(() => parseBech32(toBech32(address, "addrvaloper"))).toThrow();
  });

  it("use a back-end that agrees with the reference on 100 random signatures", () => {
    expect(["native", "wasm", "noble"]).toContain(secp256k1.backend);
    for (let round = 0; round < 100; round++) {
      const [digest, key] = [random.bytes(32), random.bytes(32)];
      expect(secp256k1.sign(digest, key)).toEqual(
        expect.objectContaining({ recoveryId: nobleSecp256k1.sign(digest, key).recoveryId }),
      );
    }
    const bytes = random.bytes(200);
    expect(keccak256Hex(bytes)).toBe(ethersKeccak(bytes));
  });

  it("verify alike in every back-end: the signer's own signature with s in the lower half", async () => {
    const wasm = await createWasm();
    if (wasm === undefined) throw new Error("no WebAssembly");
    const backends = [secp256k1, wasm, nobleSecp256k1];
    const word = (value: bigint) => Buffer.from(value.toString(16).padStart(64, "0"), "hex");
    for (let round = 0; round < 50; round++) {
      const key = new SigningKey(random.bytes(32));
      const digest = random.bytes(32);
      const { r, s } = key.sign(digest);
      const own = hexToBytes(key.publicKey).subarray(1);
      const other = hexToBytes(new SigningKey(random.bytes(32)).publicKey).subarray(1);
      const compact = Buffer.concat([hexToBytes(r), hexToBytes(s)]);
      const of = (rValue: bigint, sValue: bigint) => Buffer.concat([word(rValue), word(sValue)]);
      const refused = [
        of(BigInt(r), SECP256K1_ORDER - BigInt(s)),
        of(BigInt(r), 0n),
        of(0n, BigInt(s)),
        of(0n, 0n),
        of(BigInt(r), SECP256K1_ORDER),
        of(SECP256K1_ORDER, BigInt(s)),
        of(BigInt(s), BigInt(r)),
        Buffer.alloc(64, 255),
        random.bytes(64),
      ];
      for (const backend of backends) {
        expect(backend.verify(digest, compact, own)).toBe(true);
        expect(backend.verify(digest, compact, other)).toBe(false);
        expect(backend.verify(random.bytes(32), compact, own)).toBe(false);
        for (const signature of refused) expect(backend.verify(digest, signature, own)).toBe(false);
        for (const none of [new Uint8Array(64), Buffer.alloc(64, 255)]) {
          expect(backend.verify(digest, compact, none)).toBe(false);
        }
      }
    }
  });

  it("expand public keys alike in every back-end, and refuse what is no point", async () => {
    const wasm = await createWasm();
    if (wasm === undefined) throw new Error("no WebAssembly");
    const backends = [secp256k1, wasm, nobleSecp256k1];
    const hex = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString("hex");
    for (let round = 0; round < 50; round++) {
      const key = new SigningKey(random.bytes(32));
      const compressed = hexToBytes(key.compressedPublicKey);
      const point = key.publicKey.slice(4);
      for (const backend of backends) expect(hex(backend.expand(compressed))).toBe(point);
      expect(hex(parsePublicKey(compressed))).toBe(point);
      expect(hex(parsePublicKey(hexToBytes(key.publicKey)))).toBe(point);
    }
    // The field's order and more are no coordinates, and no point has x = 5.
    const x = [
      "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f",
      "ff".repeat(32),
      "05".padStart(64, "0"),
      "00".repeat(32),
    ];
    for (const none of [...x.map((digits) => `02${digits}`), ...x.map((digits) => `03${digits}`)]) {
      const bytes = Buffer.from(none, "hex");
      for (const backend of backends) expect(hex(backend.expand(bytes))).toBeUndefined();
      expect(() => parsePublicKey(bytes)).toThrow("not a point");
    }
    const { publicKey } = new SigningKey(random.bytes(32));
    for (const prefix of ["00", "01", "04", "05", "06", "07"]) {
      const start = Buffer.from(`${prefix}${publicKey.slice(4, 68)}`, "hex");
      expect(() => parsePublicKey(start)).toThrow("not a point");
    }
    for (const hybrid of ["06", "07"]) {
      const whole = Buffer.from(`${hybrid}${publicKey.slice(4)}`, "hex");
      expect(() => parsePublicKey(whole)).toThrow("not a point");
    }
  });

  it("add to public keys alike in every back-end, as ethers does, and refuse what gives no key", async () => {
    const wasm = await createWasm();
    if (wasm === undefined) throw new Error("no WebAssembly");
    const hex = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString("hex");
    const word = (value: bigint) => Buffer.from(value.toString(16).padStart(64, "0"), "hex");
    for (const backend of [secp256k1, wasm, nobleSecp256k1]) {
      for (let round = 0; round < 20; round++) {
        const [key, tweak] = [random.bytes(32), random.bytes(32)];
        const { publicKey } = new SigningKey(key);
        const sum = SigningKey.addPoints(publicKey, new SigningKey(tweak).publicKey, false);
        const point = hexToBytes(publicKey).subarray(1);
        expect(hex(backend.addTweak(point, tweak))).toBe(sum.slice(4));
        // The opposite of the key itself: the point at infinity.
        const opposite = word(SECP256K1_ORDER - BigInt(bytesToHex(key)));
        for (const none of [opposite, word(SECP256K1_ORDER), Buffer.alloc(32, 255)]) {
          expect(hex(backend.addTweak(point, none))).toBeUndefined();
        }
        expect(hex(backend.addTweak(Buffer.alloc(64, 5), tweak))).toBeUndefined();
      }
    }
  });
});
