/** A refusal leaves a full pool as it was; and what a group lets go of is not said to be known. */
import { describe, expect, it } from "@jest/globals";
import type { SignedTransaction } from "../../../chain/transaction.js";
import {
  type Account,
  account,
  createFixture,
  type Fixture,
  refusal,
  submit,
  transfer,
} from "./support.js";

const [alice, bob, carol, dave] = [account(1), account(2), account(3), account(4)];

/** 600 bytes more than a plain transfer. */
const large = (from: Account, nonce: number, priceAtoken: bigint) =>
  transfer(from, nonce, { priceAtoken, data: new Uint8Array(600), gasLimit: 40_000n });

const isHash = (answer: unknown): boolean => typeof answer === "string";

/** A pool that is full in bytes with these. */
async function fullOf(transactions: readonly SignedTransaction[]): Promise<Fixture> {
  const totalBytes = transactions.reduce((sum, { raw }) => sum + raw.length, 0);
  const fixture = await createFixture({ limits: { totalBytes } });
  expect((await submit(fixture.pool, ...transactions)).every(isHash)).toBe(true);
  return fixture;
}

/** Everything that anybody can see of the pool's transactions. */
function shownOf({ pool }: Fixture, transactions: readonly SignedTransaction[]) {
  const { sizeBytes, droppedTotal, evictedTotal } = pool.stats();
  const statuses = transactions.map(({ hash }) => pool.status(hash));
  return { counts: pool.counts(), sizeBytes, droppedTotal, evictedTotal, statuses };
}

describe("a newcomer that a pool full in bytes refuses", () => {
  it("has displaced no gapped transaction before", async () => {
    const oldest = transfer(bob, 5);
    const held = [oldest, transfer(bob, 6), transfer(carol, 3), large(dave, 0, 50n)];
    const fixture = await fullOf(held);
    const before = shownOf(fixture, held);
    // Neither what is gapped nor what is cheaper makes room enough for these.
    const answers = await submit(fixture.pool, large(alice, 0, 10n), large(alice, 7, 1_000n));
    expect(answers.map((answer) => refusal(answer).code)).toEqual(["UNDERPRICED", "POOL_FULL"]);
    expect(shownOf(fixture, held)).toEqual(before);
    // They are still what goes first for whom there is room.
    expect(await submit(fixture.pool, transfer(alice, 0))).toEqual([transfer(alice, 0).hash]);
    expect(fixture.pool.status(oldest.hash)).toMatchObject({ status: "dropped" });
    expect(fixture.pool.counts()).toEqual({ pending: 2, queued: 2 });
  });

  it("has displaced none of those that pay the same before", async () => {
    const flood = [0, 1, 2, 3].map((nonce) => transfer(bob, nonce, { priceAtoken: 10n }));
    const held = [...flood, large(dave, 0, 50n)];
    const fixture = await fullOf(held);
    const before = shownOf(fixture, held);
    // Bob has more than his share at this price, and yet too little for a large one. In the same
    // call a small one gets what it is due, as if the large one had never come.
    const small = transfer(carol, 0, { priceAtoken: 10n });
    const [refused, answer] = await submit(fixture.pool, large(alice, 0, 10n), small);
    expect([refusal(refused).code, answer]).toEqual(["UNDERPRICED", small.hash]);
    expect(shownOf(fixture, held)).toEqual({
      ...before,
      droppedTotal: 1,
      evictedTotal: 1,
      statuses: before.statuses.map((status, index) =>
        index === 3 ? { status: "dropped", reason: "underpriced" } : status,
      ),
    });
    // What was taken back counts as before: all of it goes for what pays more.
    fixture.mine([]);
    expect(await submit(fixture.pool, large(alice, 0, 60n))).toEqual([large(alice, 0, 60n).hash]);
    expect(fixture.pool.counts().pending).toBeLessThan(5);
  });
});

describe("a transaction that its own group displaces", () => {
  const cheap = transfer(alice, 0, { priceAtoken: 2n });
  const dear = [transfer(bob, 0, { priceAtoken: 5n }), transfer(carol, 0, { priceAtoken: 5n })];
  const codes = (answers: readonly unknown[]) =>
    answers.map((answer) => (isHash(answer) ? "in" : refusal(answer).code));

  it("is not said to be known, before or after it goes, and may be sent again", async () => {
    const { pool, journal, mine } = await createFixture({ limits: { totalCount: 2 } });
    const answers = await submit(pool, cheap, cheap, ...dear, cheap);
    expect(codes(answers)).toEqual(["UNDERPRICED", "UNDERPRICED", "in", "in", "UNDERPRICED"]);
    for (const index of [0, 1, 4]) expect(answers[index]).toMatchObject({ retriable: true });
    expect(journal.entries.has(cheap.hash)).toBe(false);
    mine(dear.map((tx, index) => ({ tx, from: [bob, carol][index]?.address ?? alice.address })));
    expect(await submit(pool, cheap)).toEqual([cheap.hash]);
    await pool.close();
    expect(journal.entries.has(cheap.hash)).toBe(true);
  });

  it("is not said to be known where it was in the pool before", async () => {
    const { pool, journal, restart } = await createFixture({ limits: { totalCount: 2 } });
    await submit(pool, cheap);
    expect(codes(await submit(pool, ...dear, cheap))).toEqual(["in", "in", "UNDERPRICED"]);
    expect(pool.status(cheap.hash)).toEqual({ status: "dropped", reason: "underpriced" });
    await pool.close();
    expect(journal.entries.has(cheap.hash)).toBe(false);
    expect((await restart()).status(cheap.hash).status).toBe("dropped");
  });

  it("stays known where a block took it meanwhile", async () => {
    const { pool, mine, journal } = await createFixture();
    await submit(pool, cheap);
    const { appendStarted } = journal.hold();
    const answers = submit(pool, cheap, dear[0] ?? cheap);
    await appendStarted;
    mine([{ tx: cheap, from: alice.address }]);
    journal.release();
    expect(codes(await answers)).toEqual(["ALREADY_KNOWN", "in"]);
  });
});

describe("copies of one transaction in one group of the journal", () => {
  const tx = transfer(alice, 0);
  const other = transfer(bob, 0);

  it("are one record, with the place in the order of receipt that the first copy has", async () => {
    const { pool, journal, restart } = await createFixture();
    // A peer's copy holds the place; both clients' copies ask for the record.
    const answers = await Promise.all([
      pool.submit([tx.raw], "peer"),
      submit(pool, tx),
      submit(pool, other),
      submit(pool, tx),
    ]);
    expect(answers.flat().filter(isHash)).toEqual([tx.hash, other.hash]);
    expect(journal.appends).toEqual([2]);
    const records = [...journal.entries.values()].toSorted((a, b) => a.sequence - b.sequence);
    expect(records.map(({ hash }) => hash)).toEqual([tx.hash, other.hash]);
    const again = await restart();
    expect(again.counts()).toEqual({ pending: 2, queued: 0 });
  });

  it("of clients alone are one record, too, and go with it", async () => {
    const { pool, journal, mine } = await createFixture();
    const answers = await submit(pool, tx, tx, other);
    expect(answers.map((answer) => (isHash(answer) ? "in" : refusal(answer).code))).toEqual([
      "in",
      "ALREADY_KNOWN",
      "in",
    ]);
    expect(journal.appends).toEqual([2]);
    mine([{ tx, from: alice.address }]);
    await pool.close();
    expect([...journal.entries.keys()]).toEqual([other.hash]);
  });
});
