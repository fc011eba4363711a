/** Requests whose deposit a chain has lost: what has a nonce, what is frozen, what was paid before. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { entriesOfDeposit } from "../../../ledger/deposits/deposit-evidence.js";
import { listEvents } from "../../helpers/events.js";
import { cancelWithdrawal } from "../../../ledger/withdrawals/cancellation.js";
import { resumeUnpaid } from "../../../ledger/withdrawals/operator-decisions.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { standing } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { Desk, destination, STRANGER, TOKEN } from "./desk.js";

/** What 5 TOKEN and 1 atoken are short of, with 4 TOKEN asked for and the 5 gone. */
const SHORT = 4n * TOKEN - 1n;

const REASON = ["--reason", "it was not"];

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** Bob is paid 1 atoken in a block that stays, and 5 TOKEN behind it. */
async function lend() {
  const { address } = await desk.register("bob");
  desk.pay([address, 1n]);
  await desk.watch();
  const kept = desk.chain.head;
  const payment = desk.chain.payment(STRANGER, address, 5n * TOKEN);
  desk.chain.mine([payment]);
  desk.chain.mine();
  await desk.watch();
  return { address, kept, payment };
}

const ask = (key: string, amountAtoken: bigint, place = 1) =>
  desk.request({ key, customer: "bob", to: destination(place), amountAtoken });

async function loseAbove(height: number): Promise<string> {
  await desk.loseAbove(height);
  const { code, text } = await desk.causeway("recover", "--apply");
  expect({ code, text: code === 0 ? "" : text }).toEqual({ code: 0, text: "" });
  desk.chain.mine();
  await desk.watch();
  return text;
}

async function heldAtoken(): Promise<bigint> {
  const [row] = await desk.database.query<{ held: string }>(
    `SELECT held_units::text AS held FROM customer_balance WHERE customer_id = 'bob'`,
  );
  return BigInt(row?.held ?? "0");
}

/** Bob's balance as somebody counts it who reads nothing but events; holds are in it. */
async function countedAtoken(): Promise<bigint> {
  let sum = 0n;
  for (const { type, data } of await listEvents(desk.database, { afterSeq: 0, limit: 1_000 })) {
    if (data["customerId"] !== "bob") continue;
    const atoken = (field: string) => BigInt(String(data[field]));
    if (type === "deposit.credited") sum += atoken("creditedAtoken");
    if (type === "deposit.reversed") sum -= atoken("debitedAtoken");
    if (type === "withdrawal.settled") sum -= atoken("amountAtoken");
  }
  return sum;
}

it("pays what has a nonce, once, and says that nobody's coins cover it", async () => {
  const { kept } = await lend();
  desk.chain.unmined.add(destination(1));
  const { id } = await ask("w", 4n * TOKEN);
  await desk.lane().runRound(desk.signal);
  expect((await desk.read(id)).status).toBe("broadcast");
  const text = await loseAbove(kept);
  expect(text).toContain("customers have withdrawn 3.999999999999999999 TOKEN");
  expect([(await desk.read(id)).status, await heldAtoken()]).toEqual(["broadcast", 4n * TOKEN]);
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([0n, SHORT]);
  desk.chain.unmined.clear();
  await desk.causeway("withdrawals", "release");
  await desk.work();
  await desk.watch();
  expect([(await desk.read(id)).status, await heldAtoken()]).toEqual(["settled", 0n]);
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([0n, SHORT]);
  expect(await desk.breaks()).toBe("");
});

it("gives a hold that comes back to what is short of the deposit first", async () => {
  const { address, kept, payment } = await lend();
  desk.chain.unmined.add(destination(1));
  const { id } = await ask("w", 4n * TOKEN);
  await desk.lane().runRound(desk.signal);
  await loseAbove(kept);
  expect(await desk.breakAtoken()).toBe(SHORT);
  // What is asked for afterwards is of other coins, which are nobody's debt.
  desk.pay([address, 2n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const later = await ask("later", 2n * TOKEN, 2);
  await cancelWithdrawal(desk.database, later.id, "not wanted any more");
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([
    2n * TOKEN,
    SHORT,
  ]);
  await cancelWithdrawal(desk.database, id, "not wanted any more");
  await desk.causeway("withdrawals", "release");
  await desk.work(6);
  await desk.watch();
  expect([(await desk.read(id)).status, await heldAtoken()]).toEqual(["cancelled", 0n]);
  expect(desk.paidAtoken(destination(1))).toBe(0n);
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([
    2n * TOKEN + 1n,
    0n,
  ]);
  expect(await countedAtoken()).toBe(2n * TOKEN + 1n);
  expect(await desk.breaks()).toBe("");
  const [lost] = await desk.database.query<{ id: string }>(
    `SELECT id FROM deposit WHERE status = 'reversed'`,
  );
  const entries = await entriesOfDeposit(desk.database, lost?.id ?? "");
  expect(entries.map(({ kind }) => kind)).toEqual([
    "deposit.credit",
    "deposit.reversal",
    "deposit.reversal",
  ]);
  // Mined again, it is bob's as a whole; lost again, it is taken as a whole.
  const before = desk.chain.head;
  desk.chain.mine([payment]);
  desk.chain.mine();
  await desk.watch();
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([
    7n * TOKEN + 1n,
    0n,
  ]);
  await loseAbove(before);
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([
    2n * TOKEN + 1n,
    0n,
  ]);
  expect(await countedAtoken()).toBe(2n * TOKEN + 1n);
  expect(await desk.breaks()).toBe("");
});

it("leaves a hold that comes back when the deposit is there again to its customer", async () => {
  const { kept, payment } = await lend();
  desk.chain.unmined.add(destination(1));
  const { id } = await ask("w", 4n * TOKEN);
  await desk.lane().runRound(desk.signal);
  await loseAbove(kept);
  const again = desk.chain.head;
  desk.chain.mine([payment]);
  desk.chain.mine();
  await desk.watch();
  // The hold counts as withdrawn: its coins are what the deposit has brought back.
  const first = [await desk.availableAtoken("bob"), await heldAtoken(), await desk.breakAtoken()];
  expect(first).toEqual([TOKEN + 1n, 4n * TOKEN, 0n]);
  await cancelWithdrawal(desk.database, id, "not wanted any more");
  await desk.causeway("withdrawals", "release");
  await desk.work(6);
  await desk.watch();
  expect([(await desk.read(id)).status, await heldAtoken()]).toEqual(["cancelled", 0n]);
  const all = 5n * TOKEN + 1n;
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([all, 0n]);
  expect(await countedAtoken()).toBe(all);
  expect(await desk.breaks()).toBe("");
  // Lost once more it is taken as a whole, whatever had filled what it was short of.
  await loseAbove(again);
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([1n, 0n]);
  desk.chain.mine([payment]);
  desk.chain.mine();
  await desk.watch();
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([all, 0n]);
  expect(await desk.breaks()).toBe("");
});

/** Bob's coins, of which a ledger that was put back and recovered does not know who got one payment. */
async function forgetPayment(fundedAtoken: bigint, paidAtoken: bigint) {
  const { address } = await desk.register("bob");
  desk.pay([address, fundedAtoken]);
  desk.chain.mine();
  await desk.watch();
  const backup = await desk.backup();
  await ask("lost", paidAtoken);
  await desk.work();
  await desk.register("carol");
  await desk.useDatabase(backup);
  await desk.watch();
  await desk.causeway("recover", "--apply");
  await desk.watch();
  return { address };
}

it("keeps a request that a lost ledger had paid for a person, and ends the others", async () => {
  const { address } = await forgetPayment(5n * TOKEN, TOKEN);
  const [hash = ""] = desk.ownHashes();
  desk.pay([address, 1n]);
  await desk.watch();
  const kept = desk.chain.head;
  desk.pay([address, 3n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const other = await ask("other", 6n * TOKEN, 2);
  // Nobody has looked at it since: it waits like any other.
  const paid = await ask("again", TOKEN);
  expect((await desk.read(paid.id)).status).toBe("accepted");
  await loseAbove(kept);
  const status = async () => [
    (await desk.read(other.id)).status,
    (await desk.read(paid.id)).status,
  ];
  expect(await status()).toEqual(["rejected", "frozen"]);
  expect([await desk.availableAtoken("bob"), await heldAtoken()]).toEqual([4n * TOKEN + 1n, TOKEN]);
  const link = ["ledger", "link-payment", hash, "--withdrawal", paid.id, "--reason", "it is"];
  expect(await desk.causeway(...link)).toMatchObject({ code: 0 });
  await desk.work();
  await desk.watch();
  expect(await status()).toEqual(["rejected", "settled"]);
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect([await desk.availableAtoken("bob"), await heldAtoken()]).toEqual([4n * TOKEN + 1n, 0n]);
  expect(await desk.breakAtoken()).toBe(0n);
  expect(await desk.breaks()).toBe("");
});

it("does not pay what froze while its coins vanished, when a person lets it go on", async () => {
  const { address } = await forgetPayment(3n * TOKEN, 3n * TOKEN);
  await ask("other", 3n * TOKEN, 2);
  await desk.work();
  await desk.watch();
  expect(await desk.availableAtoken("bob")).toBe(0n);
  const [kept, before] = [desk.chain.head, await desk.breakAtoken()];
  desk.pay([address, 3n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const { id } = await ask("again", 3n * TOKEN);
  expect((await desk.read(id)).status).toBe("accepted");
  await loseAbove(kept);
  expect([(await desk.read(id)).status, (await desk.breakAtoken()) - before]).toEqual([
    "frozen",
    3n * TOKEN,
  ]);
  const { code } = await desk.causeway("ledger", "pay-withdrawal", id, ...REASON);
  expect(code).toBe(0);
  await desk.causeway("withdrawals", "release");
  await desk.work();
  await desk.watch();
  // The payment of the lost ledger, and none beside it.
  expect(desk.paidAtoken(destination(1))).toBe(3n * TOKEN);
  expect([(await desk.read(id)).status, await heldAtoken()]).toEqual(["rejected", 0n]);
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([0n, before]);
  expect(await desk.breaks()).toBe("");
});

/** A request of 4 TOKEN that a recovered ledger has frozen, and the loss of the deposit behind it. */
async function loseFrozen() {
  const { kept, payment } = await lend();
  const { id } = await ask("w", 4n * TOKEN);
  const backup = await desk.backup();
  await desk.register("carol");
  await desk.useDatabase(backup);
  await desk.watch();
  // What waits in a ledger that came back waits for a person.
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  expect((await desk.read(id)).status).toBe("frozen");
  expect(await loseAbove(kept)).toContain(`frozen: ${id} is not paid`);
  return { id, payment };
}

it("does not pay a request that was frozen without a nonce, when a person lets it go on", async () => {
  const { id } = await loseFrozen();
  const { code } = await desk.causeway("withdrawals", "release", id, "--not-paid", ...REASON);
  expect(code).toBe(0);
  await desk.causeway("withdrawals", "release");
  await desk.work();
  await desk.watch();
  expect([(await desk.read(id)).status, await heldAtoken()]).toEqual(["rejected", 0n]);
  expect(desk.paidAtoken(destination(1))).toBe(0n);
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([1n, 0n]);
  expect(await countedAtoken()).toBe(1n);
  expect(await desk.breaks()).toBe("");
});

it("ends what waits beside a request that freezes while its coins vanish", async () => {
  const { address } = await forgetPayment(3n * TOKEN, 3n * TOKEN);
  const kept = desk.chain.head;
  desk.pay([address, 3n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const older = await ask("older", 3n * TOKEN, 2);
  const again = await ask("again", 3n * TOKEN);
  await loseAbove(kept);
  // The frozen one may have been paid: its hold covers nothing that is gone.
  expect([(await desk.read(older.id)).status, (await desk.read(again.id)).status]).toEqual([
    "rejected",
    "frozen",
  ]);
  await desk.work();
  await desk.watch();
  expect(desk.paidAtoken(destination(2))).toBe(0n);
  expect([await desk.availableAtoken("bob"), await heldAtoken()]).toEqual([0n, 3n * TOKEN]);
  expect(await desk.breaks()).toBe("");
});

it("ends what a customer had taken back first, whatever words the customer used", async () => {
  const { address } = await desk.register("bob");
  desk.pay([address, 2n * TOKEN + 1n]);
  await desk.watch();
  const kept = desk.chain.head;
  desk.pay([address, 2n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const wanted = await ask("wanted", 2n * TOKEN);
  const other = await ask("other", 2n * TOKEN, 2);
  const backup = await desk.backup();
  await desk.register("carol");
  await desk.useDatabase(backup);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  await cancelWithdrawal(desk.database, other.id, "rule DEPOSIT_LOST: typed by a customer");
  await loseAbove(kept);
  for (const { id } of [wanted, other]) {
    expect((await desk.read(id)).status).toBe("frozen");
    const release = await desk.causeway("withdrawals", "release", id, "--not-paid", ...REASON);
    expect(release.code).toBe(0);
  }
  await desk.causeway("withdrawals", "release");
  await desk.work();
  await desk.watch();
  expect((await desk.read(other.id)).status).toBe("cancelled");
  expect((await desk.read(wanted.id)).status).toBe("settled");
  expect([desk.paidAtoken(destination(1)), await heldAtoken()]).toEqual([2n * TOKEN, 0n]);
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([1n, 0n]);
  expect(await desk.breaks()).toBe("");
});

it("lets a frozen request cover one lost deposit, and not each of several", async () => {
  const { address } = await desk.register("bob");
  desk.pay([address, 1n]);
  await desk.watch();
  const kept = desk.chain.head;
  desk.pay([address, 2n * TOKEN], [address, 2n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const asked = [await ask("first", 2n * TOKEN), await ask("second", 2n * TOKEN, 2)];
  const backup = await desk.backup();
  await desk.register("carol");
  await desk.useDatabase(backup);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  await loseAbove(kept);
  for (const { id } of asked) {
    expect((await desk.read(id)).status).toBe("frozen");
    const release = await desk.causeway("withdrawals", "release", id, "--not-paid", ...REASON);
    expect(release.code).toBe(0);
  }
  await desk.causeway("withdrawals", "release");
  await desk.work();
  await desk.watch();
  expect([desk.paidAtoken(destination(1)), desk.paidAtoken(destination(2))]).toEqual([0n, 0n]);
  for (const { id } of asked) expect((await desk.read(id)).status).toBe("rejected");
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([1n, 0n]);
  expect(await desk.breaks()).toBe("");
});

it("takes what is short once where its hold comes back while it is mined again", async () => {
  const { id, payment } = await loseFrozen();
  expect(await desk.breakAtoken()).toBe(SHORT);
  desk.chain.mine([payment]);
  await desk.watch();
  let watching: Promise<void> | undefined;
  await standing(desk.database, async (tx) => {
    const inside = {
      ...desk.database,
      transaction: <T>(work: (inner: Sql) => Promise<T>) => work(tx),
    };
    const { reason = "" } = await desk.read(id);
    expect(await resumeUnpaid(inside, { id, reason })).toBe(true);
    desk.chain.mine();
    watching = desk.watch();
    watching.catch(() => undefined);
    const waiting = `SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                      WHERE NOT l.granted AND a.datname = current_database()`;
    await until(async () => (await desk.database.query(waiting)).length > 0, {
      timeoutMs: 20_000,
      what: "the watcher waits for the one that ends it",
    });
  });
  await watching;
  expect([(await desk.read(id)).status, await heldAtoken()]).toEqual(["rejected", 0n]);
  expect([await desk.availableAtoken("bob"), await desk.breakAtoken()]).toEqual([
    5n * TOKEN + 1n,
    0n,
  ]);
  expect(await desk.breaks()).toBe("");
});
