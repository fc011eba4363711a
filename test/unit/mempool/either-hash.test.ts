/** What became of an EVM transaction is told by its own hash and by that of the SDK Tx around it. */
import { describe, expect, it } from "@jest/globals";
import { sdkTransactionHash } from "../../../chain/consensus/sdk-transaction.js";
import type { Mempool } from "../../../node/mempool/mempool.js";
import { account, createFixture, submit, transfer } from "./support.js";

const alice = account(1);
const bob = account(2);

type Transfer = ReturnType<typeof transfer>;

/** By the hash of consensus, and by its own. */
function bothOf(pool: Mempool, tx: Transfer, { address } = alice) {
  return [pool.status(sdkTransactionHash(tx, address)), pool.status(tx.hash)];
}

const twice = (status: object) => [status, status];

describe("the fate of an EVM transaction", () => {
  it("is told by either hash when it is replaced, also after a restart", async () => {
    const { pool, restart } = await createFixture();
    const [first, second] = [10n, 20n].map((priceAtoken) => transfer(alice, 0, { priceAtoken }));
    await submit(pool, first as Transfer, second as Transfer);
    const fate = { status: "replaced", by: second?.hash };
    expect(bothOf(pool, first as Transfer)).toEqual(twice(fate));
    // What leaves is written with what comes next.
    await submit(pool, transfer(bob, 0));
    const again = await restart();
    expect(bothOf(again, first as Transfer)).toEqual(twice(fate));
    expect(bothOf(again, second as Transfer)).toEqual(twice({ status: "pending" }));
  });

  it("is told by either hash when it makes room, and when it can no longer be paid", async () => {
    const { pool, state, mine, restart } = await createFixture({ limits: { totalCount: 1 } });
    const cheap = transfer(alice, 0, { priceAtoken: 10n });
    const dear = transfer(bob, 0, { priceAtoken: 20n });
    await submit(pool, cheap);
    await submit(pool, dear);
    const outbid = twice({ status: "dropped", reason: "underpriced" });
    expect(bothOf(pool, cheap)).toEqual(outbid);
    state.balances.set(bob.address, 1n);
    mine([], [bob.address]);
    const unpaid = twice({ status: "dropped", reason: expect.stringContaining("insufficient") });
    expect(bothOf(pool, dear, bob)).toEqual(unpaid);
    await submit(pool, transfer(account(3), 0));
    const again = await restart();
    expect([bothOf(again, cheap), bothOf(again, dear, bob)]).toEqual([outbid, unpaid]);
  });

  it("is forgotten by either hash when it comes back or is mined after all", async () => {
    const { pool, mine, mined } = await createFixture({ limits: { totalCount: 1 } });
    const [cheap, dear] = [transfer(alice, 0, { priceAtoken: 10n }), transfer(bob, 0)];
    await submit(pool, cheap);
    await submit(pool, dear);
    mine([{ tx: dear, from: bob.address }]);
    await submit(pool, cheap);
    expect(bothOf(pool, cheap)).toEqual(twice({ status: "pending" }));
    pool.drop(cheap.hash, "for this test");
    expect(bothOf(pool, cheap)).toEqual(twice({ status: "dropped", reason: "for this test" }));
    mine([{ tx: cheap, from: alice.address }]);
    mined.clear();
    expect(bothOf(pool, cheap)).toEqual(twice({ status: "unknown" }));
  });

  it("is not told of one that is in the head's block, while the pool lets go of it", async () => {
    const { pool, mineInSteps, mined } = await createFixture();
    const tx = transfer(alice, 0);
    await submit(pool, tx);
    pool.drop(tx.hash, "for this test");
    const steps = mineInSteps([{ tx, from: alice.address }]);
    mined.clear();
    expect(bothOf(pool, tx)).toEqual(twice({ status: "unknown" }));
    for (const _ of steps);
    expect(bothOf(pool, tx)).toEqual(twice({ status: "unknown" }));
  });

  it("is forgotten by both hashes where the last ones have no room for it", async () => {
    const { pool } = await createFixture({ limits: { outcomeCount: 1 } });
    const list = [10n, 20n, 30n].map((priceAtoken) => transfer(alice, 0, { priceAtoken }));
    await submit(pool, ...list);
    const statuses = list.map((tx) => bothOf(pool, tx).map(({ status }) => status));
    expect(statuses).toEqual([
      ["unknown", "unknown"],
      ["replaced", "replaced"],
      ["pending", "pending"],
    ]);
  });
});
