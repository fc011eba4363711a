/** A full pool: who goes, who gets in, and what is said to those who go (D23). */
import { describe, expect, it } from "@jest/globals";
import type { SignedTransaction } from "../../../chain/transaction.js";
import {
  type Account,
  account,
  CountedRecovery,
  createFixture,
  drain,
  refusal,
  submit,
  TRANSFER_COST_ATOKEN,
  transfer,
} from "./support.js";

const alice = account(1);
const bob = account(2);
const carol = account(3);
const dave = account(4);

const UNDERPRICED = { status: "dropped", reason: "underpriced" };
const FLOOR = { priceAtoken: 1n };
const SUGGESTED = { priceAtoken: 25_000_000n };

/** Transactions of one sender, from nonce 0, at these prices. */
function chainOf(from: Account, prices: readonly bigint[]): SignedTransaction[] {
  return prices.map((priceAtoken, nonce) => transfer(from, nonce, { priceAtoken }));
}

const crowd = (count: number, first: number, changes: { priceAtoken: bigint }) =>
  Array.from({ length: count }, (_, n) => transfer(account(first + n), 0, changes));

const isHash = (answer: unknown): boolean => typeof answer === "string";

describe("a full pool", () => {
  it("lets the cheapest go for what pays more, and says so", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 2 } });
    const [cheap, dear] = [transfer(alice, 0, FLOOR), transfer(bob, 0, { priceAtoken: 5n })];
    const next = transfer(carol, 0, { priceAtoken: 2n });
    await submit(pool, cheap, dear);
    expect(await submit(pool, next)).toEqual([next.hash]);
    expect(pool.status(cheap.hash)).toEqual(UNDERPRICED);
    expect([dear, next].map(({ hash }) => pool.status(hash).status)).toEqual([
      "pending",
      "pending",
    ]);
    expect(pool.pendingNonce(alice.address)).toBe(0n);
    expect(pool.counts()).toEqual({ pending: 2, queued: 0 });
    expect(pool.stats()).toMatchObject({ droppedTotal: 1, evictedTotal: 1 });
  });

  it("refuses what pays no more than the cheapest, in geth's words", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 2 } });
    await submit(pool, transfer(alice, 0), transfer(bob, 0));
    const [same, less] = await submit(pool, transfer(carol, 0), transfer(dave, 0, FLOOR));
    for (const answer of [same, less]) {
      expect(refusal(answer)).toEqual({ code: "UNDERPRICED", message: "transaction underpriced" });
      expect(answer).toMatchObject({ retriable: true, details: { neededPriceAtoken: "11" } });
    }
    expect(pool.counts()).toEqual({ pending: 2, queued: 0 });
  });

  it("refuses what is too cheap before its sender is recovered", async () => {
    const recovery = new CountedRecovery(alice.address);
    const { pool } = await createFixture({ limits: { totalCount: 1 }, recovery });
    await submit(pool, transfer(alice, 0));
    const [refused] = await submit(pool, transfer(bob, 0, { priceAtoken: 9n }));
    expect(refusal(refused).code).toBe("UNDERPRICED");
    expect(recovery.count).toBe(1);
  });

  it("lets a sender's later ones go with its cheapest, however much they pay", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 5 } });
    const bait = chainOf(alice, [20n, 1n, 900n, 900n]);
    await submit(pool, ...bait, transfer(bob, 0));
    const next = transfer(carol, 0);
    expect(await submit(pool, next)).toEqual([next.hash]);
    expect(bait.map(({ hash }) => pool.status(hash))).toEqual([
      { status: "pending" },
      UNDERPRICED,
      UNDERPRICED,
      UNDERPRICED,
    ]);
    expect(pool.pendingNonce(alice.address)).toBe(1n);
    expect(pool.counts()).toEqual({ pending: 3, queued: 0 });
  });

  it("takes a sender's last one first where all pay the same", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 3 } });
    const list = chainOf(alice, [1n, 1n, 1n]);
    await submit(pool, ...list);
    await submit(pool, transfer(bob, 0));
    expect(list.map(({ hash }) => pool.status(hash).status)).toEqual([
      "pending",
      "pending",
      "dropped",
    ]);
  });

  it("takes a later one for no more than the cheapest before it", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 2 } });
    await submit(pool, transfer(alice, 0, FLOOR), transfer(bob, 0, FLOOR));
    // Alice's second cannot be mined before her first, which is among the cheapest.
    const [refused] = await submit(pool, transfer(alice, 1, { priceAtoken: 1_000n }));
    expect(refusal(refused).code).toBe("UNDERPRICED");
    expect(pool.counts()).toEqual({ pending: 2, queued: 0 });
  });

  it("lets replacements in, and never a gapped one at the cost of others", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 2 } });
    await submit(pool, transfer(alice, 0), transfer(bob, 0));
    const [gapped, replacement] = await submit(
      pool,
      transfer(carol, 5, { priceAtoken: 1_000n }),
      transfer(bob, 0, { priceAtoken: 11n }),
    );
    expect(refusal(gapped)).toEqual({ code: "POOL_FULL", message: "txpool is full" });
    expect(isHash(replacement)).toBe(true);
    expect(pool.status(transfer(alice, 0).hash)).toEqual({ status: "pending" });
  });

  it("lets several go for the bytes of a large one, all of them cheaper", async () => {
    const data = new Uint8Array(200);
    const large = (from: Account, priceAtoken: bigint) =>
      transfer(from, 0, { priceAtoken, data, gasLimit: 30_000n });
    const small = crowd(4, 10, { priceAtoken: 3n });
    const totalBytes = small.reduce((sum, tx) => sum + tx.raw.length, 0);
    const { pool } = await createFixture({ limits: { totalBytes } });
    await submit(pool, ...small);
    const [refused] = await submit(pool, large(alice, 3n));
    expect(refusal(refused).code).toBe("UNDERPRICED");
    expect(pool.counts().pending).toBe(4);
    const dear = large(alice, 4n);
    expect(await submit(pool, dear)).toEqual([dear.hash]);
    expect(pool.stats().sizeBytes).toBeLessThanOrEqual(totalBytes);
  });

  it("answers what its own group displaces again as refused, and writes nothing of it", async () => {
    const { pool, journal } = await createFixture({ limits: { totalCount: 1 } });
    const list = [1n, 2n, 3n].map((priceAtoken, n) =>
      transfer(account(10 + n), 0, { priceAtoken }),
    );
    const answers = await submit(pool, ...list);
    expect(answers.map((answer) => (isHash(answer) ? "in" : refusal(answer).code))).toEqual([
      "UNDERPRICED",
      "UNDERPRICED",
      "in",
    ]);
    await pool.close();
    expect([...journal.entries.keys()]).toEqual([list[2]?.hash]);
    expect(journal.removals).toEqual([]);
    expect(pool.stats().admittedTotal).toBe(1);
  });
});

describe("a sender's share", () => {
  it("shrinks as the pool fills", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 400 } });
    const sizes: number[] = [];
    for (let n = 0; n < 8; n++) {
      const sender = account(10 + n);
      const answers = await submit(pool, ...chainOf(sender, Array(150).fill(10n)));
      sizes.push(pool.contentFrom(sender.address).pending.length);
      const refused = answers.find((answer) => !isHash(answer));
      expect(refusal(refused).code).toBe("ACCOUNT_LIMIT");
    }
    // A quarter of what is left then, rounded up: of 320, 256, 204, ...; queued ones do not count.
    expect(sizes).toEqual([80, 64, 52, 41, 33, 26, 21, 17]);
  });

  it("is never less than sixteen, and not less for what others pay less", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 100 } });
    await submit(pool, ...crowd(90, 100, FLOOR));
    const pendingOf = ({ address }: Account) => pool.contentFrom(address).pending.length;
    await submit(pool, ...chainOf(alice, Array(30).fill(1n)));
    expect(pendingOf(alice)).toBe(10);
    await submit(pool, ...chainOf(bob, Array(30).fill(2n)));
    expect(pendingOf(bob)).toBe(20);
  });
});

describe("a flood", () => {
  const LIMITS = { totalCount: 200 };

  it("of 25 accounts at the floor keeps no payout at the suggested price out", async () => {
    const { pool, mine } = await createFixture({ limits: LIMITS });
    for (let n = 0; n < 25; n++) {
      await submit(pool, ...chainOf(account(10 + n), Array(20).fill(1n)));
    }
    const payouts = crowd(100, 1_000, SUGGESTED);
    expect(await submit(pool, ...payouts)).toEqual(payouts.map(({ hash }) => hash));
    expect(
      drain(pool)
        .slice(0, 100)
        .every(({ tx }) => tx.maxFeePerGasAtoken > 1n),
    ).toBe(true);
    mine(drain(pool).slice(0, 100));
    expect(payouts.every(({ hash }) => pool.status(hash).status === "included")).toBe(true);
  });

  it("of many accounts with one transaction each keeps none out either", async () => {
    const { pool } = await createFixture({ limits: LIMITS });
    const flood = crowd(200, 1_000, FLOOR);
    await submit(pool, ...flood);
    expect(pool.counts().pending).toBe(200);
    // As many as a quarter of what the floods' other places are.
    const payouts = chainOf(alice, Array(40).fill(25_000_000n));
    expect((await submit(pool, ...payouts)).every(isHash)).toBe(true);
    expect(flood.filter(({ hash }) => pool.status(hash).status === "dropped")).toHaveLength(40);
    expect(pool.counts().pending).toBe(200);
  });

  it("at exactly the suggested price makes place for who has less", async () => {
    const { pool } = await createFixture({ limits: LIMITS });
    for (let n = 0; n < 15; n++) {
      await submit(pool, ...chainOf(account(10 + n), Array(50).fill(25_000_000n)));
    }
    expect(pool.counts().pending).toBe(200);
    const payouts = crowd(50, 1_000, SUGGESTED);
    expect((await submit(pool, ...payouts)).every(isHash)).toBe(true);
    // The largest have paid for it, and everybody's nonces still follow without a gap.
    const sizes = [...pool.senders()].map(([, { pending }]) => pending.length);
    expect(Math.max(...sizes)).toBeLessThan(30);
    expect(pool.counts()).toEqual({ pending: 200, queued: 0 });
    expect(drain(pool)).toHaveLength(200);
  });

  it("of peers evicts nothing that pays as much", async () => {
    const { pool } = await createFixture({ limits: { totalCount: 20 } });
    const own = crowd(20, 100, SUGGESTED);
    await submit(pool, ...own);
    const spam = crowd(50, 1_000, { priceAtoken: 24_999_999n });
    await pool.submit(
      spam.map(({ raw }) => raw),
      "peer",
    );
    await pool.submit(
      crowd(50, 2_000, SUGGESTED).map(({ raw }) => raw),
      "peer",
    );
    expect(own.every(({ hash }) => pool.status(hash).status === "pending")).toBe(true);
  });
});

describe("an evicted transaction", () => {
  it("is off the journal before anything of it is seen, with the newcomer in one write", async () => {
    const { pool, journal } = await createFixture({ limits: { totalCount: 1 } });
    const [cheap, dear] = [transfer(alice, 0, FLOOR), transfer(bob, 0)];
    await submit(pool, cheap);
    const { appendStarted } = journal.hold();
    const answer = submit(pool, dear);
    await appendStarted;
    expect(pool.status(cheap.hash)).toEqual({ status: "pending" });
    expect(drain(pool).map(({ tx }) => tx.hash)).toEqual([cheap.hash]);
    journal.release();
    await answer;
    expect([...journal.entries.keys()]).toEqual([dear.hash]);
    expect(journal.removals).toEqual([]);
  });

  it("does not come back after a crash, also when a peer's took its place", async () => {
    for (const origin of ["client", "peer"] as const) {
      const fixture = await createFixture({ limits: { totalCount: 1 } });
      const cheap = transfer(alice, 0, FLOOR);
      await submit(fixture.pool, cheap);
      await fixture.pool.submit([transfer(bob, 0).raw], origin);
      expect(fixture.pool.status(cheap.hash)).toEqual(UNDERPRICED);
      const again = await fixture.restart();
      expect([origin, again.status(cheap.hash)]).toEqual([origin, UNDERPRICED]);
      expect(again.counts().pending).toBe(origin === "client" ? 1 : 0);
    }
  });

  it("may be sent again, and is then kept over a restart", async () => {
    const fixture = await createFixture({ limits: { totalCount: 1 } });
    const [cheap, dear] = [transfer(alice, 0, FLOOR), transfer(bob, 0)];
    await submit(fixture.pool, cheap);
    await submit(fixture.pool, dear);
    expect(refusal((await submit(fixture.pool, cheap))[0]).code).toBe("UNDERPRICED");
    fixture.mine(drain(fixture.pool));
    expect(await submit(fixture.pool, cheap)).toEqual([cheap.hash]);
    expect((await fixture.restart()).status(cheap.hash)).toEqual({ status: "pending" });
  });

  it("stays away when a block makes room while it is written off, unless it was mined", async () => {
    for (const mined of ["other", "cheap"] as const) {
      const { pool, journal, mine, restart } = await createFixture({ limits: { totalCount: 2 } });
      const [cheap, other] = [transfer(alice, 0, FLOOR), transfer(bob, 0)];
      await submit(pool, cheap, other);
      const { appendStarted } = journal.hold();
      const next = transfer(carol, 0, { priceAtoken: 2n });
      const answer = submit(pool, next);
      await appendStarted;
      mine(drain(pool).filter(({ tx }) => tx.hash === { cheap, other }[mined].hash));
      journal.release();
      expect(await answer).toEqual([next.hash]);
      const expected = mined === "other" ? "dropped" : "included";
      expect([mined, pool.status(cheap.hash).status]).toEqual([mined, expected]);
      const again = await restart();
      expect([mined, again.status(cheap.hash).status]).toEqual([mined, expected]);
      expect(again.status(next.hash)).toEqual({ status: "pending" });
    }
  });

  it("is gone for good when the write failed, because that may have reached the disk", async () => {
    const { pool, journal, restart } = await createFixture({ limits: { totalCount: 2 } });
    const [cheap, other] = [transfer(alice, 0, FLOOR), transfer(bob, 0)];
    await submit(pool, cheap, other);
    journal.failAppend = new Error("fsync failed");
    journal.failAfterWriting = true;
    const dear = transfer(carol, 0);
    expect(refusal((await submit(pool, dear))[0]).code).toBe("NODE_HALTED");
    expect(pool.status(cheap.hash)).toEqual(UNDERPRICED);
    expect(pool.counts().pending).toBe(1);
    journal.failAppend = undefined;
    await submit(pool, transfer(dave, 0));
    const again = await restart();
    expect(again.status(cheap.hash)).toEqual(UNDERPRICED);
    expect(again.status(dear.hash).status).toBe("unknown");
    expect(again.status(other.hash)).toEqual({ status: "pending" });
  });
});

describe("what can no longer be paid", () => {
  it("is dropped with the reason when another transaction took the coins", async () => {
    const { pool, state, mine } = await createFixture();
    state.balances.set(alice.address, TRANSFER_COST_ATOKEN * 25n);
    const list = chainOf(alice, Array(25).fill(10n));
    await submit(pool, ...list);
    // Another node's block holds a transaction that this pool never saw.
    const rival = transfer(alice, 0, { valueAtoken: TRANSFER_COST_ATOKEN * 19n });
    mine([{ tx: rival, from: alice.address }]);
    const statuses = list.map(({ hash }) => pool.status(hash));
    expect(statuses[0]).toEqual({ status: "replaced", by: rival.hash });
    expect(statuses.slice(1, 6).every(({ status }) => status === "pending")).toBe(true);
    for (const status of statuses.slice(6)) {
      expect(status).toEqual({
        status: "dropped",
        reason: expect.stringMatching(/^insufficient funds for gas \* price \+ value: balance /),
      });
    }
    expect(pool.counts()).toEqual({ pending: 5, queued: 0 });
  });

  it("is dropped from the queue once those before it have spent the coins", async () => {
    const { pool, state, mine } = await createFixture();
    state.balances.set(alice.address, TRANSFER_COST_ATOKEN * 2n);
    const [first, third] = [transfer(alice, 0, { valueAtoken: 210_001n }), transfer(alice, 2)];
    const second = transfer(alice, 1);
    await submit(pool, third);
    await submit(pool, second);
    await submit(pool, first);
    expect(pool.status(second.hash)).toMatchObject({ status: "queued", missingNonce: 1n });
    mine([{ tx: first, from: alice.address }]);
    for (const { hash } of [second, third]) {
      expect(pool.status(hash)).toEqual({
        status: "dropped",
        reason:
          "insufficient funds for gas * price + value: balance 1, tx cost 210001, overshot 210000",
      });
    }
    await pool.close();
    expect(pool.counts()).toEqual({ pending: 0, queued: 0 });
  });

  it("is dropped at a start, too, and so is what no block can hold", async () => {
    const fixture = await createFixture();
    const [poor, wrong] = [transfer(alice, 0), transfer(bob, 0, { gasLimit: 30_000_001n })];
    await submit(fixture.pool, poor);
    const entry = fixture.journal.entries.get(poor.hash);
    if (entry === undefined) throw new Error("nothing was journalled");
    const { raw, hash } = wrong;
    fixture.journal.entries.set(hash, { ...entry, hash, raw, from: bob.address, sequence: 7 });
    fixture.state.balances.set(alice.address, 5n);
    const pool = await fixture.restart();
    expect(pool.status(poor.hash)).toMatchObject({ status: "dropped" });
    expect(pool.status(wrong.hash)).toEqual({
      status: "dropped",
      reason: "exceeds block gas limit",
    });
    await pool.close();
    expect([...fixture.journal.entries.keys()]).toEqual([]);
  });
});
