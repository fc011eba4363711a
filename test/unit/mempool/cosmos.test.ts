/** Cosmos transactions in the pool: one nonce line with those of the EVM. */
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { encodeAny } from "../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { directSignBytes, signDigest } from "../../../chain/cosmos/sign-doc.js";
import { secp256k1 } from "../../../chain/crypto.js";
import { present } from "../../../chain/errors.js";
import { bytesToHash32, type Hash32, parseHexBytes } from "../../../chain/hex.js";
import { sha256 } from "../../../chain/hashes.js";
import { InlineRecovery } from "../../../node/mempool/recovery/sender-recovery.js";
import { TransactionGossip } from "../../../node/p2p/gossip/transaction-gossip.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { encodeTransactions } from "../../../node/p2p/peers/peer-codec.js";
import { type CosmJsMessage, signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { freeOfCharge } from "../../integration/p2p/fakes.js";
import { account, createFixture, refusal, transfer } from "./support.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const owner = Wallet.fromPhrase(MNEMONIC);
const address = parseAddress(owner.address);
const receiver = toBech32(parseAddress(`0x${"77".repeat(20)}`));

const base = {
  messages: [
    {
      typeUrl: "/cosmos.bank.v1beta1.MsgSend",
      value: {
        fromAddress: toBech32(address),
        toAddress: receiver,
        amount: [{ denom: "atoken", amount: "7" }],
      },
    },
  ],
  chainId: "chain_6940-1",
  gas: 70_000,
};
const fee = (amount: number) => [{ denom: "atoken", amount: String(amount) }];
const [first, second, dearer, foreign, free, timed, wordy] = signWithCosmJs(MNEMONIC, [
  { ...base, fee: fee(7_000_000) },
  { ...base, fee: fee(7_000_000), sequence: 1 },
  { ...base, fee: fee(7_700_000) },
  { ...base, fee: fee(7_000_000), chainId: "chain_6941-1" },
  { ...base, fee: [] },
  { ...base, fee: fee(7_000_000), timeoutHeight: 5 },
  { ...base, fee: fee(7_000_000), memo: "é".repeat(200) },
]).map(({ raw }) => raw);
if (!first || !second || !dearer || !foreign || !free || !timed || !wordy)
  throw new Error("nothing was signed");

const TOKEN = 10n ** 18n;
/** Messages of the account that name whole TOKEN. */
const coinOf = (tokens: number) => ({ denom: "atoken", amount: `${BigInt(tokens) * TOKEN}` });
const delegating = (tokens: number) => ({
  typeUrl: "/cosmos.staking.v1beta1.MsgDelegate",
  value: {
    delegatorAddress: toBech32(address),
    validatorAddress: toBech32(parseAddress(`0x${"78".repeat(20)}`), VALIDATOR_PREFIX),
    amount: coinOf(tokens),
  },
});
const sending = (tokens: number) => ({
  typeUrl: "/cosmos.bank.v1beta1.MsgSend",
  value: { fromAddress: toBech32(address), toAddress: receiver, amount: [coinOf(tokens)] },
});
const hashOf = (raw: Uint8Array) => bytesToHash32(sha256(raw));

async function fixture() {
  const made = await createFixture();
  made.state.nonces.set(address, 0n);
  made.state.balances.set(address, 10n ** 18n);
  return made;
}

describe("Cosmos transactions", () => {
  it("that are long to verify let others have their turn between any two of them", async () => {
    const made = await fixture();
    const [plain] = base.messages;
    const coins = [{ denom: "atoken", amount: "1" }];
    const message = {
      typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend",
      value: {
        inputs: [{ address: plain?.value.fromAddress, coins }],
        outputs: Array.from({ length: 150 }, () => ({ address: receiver, coins })),
      },
    };
    // Signed for another chain: all of it is hashed to find that out, and nobody pays for it.
    const asked = Array.from({ length: 12 }, (_, sequence) => ({
      messages: [message],
      chainId: "chain_6941-1",
      gas: 5_000_000,
      fee: fee(500_000_000),
      sequence,
    }));
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const answers = await made.pool.submit(signWithCosmJs(MNEMONIC, asked).map(({ raw }) => raw));
    isDone = true;
    expect(answers.map((one) => refusal(one).message)).toEqual(
      asked.map(() => expect.stringMatching(/^signature verification failed/)),
    );
    expect(turns).toBeGreaterThanOrEqual(asked.length);
  });

  it("count with what their messages take once they are read", async () => {
    const [plain] = base.messages;
    const coins = [{ denom: "atoken", amount: "1" }];
    const message = {
      typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend",
      value: {
        inputs: [{ address: plain?.value.fromAddress, coins: [{ ...coins[0], amount: "150" }] }],
        outputs: Array.from({ length: 150 }, () => ({ address: receiver, coins })),
      },
    };
    const asked = [0, 1].map((sequence) => {
      return { messages: [message], chainId: base.chainId, gas: 5_000_000, sequence };
    });
    const [one, other] = signWithCosmJs(
      MNEMONIC,
      asked.map((each) => ({ ...each, fee: fee(500_000_000) })),
    ).map(({ raw }) => raw);
    if (!one || !other) throw new Error("nothing was signed");
    const { pool, state } = await createFixture({ limits: { totalBytes: 10 * one.length } });
    state.balances.set(address, 10n ** 18n);
    const answers = await pool.submit([one, other]);
    expect(answers[0]).toBe(hashOf(one));
    expect(refusal(answers[1]).code).toBe("UNDERPRICED");
    expect(pool.stats().sizeBytes).toBe(one.length);
  });

  it("are refused with a memo of more bytes than 256, however few characters these are", async () => {
    const { pool } = await fixture();
    const [answer] = await pool.submit([wordy]);
    expect(refusal(answer).message).toBe(
      "maximum number of characters is 256 but received 400 characters: memo too large",
    );
  });

  it("come back after a restart, in nonce order", async () => {
    const made = await fixture();
    expect(await made.pool.submit([first, second])).toEqual([first, second].map(hashOf));
    const pool = await made.restart();
    expect(pool.status(hashOf(second))).toEqual({ status: "pending" });
    expect(pool.pendingNonce(address)).toBe(2n);
    expect(pool.getBySdkHash(hashOf(first))?.from).toBe(address);
  });

  it("are replaced by a tenth more, by either kind", async () => {
    const { pool } = await fixture();
    await pool.submit([first]);
    expect(await pool.submit([dearer])).toEqual([hashOf(dearer)]);
    expect(pool.status(hashOf(first))).toEqual({ status: "replaced", by: hashOf(dearer) });
    const raw = await owner.signTransaction({
      type: 0,
      chainId: 6940,
      nonce: 0,
      gasPrice: 1_000n,
      gasLimit: 21_000n,
      to: `0x${"77".repeat(20)}`,
      value: 1n,
    });
    const [hash] = await pool.submit([parseHexBytes(raw)]);
    expect(pool.status(hashOf(dearer))).toEqual({ status: "replaced", by: hash });
  });

  it("wait behind a gap where a peer sent them, and are refused where a client did", async () => {
    const { pool } = await fixture();
    const [answer] = await pool.submit([second]);
    expect(refusal(answer)).toEqual({
      code: "SDK_FAULT",
      message: "account sequence mismatch, expected 0, got 1: incorrect account sequence",
    });
    expect(await pool.submit([second], "peer")).toEqual([hashOf(second)]);
    expect(pool.status(hashOf(second))).toEqual({ status: "queued", missingNonce: 0n });
  });

  it("are kept only when they are signed for this chain, paid and affordable", async () => {
    const { pool, state } = await fixture();
    const answers = await pool.submit([foreign, free, Buffer.from("0a00", "hex")]);
    expect(answers.map((answer) => refusal(answer).message)).toEqual([
      expect.stringContaining("signature verification failed"),
      "insufficient fees; got:  required: 1750atoken: insufficient fee",
      expect.stringContaining("tx parse error"),
    ]);
    state.balances.set(address, 7_000_006n);
    const [poor] = await pool.submit([first]);
    expect(refusal(poor).message).toBe(
      "spendable balance 7000006atoken is smaller than 7000007atoken: insufficient funds",
    );
    expect(pool.counts()).toEqual({ pending: 0, queued: 0 });
  });

  it("leave when no block can hold them any more, and their sequence is free", async () => {
    const head = { height: 3, timeMs: 1_000_000 };
    const rules = { headHeight: () => head.height, headTimeMs: () => head.timeMs };
    const made = await createFixture({ rules });
    made.state.nonces.set(address, 0n);
    made.state.balances.set(address, 10n ** 18n);
    expect(await made.pool.submit([timed, second])).toEqual([timed, second].map(hashOf));
    head.height = 4;
    made.mine([]);
    expect(made.pool.status(hashOf(timed))).toEqual({ status: "pending" });
    head.height = 5;
    made.mine([]);
    expect(made.pool.status(hashOf(timed))).toEqual({
      status: "dropped",
      reason: "block height: 6, timeout height: 5: tx timeout height",
    });
    expect(made.pool.pendingNonce(address)).toBe(0n);
    // For the same price, which would not replace it.
    expect(await made.pool.submit([first])).toEqual([hashOf(first)]);
    expect(made.pool.pendingNonce(address)).toBe(2n);
    expect(refusal((await made.pool.submit([timed]))[0])).toMatchObject({ code: "SDK_FAULT" });
  });

  it("are dropped at a start where a version before took more in each other than is voted for", async () => {
    const output = {
      address: receiver,
      coins: Array.from({ length: 1_000 }, () => ({ denom: "", amount: "" })),
    };
    const value = {
      inputs: [{ address: toBech32(address), coins: [] }],
      outputs: [output, output, output],
    };
    const typeUrl = "/cosmos.bank.v1beta1.MsgMultiSend";
    const request = { ...base, messages: [{ typeUrl, value }], gas: 200_000, fee: fee(2e7) };
    const { raw } = present(signWithCosmJs(MNEMONIC, [request])[0], "nothing was signed");
    const { journal, state, restart } = await fixture();
    state.balances.set(address, 10n ** 18n);
    const [hash, receipt] = [hashOf(raw), { from: address, receivedAtMs: 0, sequence: 9 }];
    journal.entries.set(hash, { hash, raw, ...receipt });
    expect((await restart()).status(hash)).toEqual({
      status: "dropped",
      reason: "more messages in each other than a pool takes",
    });
  });

  it("leave when their time is over", async () => {
    const head = { timeMs: 1_799_999_999_000 };
    const made = await createFixture({ rules: { headTimeMs: () => head.timeMs } });
    const own = parseAddress(new Wallet(`0x${"5a".repeat(32)}`).address);
    made.state.balances.set(own, 10n ** 18n);
    const [answer] = await made.pool.submit([signedUntil(1_800_000_000)]);
    expect(made.pool.status(answer as Hash32)).toEqual({ status: "pending" });
    head.timeMs = 1_800_000_000_001;
    made.mine([]);
    expect(made.pool.status(answer as Hash32)).toMatchObject({ status: "dropped" });
    expect(refusal((await made.pool.submit([signedUntil(1_800_000_000)]))[0])).toMatchObject({
      message: expect.stringMatching(/^block time: 2027-01-15 08:00:00.001 .*: tx timeout$/),
    });
  });
});

describe("locked coins", () => {
  const one = (message: CosmJsMessage, sequence: number) => {
    return { messages: [message], chainId: base.chainId, gas: 400_000, fee: fee(1e8), sequence };
  };

  /** A pool, and an account with 10 free TOKEN and 90 that can only be delegated. */
  async function holding() {
    const made = await createFixture();
    made.state.balances.set(address, 10n * TOKEN);
    made.state.locked.set(address, 90n * TOKEN);
    return made;
  }

  /** What a new pool says of some, each after those before it. */
  async function answers(...asked: readonly CosmJsMessage[]): Promise<string[]> {
    const { pool } = await holding();
    const texts: string[] = [];
    let sequence = 0;
    for (const message of asked) {
      const [signed] = signWithCosmJs(MNEMONIC, [one(message, sequence)]);
      const [answer] = await pool.submit([present(signed, "signed").raw]);
      if (typeof answer === "string") sequence += 1;
      texts.push(typeof answer === "string" ? "in" : refusal(answer).message);
    }
    return texts;
  }

  it("pay what is delegated, and nothing else", async () => {
    const poor = expect.stringMatching(/^spendable balance \d+atoken is smaller than/);
    expect(await answers(delegating(95))).toEqual(["in"]);
    expect(await answers(delegating(100))).toEqual([poor]);
    expect(await answers(sending(10))).toEqual([poor]);
    // 9 free ones go, 1 pays the fees: 90 can be delegated, before or after it.
    expect(await answers(delegating(90), sending(10), sending(9))).toEqual(["in", poor, "in"]);
    expect(await answers(sending(9), delegating(91), delegating(90))).toEqual(["in", poor, "in"]);
    expect(await answers(delegating(50), delegating(40), delegating(10), sending(9))).toEqual([
      "in",
      "in",
      poor,
      "in",
    ]);
  });

  it("pay no EVM transaction beside what is delegated", async () => {
    const { pool } = await holding();
    const [signed] = signWithCosmJs(MNEMONIC, [one(delegating(90), 0)]);
    const paying = async (tokens: bigint) => {
      const fields = { type: 0, chainId: 6940, nonce: 1, gasPrice: 1_000n, gasLimit: 21_000n };
      const value = tokens * TOKEN;
      return parseHexBytes(await owner.signTransaction({ ...fields, to: owner.address, value }));
    };
    await pool.submit([present(signed, "signed").raw]);
    const [poor, rich] = await pool.submit([await paying(10n), await paying(9n)]);
    expect(refusal(poor).code).toBe("INSUFFICIENT_FUNDS");
    expect(pool.status(rich as Hash32)).toEqual({ status: "pending" });
  });

  it("keep what they pay in the pool as the account changes, and no more", async () => {
    const made = await holding();
    const asked = [one(delegating(50), 0), one(sending(9), 1), one(delegating(40), 2)];
    const raws = signWithCosmJs(MNEMONIC, asked).map(({ raw }) => raw);
    await made.pool.submit(raws);
    const statuses = () => raws.map((raw) => made.pool.status(hashOf(raw)).status);
    made.mine([], [address]);
    expect(statuses()).toEqual(["pending", "pending", "pending"]);
    made.state.locked.set(address, 60n * TOKEN);
    made.mine([], [address]);
    expect(statuses()).toEqual(["pending", "pending", "dropped"]);
    await made.pool.submit([present(raws[2], "the last")]);
    made.state.balances.set(address, TOKEN);
    made.mine([], [address]);
    expect(statuses()).toEqual(["pending", "dropped", "dropped"]);
  });
});

describe("Cosmos transactions that peers pass on", () => {
  const peer = "aa".repeat(20) as NodeId;

  /** What a node says of a peer whose pool took a transaction a moment ago. */
  async function judged(rules: object, transaction: Uint8Array, balanceAtoken = 10n ** 18n) {
    const made = await createFixture({ rules });
    const own = parseAddress(new Wallet(`0x${"5a".repeat(32)}`).address);
    for (const payer of [own, address]) made.state.balances.set(payer, balanceAtoken);
    const reports: string[] = [];
    const gossip = new TransactionGossip({
      pool: made.pool,
      publish: () => undefined,
      report: (_nodeId, offence) => reports.push(offence),
      load: { ...freeOfCharge, mayServe: () => true, served: () => undefined },
      clock: { nowMs: () => 0, monotonicMs: () => 0 },
    });
    const verdict = await gossip.onGossip(encodeTransactions([transaction]), peer);
    await gossip.onDirect([transaction], peer);
    return { verdict, reports };
  }

  it("are no fault of theirs where this node's head or settings alone refuse them", async () => {
    const nothing = { verdict: "drop", reports: [] };
    const later = { headHeight: () => 9, headTimeMs: () => 1_800_000_000_001 };
    expect(await judged(later, timed)).toEqual(nothing);
    expect(await judged(later, signedUntil(1_800_000_000))).toEqual(nothing);
    expect(await judged({}, first, 5n)).toEqual(nothing);
    expect(await judged({}, free)).toEqual(nothing);
    // Nobody who has looked at these would have passed them on.
    const fault = { verdict: "invalid", reports: ["invalidMessage"] };
    expect(await judged({}, foreign)).toEqual(fault);
    expect(await judged({}, Buffer.from("0a00", "hex"))).toEqual(fault);
  });

  it("keep no payment of the EVM that another peer passes on, however many of them wait", async () => {
    const recovery = new InlineRecovery();
    let open = () => {};
    const judging = new Promise<void>((resolve) => (open = resolve));
    // As long as it takes to look at one of them.
    recovery.verify = async (checks) => {
      await judging;
      return checks.map(() => true);
    };
    const { pool } = await createFixture({ recovery });
    const gossip = new TransactionGossip({
      pool,
      publish: () => undefined,
      report: () => undefined,
      load: { ...freeOfCharge, mayServe: () => true, served: () => undefined },
      clock: { nowMs: () => 0, monotonicMs: () => 0 },
    });
    const batch = [first, ...Array.from({ length: 1_023 }, () => Buffer.from([0x0a]))];
    const flood = Array.from({ length: 40 }, () => gossip.onDirect(batch, peer));
    const payment = transfer(account(1), 0);
    const bytes = encodeTransactions([payment.raw]);
    const passedOn = gossip.onGossip(bytes, "bb".repeat(20) as NodeId);
    const turns = async () => {
      for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
      return "waits";
    };
    expect(await Promise.race([passedOn, turns()])).toBe("relay");
    expect(pool.status(payment.hash)).toEqual({ status: "pending" });
    open();
    await Promise.all(flood);
  });
});

/** A transfer that is void after a Unix second. */
function signedUntil(seconds: number): Uint8Array {
  const wallet = new Wallet(`0x${"5a".repeat(32)}`);
  const typeUrl = "/cosmos.bank.v1beta1.MsgSend";
  const from_address = toBech32(parseAddress(wallet.address));
  const amount = [{ denom: "atoken", amount: "7" }];
  const message = { from_address, to_address: receiver, amount };
  const schema = present(schemaOf(typeUrl), typeUrl);
  const bodyBytes = new ProtoWriter()
    .message(1, encodeAny({ typeUrl, schema, message }))
    .message(5, new ProtoWriter().integer(1, seconds))
    .finish();
  const point = parseHexBytes(wallet.signingKey.compressedPublicKey);
  const key = new ProtoWriter()
    .bytes(1, "/cosmos.evm.crypto.v1.ethsecp256k1.PubKey")
    .bytes(2, new ProtoWriter().bytes(1, point).finish());
  const single = new ProtoWriter().message(1, new ProtoWriter().integer(1, 1));
  const paid = new ProtoWriter().bytes(1, "atoken").bytes(2, "7000000");
  const authInfoBytes = new ProtoWriter()
    .message(1, new ProtoWriter().message(1, key).message(2, single))
    .message(2, new ProtoWriter().message(1, paid).integer(2, 70_000))
    .finish();
  const digest = signDigest(directSignBytes({ bodyBytes, authInfoBytes }, "chain_6940-1"));
  const { r, s } = secp256k1.sign(digest, parseHexBytes(wallet.privateKey));
  return new ProtoWriter()
    .bytes(1, bodyBytes)
    .bytes(2, authInfoBytes)
    .message(3, Buffer.concat([r, s]))
    .finish();
}
