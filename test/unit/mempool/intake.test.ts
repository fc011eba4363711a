/** Calls whose senders are recovered at the same time keep the order in which they came. */
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { type Address, parseAddress, toBech32 } from "../../../chain/address.js";
import { decodedBytes } from "../../../chain/cosmos/decoded-bytes.js";
import { present } from "../../../chain/errors.js";
import { sha256Hex } from "../../../chain/hashes.js";
import { parseHexBytes } from "../../../chain/hex.js";
import { recoverSender, type SignedTransaction } from "../../../chain/transaction.js";
import { Intakes } from "../../../node/mempool/admission/intake.js";
import {
  InlineRecovery,
  type SenderRecovery,
} from "../../../node/mempool/recovery/sender-recovery.js";
import { COSMOS_RULES } from "../../helpers/chains/cosmos-rules.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { until } from "../../helpers/until.js";
import {
  account,
  CHAIN_ID,
  createFixture,
  drain,
  listing,
  refusal,
  submit,
  transfer,
} from "./support.js";

const alice = account(1);
const bob = account(2);

/** Answers calls when it is told, in any order. */
class HeldRecovery implements SenderRecovery {
  readonly calls: { transactions: readonly SignedTransaction[]; answer: () => void }[] = [];
  failing: Error | undefined;

  constructor(private readonly senderOf: (tx: SignedTransaction) => Address = recoverSender) {}

  async verify(): Promise<readonly boolean[]> {
    throw new Error("no Cosmos transactions here");
  }

  recover(transactions: readonly SignedTransaction[]): Promise<readonly (Address | undefined)[]> {
    return new Promise((resolve, reject) => {
      const answer = () => {
        if (this.failing !== undefined) reject(this.failing);
        else resolve(transactions.map((tx) => this.senderOf(tx)));
      };
      this.calls.push({ transactions, answer });
    });
  }

  async held(count: number): Promise<void> {
    const what = `${count} calls wait for recovery`;
    await until(() => this.calls.length >= count, { timeoutMs: 10_000, what });
  }
}

/** Code of a refusal; undefined for a hash. */
function codeOf(answer: unknown): unknown {
  return answer instanceof Error ? refusal(answer).code : undefined;
}

/** An unsigned look-alike: r is the x coordinate of no point, so that nobody signed it. */
function signedByNobody(tx: SignedTransaction): Uint8Array {
  const digits = tx.r.toString(16).padStart(64, "0");
  const raw = Buffer.from(tx.raw).toString("hex");
  for (let r = 1n << 255n; ; r++) {
    const bytes = Buffer.from(raw.replace(digits, r.toString(16).padStart(64, "0")), "hex");
    try {
      recoverSender({ ...tx, r });
    } catch {
      return bytes;
    }
  }
}

/** Answers undefined after some turns of the event loop. */
async function nextTurns(count: number): Promise<undefined> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
  return undefined;
}

const mnemonic = "test test test test test test test test test test test junk";
const owner = Wallet.fromPhrase(mnemonic);
const sender = toBech32(parseAddress(owner.address));

/** Cosmos transactions of many coins, signed for another chain: all of each is hashed to find that out. */
function longToVerify(count: number): readonly Uint8Array[] {
  const receiver = toBech32(bob.address);
  const coins = (amount: number) => [{ denom: "atoken", amount: String(amount) }];
  const outputs = Array.from({ length: 100 }, () => ({ address: receiver, coins: coins(1) }));
  const value = { inputs: [{ address: sender, coins: coins(100) }], outputs };
  const message = { typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend", value };
  const common = { messages: [message], chainId: "chain_6941-1", gas: 5_000_000 };
  const fee = coins(500_000_000);
  const asked = Array.from({ length: count }, (_, sequence) => ({ ...common, fee, sequence }));
  return signWithCosmJs(mnemonic, asked).map(({ raw }) => raw);
}

/** A payment of the owner to bob. */
function cosmosTransfer(sequence: number): Uint8Array {
  const amount = [{ denom: "atoken", amount: "7" }];
  const value = { fromAddress: sender, toAddress: toBech32(bob.address), amount };
  const message = { typeUrl: "/cosmos.bank.v1beta1.MsgSend", value };
  const fee = [{ denom: "atoken", amount: "7000000" }];
  const asked = { messages: [message], chainId: "chain_6940-1", gas: 70_000, fee, sequence };
  const [signed] = signWithCosmJs(mnemonic, [asked]);
  return present(signed, "nothing was signed").raw;
}

describe("calls under recovery together", () => {
  it("are numbered, journalled and offered in the order of receipt, whichever ends first", async () => {
    const recovery = new HeldRecovery();
    const { pool, journal } = await createFixture({ recovery });
    const lists = [
      [transfer(alice, 0), transfer(bob, 0)],
      [transfer(alice, 1)],
      [transfer(bob, 1), transfer(alice, 2)],
    ];
    const answers = lists.map((list) => submit(pool, ...list));
    await recovery.held(3);
    for (const { answer } of recovery.calls.toReversed()) answer();
    const hashes = lists.map((list) => list.map(({ hash }) => hash));
    expect(await Promise.all(answers)).toEqual(hashes);
    const inOrder = [...journal.entries.values()].toSorted((a, b) => a.sequence - b.sequence);
    expect(inOrder.map(({ hash }) => hash)).toEqual(hashes.flat());
    expect(inOrder.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4]);
    expect(drain(pool).map(({ tx }) => tx.hash)).toEqual(hashes.flat());
  });

  it("give the later of two with one nonce the refusal, though it was recovered first", async () => {
    const recovery = new HeldRecovery();
    const { pool } = await createFixture({ recovery });
    const first = submit(pool, transfer(alice, 0));
    const second = submit(pool, transfer(alice, 0, { valueAtoken: 2n }));
    await recovery.held(2);
    recovery.calls[1]?.answer();
    recovery.calls[0]?.answer();
    expect(await first).toEqual([transfer(alice, 0).hash]);
    expect(refusal((await second)[0]).code).toBe("REPLACEMENT_UNDERPRICED");
  });

  it("admit what comes in all of them once, and tell the others that it is known", async () => {
    const recovery = new HeldRecovery();
    const { pool, journal } = await createFixture({ recovery });
    const lists = Array.from({ length: 12 }, () => [transfer(alice, 0), transfer(alice, 1)]);
    const answers = lists.map((list) => submit(pool, ...list));
    await recovery.held(12);
    for (const { answer } of recovery.calls.toReversed()) answer();
    const codes = (await Promise.all(answers)).map((list) => list.map(codeOf));
    expect(codes[0]).toEqual([undefined, undefined]);
    for (const list of codes.slice(1)) expect(list).toEqual(["ALREADY_KNOWN", "ALREADY_KNOWN"]);
    expect(journal.entries.size).toBe(2);
    expect(pool.stats()).toMatchObject({ pendingCount: 2, admittedTotal: 2 });
  });

  it("replace in the order of receipt, whichever is recovered first", async () => {
    const recovery = new HeldRecovery();
    const { pool, journal } = await createFixture({ recovery });
    const prices = [10n, 11n, 13n, 12n, 15n];
    const list = prices.map((priceAtoken) => transfer(alice, 0, { priceAtoken }));
    const answers = list.map((tx) => submit(pool, tx));
    await recovery.held(list.length);
    for (const { answer } of recovery.calls.toReversed()) answer();
    const codes = (await Promise.all(answers)).map(([item]) => codeOf(item));
    const late = "REPLACEMENT_UNDERPRICED";
    expect(codes).toEqual([undefined, undefined, undefined, late, undefined]);
    expect(drain(pool).map(({ tx }) => tx.hash)).toEqual([list[4]?.hash]);
    await pool.close();
    expect([...journal.entries.keys()]).toEqual([list[4]?.hash]);
  });

  it("stand apart: a failed recovery is its own caller's fault", async () => {
    const recovery = new HeldRecovery();
    const { pool } = await createFixture({ recovery });
    const settled = Promise.allSettled([
      submit(pool, transfer(alice, 0)),
      submit(pool, transfer(bob, 0)),
    ]);
    await recovery.held(2);
    recovery.failing = new Error("broken");
    recovery.calls[1]?.answer();
    recovery.failing = undefined;
    recovery.calls[0]?.answer();
    expect(await settled).toEqual([
      { status: "fulfilled", value: [transfer(alice, 0).hash] },
      { status: "rejected", reason: new Error("broken") },
    ]);
    const next = submit(pool, transfer(bob, 0));
    await recovery.held(3);
    recovery.calls[2]?.answer();
    expect(await next).toEqual([transfer(bob, 0).hash]);
  });

  it("are waited for when the pool closes", async () => {
    const recovery = new HeldRecovery();
    const { pool, journal } = await createFixture({ recovery });
    const answer = submit(pool, transfer(alice, 0));
    await recovery.held(1);
    let isClosed = false;
    const closing = pool.close().finally(() => {
      isClosed = true;
    });
    const late = await submit(pool, transfer(alice, 1));
    expect(refusal(late[0]).code).toBe("NODE_HALTED");
    expect(isClosed).toBe(false);
    recovery.calls[0]?.answer();
    await closing;
    expect(await answer).toEqual([transfer(alice, 0).hash]);
    expect([...journal.entries.keys()]).toEqual([transfer(alice, 0).hash]);
  });

  it("wait as bytes beyond 8,192 decoded ones", async () => {
    // The value says who is to count as the sender; alice signs everything.
    const senders = Array.from({ length: 90 }, (_, call) => account(call + 1).address);
    const recovery = new HeldRecovery((tx) => senders[Number(tx.valueAtoken)] ?? alice.address);
    const { pool } = await createFixture({ recovery });
    const answers = senders.map((_, call) => {
      const changes = { valueAtoken: BigInt(call) };
      const list = Array.from({ length: 100 }, (_unused, nonce) => transfer(alice, nonce, changes));
      return submit(pool, ...list);
    });
    // 81 calls are 8,100 transactions; the next would be too many.
    await recovery.held(81);
    await new Promise((resolve) => setImmediate(resolve));
    expect(recovery.calls).toHaveLength(81);
    for (let call = 0; call < 90; call++) {
      await recovery.held(call + 1);
      recovery.calls[call]?.answer();
    }
    expect(
      (await Promise.all(answers)).flat().filter((one) => typeof one === "string"),
    ).toHaveLength(9_000);
    expect(pool.counts()).toEqual({ pending: 9_000, queued: 0 });
  });
});

describe("what takes many times its bytes once it is read", () => {
  it("waits as bytes beyond 32 MiB, until what came before is judged", async () => {
    const heavy = await listing(alice, 0);
    const mostCount = Math.ceil((32 * 1024 * 1024) / decodedBytes(heavy));
    const recovery = new HeldRecovery();
    const { pool, journal } = await createFixture({ recovery });
    const answers = Array.from({ length: mostCount }, () => submit(pool, heavy));
    const last = submit(pool, transfer(bob, 0));
    await recovery.held(mostCount);
    await nextTurns(50);
    expect(recovery.calls.length).toBe(mostCount);
    const { appendStarted } = journal.hold();
    for (const { answer } of recovery.calls) answer();
    await appendStarted;
    await nextTurns(50);
    expect(recovery.calls.length).toBe(mostCount);
    journal.release();
    await recovery.held(mostCount + 1);
    recovery.calls[mostCount]?.answer();
    expect(await last).toEqual([transfer(bob, 0).hash]);
    const codes = (await Promise.all(answers)).flat().map(codeOf);
    expect(codes).toEqual([undefined, ...codes.slice(1).map(() => "ALREADY_KNOWN")]);
  });

  it("is taken all the same where one call alone has more", async () => {
    const heavy = await listing(alice, 0);
    const recovery = new HeldRecovery();
    const { pool } = await createFixture({ recovery });
    const answers = submit(pool, ...Array.from({ length: 500 }, () => heavy));
    await recovery.held(1);
    expect(recovery.calls[0]?.transactions).toHaveLength(500);
    recovery.calls[0]?.answer();
    expect((await answers).filter((one) => one === heavy.hash)).toHaveLength(1);
  });
});

describe("what clients send", () => {
  it("waits for nothing that peers sent before, and is numbered with it", async () => {
    const recovery = new HeldRecovery();
    const { pool, journal } = await createFixture({ recovery });
    const [foreign, own, last] = [transfer(bob, 0), transfer(alice, 0), transfer(alice, 1)];
    const peers = pool.submit([foreign.raw], "peer");
    const clients = submit(pool, own);
    await recovery.held(2);
    const [ofPeer, ofClient] = recovery.calls;
    ofClient?.answer();
    const first = await Promise.race([clients, nextTurns(50)]);
    ofPeer?.answer();
    expect(first).toEqual([own.hash]);
    expect(await peers).toEqual([foreign.hash]);
    const later = submit(pool, last);
    await recovery.held(3);
    recovery.calls[2]?.answer();
    expect(await later).toEqual([last.hash]);
    const numbers = [...journal.entries.values()].map(({ sequence }) => sequence);
    expect(new Set(numbers)).toEqual(new Set([0, 2]));
  });

  it("is not held up by a peer whose transactions take long to verify", async () => {
    const { pool } = await createFixture();
    const peers = pool.submit(longToVerify(100), "peer");
    let isJudged = false;
    const judging = peers.then(() => (isJudged = true));
    expect(await submit(pool, transfer(alice, 0))).toEqual([transfer(alice, 0).hash]);
    expect(isJudged).toBe(false);
    await judging;
    for (const answer of await peers) expect(codeOf(answer)).toBe("SDK_FAULT");
  });
});

describe("Cosmos transactions of clients", () => {
  it("are not waited for by those of the EVM, though they came before", async () => {
    const { pool } = await createFixture();
    const cosmos = pool.submit(longToVerify(30));
    let isJudged = false;
    const judging = cosmos.then(() => (isJudged = true));
    expect(await submit(pool, transfer(alice, 0))).toEqual([transfer(alice, 0).hash]);
    expect(isJudged).toBe(false);
    await judging;
    for (const answer of await cosmos) expect(codeOf(answer)).toBe("SDK_FAULT");
  });

  it("are judged behind those of the EVM that came before: their sender's sequence follows", async () => {
    const recovery = new HeldRecovery();
    recovery.verify = async () => [true];
    const { pool } = await createFixture({ recovery });
    const key = parseHexBytes(owner.privateKey);
    const before = submit(pool, transfer({ key, address: parseAddress(owner.address) }, 0));
    const after = pool.submit([cosmosTransfer(1)]);
    await recovery.held(1);
    await nextTurns(50);
    recovery.calls[0]?.answer();
    expect([codeOf((await before)[0]), codeOf((await after)[0])]).toEqual([undefined, undefined]);
  });

  it("have the lower number where they go before those of the EVM that came after", async () => {
    const recovery = new HeldRecovery();
    const verified: (() => void)[] = [];
    recovery.verify = () => new Promise((resolve) => verified.push(() => resolve([true])));
    const { pool, journal } = await createFixture({ recovery });
    const raw = cosmosTransfer(0);
    const first = pool.submit([raw]);
    await until(() => verified.length > 0, { timeoutMs: 10_000, what: "it is being verified" });
    const list = Array.from({ length: 90 }, (_, nonce) => transfer(alice, nonce));
    const second = submit(pool, ...list);
    await recovery.held(1);
    recovery.calls[0]?.answer();
    // Entries are made of as many as a turn has time for; the rest of that turn is the other one's.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    verified[0]?.();
    const hashes = [sha256Hex(raw), ...list.map(({ hash }) => hash)];
    expect([...(await first), ...(await second)]).toEqual(hashes);
    expect([...journal.entries.keys()]).toEqual(hashes);
    const numbers = [...journal.entries.values()].map(({ sequence }) => sequence);
    expect(numbers).toEqual(hashes.map((_, index) => index));
  });

  it("leave room for those of the EVM to be looked at, however many there are", async () => {
    const { pool } = await createFixture({ limits: { waitingCount: 8 } });
    const unread = Buffer.from([0x0a]);
    const cosmos = Array.from({ length: 8 }, () => pool.submit([unread]));
    const own = transfer(alice, 0);
    expect(await submit(pool, own)).toEqual([own.hash]);
    const codes = (await Promise.all(cosmos)).flat().map(codeOf);
    expect(codes.filter((code) => code === "POOL_FULL")).toHaveLength(2);
  });

  it("are looked at one after the other, however many calls there are", async () => {
    let nowMs = 0;
    const done = { read: 0, verified: 0 };
    const most = { ...done };
    const intakes = new Intakes({
      // Each look at the clock finds that long work was done.
      clock: { nowMs: () => nowMs, monotonicMs: () => (nowMs += 4) },
      rules: {
        ...COSMOS_RULES,
        chainId: CHAIN_ID,
        minGasPriceAtoken: 1n,
        maxTransactionGas: 30_000_000n,
        get maxTransactionBytes() {
          done.read += 1;
          return COSMOS_RULES.maxTransactionBytes;
        },
        get cosmosChainId() {
          done.verified += 1;
          return COSMOS_RULES.cosmosChainId;
        },
      },
      isKnown: () => false,
      priceToReachAtoken: () => 0n,
      recovery: new InlineRecovery(),
    });
    let isOver = false;
    let last = { ...done };
    const look = () => {
      most.read = Math.max(most.read, done.read - last.read);
      most.verified = Math.max(most.verified, done.verified - last.verified);
      last = { ...done };
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    const raws = longToVerify(2);
    const calls = Array.from({ length: 10 }, (_, index) =>
      intakes.take(raws, index % 2 === 0 ? "cosmos" : "peer-cosmos", (prepared) => {
        expect(prepared.map(codeOf)).toEqual(["SDK_FAULT", "SDK_FAULT"]);
        return { committed: Promise.resolve() };
      }),
    );
    await Promise.all(calls);
    isOver = true;
    expect(done.read).toBe(20);
    // One of clients, one of peers.
    expect(most.read).toBeLessThanOrEqual(2);
    // The chain is looked at twice for a signature that is wrong.
    expect(most.verified).toBeLessThanOrEqual(2);
  });
});

describe("a signature that recovers nobody", () => {
  it("is refused with the sender's error, and the others of its call are not touched", async () => {
    const { pool } = await createFixture({ recovery: new InlineRecovery() });
    const bad = signedByNobody(transfer(alice, 0));
    const answers = await pool.submit([transfer(bob, 0).raw, bad, transfer(bob, 1).raw]);
    expect(answers[0]).toBe(transfer(bob, 0).hash);
    expect(refusal(answers[1])).toEqual({
      code: "INVALID_SENDER",
      message: "invalid sender: the signature recovers no public key",
    });
    expect(answers[2]).toBe(transfer(bob, 1).hash);
  });
});

describe("what the pool keeps", () => {
  it("is the transaction alone, not the bytes that it came in", async () => {
    const { pool } = await createFixture();
    const { raw, hash } = transfer(alice, 0);
    const batch = Buffer.concat([Buffer.alloc(131_072), raw, Buffer.alloc(65_536)]);
    const answers = await pool.submit([batch.subarray(131_072, 131_072 + raw.length)], "peer");
    expect(answers).toEqual([hash]);
    expect(pool.get(hash)?.tx.raw.buffer.byteLength).toBe(raw.length);
  });
});
