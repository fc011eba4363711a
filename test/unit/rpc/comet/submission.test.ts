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
import { parseBech32 } from "../../../../chain/address.js";
import { read, sender } from "../../chain/cosmos/signed.js";
import { signLegacy } from "../evm/fixture.js";

const tx = decodeTransaction(
  parseHexBytes(await signLegacy(new Wallet(`0x${"41".repeat(32)}`), { nonce: 0 })),
);
const bytes = encodeSdkTransaction(tx, recoverSender(tx));
const SEQUENCE = "account sequence mismatch, expected 1, got 0: incorrect account sequence";
const PLACE = { height: 1, index: 0 };

/** Submits to a pool that refuses, and meanwhile a block is committed with what the test says. */
function submitDuringBlock(answer: Error, mined: Uint8Array | undefined) {
  const places = new Map<string, TransactionLocation>();
  return submitTransaction(
    {
      view: {
        locateBySdkHash: (hash: string) => places.get(hash),
        oldest: () => ({ block: 1, journal: 1, state: 1, proof: 1 }),
      } as never,
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

describe("bytes of a sequence that is used, on a node without the oldest blocks", () => {
  const OLDEST = { block: 5, journal: 6, state: 8, proof: 8 };
  const UNTOLD =
    "; it may have been mined before block 5, the oldest that this node has: ask a node that has all " +
    "blocks before anything is paid anew";
  const MISMATCH = "account sequence mismatch, expected 8, got 7: incorrect account sequence";
  const cosmos = read({ sequence: 7 });
  const wrongSequence = new AppError("SDK_FAULT", MISMATCH, {
    details: { sdkCode: 32, codespace: "sdk" },
  });

  /** @param nonceThen the account's next sequence in the oldest state that may be asked for it */
  async function logOf(
    sent: Uint8Array,
    answer: Error,
    nonceThen: bigint | undefined,
    oldest = OLDEST,
  ) {
    const asked: unknown[] = [];
    const view = {
      locateBySdkHash: () => undefined,
      oldest: () => oldest,
      account: async (...words: readonly unknown[]) => {
        asked.push(words);
        return nonceThen === undefined ? undefined : { nonce: nonceThen };
      },
    };
    const { refusal } = await submitTransaction(
      { view: view as never, submit: async () => answer },
      sent,
    );
    return { ...refusal, asked };
  }

  it("may have been mined there, and who sent them is told so behind the words that clients read", async () => {
    expect(await logOf(cosmos.raw, wrongSequence, 8n)).toEqual({
      code: 32,
      codespace: "sdk",
      log: `${MISMATCH}${UNTOLD}`,
      asked: [[parseBech32(sender), 8]],
    });
    const low = "nonce too low: next nonce 1, tx nonce 0";
    expect(await logOf(bytes, new AppError("NONCE_TOO_LOW", low), 1n)).toEqual({
      code: 3,
      codespace: "sdk",
      log: `${low}${UNTOLD}`,
      asked: [[recoverSender(tx), 8]],
    });
  });

  it("were not, where the sequence was taken by a block that is here, or by none", async () => {
    for (const nonceThen of [7n, undefined]) {
      expect(await logOf(cosmos.raw, wrongSequence, nonceThen)).toMatchObject({ log: MISMATCH });
    }
    // Of an archive that has states of before its oldest block: that of the last one without its block tells.
    const { asked } = await logOf(cosmos.raw, wrongSequence, 8n, { ...OLDEST, state: 2 });
    expect(asked).toEqual([[parseBech32(sender), 4]]);
  });

  it("were not, where every block is here, or the pool refuses them for something else", async () => {
    const whole = { ...OLDEST, block: 1 };
    expect(await logOf(cosmos.raw, wrongSequence, 8n, whole)).toMatchObject({
      log: MISMATCH,
      asked: [],
    });
    const details = { sdkCode: 5, codespace: "sdk" };
    const poor = new AppError("SDK_FAULT", "insufficient funds", { details });
    expect(await logOf(cosmos.raw, poor, 8n)).toMatchObject({
      log: "insufficient funds",
      asked: [],
    });
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
