/** The SDK transaction around an EVM transaction, against protobuf decoded by hand and known roots. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { merkleRootOf } from "../../../chain/consensus/merkle.js";
import { Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { parseHexBytes } from "../../../chain/hex.js";
import {
  encodeSdkTransaction,
  sdkTransactionHash,
} from "../../../chain/consensus/sdk-transaction.js";
import { decodeTransaction } from "../../../chain/transaction.js";

/** A decoded protobuf field; written from the wire-format page, shares no code with the encoder. */
type Field = readonly [field: number, value: Buffer | bigint];

function decode(bytes: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let [value, shift] = [0n, 0n];
    for (;;) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
      shift += 7n;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    if (tag % 8 === 0) fields.push([tag >> 3, varint()]);
    else {
      const length = Number(varint());
      fields.push([tag >> 3, bytes.subarray(at, at + length)]);
      at += length;
    }
  }
  return fields;
}

function only(fields: readonly Field[], field: number): Buffer {
  const found = fields.filter(([number]) => number === field);
  expect([field, found.length]).toEqual([field, 1]);
  return found[0]?.[1] as Buffer;
}

describe("the SDK transaction", () => {
  it("wraps the raw bytes and the sender, names fee and gas limit, and has no signatures", async () => {
    const wallet = new Wallet(`0x${"42".repeat(32)}`);
    const raw = await wallet.signTransaction({
      type: 0,
      chainId: 6940,
      nonce: 7,
      gasPrice: 25_000_000n,
      gasLimit: 21_000n,
      to: `0x${"13".repeat(20)}`,
      value: 10n ** 18n,
      data: `0x${"ab".repeat(300)}`,
    });
    const tx = decodeTransaction(parseHexBytes(raw));
    const encoded = encodeSdkTransaction(tx, parseAddress(wallet.address));
    const fields = decode(encoded);
    expect(fields.map(([field]) => field)).toEqual([1, 2]);
    const body = decode(only(fields, 1));
    expect(body.map(([field]) => field)).toEqual([1, 1023]);
    const message = decode(only(body, 1));
    expect(only(message, 1).toString()).toBe("/cosmos.evm.vm.v1.MsgEthereumTx");
    const inner = decode(only(message, 2));
    expect(inner.map(([field]) => field)).toEqual([5, 6]);
    expect(`0x${only(inner, 5).toString("hex")}`).toBe(wallet.address.toLowerCase());
    expect(`0x${only(inner, 6).toString("hex")}`).toBe(raw);
    const extension = decode(only(body, 1023));
    expect(only(extension, 1).toString()).toBe("/cosmos.evm.vm.v1.ExtensionOptionsEthereumTx");
    const fee = decode(only(decode(only(fields, 2)), 2));
    const coin = decode(only(fee, 1));
    expect(only(coin, 1).toString()).toBe("atoken");
    expect(only(coin, 2).toString()).toBe(String(25_000_000n * 21_000n));
    expect(fee[1]).toEqual([2, 21_000n]);
    const hash = createHash("sha256").update(encoded).digest("hex");
    expect(sdkTransactionHash(tx, parseAddress(wallet.address))).toBe(`0x${hash}`);
  });
});

describe("fee and lengths of the SDK transaction", () => {
  it("are right where they need one byte, several, or are left out", async () => {
    const wallet = new Wallet(`0x${"43".repeat(32)}`);
    const from = parseAddress(wallet.address);
    for (const gasPrice of [0n, 1n, 10n ** 30n]) {
      for (const gasLimit of [0n, 127n, 128n, 16_384n, 10n ** 9n]) {
        for (const size of [0, 20, 200, 20_000]) {
          const name = `price ${gasPrice}, gas ${gasLimit}, ${size} bytes`;
          const data = `0x${"01".repeat(size)}`;
          const fields = { type: 0, chainId: 6940, to: wallet.address, gasPrice, gasLimit, data };
          const tx = decodeTransaction(parseHexBytes(await wallet.signTransaction(fields)));
          const parts = decode(encodeSdkTransaction(tx, from));
          const inner = decode(only(decode(only(decode(only(parts, 1)), 1)), 2));
          expect([name, only(inner, 6).equals(tx.raw)]).toEqual([name, true]);
          const fee = parts.length === 1 ? [] : decode(only(decode(only(parts, 2)), 2));
          const gas = fee.filter(([field]) => field === 2).map(([, value]) => value);
          expect([name, gas]).toEqual([name, gasLimit === 0n ? [] : [gasLimit]]);
          const coins = fee.filter(([field]) => field === 1);
          const amounts = coins.map(([, coin]) => only(decode(coin as Buffer), 2).toString());
          const feeAtoken = gasPrice * gasLimit;
          expect([name, amounts]).toEqual([name, feeAtoken === 0n ? [] : [String(feeAtoken)]]);
        }
      }
    }
  });
});

/** RFC 6962, section 2.1, as it is written there. */
function rfc6962(leaves: readonly Buffer[]): Buffer {
  const sha256 = (...parts: Buffer[]) => createHash("sha256").update(Buffer.concat(parts)).digest();
  const [first] = leaves;
  if (first === undefined) return sha256();
  if (leaves.length === 1) return sha256(Buffer.of(0), first);
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return sha256(Buffer.of(1), rfc6962(leaves.slice(0, split)), rfc6962(leaves.slice(split)));
}

describe("the Merkle root of a block's transactions", () => {
  it("is RFC 6962's for every number of leaves up to 70, and leaves them as they are", () => {
    const all = Array.from({ length: 70 }, (_, index) => Buffer.alloc(index % 40, index));
    for (let count = 0; count <= all.length; count++) {
      const leaves = all.slice(0, count);
      const root = Buffer.from(merkleRootOf(leaves)).toString("hex");
      expect([count, root]).toEqual([count, rfc6962(leaves).toString("hex")]);
    }
    expect(all).toEqual(Array.from({ length: 70 }, (_, index) => Buffer.alloc(index % 40, index)));
  });

  it("is RFC 6962's, by the test vectors of the certificate-transparency project", () => {
    // Source: google/certificate-transparency, merkle_tree_test: inputs and roots 1 to 8.
    const inputs = [
      "",
      "00",
      "10",
      "2021",
      "3031",
      "40414243",
      "5051525354555657",
      "606162636465666768696a6b6c6d6e6f",
    ];
    const roots = [
      "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
      "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
      "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
      "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
      "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
      "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
      "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
      "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    for (const [index, root] of roots.entries()) {
      const leaves = inputs.slice(0, index + 1).map((input) => Buffer.from(input, "hex"));
      expect([index, Buffer.from(merkleRootOf(leaves)).toString("hex")]).toEqual([index, root]);
    }
    const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    expect(Buffer.from(merkleRootOf([])).toString("hex")).toBe(empty);
  });
});
