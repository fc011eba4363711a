/** Nonce order, gaps, replacement and bounds of the pool. */
import { describe, expect, it, jest } from "@jest/globals";
import type { SignedTransaction } from "../../../chain/transaction.js";
import { replacementPriceAtoken } from "../../../chain/transaction-rules.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { Mempool } from "../../../node/mempool/mempool.js";
import { OutcomeHistory } from "../../../node/mempool/outcome-history.js";
import { SenderQueue } from "../../../node/mempool/order/sender-queue.js";
import {
  account,
  CountedRecovery,
  createFixture,
  drain,
  listing,
  RECIPIENT,
  refusal,
  submit,
  TRANSFER_COST_ATOKEN,
  transfer,
  evmOnly,
} from "./support.js";

const alice = account(1);
const bob = account(2);
const carol = account(3);
const HOUR_MS = 3_600_000;

const hashes = (list: readonly { tx: SignedTransaction }[]) => list.map(({ tx }) => tx.hash);

describe("nonces", () => {
  it("queues behind a gap, names the missing nonce and promotes when it is filled", async () => {
    const { pool, announced } = await createFixture();
    const [first, second, fourth] = [0, 1, 3].map((nonce) => transfer(alice, nonce)) as [
      SignedTransaction,
      SignedTransaction,
      SignedTransaction,
    ];
    await submit(pool, second, fourth);
    expect(pool.counts()).toEqual({ pending: 0, queued: 2 });
    expect(pool.status(second.hash)).toEqual({ status: "queued", missingNonce: 0n });
    expect(pool.pendingNonce(alice.address)).toBe(0n);
    expect(announced).toEqual([]);

    await submit(pool, first);
    expect(pool.status(second.hash)).toEqual({ status: "pending" });
    expect(pool.status(fourth.hash)).toEqual({ status: "queued", missingNonce: 2n });
    expect(pool.pendingNonce(alice.address)).toBe(2n);
    expect(announced).toEqual([first.hash, second.hash]);
    expect(hashes(evmOnly(pool.contentFrom(alice.address).pending))).toEqual([
      first.hash,
      second.hash,
    ]);
    expect(hashes(evmOnly(pool.contentFrom(alice.address).queued))).toEqual([fourth.hash]);
    expect(new Map(pool.senders()).get(alice.address)).toEqual(pool.contentFrom(alice.address));
    expect(hashes(drain(pool))).toEqual([first.hash, second.hash]);
  });

  it("accepts one call with nonces in any order", async () => {
    const { pool } = await createFixture();
    const list = [4, 2, 0, 3, 1].map((nonce) => transfer(alice, nonce));
    await submit(pool, ...list);
    expect(pool.counts()).toEqual({ pending: 5, queued: 0 });
    expect(drain(pool).map(({ tx }) => Number(tx.nonce))).toEqual([0, 1, 2, 3, 4]);
  });

  it("knows nothing of an unknown account or hash", async () => {
    const { pool, state } = await createFixture();
    state.nonces.set(bob.address, 7n);
    expect(pool.pendingNonce(bob.address)).toBe(7n);
    expect(pool.contentFrom(bob.address)).toEqual({ pending: [], queued: [] });
    expect(pool.get(transfer(bob, 0).hash)).toBeUndefined();
    expect(pool.status(transfer(bob, 0).hash)).toEqual({ status: "unknown" });
  });

  it("keeps a queued transaction queued while the funds do not reach for it", async () => {
    const { pool, state, mine } = await createFixture();
    state.balances.set(alice.address, TRANSFER_COST_ATOKEN + 10n);
    const [first, second] = [transfer(alice, 0), transfer(alice, 1)];
    await submit(pool, second);
    await submit(pool, first);
    expect(pool.status(first.hash)).toEqual({ status: "pending" });
    expect(pool.status(second.hash)).toEqual({
      status: "queued",
      missingNonce: 1n,
      reason:
        "insufficient funds for gas * price + value: balance 210011, queued cost 210001, " +
        "tx cost 210001, overshot 209991",
    });
    state.balances.set(alice.address, TRANSFER_COST_ATOKEN * 2n);
    mine([], [alice.address]);
    expect(pool.status(second.hash)).toEqual({ status: "pending" });
  });
});

describe("replacement", () => {
  it("takes 10 % more, rounded down as wallets reckon it", async () => {
    const { pool } = await createFixture();
    const first = transfer(alice, 0, { priceAtoken: 19n });
    const cheap = transfer(alice, 0, { priceAtoken: 19n, valueAtoken: 2n });
    const dear = transfer(alice, 0, { priceAtoken: 20n });
    expect(await submit(pool, first)).toEqual([first.hash]);
    const [refused] = await submit(pool, cheap);
    expect(refusal(refused).code).toBe("REPLACEMENT_UNDERPRICED");
    expect(await submit(pool, dear)).toEqual([dear.hash]);
    expect(pool.status(first.hash)).toEqual({ status: "replaced", by: dear.hash });
  });

  it("is offered for 10 % more, rounded up and at least 1", () => {
    expect([1n, 9n, 10n, 11n, 25_000_000n].map((price) => replacementPriceAtoken(price))).toEqual([
      2n,
      10n,
      11n,
      13n,
      27_500_000n,
    ]);
  });

  it("refuses less and accepts exactly that much, and says what replaced what", async () => {
    const { pool, announced, journal } = await createFixture();
    const first = transfer(alice, 0, { priceAtoken: 100n });
    const after = transfer(alice, 1, { priceAtoken: 100n });
    const cheap = transfer(alice, 0, { priceAtoken: 109n });
    const dear = transfer(alice, 0, { priceAtoken: 110n });
    await submit(pool, first, after);
    const [refused] = await submit(pool, cheap);
    expect(refusal(refused)).toEqual({
      code: "REPLACEMENT_UNDERPRICED",
      message: "replacement transaction underpriced",
    });
    expect(await submit(pool, dear)).toEqual([dear.hash]);
    expect(pool.status(first.hash)).toEqual({ status: "replaced", by: dear.hash });
    expect(pool.get(first.hash)).toBeUndefined();
    expect(pool.status(after.hash)).toEqual({ status: "pending" });
    expect(hashes(drain(pool))).toEqual([dear.hash, after.hash]);
    expect(announced).toEqual([first.hash, after.hash, dear.hash]);
    await pool.close();
    expect([...journal.entries.keys()].toSorted()).toEqual([after.hash, dear.hash].toSorted());
  });

  it("replaces queued ones too, also within one call", async () => {
    const { pool, announced } = await createFixture();
    const first = transfer(alice, 1, { priceAtoken: 10n });
    const dear = transfer(alice, 1, { priceAtoken: 11n });
    const filler = transfer(alice, 0);
    expect(await submit(pool, first, dear, filler)).toEqual(
      [first, dear, filler].map((t) => t.hash),
    );
    expect(pool.status(first.hash)).toEqual({ status: "replaced", by: dear.hash });
    expect(pool.counts()).toEqual({ pending: 2, queued: 0 });
    expect(announced).toEqual([filler.hash, dear.hash]);
  });

  it("counts the replaced cost as free", async () => {
    const { pool, state } = await createFixture();
    state.balances.set(alice.address, 231_001n);
    const answers = await submit(
      pool,
      transfer(alice, 0),
      transfer(alice, 0, { priceAtoken: 11n }),
    );
    expect(answers.every((answer) => typeof answer === "string")).toBe(true);
  });

  it("counts the new cost from then on", async () => {
    const { pool, state } = await createFixture();
    state.balances.set(alice.address, TRANSFER_COST_ATOKEN * 3n);
    const answers = await submit(
      pool,
      transfer(alice, 0),
      transfer(alice, 0, { priceAtoken: 21n }),
      transfer(alice, 1),
    );
    expect(refusal(answers[2]).message).toBe(
      "insufficient funds for gas * price + value: balance 630003, queued cost 441001, " +
        "tx cost 210001, overshot 20999",
    );
  });

  it("announces only the last of one call's transactions with one nonce", async () => {
    const { pool, announced } = await createFixture();
    const dear = transfer(alice, 0, { priceAtoken: 20n });
    await submit(pool, transfer(alice, 0), dear);
    expect(announced).toEqual([dear.hash]);
  });

  it("a replaced transaction may come back only by outbidding", async () => {
    const { pool } = await createFixture();
    const first = transfer(alice, 0, { priceAtoken: 10n });
    await submit(pool, first, transfer(alice, 0, { priceAtoken: 20n }));
    const [again] = await submit(pool, first);
    expect(refusal(again).code).toBe("REPLACEMENT_UNDERPRICED");
  });
});

describe("bounds", () => {
  it("holds 8,192 executable ones of a sender, and refuses the next", async () => {
    const { pool } = await createFixture({ recovery: new CountedRecovery(alice.address) });
    // Signed once; each nonce is patched into the list, as the recovery is faked.
    for (let start = 0; start < 8_192; start += 1_024) {
      const list = Array.from({ length: 1_024 }, (_, index) => transfer(alice, start + index));
      const answers = await submit(pool, ...list);
      expect(answers.filter((answer) => typeof answer !== "string")).toEqual([]);
    }
    expect(pool.pendingNonce(alice.address)).toBe(8_192n);
    const [refused] = await submit(pool, transfer(alice, 8_192));
    expect(refusal(refused)).toEqual({
      code: "ACCOUNT_LIMIT",
      message: "account limit exceeded: pooled 8192 txs",
    });
    const dear = transfer(alice, 5, { priceAtoken: 20n });
    expect(await submit(pool, dear)).toEqual([dear.hash]);
    expect(drain(pool)).toHaveLength(8_192);
  });

  it("promotes no more than a sender may have, and the rest after a block", async () => {
    const { pool, mine } = await createFixture({ limits: { executablePerSender: 2 } });
    await submit(pool, transfer(alice, 1), transfer(alice, 2), transfer(alice, 0));
    expect(pool.counts()).toEqual({ pending: 2, queued: 1 });
    mine(drain(pool).slice(0, 1));
    expect(pool.counts()).toEqual({ pending: 2, queued: 0 });
    expect(pool.pendingNonce(alice.address)).toBe(3n);
  });

  it("counts what the head has freed before the pool was told of the block", async () => {
    const { pool, state } = await createFixture({ limits: { totalCount: 2, queuedCount: 1 } });
    await submit(pool, transfer(alice, 0), transfer(alice, 2));
    state.nonces.set(alice.address, 2n);
    const next = transfer(alice, 4);
    expect(await submit(pool, next)).toEqual([next.hash]);
    expect(pool.counts()).toEqual({ pending: 1, queued: 1 });
  });

  it("displaces a sender's farthest queued one for a nearer, never for a farther", async () => {
    const { pool } = await createFixture({ limits: { queuedPerSender: 2 } });
    const [near, middle, far] = [2, 3, 9].map((nonce) => transfer(alice, nonce)) as [
      SignedTransaction,
      SignedTransaction,
      SignedTransaction,
    ];
    await submit(pool, middle, far);
    const [refused] = await submit(pool, transfer(alice, 10));
    expect(refusal(refused).message).toBe("account limit exceeded: pooled 2 txs");
    expect(await submit(pool, near)).toEqual([near.hash]);
    expect(pool.status(far.hash)).toEqual({
      status: "dropped",
      reason: "displaced by a queued transaction with a lower nonce",
    });
    expect(pool.counts()).toEqual({ pending: 0, queued: 2 });
  });

  it("looks for the farthest without going through all that the sender has", async () => {
    const limits = { queuedPerSender: 300, executablePerSender: 300 };
    const { pool } = await createFixture({ limits });
    const near = Array.from({ length: 300 }, (_, nonce) => transfer(alice, nonce));
    const far = Array.from({ length: 300 }, (_, index) => transfer(alice, 10_000 + index));
    await submit(pool, ...near, ...far);
    expect(pool.counts()).toEqual({ pending: 300, queued: 300 });
    const walked = jest.spyOn(SenderQueue.prototype, "all");
    // Each is nearer than all that are queued, and the farthest of them goes for it.
    for (let nonce = 9_999; nonce >= 9_900; nonce--) {
      const tx = transfer(alice, nonce);
      expect([nonce, await submit(pool, tx)]).toEqual([nonce, [tx.hash]]);
    }
    const more = Array.from({ length: 100 }, (_, index) => transfer(alice, 9_899 - index));
    expect(await submit(pool, ...more)).toEqual(more.map(({ hash }) => hash));
    const farther = await submit(pool, transfer(alice, 20_000), transfer(alice, 20_001));
    expect(farther.map((one) => refusal(one).code)).toEqual(["ACCOUNT_LIMIT", "ACCOUNT_LIMIT"]);
    expect(walked.mock.calls.length).toBe(0);
    walked.mockRestore();
    const { queued } = pool.contentFrom(alice.address);
    const nonces = Array.from({ length: 300 }, (_, index) => BigInt(9_800 + index));
    expect(queued.map(({ tx }) => tx.nonce)).toEqual(nonces);
  });

  it("a full pool lets the oldest gapped one make room", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 3 } });
    const gapped = transfer(alice, 3);
    const younger = transfer(bob, 3);
    await submit(pool, gapped);
    await submit(pool, younger, transfer(bob, 0));
    expect(await submit(pool, transfer(carol, 0))).toEqual([transfer(carol, 0).hash]);
    expect(pool.status(gapped.hash)).toEqual({
      status: "dropped",
      reason: "displaced by newer transactions",
    });
    expect(pool.status(younger.hash)).toEqual({ status: "queued", missingNonce: 1n });
    expect(pool.counts()).toEqual({ pending: 2, queued: 1 });
  });

  it("never displaces the sender's own queued ones for what closes their gap", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 2, queuedCount: 2 } });
    const gapped = transfer(alice, 1);
    await submit(pool, gapped, transfer(bob, 1));
    await submit(pool, transfer(alice, 0));
    expect(pool.status(gapped.hash)).toEqual({ status: "pending" });
    expect(pool.status(transfer(bob, 1).hash).status).toBe("dropped");
  });

  it("bounds all senders' gapped ones together", async () => {
    const { pool } = await createFixture({ limits: { queuedCount: 2 } });
    await submit(pool, transfer(alice, 1));
    await submit(pool, transfer(bob, 1), transfer(carol, 1));
    expect(pool.counts()).toEqual({ pending: 0, queued: 2 });
    expect(pool.status(transfer(alice, 1).hash).status).toBe("dropped");
    expect(await submit(pool, transfer(alice, 0))).toEqual([transfer(alice, 0).hash]);
  });

  it("bounds the bytes of the pool", async () => {
    const first = transfer(alice, 0, { gasLimit: 30_000n, data: new Uint8Array(100) });
    const { pool } = await createFixture({ limits: { totalBytes: first.raw.length } });
    await submit(pool, first);
    const [refused] = await submit(pool, transfer(bob, 0));
    expect(refusal(refused).code).toBe("UNDERPRICED");
    const smaller = transfer(alice, 0, { priceAtoken: 20n, to: RECIPIENT });
    expect(await submit(pool, smaller)).toEqual([smaller.hash]);
    expect(pool.stats().sizeBytes).toBe(smaller.raw.length);
  });

  it("bounds what lists take once they are read, not what they take on the wire", async () => {
    const [first, second] = [await listing(alice, 1), await listing(bob, 1)];
    const { pool } = await createFixture({ limits: { totalBytes: 8 * first.raw.length } });
    expect(await submit(pool, first)).toEqual([first.hash]);
    expect(await submit(pool, second)).toEqual([second.hash]);
    expect(pool.status(first.hash).status).toBe("dropped");
    expect(pool.stats()).toMatchObject({ queuedCount: 1, sizeBytes: second.raw.length });
    // What costs no more than its bytes has the room that they leave.
    const plain = transfer(carol, 1, { gasLimit: 50_000n, data: new Uint8Array(1_000) });
    expect(await submit(pool, plain)).toEqual([plain.hash]);
    expect(pool.counts()).toEqual({ pending: 0, queued: 2 });
  });

  it("takes no more out of the journal than there is room for, the newest gapped ones", async () => {
    const [oldest, newest] = [await listing(alice, 1), await listing(bob, 1)];
    const inTurn = [transfer(carol, 0), transfer(carol, 1)];
    const before = await createFixture();
    await submit(before.pool, oldest, newest, ...inTurn);
    const { journal, restart } = await createFixture({
      limits: { totalBytes: 8 * oldest.raw.length },
    });
    for (const [hash, entry] of before.journal.entries) journal.entries.set(hash, entry);
    const pool = await restart();
    expect(pool.counts()).toEqual({ pending: 2, queued: 1 });
    expect(pool.get(newest.hash)?.tx).toEqual(newest);
    expect(pool.status(oldest.hash)).toEqual({
      status: "dropped",
      reason: "displaced by newer transactions",
    });
    await submit(pool, transfer(carol, 2));
    await pool.close();
    expect(journal.entries.has(oldest.hash)).toBe(false);
    expect((await restart()).counts()).toEqual({ pending: 3, queued: 1 });
  });

  it("takes the dearest out of the journal where those in turn alone are too much", async () => {
    const chain = [20n, 5n, 30n].map((priceAtoken, n) => transfer(alice, n, { priceAtoken }));
    const [dear, same] = [
      transfer(bob, 0, { priceAtoken: 9n }),
      transfer(carol, 0, { priceAtoken: 9n }),
    ];
    const before = await createFixture();
    await submit(before.pool, ...chain, dear, same);
    const totalBytes = 2 * same.raw.length + 50;
    const { journal, restart } = await createFixture({ limits: { totalBytes } });
    for (const [hash, entry] of before.journal.entries) journal.entries.set(hash, entry);
    const pool = await restart();
    const kept = [...chain, dear, same].map(({ hash }) => pool.status(hash).status);
    expect(kept).toEqual(["pending", "dropped", "dropped", "pending", "dropped"]);
    expect(pool.stats().evictedTotal).toBe(3);
  });

  it("bounds what waits for admission", async () => {
    const { pool, journal } = await createFixture({ limits: { waitingCount: 2 } });
    const { appendStarted } = journal.hold();
    const first = submit(pool, transfer(alice, 0), transfer(alice, 1));
    await appendStarted;
    const [refused] = await submit(pool, transfer(bob, 0));
    expect(refused).toMatchObject({ code: "POOL_FULL", retriable: true });
    journal.release();
    await first;
    expect(await submit(pool, transfer(bob, 0))).toEqual([transfer(bob, 0).hash]);
  });

  it("bounds the bytes of what waits, and frees them with the answer", async () => {
    const tx = transfer(alice, 0);
    const { pool } = await createFixture({ limits: { waitingBytes: tx.raw.length } });
    const answers = await Promise.all([submit(pool, tx), submit(pool, transfer(alice, 1))]);
    expect(answers[0]).toEqual([tx.hash]);
    expect(answers[1]?.[0]).toMatchObject({ code: "POOL_FULL" });
    expect(await submit(pool, transfer(alice, 1))).toEqual([transfer(alice, 1).hash]);
    expect(pool.stats().waitingCount).toBe(0);
  });

  it("expires gapped ones after three hours, executable ones never", async () => {
    const { pool, clock, mine, journal } = await createFixture();
    const [executable, gapped] = [transfer(alice, 0), transfer(bob, 1)];
    await submit(pool, executable, gapped);
    clock.atMs += 3 * HOUR_MS;
    mine([]);
    expect(pool.status(gapped.hash).status).toBe("queued");
    clock.atMs += 1;
    mine([]);
    expect(pool.status(gapped.hash)).toEqual({
      status: "dropped",
      reason: "expired behind a nonce gap",
    });
    expect(pool.status(executable.hash)).toEqual({ status: "pending" });
    expect(pool.stats()).toMatchObject({ replacedTotal: 0, droppedTotal: 1 });
    await pool.close();
    expect([...journal.entries.keys()]).toEqual([executable.hash]);
  });

  it("looks again at what waits for coins that time alone sets free", async () => {
    const { pool, state, mine } = await createFixture({ unlocking: [bob.address, alice.address] });
    state.balances.set(alice.address, 250_000n);
    state.locked.set(alice.address, 250_000n);
    const [first, second] = [transfer(alice, 0), transfer(alice, 1)];
    await submit(pool, second);
    await submit(pool, first);
    mine([]);
    const waiting = { status: "queued", missingNonce: 1n };
    expect(pool.status(second.hash)).toEqual({
      ...waiting,
      reason: expect.stringMatching(/^insufficient funds/),
    });
    state.balances.set(alice.address, 500_000n);
    state.locked.set(alice.address, 0n);
    // Nothing holds it up any more, and the next block says so.
    expect(pool.status(second.hash)).toEqual(waiting);
    mine([]);
    expect(pool.status(second.hash)).toEqual({ status: "pending" });
    expect(pool.pendingNonce(alice.address)).toBe(2n);
  });

  it("says so of what waits because its sender has as many as it may", async () => {
    const { pool } = await createFixture({ limits: { executablePerSender: 1 } });
    const [first, second] = [transfer(alice, 0), transfer(alice, 1)];
    await submit(pool, second);
    await submit(pool, first);
    const reason = "the account's limit is reached";
    expect(pool.status(second.hash)).toEqual({ status: "queued", missingNonce: 1n, reason });
  });

  it("does not expire what the same block made executable", async () => {
    const { pool, clock, mine } = await createFixture();
    const gapped = transfer(alice, 1);
    await submit(pool, gapped);
    clock.atMs += 4 * HOUR_MS;
    mine([{ tx: transfer(alice, 0), from: alice.address }]);
    expect(pool.status(gapped.hash)).toEqual({ status: "pending" });
  });

  it("expires nothing because the clock of the day was put forward", async () => {
    const { pool, clock, mine } = await createFixture();
    const gapped = transfer(alice, 1);
    await submit(pool, gapped);
    clock.setByMs = 24 * HOUR_MS;
    mine([]);
    expect(pool.status(gapped.hash).status).toBe("queued");
    clock.atMs += 3 * HOUR_MS + 1;
    mine([]);
    expect(pool.status(gapped.hash).status).toBe("dropped");
  });

  it("names what clients were promised, wherever the clock of the day is put", async () => {
    const { pool, clock, restart } = await createFixture();
    const tx = transfer(alice, 0);
    const promisedIn = (from: Mempool) => {
      return [...from.promised(clock.atMs - 1_000)].map((one) => one.tx.hash);
    };
    // It was a day ahead when the transaction came, and is put right then.
    clock.setByMs = 24 * HOUR_MS;
    await submit(pool, tx);
    clock.setByMs = 0;
    expect(promisedIn(pool)).toEqual([]);
    clock.atMs += 1_001;
    expect(promisedIn(pool)).toEqual([tx.hash]);
    await pool.close();
    expect(promisedIn(await restart())).toEqual([tx.hash]);
  });

  it("forgets the outcome that was recorded longest ago", () => {
    const history = new OutcomeHistory(2);
    const [first, second, third] = [0, 1, 2].map((nonce) => transfer(alice, nonce).hash) as [
      Hash32,
      Hash32,
      Hash32,
    ];
    for (const hash of [first, second, first, third]) {
      history.set(hash, { status: "dropped", reason: "test" });
    }
    expect([first, second, third].map((hash) => history.get(hash)?.status)).toEqual([
      "dropped",
      undefined,
      "dropped",
    ]);
  });

  it("remembers only so many outcomes", async () => {
    const { pool } = await createFixture({ limits: { outcomeCount: 1 } });
    const list = [10n, 20n, 30n].map((priceAtoken) => transfer(alice, 0, { priceAtoken }));
    await submit(pool, ...list);
    expect(list.map(({ hash }) => pool.status(hash).status)).toEqual([
      "unknown",
      "replaced",
      "pending",
    ]);
    expect(pool.stats()).toMatchObject({ admittedTotal: 3, replacedTotal: 2, droppedTotal: 0 });
  });
});
