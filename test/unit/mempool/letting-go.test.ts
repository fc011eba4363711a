/** While the pool lets go of a block, step by step, nobody sees anything of it as pending. */
import { describe, expect, it } from "@jest/globals";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { createPoolEntry } from "../../../node/mempool/order/pool-entry.js";
import { account, createFixture, drain, evmOnly, submit, transfer } from "./support.js";

const alice = account(1);
const bob = account(2);

const a0 = transfer(alice, 0);
const a1 = transfer(alice, 1);
const a2 = transfer(alice, 2);
const b0 = transfer(bob, 0);

/** A pool that has all four, of which a block has taken a0, a1 and b0; no step is done yet. */
async function afterTheHead() {
  const fixture = await createFixture();
  await submit(fixture.pool, a0, a1, a2, b0);
  const taken = evmOnly(drain(fixture.pool)).filter(({ tx }) => tx.hash !== a2.hash);
  const steps = fixture.mineInSteps(taken);
  return { ...fixture, pool: fixture.pool, steps };
}

type After = Awaited<ReturnType<typeof afterTheHead>>;

/** Everything that the pool says about the four. */
function said({ pool }: Pick<After, "pool">) {
  return {
    seen: [a0, a1, a2, b0].map(({ hash }) => pool.get(hash) !== undefined),
    status: [a0, a1, a2, b0].map(({ hash }) => pool.status(hash).status),
    nonces: [alice, bob].map(({ address }) => pool.pendingNonce(address)),
    counts: pool.counts(),
    content: [...pool.senders()].map(([address, { pending, queued }]) => {
      return [address, pending.map(({ tx }) => tx.hash), queued.length];
    }),
    bob: pool.contentFrom(bob.address),
  };
}

const LET_GO = {
  seen: [false, false, true, false],
  status: ["included", "included", "pending", "included"],
  nonces: [3n, 1n],
  counts: { pending: 1, queued: 0 },
  content: [[alice.address, [a2.hash], 0]],
  bob: { pending: [], queued: [] },
};

/** Lets what was begun go on as far as it can. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe("a block's transactions", () => {
  it("are not pending from the moment of the head on, whatever step the pool is at", async () => {
    const after = await afterTheHead();
    expect(said(after)).toEqual(LET_GO);
    const sdkHash = (tx: typeof a0, { address }: typeof alice) =>
      createPoolEntry(tx, address, { sequence: 0, receivedAtMs: 0 }).sdkHash;
    let count = 0;
    do {
      count += 1;
      expect(said(after)).toEqual(LET_GO);
      expect(after.pool.getBySdkHash(sdkHash(a0, alice))).toBeUndefined();
      expect(after.pool.getBySdkHash(sdkHash(a2, alice))?.tx.hash).toBe(a2.hash);
    } while (after.steps.next().done !== true);
    expect(count).toBeGreaterThan(2);
    expect(said(after)).toEqual(LET_GO);
    expect(drain(after.pool).map(({ tx }) => tx.hash)).toEqual([a2.hash]);
    expect([...after.journal.entries.keys()]).toEqual([a2.hash]);
    expect(after.faults).toEqual([]);
  });

  it("are gone before what comes between the steps is judged", async () => {
    const after = await afterTheHead();
    after.steps.next();
    const [b1, a3] = [transfer(bob, 1), transfer(alice, 3)];
    const late = submit(after.pool, b1, a3);
    const again = submit(after.pool, b0);
    await nextTurn();
    allAtOnce(after.steps);
    expect(await late).toEqual([b1.hash, a3.hash]);
    // Sent again, it is of a nonce that is used.
    expect(await again).toEqual([expect.objectContaining({ code: "NONCE_TOO_LOW" })]);
    expect(new Set(drain(after.pool).map(({ tx }) => tx.hash))).toEqual(
      new Set([a2.hash, a3.hash, b1.hash]),
    );
    expect(after.pool.counts()).toEqual({ pending: 3, queued: 0 });
    expect(after.journal.removals.flat()).toEqual([]);
    expect(after.pool.status(b0.hash).status).toBe("included");
  });

  it("are judged anew at the new head when their record is written meanwhile", async () => {
    const fixture = await createFixture();
    await submit(fixture.pool, a0, b0);
    const { appendStarted } = fixture.journal.hold();
    const late = submit(fixture.pool, a1, transfer(bob, 1));
    await appendStarted;
    const steps = fixture.mineInSteps(evmOnly(drain(fixture.pool)));
    steps.next();
    fixture.journal.release();
    await nextTurn();
    allAtOnce(steps);
    expect(await late).toEqual([a1.hash, transfer(bob, 1).hash]);
    expect(fixture.pool.counts()).toEqual({ pending: 2, queued: 0 });
    expect(fixture.pool.status(a0.hash).status).toBe("included");
    expect(fixture.journal.removals.flat()).toEqual([]);
  });

  it("name their rivals as replaced", async () => {
    const fixture = await createFixture();
    await submit(fixture.pool, b0);
    const rival = transfer(bob, 0, { priceAtoken: 90n });
    const steps = fixture.mineInSteps([{ tx: rival, from: bob.address }]);
    const late = submit(fixture.pool, transfer(bob, 1));
    await nextTurn();
    allAtOnce(steps);
    await late;
    const replaced = { status: "replaced", by: rival.hash };
    expect(fixture.pool.status(b0.hash)).toEqual(replaced);
    expect(fixture.pool.counts()).toEqual({ pending: 1, queued: 0 });
  });
});
