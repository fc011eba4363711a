/** Transactions, addresses and hashes against ethers, viem and @ethereumjs/tx. */
import { describe, expect, it } from "@jest/globals";
import { createCustomCommon, Hardfork, Mainnet } from "@ethereumjs/common";
import { createTxFromRLP } from "@ethereumjs/tx";
import { getAddress, keccak256 as ethersKeccak, Transaction, Wallet } from "ethers";
import {
  bytesToAddress,
  parseAddress,
  parseBech32,
  parseStrictAddress,
  privateKeyToAddress,
  toBech32,
  toChecksumAddress,
} from "../../../chain/address.js";
import { keccak256Hex, nobleSecp256k1, secp256k1 } from "../../../chain/crypto.js";
import { intrinsicGas } from "../../../chain/gas.js";
import { bytesToHex, hexToBytes, parseHexBytes } from "../../../chain/hex.js";
import {
  decodeTransaction,
  effectiveGasPriceAtoken,
  recoverSender,
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
});
