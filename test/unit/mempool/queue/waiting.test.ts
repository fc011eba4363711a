/** What waits in the pool, and for how long; what is remembered of what left it. */
import { describe, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../../chain/hex.js";
import type { Mempool } from "../../../../node/mempool/mempool.js";
import { OutcomeHistory } from "../../../../node/mempool/outcome-history.js";
import { account, createFixture, submit, transfer } from "../support.js";

const alice = account(1);
const bob = account(2);
const HOUR_MS = 3_600_000;

describe("bounds", () => {
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
