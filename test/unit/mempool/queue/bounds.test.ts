/** Bounds of the pool: of a sender, of all of them, in bytes, and of what waits to come in. */
import { describe, expect, it, jest } from "@jest/globals";
import type { SignedTransaction } from "../../../../chain/transaction.js";
import { SenderQueue } from "../../../../node/mempool/order/sender-queue.js";
import {
  account,
  CountedRecovery,
  createFixture,
  drain,
  listing,
  RECIPIENT,
  refusal,
  submit,
  transfer,
} from "../support.js";

const alice = account(1);
const bob = account(2);
const carol = account(3);

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
});
