/** Only the one encoding of an SDK transaction is read; everything else is refused. */
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { bytesToHex, parseHexBytes } from "../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { decodeSdkTransaction } from "../../../chain/consensus/sdk-transaction-decode.js";
import { decodeTransaction } from "../../../chain/transaction.js";

const wallet = new Wallet(`0x${"31".repeat(32)}`);
const from = parseAddress(wallet.address);

async function encoded(fields: object): Promise<{ raw: string; bytes: Uint8Array }> {
  const raw = await wallet.signTransaction({
    chainId: 6940,
    nonce: 7,
    gasLimit: 50_000n,
    to: `0x${"13".repeat(20)}`,
    value: 10n ** 18n,
    data: "0x1234",
    ...fields,
  });
  return { raw, bytes: encodeSdkTransaction(decodeTransaction(parseHexBytes(raw)), from) };
}

describe("an SDK transaction", () => {
  it("gives back raw bytes and sender, for all types that the chain executes", async () => {
    for (const fields of [
      { type: 0, gasPrice: 25_000_000n },
      { type: 1, gasPrice: 25_000_000n, accessList: [] },
      { type: 2, maxFeePerGas: 30n, maxPriorityFeePerGas: 20n },
    ]) {
      const { raw, bytes } = await encoded(fields);
      const decoded = decodeSdkTransaction(bytes);
      expect([bytesToHex(decoded.raw), decoded.from]).toEqual([raw, from]);
      expect(decoded.tx.hash).toBe(decodeTransaction(parseHexBytes(raw)).hash);
    }
  });

  it("is refused with any byte changed, left out or added", async () => {
    const { raw, bytes } = await encoded({ type: 0, gasPrice: 25_000_000n });
    // A change inside of the raw transaction makes another one; outside of it, none at all.
    const at = Buffer.from(bytes).indexOf(Buffer.from(parseHexBytes(raw)));
    const isInside = (index: number) => index >= at && index < at + parseHexBytes(raw).length;
    const isSender = (index: number) => index >= at - 22 - 1 && index < at - 2;
    for (let index = 0; index < bytes.length; index++) {
      expect(() => decodeSdkTransaction(bytes.subarray(0, index))).toThrow();
      if (isInside(index) || isSender(index)) continue;
      const changed = Uint8Array.from(bytes);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect([index, taken(changed)]).toEqual([index, false]);
    }
    expect(() => decodeSdkTransaction(Buffer.concat([bytes, Buffer.from([0x1a, 0])]))).toThrow();
    const signed = Buffer.concat([bytes, new ProtoWriter().bytes(3, "signature").finish()]);
    expect(() => decodeSdkTransaction(signed)).toThrow();
  });

  it("is refused when its fee or its gas limit is not the transaction's", async () => {
    const { bytes } = await encoded({ type: 0, gasPrice: 25_000_000n });
    const other = await encoded({ type: 0, gasPrice: 25_000_001n });
    const body = (whole: Uint8Array) => whole.subarray(0, Buffer.from(whole).lastIndexOf("atoken"));
    const mixed = Buffer.concat([body(bytes), other.bytes.subarray(body(other.bytes).length)]);
    expect(mixed).toHaveLength(bytes.length);
    expect(() => decodeSdkTransaction(mixed)).toThrow(/canonical/);
  });
});

function taken(bytes: Uint8Array): boolean {
  try {
    decodeSdkTransaction(bytes);
    return true;
  } catch {
    return false;
  }
}
