/** What clients sent survives the process; what peers sent is theirs to keep. */
import { describe, expect, it } from "@jest/globals";
import { createHash } from "node:crypto";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { account, createFixture, drain, refusal, submit, transfer } from "./support.js";

const alice = account(1);
const bob = account(2);

describe("a transaction of a peer", () => {
  it("is admitted, announced and offered, and not journalled", async () => {
    const { pool, journal, announced } = await createFixture();
    const tx = transfer(alice, 0);
    expect(await pool.submit([tx.raw], "peer")).toEqual([tx.hash]);
    expect(announced).toEqual([tx.hash]);
    expect(drain(pool).map((entry) => entry.tx.hash)).toEqual([tx.hash]);
    expect(journal.appends).toEqual([]);
  });

  it("leaves clients room to be looked at, however many there are", async () => {
    const { pool } = await createFixture({ limits: { waitingCount: 8 } });
    const many = Array.from({ length: 8 }, (_, index) => transfer(account(10 + index), 0));
    const peers = many.map(({ raw }) => pool.submit([raw], "peer"));
    const own = transfer(alice, 0);
    expect(await submit(pool, own)).toEqual([own.hash]);
    const refused = (await Promise.all(peers)).flat().filter((one) => one instanceof Error);
    expect(refused.map((one) => refusal(one).code)).toEqual(["POOL_FULL", "POOL_FULL"]);
  });

  it("leaves as much of the bytes", async () => {
    const tx = transfer(alice, 0);
    const { pool } = await createFixture({ limits: { waitingBytes: tx.raw.length } });
    expect(refusal((await pool.submit([tx.raw], "peer"))[0]).code).toBe("POOL_FULL");
    expect(await submit(pool, tx)).toEqual([tx.hash]);
  });

  it("finds room, however many of Cosmos' wait: those of peers, and those of clients", async () => {
    const { pool } = await createFixture({ limits: { waitingCount: 8 } });
    const [mine, theirs] = [transfer(alice, 0), transfer(bob, 0)];
    const full = ["client", "peer"] as const;
    const cosmos = full.flatMap((origin) => {
      return Array.from({ length: 8 }, () => pool.submit([Buffer.from([0x0a])], origin));
    });
    const answers = await Promise.all([pool.submit([theirs.raw], "peer"), submit(pool, mine)]);
    expect(answers.flat()).toEqual([theirs.hash, mine.hash]);
    const refused = (await Promise.all(cosmos)).flat().map((one) => refusal(one).code);
    expect(refused.filter((code) => code === "POOL_FULL")).toHaveLength(2 + 4);
    expect(pool.stats().waitingCount).toBe(0);
  });

  it("shares a group with a client's, which alone is written", async () => {
    const { pool, journal, restart } = await createFixture();
    const [own, foreign] = [transfer(alice, 0), transfer(bob, 0)];
    await Promise.all([submit(pool, own), pool.submit([foreign.raw], "peer")]);
    expect([...journal.entries.keys()]).toEqual([own.hash]);
    const again = await restart();
    expect(again.status(own.hash)).toEqual({ status: "pending" });
    expect(again.status(foreign.hash)).toEqual({ status: "unknown" });
  });

  it("is journalled before a client who sends it too is answered", async () => {
    const { pool, journal, restart } = await createFixture();
    const tx = transfer(alice, 0);
    await pool.submit([tx.raw], "peer");
    expect(refusal((await submit(pool, tx))[0]).code).toBe("ALREADY_KNOWN");
    expect([...journal.entries.keys()]).toEqual([tx.hash]);
    // Once is enough.
    expect(refusal((await submit(pool, tx))[0]).code).toBe("ALREADY_KNOWN");
    expect(journal.appends).toEqual([1]);
    expect((await restart()).status(tx.hash)).toEqual({ status: "pending" });
  });

  it("is journalled for a client who sends it in the same moment, in either order", async () => {
    for (const isPeerFirst of [true, false]) {
      const { pool, journal } = await createFixture();
      const tx = transfer(alice, 0);
      const calls = [() => pool.submit([tx.raw], "peer"), () => submit(pool, tx)];
      const ordered = isPeerFirst ? calls : calls.toReversed();
      await Promise.all(ordered.map((call) => call()));
      expect([isPeerFirst, ...journal.entries.keys()]).toEqual([isPeerFirst, tx.hash]);
      expect(pool.counts()).toEqual({ pending: 1, queued: 0 });
    }
  });

  it("leaves nothing to delete when it is replaced, dropped or mined", async () => {
    const { pool, journal, mine } = await createFixture();
    const dear = transfer(alice, 0, { priceAtoken: 20n });
    await pool.submit([transfer(alice, 0, { priceAtoken: 10n }).raw, dear.raw], "peer");
    await pool.submit([transfer(bob, 0).raw], "peer");
    pool.drop(transfer(bob, 0).hash, "a test");
    mine([{ tx: dear, from: alice.address }]);
    await pool.close();
    expect(pool.counts()).toEqual({ pending: 0, queued: 0 });
    expect(journal.removals).toEqual([]);
  });

  it("is taken back from the journal when it leaves while it is written for a client", async () => {
    const { pool, journal, mine } = await createFixture();
    const tx = transfer(alice, 0);
    await pool.submit([tx.raw], "peer");
    const { appendStarted } = journal.hold();
    const answer = submit(pool, tx);
    await appendStarted;
    mine([{ tx, from: alice.address }]);
    journal.release();
    expect(refusal((await answer)[0]).code).toBe("ALREADY_KNOWN");
    await pool.close();
    expect([...journal.entries.keys()]).toEqual([]);
  });
});

describe("a transaction in the pool", () => {
  it("is found by the SHA-256 of the SDK Tx around it, as long as it is there", async () => {
    const { pool, mine } = await createFixture();
    const tx = transfer(alice, 0);
    await submit(pool, tx);
    const bytes = encodeSdkTransaction(tx, alice.address);
    const hash = `0x${createHash("sha256").update(bytes).digest("hex")}` as never;
    expect(pool.getBySdkHash(hash)).toBe(pool.get(tx.hash));
    expect(pool.getBySdkHash(tx.hash)).toBeUndefined();
    expect([pool.status(hash), pool.status(tx.hash)]).toEqual([
      { status: "pending" },
      { status: "pending" },
    ]);
    mine([{ tx, from: alice.address }]);
    expect(pool.getBySdkHash(hash)).toBeUndefined();
  });
});
