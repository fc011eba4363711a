/** Signed payments: equal to what ethers signs, and never different from the intent. */
import { describe, expect, it } from "@jest/globals";
import { Interface, Transaction, Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { hexToBytes } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import {
  checkSigned,
  createKeySigner,
  type PaymentIntent,
} from "../../../withdrawal-worker/signer.js";

const wallet = new Wallet(`0x${"4c".repeat(32)}`);
const limits = { gasPriceCapAtoken: 1_000_000_000n, gasLimitMax: 100_000n };
const signer = createKeySigner({ privateKey: hexToBytes(wallet.privateKey), ...limits });
const intent: PaymentIntent = {
  chainId: 6940n,
  nonce: 7n,
  to: parseAddress("0x52908400098527886e0f7030069857d2e4169ee7"),
  valueAtoken: 250_000_000_000_000_000n,
  gasLimit: 25_200n,
  gasPriceAtoken: 25_000_000n,
};

describe("a signer", () => {
  it("signs the bytes that ethers signs", async () => {
    const expected = await wallet.signTransaction({
      type: 0,
      chainId: intent.chainId,
      nonce: Number(intent.nonce),
      to: intent.to,
      value: intent.valueAtoken,
      gasLimit: intent.gasLimit,
      gasPrice: intent.gasPriceAtoken,
    });
    const signed = signer.sign(intent);
    expect(signed.raw).toBe(expected);
    expect(signed.hash).toBe(Transaction.from(expected).hash);
    expect(signer.address).toBe(wallet.address.toLowerCase());
  });

  it("signs the same bytes for the same slot again, so that a crash before the commit is harmless", () => {
    expect(signer.sign(intent)).toEqual(signer.sign(intent));
  });

  it("never signs above the cap of price or gas", () => {
    for (const change of [{ gasPriceAtoken: 1_000_000_001n }, { gasLimit: 100_001n }]) {
      expect(() => signer.sign({ ...intent, ...change })).toThrow(
        expect.objectContaining({ code: "SIGNED_DIFFERENTLY" }),
      );
    }
  });

  it("refuses bytes that differ from the intent in any field, or were signed by another", () => {
    const key = hexToBytes(wallet.privateKey);
    const base = { ...intent, data: new Uint8Array(0) };
    const forgeries: readonly (readonly [string, Uint8Array])[] = [
      ["chainId", signLegacy({ ...base, chainId: 6941n }, key)],
      ["nonce", signLegacy({ ...base, nonce: 8n }, key)],
      ["to", signLegacy({ ...base, to: signer.address }, key)],
      ["to", signLegacy({ ...base, to: undefined }, key)],
      ["value", signLegacy({ ...base, valueAtoken: base.valueAtoken + 1n }, key)],
      ["data", signLegacy({ ...base, data: Uint8Array.of(1) }, key)],
      ["gasLimit", signLegacy({ ...base, gasLimit: 25_201n }, key)],
      ["gasPrice", signLegacy({ ...base, gasPriceAtoken: 24_999_999n }, key)],
      ["sender", signLegacy(base, hexToBytes(`0x${"4d".repeat(32)}`))],
    ];
    for (const [field, raw] of forgeries) {
      let caught: unknown;
      try {
        checkSigned(raw, intent, { ...limits, signer: signer.address });
      } catch (error) {
        caught = error;
      }
      expect({ field, caught }).toEqual({
        field,
        caught: expect.objectContaining({
          code: "SIGNED_DIFFERENTLY",
          details: expect.objectContaining({ wrong: expect.arrayContaining([field]) }),
        }),
      });
    }
  });

  it("signs a token's transfer as ethers encodes it, and no other call of the contract", async () => {
    const abi = new Interface(["function transfer(address,uint256)"]);
    const transfer = { to: parseAddress(`0x${"7a".repeat(20)}`), amountUnits: 12_345n };
    const call = { ...intent, valueAtoken: 0n, gasLimit: 60_000n, transfer };
    const data = abi.encodeFunctionData("transfer", [transfer.to, transfer.amountUnits]);
    const expected = await wallet.signTransaction({
      type: 0,
      chainId: call.chainId,
      nonce: Number(call.nonce),
      to: call.to,
      value: 0n,
      data,
      gasLimit: call.gasLimit,
      gasPrice: call.gasPriceAtoken,
    });
    expect(signer.sign(call).raw).toBe(expected);
    const key = hexToBytes(wallet.privateKey);
    const other = (args: readonly unknown[], tail = "") =>
      hexToBytes(`${abi.encodeFunctionData("transfer", args)}${tail}` as `0x${string}`);
    const forgeries = [
      other([signer.address, transfer.amountUnits]),
      other([transfer.to, transfer.amountUnits + 1n]),
      other([transfer.to, transfer.amountUnits], "00"),
      new Uint8Array(0),
    ].map((bytes) => signLegacy({ ...call, data: bytes }, key));
    const paying = signLegacy({ ...call, valueAtoken: 1n, data: hexToBytes(data) }, key);
    for (const raw of [...forgeries, paying]) {
      expect(() => checkSigned(raw, call, { ...limits, signer: signer.address })).toThrow(
        expect.objectContaining({ code: "SIGNED_DIFFERENTLY" }),
      );
    }
  });
});
