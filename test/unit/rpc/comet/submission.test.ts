/** What becomes of bytes that are sent again while a block takes them, and what is read of those that are sent. */
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { encodeSdkTransaction } from "../../../../chain/consensus/sdk-transaction.js";
import { AppError } from "../../../../chain/errors.js";
import { sha256Hex } from "../../../../chain/hashes.js";
import { parseHexBytes, ZERO_HASH } from "../../../../chain/hex.js";
import { decodeTransaction, recoverSender } from "../../../../chain/transaction.js";
import type { TransactionLocation } from "../../../../node/view/event-bus.js";
import { createSdkTransactions } from "../../../../node/rpc/comet/sdk-transactions.js";
import { gasWantedOf, submitTransaction } from "../../../../node/rpc/comet/submission.js";
import { SDK_CODE, sdkFault } from "../../../../chain/cosmos/sdk-fault.js";
import { ProtoWriter } from "../../../../chain/protobuf/wire.js";
import { MAX_TRANSACTION_BYTES } from "../../../../chain/transaction-rules.js";
import { signLegacy } from "../evm/fixture.js";

const tx = decodeTransaction(
  parseHexBytes(await signLegacy(new Wallet(`0x${"41".repeat(32)}`), { nonce: 0 })),
);
const bytes = encodeSdkTransaction(tx, recoverSender(tx));
const SEQUENCE = "account sequence mismatch, expected 1, got 0: incorrect account sequence";
const PLACE = { height: 1, index: 0, blockHash: ZERO_HASH };

/** Submits to a pool that refuses, and meanwhile a block is committed with what the test says. */
function submitDuringBlock(answer: Error, mined: Uint8Array | undefined) {
  const places = new Map<string, TransactionLocation>();
  return submitTransaction(
    {
      view: { locateBySdkHash: (hash: string) => places.get(hash) } as never,
      submit: async () => {
        if (mined !== undefined) places.set(sha256Hex(mined), PLACE);
        return answer;
      },
    },
    bytes,
  );
}

const refusals: readonly AppError[] = [
  new AppError("SDK_FAULT", SEQUENCE, { details: { sdkCode: 32, codespace: "sdk" } }),
  new AppError("NONCE_TOO_LOW", "nonce too low: next nonce 1, tx nonce 0"),
  new AppError("POOL_FULL", "txpool is full", { retriable: true }),
  new AppError("NODE_HALTED", "node cannot accept transactions", { retriable: true }),
];

describe("bytes that a block took while they were on their way into the pool", () => {
  it.each(refusals)("are known, whatever the pool says of them: $code", async (answer) => {
    await expect(submitDuringBlock(answer, bytes)).rejects.toMatchObject({
      message: "tx already exists in cache",
      refusal: { code: 19, codespace: "sdk" },
    });
  });

  it("are not, where the block took others", async () => {
    const [sequence] = refusals;
    if (sequence === undefined) throw new Error("no refusal");
    const { hash, refusal } = await submitDuringBlock(sequence, Uint8Array.of(1));
    expect(hash).toBe(sha256Hex(bytes));
    expect(refusal).toEqual({ code: 32, log: SEQUENCE, codespace: "sdk" });
  });
});

describe("the gas that a Cosmos transaction asks for", () => {
  const authInfo = new ProtoWriter().message(2, new ProtoWriter().integer(2, 70_000n));
  /** Its body is none: who reads it finds no gas. */
  const unread = (bodyBytes: number) =>
    new ProtoWriter().bytes(1, new Uint8Array(bodyBytes).fill(0xff)).message(2, authInfo).finish();

  it("is read without what it asks for, which its pool has read in its turn", async () => {
    expect(gasWantedOf(unread(100), undefined)).toBe(70_000n);
    const pool = { view: { locateBySdkHash: () => undefined }, submit: async () => ZERO_HASH };
    const { result } = await createSdkTransactions(pool as never).submit(unread(100));
    expect(result.gasWanted).toBe(70_000n);
  });

  it("is none of what cannot be read, or is too large to be read", () => {
    expect(gasWantedOf(unread(100), sdkFault(SDK_CODE.txDecode, "no body"))).toBe(0n);
    expect(gasWantedOf(Uint8Array.of(0x0a, 0xff), undefined)).toBe(0n);
    expect(gasWantedOf(unread(MAX_TRANSACTION_BYTES), undefined)).toBe(0n);
  });
});
