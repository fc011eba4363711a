/** Drills: the chain comes back without blocks that were booked. Nothing is signed, lost or paid twice. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Desk, destination, derivation, TOKEN, WALLET } from "../desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

const deposits = async () => {
  const rows = await desk.database.query<Record<string, string>>(
    `SELECT id, customer_id, status, amount_units::text AS amount FROM deposit ORDER BY seq`,
  );
  return rows.map((row) => `${row["id"]} ${row["customer_id"]} ${row["status"]} ${row["amount"]}`);
};

/** Alice was paid out once below the height that is kept; everything else is above it. */
async function live(): Promise<number> {
  const alice = await desk.register("alice");
  const bob = await desk.register("bob");
  desk.pay([alice.address, 10n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.request({ key: "a1", customer: "alice", to: destination(1), amountAtoken: TOKEN });
  await desk.work();
  await desk.watch();
  const kept = desk.chain.head;
  desk.pay([bob.address, 5n * TOKEN], [WALLET, 3n]);
  desk.chain.mine();
  await desk.watch();
  await desk.request({
    key: "a2",
    customer: "alice",
    to: destination(2),
    amountAtoken: 2n * TOKEN,
  });
  await desk.request({ key: "b1", customer: "bob", to: destination(3), amountAtoken: 4n * TOKEN });
  await desk.work();
  await desk.watch();
  expect(await desk.breaks()).toBe("");
  expect(await desk.availableAtoken("bob")).toBe(TOKEN);
  return kept;
}

describe("a chain that lost blocks", () => {
  it("gets nothing new signed, is named with what is missing, and comes to what it was", async () => {
    const kept = await live();
    const [first, second, third] = desk.ownHashes();
    const lost = desk.chain.head;
    desk.chain.rollBack(kept);
    expect(desk.chain.nonces.get(WALLET)).toBe(1n);
    const later = { key: "a3", customer: "alice", to: destination(4), amountAtoken: TOKEN };
    const waiting = await desk.request(later);
    // Below the heights that are settled the node is behind; above them its nonce tells.
    await expect(desk.lane().runRound(desk.signal)).rejects.toMatchObject({ code: "NODE_BEHIND" });
    while (desk.chain.head < lost) desk.chain.mine();
    await desk.work(3);
    expect((await desk.read(waiting.id)).status).toBe("accepted");
    expect(desk.chain.nonces.get(WALLET)).toBe(1n);
    const { blockedReason } = desk.lane().status();
    for (const text of [second, third, "nonce 1", "causeway recover"]) {
      expect(blockedReason).toContain(text);
    }
    await desk.watch();
    expect((await desk.causeway("deposits", "status")).text).toContain("HASH_CHANGED");

    const plan = await desk.causeway("recover");
    expect(plan.code).toBe(1);
    for (const text of [
      `missing payment ${second}`,
      `missing payment ${third}`,
      "5 TOKEN of bob",
    ]) {
      expect(plan.text).toContain(text);
    }
    expect(plan.text).not.toContain(`${first}`);
    expect(await deposits()).toHaveLength(2);

    const applied = await desk.causeway("recover", "--apply");
    expect(applied).toMatchObject({ code: 0 });
    expect(applied.text).toContain(`sent again: ${second}: sent`);
    // Bob has one of the five left, four were withdrawn.
    expect(applied.text).toContain("customers have withdrawn 4 TOKEN");
    desk.chain.mine();
    desk.chain.mine();
    await desk.watch();
    expect(desk.ownHashes()).toEqual([first, second, third]);
    expect((await deposits()).map((row) => row.split(" ").slice(1).join(" "))).toEqual([
      `alice credited ${10n * TOKEN}`,
      `bob reversed ${5n * TOKEN}`,
    ]);
    expect(await desk.availableAtoken("bob")).toBe(0n);
    expect(await desk.breaks()).toBe("");
    expect((await desk.causeway("recover")).text).toContain("nothing to do");

    expect((await desk.causeway("withdrawals", "release")).code).toBe(0);
    await desk.work();
    await desk.watch();
    expect((await desk.read(waiting.id)).status).toBe("settled");
    expect([1, 2, 3, 4].map((n) => desk.paidAtoken(destination(n)))).toEqual([
      TOKEN,
      2n * TOKEN,
      4n * TOKEN,
      TOKEN,
    ]);
    expect(await desk.breaks()).toBe("");
  });

  it("is not done with while the node refuses a payment's bytes: the command says so, and tries again", async () => {
    const alice = await desk.register("alice");
    desk.pay([alice.address, 110n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const kept = desk.chain.head;
    // What fills the wallet is in the blocks that are lost.
    desk.pay([WALLET, 10n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const terms = { customer: "alice", to: destination(1), amountAtoken: 105n * TOKEN };
    await desk.request({ key: "a1", ...terms });
    await desk.work();
    await desk.watch();
    const [hash] = desk.ownHashes();
    await desk.loseAbove(kept);

    const refused = await desk.causeway("recover", "--apply");
    expect(refused.code).toBe(1);
    expect(refused.text).toContain(`NOT SENT: ${hash}: the node refuses it (insufficient funds`);
    expect(refused.text).toContain("once that is mended: causeway recover --apply");
    expect(refused.text).not.toContain("sent again");
    desk.pay([WALLET, 10n * TOKEN]);
    desk.chain.mine();
    const sent = await desk.causeway("recover", "--apply");
    expect(sent.text).toContain(`sent again: ${hash}: sent`);
    expect(sent.code).toBe(0);
    // Nobody knows whether the first one arrived: the same bytes are no fault.
    const again = await desk.causeway("recover", "--apply");
    expect(again.text).toContain(`sent again: ${hash}: already known`);
    expect(again.code).toBe(0);
    desk.chain.mine();
    desk.chain.mine();
    await desk.watch();
    expect(desk.paidAtoken(destination(1))).toBe(105n * TOKEN);
    expect(await desk.breaks()).toBe("");
  });

  it("is looked through from below where the worker was paid by it before the watcher met it", async () => {
    const alice = await desk.register("alice");
    const bob = await desk.register("bob");
    desk.pay([alice.address, 10n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const kept = desk.chain.head;
    desk.pay([bob.address, 5n * TOKEN]);
    for (let block = 0; block < 9; block += 1) desk.chain.mine();
    await desk.watch();
    const lost = desk.chain.head;
    desk.chain.rollBack(kept);
    // The watcher is down: others are paid on the chain that came back, and the worker books its payment.
    desk.pay([alice.address, 3n * TOKEN]);
    await desk.request({ key: "a1", customer: "alice", to: destination(1), amountAtoken: TOKEN });
    await desk.work(3);
    expect(desk.chain.head).toBeLessThan(lost);
    while (desk.chain.head <= lost) desk.chain.mine();
    await desk.watch();
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    desk.chain.mine();
    await desk.watch();
    expect(await desk.availableAtoken("alice")).toBe(12n * TOKEN);
    expect(await desk.availableAtoken("bob")).toBe(0n);
    expect(await desk.breaks()).toBe("");
  });

  it("credits a vanished deposit again where it is mined again, at the same place as well", async () => {
    const { address } = await desk.register("alice");
    desk.pay([address, TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const kept = desk.chain.head;
    desk.pay([address, 7n]);
    desk.chain.mine();
    await desk.watch();
    desk.chain.rollBack(kept);
    desk.pay([derivation.addressAt(0), 9n]);
    for (let n = 0; n < 3; n += 1) desk.chain.mine();
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    const height = kept + 1;
    expect(await deposits()).toEqual([
      `1-0-3 alice credited ${TOKEN}`,
      `${height}-0-3 alice reversed 7`,
      `${height}-0-3-r1 alice credited 9`,
    ]);
    expect(await desk.availableAtoken("alice")).toBe(TOKEN + 9n);
    expect(await desk.breaks()).toBe("");
    // The first posting of the vanished deposit is still there, beside its reversal.
    const keys = await desk.database.query(
      `SELECT idem_key FROM journal_entry WHERE idem_key LIKE '%${height}-0-3%' ORDER BY id`,
    );
    expect(keys).toEqual([
      { idem_key: `deposit:${height}-0-3` },
      { idem_key: `reversal:deposit:${height}-0-3` },
      { idem_key: `deposit:${height}-0-3-r1` },
    ]);
  });

  it("is named with payments that only a recovery knows, whose bytes are nowhere", async () => {
    const { address } = await desk.register("alice");
    desk.pay([address, 10n * TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const kept = desk.chain.head;
    await desk.request({ key: "a1", customer: "alice", to: destination(1), amountAtoken: TOKEN });
    await desk.work();
    await desk.watch();
    const [lost = ""] = desk.ownHashes();
    await desk.useEmptyDatabase();
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    const { head } = desk.chain;
    desk.chain.rollBack(kept);
    while (desk.chain.head < head) desk.chain.mine();
    await desk.work(3);
    expect(desk.lane().status().blockedReason).toContain(lost);
    const plan = await desk.causeway("recover");
    expect(plan.text).toContain(
      `missing payment ${lost} (nonce 0): 1 TOKEN of a recovered payment`,
    );
    expect(plan.text).toContain("its bytes are not here");
  });

  it("lets nobody go back on a whole chain, nor by hand", async () => {
    await live();
    expect((await desk.causeway("recover", "--apply")).text).toContain("nothing to do");
    const back = desk.database.query(`UPDATE watch_cursor SET height = 1`);
    await expect(back).rejects.toMatchObject({ details: { sqlState: "23001" } });
    const counted = desk.database.query(`UPDATE watch_cursor SET height = 1, rewinds = 1`);
    await expect(counted).rejects.toMatchObject({ details: { sqlState: "23001" } });
    await expect(
      desk.database.query(`UPDATE deposit SET status = 'detected'`),
    ).rejects.toMatchObject({ details: { sqlState: "23001" } });
  });
});
