/** A watcher that runs on while its ledger is put back: what it remembers of the lost one counts no more. */
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { openIncident } from "../../../ledger/incidents.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { registerWallets } from "../../../ledger/wallets/wallet-registry.js";
import { Desk, destination, TOKEN } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

it("credits on, and gives nobody what the recovered ledger says is nobody's", async () => {
  const book = new AddressBook();
  await desk.watch(book);
  const backup = await desk.backup();
  const alice = await desk.register("alice");
  const bob = await desk.register("bob");
  desk.pay([bob.address, TOKEN]);
  desk.chain.mine();
  await desk.watch(book);
  await desk.useDatabase(backup);
  await desk.watch(book);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch(book);
  desk.pay([alice.address, 2n * TOKEN], [bob.address, 3n * TOKEN]);
  desk.chain.mine();
  await desk.watch(book);
  const rows = await desk.database.query<{ units: string; status: string; customer: string }>(
    `SELECT amount_units::text AS units, status, customer_id AS customer FROM deposit
      WHERE address IN ($1, $2) ORDER BY seq`,
    [alice.address, bob.address],
  );
  const nobodys = { status: "suspense", customer: "causeway:unassigned" };
  expect(rows).toEqual(
    [TOKEN, 2n * TOKEN, 3n * TOKEN].map((units) => ({ units: `${units}`, ...nobodys })),
  );
  expect(await desk.breaks()).toBe("");
});

it("books nothing in a ledger that took the place of the one it had just looked at", async () => {
  await desk.watch();
  const standby = await desk.backup();
  const { address } = await desk.register("bob");
  const before = await desk.guard();
  await desk.useDatabase(standby);
  const cursor = await readCursor(desk.database);
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  const guard = await desk.guard();
  // The standby takes over, or the process stands still, between this look and what follows it.
  jest.spyOn(guard, "keep").mockImplementationOnce(() => before.keep());
  await desk.watch(new AddressBook(), guard);
  expect(await readCursor(desk.database)).toEqual(cursor);
  expect((await openIncident(desk.database))?.kind).toBe("RECOVERY");
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  const words = [address, "--customer", "bob", "--with-deposits", "--reason", "its mail"];
  expect((await desk.causeway("ledger", "assign-address", ...words)).code).toBe(0);
  const rows = await desk.database.query(`SELECT status FROM deposit WHERE address = $1`, [
    address,
  ]);
  expect(rows).toEqual([{ status: "credited" }]);
  expect(await desk.breaks()).toBe("");
});

it("books on without a hot wallet that the lost ledger knew", async () => {
  const book = new AddressBook();
  await desk.watch(book);
  const backup = await desk.backup();
  const word = { label: "", operator: "ann", reason: "its keystore lies in another home" };
  await registerWallets(desk.watcherDatabase, [{ address: destination(7), ...word }]);
  await desk.register("bob");
  desk.chain.mine();
  await desk.watch(book);
  await desk.useDatabase(backup);
  await desk.watch(book);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  desk.chain.mine();
  await desk.watch(book);
  expect(await desk.breaks()).toBe("");
});

it("books on without a hot wallet that was all that a standby had not got", async () => {
  const book = new AddressBook();
  await desk.watch(book);
  const replica = await desk.backup();
  const word = { label: "", operator: "ann", reason: "its keystore lies in another home" };
  await registerWallets(desk.watcherDatabase, [{ address: destination(7), ...word }]);
  await desk.watch(book);
  // Nobody was told of an event or an address behind it: the home has nothing to hold against it.
  await desk.useDatabase(replica);
  desk.pay([destination(7), TOKEN]);
  desk.chain.mine();
  await desk.watch(book);
  expect(await desk.breaks()).toBe("");
});

it("gives nobody what only a word named that a standby had not got", async () => {
  const book = new AddressBook();
  const { address } = await desk.register("causeway:unassigned");
  desk.chain.mine();
  await desk.watch(book);
  const replica = await desk.backup();
  const words = ["assign-address", address, "--customer", "alice", "--reason", "her letter"];
  expect((await desk.causeway("ledger", ...words)).code).toBe(0);
  await desk.watch(book);
  desk.chain.mine();
  await desk.watch(book);
  await desk.useDatabase(replica);
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch(book);
  const rows = await desk.database.query<{ status: string; customer: string }>(
    `SELECT status, customer_id AS customer FROM deposit WHERE address = $1`,
    [address],
  );
  expect(rows).toEqual([{ status: "suspense", customer: "causeway:unassigned" }]);
  expect(await desk.breaks()).toBe("");
});
