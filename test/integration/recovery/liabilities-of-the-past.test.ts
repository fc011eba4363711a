/** What was owed at a block stays what it was, whatever persons decide about later blocks afterwards. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import {
  customerAccount,
  NATIVE_ASSET,
  parseCustomerId,
  SUSPENSE,
  WRITE_OFF,
} from "../../../ledger/journal/accounts.js";
import { postJournal } from "../../../ledger/journal/journal.js";
import { readLiabilities } from "../../../ledger/books/liabilities.js";
import { Desk, derivation, destination, STRANGER, TOKEN, WALLET } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

const REASON = ["--reason", "looked at the chain"];

/** What is owed to whom after a block, in TOKEN alone. */
async function owedAt(height: number): Promise<Record<string, bigint>> {
  const { liabilities } = await readLiabilities(desk.database, { height });
  return Object.fromEntries(liabilities.map(({ customerId, units }) => [customerId, units]));
}

it("leaves blocks alone that were before a deposit which a person assigned", async () => {
  desk.chain.mine();
  desk.pay([derivation.addressAt(0), 5n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.register("alice");
  await desk.watch();
  expect(await owedAt(2)).toEqual({ "causeway:suspense": 5n * TOKEN });
  const [row] = await desk.database.query<{ id: string }>(`SELECT id FROM deposit`);
  await desk.causeway("ledger", "assign-deposit", row?.id ?? "", "--customer", "alice", ...REASON);
  expect(await desk.availableAtoken("alice")).toBe(5n * TOKEN);
  expect([await owedAt(1), await owedAt(2)]).toEqual([{}, { alice: 5n * TOKEN }]);
});

it("knows the block of decisions that former releases booked without one", async () => {
  const height = desk.chain.mine().height;
  desk.pay([derivation.addressAt(0), 5n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.register("alice");
  await desk.watch();
  const [row] = await desk.database.query<{ id: string }>(`SELECT id FROM deposit`);
  await postJournal(desk.database, {
    kind: "ledger.suspense_release",
    idemKey: `suspense-release:${row?.id}`,
    effectiveHeight: null,
    postings: [
      {
        asset: NATIVE_ASSET,
        debit: SUSPENSE,
        credit: customerAccount(parseCustomerId("alice")),
        amountUnits: 5n * TOKEN,
      },
    ],
  });
  expect([await owedAt(height), await owedAt(height + 1)]).toEqual([{}, { alice: 5n * TOKEN }]);
});

it("leaves blocks alone that were before a payment which a person linked", async () => {
  const { address } = await desk.register("alice");
  desk.chain.mine();
  desk.pay([address, 10n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const backup = await desk.backup();
  const before = desk.chain.head;
  const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
  await desk.request({ key: "lost", ...fields });
  await desk.work();
  await desk.register("bob");
  await desk.watch();
  const [hash = ""] = desk.ownHashes();
  await desk.useDatabase(backup);
  await desk.watch();
  await desk.causeway("recover", "--apply");
  await desk.watch();
  const again = await desk.request({ key: "lost", ...fields });
  await desk.work(1);
  await desk.watch();
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", again.id, ...REASON);
  expect((await desk.read(again.id)).status).toBe("settled");
  expect(await desk.availableAtoken("alice")).toBe(9n * TOKEN);
  const heights = [0, before, desk.chain.head - 1];
  expect(await Promise.all(heights.map(owedAt))).toEqual([
    {},
    { alice: 10n * TOKEN },
    { alice: 9n * TOKEN },
  ]);
});

it("owes at each block what corrections had given, where they are made again with their block", async () => {
  const kept = await withAlice();
  const backup = await desk.backup();
  const given = ["--debit", "equity:adjustment", "--credit", "liability:customer:alice"];
  const words = ["ledger", "adjust", "--key", "opening", ...given];
  const again = [...words, "--amount-atoken", String(5n * TOKEN), ...REASON];
  expect((await desk.causeway(...again)).code).toBe(0);
  desk.chain.mine();
  const fields = { customer: "alice", to: destination(1), amountAtoken: 12n * TOKEN };
  await desk.request({ key: "covered", ...fields });
  await desk.work();
  await desk.register("bob");
  await desk.watch();
  const paid = desk.chain.head - 1;
  const [hash = ""] = desk.ownHashes();
  await desk.useDatabase(backup);
  const recovered = await desk.causeway("recover", "--apply");
  expect(recovered.text).toMatch(/corrections of the books: .*before you link payments.*--block/);
  desk.chain.mine();
  await desk.watch();
  const claim = ["--customer", "alice", "--idempotency-key", "covered", ...REASON];
  const link = () => desk.causeway("ledger", "link-payment", hash, ...claim);
  await expect(link()).rejects.toThrow("INSUFFICIENT_BALANCE");
  const linked = await desk.backup();
  // From now on: what it had paid for is of the blocks before.
  await desk.causeway(...again);
  await link();
  await expect(owedAt(paid)).rejects.toMatchObject({ code: "NEGATIVE_LIABILITY" });
  await desk.useDatabase(linked);
  await desk.causeway(...again, "--block", String(kept));
  expect((await link()).code).toBe(0);
  const owed = await Promise.all([kept - 2, kept, paid, desk.chain.head].map(owedAt));
  expect(owed).toEqual([{}, ...[15n, 3n, 3n].map((units) => ({ alice: units * TOKEN }))]);
});

/** Takes 3 TOKEN from alice by a correction that names no block, and goes on for some blocks. */
async function correct(): Promise<void> {
  const sides = ["--debit", "liability:customer:alice", "--credit", "expense:write_off"];
  const terms = ["--key", "fee", "--amount-atoken", String(3n * TOKEN)];
  expect((await desk.causeway("ledger", "adjust", ...sides, ...terms, ...REASON)).code).toBe(0);
  desk.chain.mine();
  await desk.watch();
}

/** The same as releases before booked it: of no block. */
function correctAsBefore(): Promise<unknown> {
  const debit = customerAccount(parseCustomerId("alice"));
  const [asset, credit, amountUnits] = [NATIVE_ASSET, WRITE_OFF, 3n * TOKEN];
  return postJournal(desk.database, {
    kind: "ledger.adjustment",
    idemKey: "adjustment:former",
    effectiveHeight: null,
    postings: [{ asset, debit, credit, amountUnits }],
  });
}

it("leaves blocks alone that were before a correction without a block", async () => {
  for (let block = 0; block < 3; block += 1) desk.chain.mine();
  const kept = await withAlice();
  desk.chain.mine();
  await desk.watch();
  const { head } = desk.chain;
  await correct();
  const heights = [0, kept - 2, kept - 1, head - 1, head, desk.chain.head];
  const before = { alice: 10n * TOKEN };
  const after = { alice: 7n * TOKEN };
  expect(await Promise.all(heights.map(owedAt))).toEqual([{}, {}, before, before, after, after]);
  // The block in which it was made is lost, and the chain stays below it.
  desk.chain.mine();
  await shorten(kept);
  expect([await owedAt(kept - 2), await owedAt(kept - 1), await owedAt(kept)]).toEqual([
    {},
    before,
    after,
  ]);
});

it("has corrections of former releases count from the block of the entry before them", async () => {
  const kept = await withAlice();
  desk.pay([await paidTo("bob"), TOKEN]);
  await desk.watch();
  // What was booked above, and is lost, says nothing of a correction that was made afterwards.
  for (let block = 0; block < 30; block += 1) desk.chain.mine();
  desk.pay([await paidTo("carol"), TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await shorten(kept + 1);
  await correctAsBefore();
  const bob = { bob: TOKEN };
  const found = await Promise.all([-2, -1, 1, 2].map((after) => owedAt(kept + after)));
  expect(found).toEqual([
    {},
    { alice: 10n * TOKEN },
    { alice: 10n * TOKEN, ...bob },
    { alice: 7n * TOKEN, ...bob },
  ]);
});

it("owes nothing of suspense where a correction took what a person has given to its owner since", async () => {
  desk.pay([derivation.addressAt(0), 5n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.register("alice");
  await desk.watch();
  const taken = desk.chain.head;
  const sides = ["--debit", "liability:suspense", "--credit", "equity:adjustment"];
  const terms = ["--key", "given", "--amount-atoken", String(5n * TOKEN)];
  await desk.causeway("ledger", "adjust", ...sides, ...terms, ...REASON);
  expect(await owedAt(taken)).toEqual({});
  desk.chain.mine();
  desk.pay([WALLET, 6n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  const [row] = await desk.database.query<{ id: string }>(`SELECT id FROM deposit`);
  await desk.causeway("ledger", "assign-deposit", row?.id ?? "", "--customer", "alice", ...REASON);
  const alice = { alice: 5n * TOKEN };
  expect([await owedAt(taken - 1), await owedAt(taken), await owedAt(desk.chain.head)]).toEqual([
    alice,
    alice,
    { ...alice, "causeway:suspense": TOKEN },
  ]);
});

async function paidTo(customer: string): Promise<Address> {
  return (await desk.register(customer)).address;
}

/** The chain comes back without the blocks above this one, is recovered, and stays shorter than it was. */
async function shorten(kept: number, code = 0): Promise<void> {
  await desk.loseAbove(kept);
  desk.chain.rollBack(kept);
  desk.chain.mine();
  expect((await desk.causeway("recover", "--apply")).code).toBe(code);
  desk.chain.mine();
  await desk.watch();
}

/** Alice has 10 TOKEN from the block before this one on. */
async function withAlice(): Promise<number> {
  const { address } = await desk.register("alice");
  desk.pay([address, 10n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  return desk.chain.head;
}

it("owes nothing twice after a chain came back shorter with what it had paid", async () => {
  const kept = await withAlice();
  for (let block = 0; block < 30; block += 1) desk.chain.mine();
  const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
  await desk.request({ key: "lost", ...fields });
  await desk.work();
  await desk.watch();
  const former = desk.chain.head;
  await shorten(kept);
  await desk.work(2);
  await desk.causeway("withdrawals", "release");
  await desk.work(2);
  await desk.watch();
  expect(desk.chain.head).toBeLessThan(former);
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect([await owedAt(kept - 1), await owedAt(desk.chain.head - 1)]).toEqual([
    { alice: 10n * TOKEN },
    { alice: 9n * TOKEN },
  ]);
  // The same blocks are lost once more.
  await shorten(kept);
  expect(await owedAt(desk.chain.head)).toEqual({ alice: 9n * TOKEN });
});

it("owes nothing of a deposit that vanished, nor less of a recovered payment that was linked", async () => {
  const kept = await withAlice();
  for (let block = 0; block < 30; block += 1) desk.chain.mine();
  await desk.watch();
  const backup = await desk.backup();
  const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
  await desk.request({ key: "lost", ...fields });
  await desk.work();
  await desk.register("bob");
  await desk.watch();
  const [hash = ""] = desk.ownHashes();
  await desk.useDatabase(backup);
  await desk.watch();
  await desk.causeway("recover", "--apply");
  const again = await desk.request({ key: "lost", ...fields });
  await desk.work(1);
  await desk.watch();
  await desk.causeway("ledger", "link-payment", hash, "--withdrawal", again.id, ...REASON);
  const { address } = await desk.register("carol");
  desk.pay([address, 2n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  expect(await owedAt(desk.chain.head)).toEqual({ alice: 9n * TOKEN, carol: 2n * TOKEN });
  // The bytes of a payment that was linked are not here: whoever has them sends them.
  await shorten(kept, 1);
  expect([await owedAt(kept - 1), await owedAt(desk.chain.head)]).toEqual([
    { alice: 10n * TOKEN },
    { alice: 9n * TOKEN },
  ]);
});

it("owes of a deposit that is mined again what its customer gets of it, before it is credited, too", async () => {
  const address = await paidTo("bob");
  await desk.watch();
  const kept = desk.chain.head;
  const payment = desk.chain.payment(STRANGER, address, 5n * TOKEN);
  desk.chain.mine([payment]);
  desk.chain.mine();
  await desk.watch();
  const withdrawn = { customer: "bob", to: destination(1), amountAtoken: 4n * TOKEN };
  await desk.request({ key: "spent", ...withdrawn });
  await desk.work();
  await desk.watch();
  await desk.loseAbove(kept);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  desk.chain.mine([payment]);
  await desk.watch();
  const { head } = desk.chain;
  const [row] = await desk.database.query(`SELECT status FROM deposit WHERE height = $1`, [head]);
  expect([row, await owedAt(head)]).toEqual([{ status: "detected" }, { bob: TOKEN }]);
  desk.chain.mine();
  await desk.watch();
  expect([await owedAt(head - 1), await owedAt(head)]).toEqual([{}, { bob: TOKEN }]);
});
