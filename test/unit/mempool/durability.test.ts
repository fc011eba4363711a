/** A hash is answered only when it is on disk, and what is on disk survives. */
import { describe, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../chain/hex.js";
import { account, createFixture, drain, refusal, submit, transfer } from "./support.js";

const alice = account(1);
const bob = account(2);

describe("group commit", () => {
  it("writes the journal once for a burst of calls", async () => {
    const { pool, journal } = await createFixture();
    const calls = Array.from({ length: 20 }, (_, nonce) => submit(pool, transfer(alice, nonce)));
    const answers = (await Promise.all(calls)).flat();
    expect(answers).toEqual(Array.from({ length: 20 }, (_, nonce) => transfer(alice, nonce).hash));
    expect(journal.appends).toEqual([20]);
  });

  it("writes once for all calls that arrive while a write is under way", async () => {
    const { pool, journal } = await createFixture();
    const { appendStarted } = journal.hold();
    const first = submit(pool, transfer(alice, 0));
    await appendStarted;
    const later = [1, 2, 3, 4].map((nonce) => submit(pool, transfer(alice, nonce)));
    journal.release();
    await Promise.all([first, ...later]);
    expect(journal.appends).toEqual([1, 4]);
    expect(pool.pendingNonce(alice.address)).toBe(5n);
  });

  it("answers, shows, announces and offers nothing before the write is durable", async () => {
    const { pool, journal, announced } = await createFixture();
    await submit(pool, transfer(alice, 0, { priceAtoken: 10n }));
    const { appendStarted } = journal.hold();
    const next = transfer(alice, 1);
    const replacement = transfer(alice, 0, { priceAtoken: 20n });
    let answered = false;
    const answer = submit(pool, next, replacement).finally(() => {
      answered = true;
    });
    await appendStarted;
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(false);
    expect(pool.get(next.hash)).toBeUndefined();
    expect(pool.status(next.hash)).toEqual({ status: "unknown" });
    expect(pool.pendingNonce(alice.address)).toBe(1n);
    expect(pool.counts()).toEqual({ pending: 1, queued: 0 });
    expect(drain(pool).map(({ tx }) => tx.maxFeePerGasAtoken)).toEqual([10n]);
    expect(announced).toHaveLength(1);
    journal.release();
    expect(await answer).toEqual([next.hash, replacement.hash]);
    expect(drain(pool).map(({ tx }) => tx.hash)).toEqual([replacement.hash, next.hash]);
    expect(announced.slice(1)).toEqual([next.hash, replacement.hash]);
  });

  it("does not write the journal when everything is refused", async () => {
    const { pool, journal, state } = await createFixture();
    state.nonces.set(alice.address, 1n);
    await submit(pool, transfer(alice, 0));
    expect(journal.appends).toEqual([]);
  });

  it("judges again what a block overtook during the write", async () => {
    const { pool, journal, state, mine } = await createFixture();
    const { appendStarted } = journal.hold();
    const late = transfer(alice, 0, { valueAtoken: 5n });
    const next = transfer(alice, 1);
    const answer = submit(pool, late, next);
    await appendStarted;
    mine([{ tx: transfer(alice, 0), from: alice.address }]);
    journal.release();
    const [refused, accepted] = await answer;
    expect(refusal(refused)).toEqual({
      code: "NONCE_TOO_LOW",
      message: "nonce too low: next nonce 1, tx nonce 0",
    });
    expect(accepted).toBe(next.hash);
    expect(state.nonce(alice.address)).toBe(1n);
    await pool.close();
    expect([...journal.entries.keys()]).toEqual([next.hash]);
    expect(pool.stats().admittedTotal).toBe(1);
  });
});

describe("a failed write", () => {
  it("admits nothing of the group, and the same bytes are taken once there is space", async () => {
    const { pool, journal, faults, announced } = await createFixture();
    journal.failAppend = new Error("ENOSPC");
    const list = [transfer(alice, 0), transfer(alice, 1), transfer(alice, 0)];
    for (const answer of await submit(pool, ...list)) {
      expect(answer).toMatchObject({
        code: "NODE_HALTED",
        retriable: true,
        message: "node cannot accept transactions: the pool cannot write its journal",
      });
    }
    expect(faults).toEqual([journal.failAppend]);
    expect(pool.counts()).toEqual({ pending: 0, queued: 0 });
    expect(pool.pendingNonce(alice.address)).toBe(0n);
    expect(announced).toEqual([]);
    expect(drain(pool)).toEqual([]);

    journal.failAppend = undefined;
    expect(await submit(pool, ...list.slice(0, 2))).toEqual(
      list.slice(0, 2).map(({ hash }) => hash),
    );
    await pool.close();
    expect(journal.entries.size).toBe(2);
  });

  it("that reached the disk after all is taken back", async () => {
    const { pool, journal } = await createFixture();
    journal.failAppend = new Error("fsync failed");
    journal.failAfterWriting = true;
    await submit(pool, transfer(alice, 0));
    expect(journal.entries.size).toBe(1);
    journal.failAppend = undefined;
    await submit(pool, transfer(bob, 0));
    await pool.close();
    expect([...journal.entries.keys()]).toEqual([transfer(bob, 0).hash]);
  });

  it("leaves a transaction alone that the group would have replaced", async () => {
    const { pool, journal } = await createFixture();
    const first = transfer(alice, 0);
    await submit(pool, first);
    journal.failAppend = new Error("ENOSPC");
    await submit(pool, transfer(alice, 0, { priceAtoken: 20n }));
    expect(pool.status(first.hash)).toEqual({ status: "pending" });
    expect(drain(pool).map(({ tx }) => tx.hash)).toEqual([first.hash]);
  });

  it("of a read of the state is answered too, and the pool goes on", async () => {
    const { pool, state, faults } = await createFixture();
    state.failing = true;
    const [answer] = await submit(pool, transfer(alice, 0));
    expect(refusal(answer).code).toBe("NODE_HALTED");
    expect(faults).toHaveLength(1);
    state.failing = false;
    expect(await submit(pool, transfer(alice, 0))).toEqual([transfer(alice, 0).hash]);
  });

  it("of a removal is tried again and never takes back what returned", async () => {
    const { pool, journal, clock, mine, faults } = await createFixture();
    const gapped = transfer(alice, 1);
    await submit(pool, gapped);
    journal.failRemove = new Error("EIO");
    clock.atMs += 4 * 3_600_000;
    mine([]);
    expect(pool.status(gapped.hash).status).toBe("dropped");
    await pool.close();
    expect(faults).toEqual([journal.failRemove]);
    expect(journal.entries.has(gapped.hash)).toBe(true);
  });

  it("keeps the journal entry of a dropped transaction that is sent again", async () => {
    const { pool, journal, clock, mine } = await createFixture();
    const gapped = transfer(alice, 1);
    await submit(pool, gapped);
    journal.failRemove = new Error("EIO");
    clock.atMs += 4 * 3_600_000;
    mine([]);
    await submit(pool, gapped, transfer(alice, 0));
    journal.failRemove = undefined;
    await submit(pool, transfer(bob, 0));
    await pool.close();
    expect(journal.entries.has(gapped.hash)).toBe(true);
    expect(pool.status(gapped.hash)).toEqual({ status: "pending" });
  });
});

describe("halt and close", () => {
  it("refuses with the node's reason while it is halted", async () => {
    const { pool, halt } = await createFixture();
    halt.reason = "the disk is full";
    const [answer] = await submit(pool, transfer(alice, 0));
    expect(answer).toMatchObject({
      code: "NODE_HALTED",
      retriable: true,
      message: "node cannot accept transactions: the disk is full",
    });
    halt.reason = undefined;
    expect(await submit(pool, transfer(alice, 0))).toEqual([transfer(alice, 0).hash]);
  });

  it("close waits for the write under way and refuses what comes after", async () => {
    const { pool, journal } = await createFixture();
    const { appendStarted } = journal.hold();
    const answer = submit(pool, transfer(alice, 0));
    await appendStarted;
    let closed = false;
    const closing = pool.close().finally(() => {
      closed = true;
    });
    const [late] = await submit(pool, transfer(alice, 1));
    expect(refusal(late).message).toBe("node cannot accept transactions: it is shutting down");
    expect(closed).toBe(false);
    journal.release();
    await closing;
    expect(await answer).toEqual([transfer(alice, 0).hash]);
  });
});

describe("restart", () => {
  it("brings back every answered transaction, in the order of receipt", async () => {
    const fixture = await createFixture();
    const list = [
      transfer(alice, 0),
      ...Array.from({ length: 30 }, (_, n) => transfer(account(10 + n), 0)),
      transfer(bob, 2),
    ];
    for (const tx of list) await submit(fixture.pool, tx);
    const before = drain(fixture.pool).map(({ tx }) => tx.hash);
    const pool = await fixture.restart();
    expect(drain(pool).map(({ tx }) => tx.hash)).toEqual(before);
    expect(pool.counts()).toEqual({ pending: 31, queued: 1 });
    const later = transfer(bob, 0);
    await submit(pool, later);
    expect(drain(pool).at(-1)?.tx.hash).toBe(later.hash);
  });

  it("leaves out what was mined meanwhile and knows where", async () => {
    const fixture = await createFixture();
    const [first, second] = [transfer(alice, 0), transfer(alice, 1)];
    await submit(fixture.pool, first, second);
    fixture.state.nonces.set(alice.address, 1n);
    fixture.mined.set(first.hash, { height: 9, index: 2, blockHash: first.hash });
    const pool = await fixture.restart();
    expect(pool.status(first.hash)).toEqual({ status: "included", height: 9, index: 2 });
    expect(pool.status(second.hash)).toEqual({ status: "pending" });
    await pool.close();
    expect([...fixture.journal.entries.keys()]).toEqual([second.hash]);
  });

  it("says that a nonce was used by another one", async () => {
    const fixture = await createFixture();
    const rival = transfer(alice, 0);
    await submit(fixture.pool, rival);
    fixture.state.nonces.set(alice.address, 1n);
    const pool = await fixture.restart();
    expect(pool.status(rival.hash)).toEqual({
      status: "dropped",
      reason: "nonce too low: nonce 0 was used by another transaction",
    });
  });

  it("keeps the replacement when the crash came before the replaced one was deleted", async () => {
    const fixture = await createFixture();
    fixture.journal.failRemove = new Error("crash");
    const first = transfer(alice, 0, { priceAtoken: 10n });
    const dear = transfer(alice, 0, { priceAtoken: 20n });
    await submit(fixture.pool, first);
    await submit(fixture.pool, dear);
    expect(fixture.journal.entries.size).toBe(2);
    const pool = await fixture.restart();
    expect(drain(pool).map(({ tx }) => tx.hash)).toEqual([dear.hash]);
    expect(pool.status(first.hash)).toEqual({ status: "replaced", by: dear.hash });
  });

  it("keeps the replacement of a peer's transaction that was sent once more, and refused", async () => {
    const fixture = await createFixture();
    fixture.journal.failRemove = new Error("crash");
    const cheap = transfer(alice, 0, { priceAtoken: 10n });
    const dear = transfer(alice, 0, { priceAtoken: 20n });
    await fixture.pool.submit([cheap.raw], "peer");
    const [accepted, refused] = await submit(fixture.pool, dear, cheap);
    expect([accepted, refusal(refused).code]).toEqual([dear.hash, "REPLACEMENT_UNDERPRICED"]);
    expect([...fixture.journal.entries.keys()]).toEqual([dear.hash]);
    const pool = await fixture.restart();
    expect(drain(pool).map(({ tx }) => tx.hash)).toEqual([dear.hash]);
  });

  it("still knows after restarts what was replaced and what was dropped", async () => {
    const fixture = await createFixture();
    const first = transfer(alice, 0, { priceAtoken: 10n });
    const dear = transfer(alice, 0, { priceAtoken: 20n });
    const gapped = transfer(bob, 5);
    await submit(fixture.pool, first, gapped);
    await submit(fixture.pool, dear);
    fixture.pool.drop(gapped.hash, "some reason");
    await fixture.pool.close();
    const once = await fixture.restart();
    const twice = await fixture.restart();
    for (const pool of [once, twice]) {
      expect(pool.status(first.hash)).toEqual({ status: "replaced", by: dear.hash });
      expect(pool.status(gapped.hash)).toEqual({ status: "dropped", reason: "some reason" });
      expect(pool.status(dear.hash)).toEqual({ status: "pending" });
    }
    await submit(twice, gapped);
    expect(twice.status(gapped.hash).status).toBe("queued");
  });

  it("keeps a later cheaper one when the dropped dearer one was still in the journal", async () => {
    const fixture = await createFixture();
    fixture.journal.failRemove = new Error("crash");
    await submit(fixture.pool, transfer(alice, 1, { priceAtoken: 50n }));
    fixture.clock.atMs += 4 * 3_600_000;
    fixture.mine([]);
    const [first, second] = [transfer(alice, 0), transfer(alice, 1)];
    await submit(fixture.pool, first, second);
    const pool = await fixture.restart();
    expect(drain(pool).map(({ tx }) => tx.hash)).toEqual([first.hash, second.hash]);
  });

  it("takes a transaction that was written twice once", async () => {
    const fixture = await createFixture();
    const tx = transfer(alice, 0);
    await submit(fixture.pool, transfer(bob, 0), tx);
    const entry = fixture.journal.entries.get(tx.hash);
    if (entry === undefined) throw new Error("nothing was journalled");
    fixture.journal.stale.push(entry, { ...entry, sequence: -1 });
    const pool = await fixture.restart();
    expect(drain(pool).map(({ from }) => from)).toEqual([bob.address, alice.address]);
    await pool.close();
    expect(fixture.journal.entries.size).toBe(2);
  });

  it("refuses a damaged journal", async () => {
    const fixture = await createFixture();
    await submit(fixture.pool, transfer(alice, 0));
    const [hash] = [...fixture.journal.entries.keys()];
    const entry = fixture.journal.entries.get(hash as Hash32);
    if (entry === undefined) throw new Error("nothing was journalled");
    fixture.journal.entries.set(entry.hash, { ...entry, raw: transfer(bob, 0).raw });
    await expect(fixture.restart()).rejects.toMatchObject({ code: "INVALID_TRANSACTION" });
  });
});
