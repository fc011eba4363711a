/** Requests for addresses that come together: what they share, and that none is told too early. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { AddressDesk } from "../../../deposit-watcher/api/address-desk.js";
import { markPath } from "../../../ledger/guard/home-mark.js";
import { LedgerGuard } from "../../../ledger/guard/ledger-guard.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";
import { derivation } from "../../helpers/services/watcher.js";

const CLIENTS = 20;

let ledger: TestLedger;
let home: string;
let guard: LedgerGuard;
let desk: AddressDesk;

beforeEach(async () => {
  ledger = await openTestLedger();
  home = mkdtempSync(join(tmpdir(), "causeway-mark-"));
  guard = await LedgerGuard.open({ database: ledger.database, home, reporter: "test" });
  const { database } = ledger;
  desk = new AddressDesk({ database, derivation, guard, onRegistered: () => undefined });
});
afterEach(async () => {
  await ledger.drop();
  rmSync(home, { recursive: true, force: true });
});

const customerOf = (client: number) => parseCustomerId(`customer-${client % 7}`);
const giveAll = () => Array.from({ length: CLIENTS }, (_, client) => desk.give(customerOf(client)));
const remembered = () =>
  (JSON.parse(readFileSync(markPath(home), "utf8")) as { nextAddressIndex: number })
    .nextAddressIndex;

it("share one commit and one forced mark, and get each their own, in their order", async () => {
  const commits = jest.spyOn(ledger.database, "transaction");
  const marks = jest.spyOn(guard, "beforeTelling");
  const given = await Promise.all(giveAll());
  expect(given).toEqual(
    Array.from({ length: CLIENTS }, (_, index) => {
      const address = derivation.addressAt(index);
      return { index, address, customerId: customerOf(index), fromHeight: 0 };
    }),
  );
  expect([commits.mock.calls.length, marks.mock.calls.length]).toEqual([1, 1]);
  const rows = await ledger.database.query<{ customer_id: string; address: string }>(
    `SELECT customer_id, address FROM deposit_address ORDER BY index`,
  );
  expect(rows).toEqual(
    given.map(({ customerId, address }) => ({ customer_id: customerId, address })),
  );
});

it("get none twice where two watchers give addresses out at once", async () => {
  const { database } = ledger;
  const second = await LedgerGuard.open({ database, home, reporter: "second" });
  const other = new AddressDesk({
    database,
    derivation,
    guard: second,
    onRegistered: () => undefined,
  });
  const asked = giveAll().flatMap((first, client) => [first, other.give(customerOf(client))]);
  const given = (await Promise.all(asked)).toSorted((left, right) => left.index - right.index);
  expect(given.map(({ index, address }) => [index, address])).toEqual(
    Array.from({ length: 2 * CLIENTS }, (_, index) => [index, derivation.addressAt(index)]),
  );
});

it("are told of no address that the home does not remember", async () => {
  const known = giveAll().map(async (given) => [(await given).index, remembered()] as const);
  for (const [index, nextAddressIndex] of await Promise.all(known)) {
    expect(nextAddressIndex).toBeGreaterThan(index);
  }
  writeFileSync(markPath(home), "{");
  const refused = await Promise.allSettled(giveAll());
  for (const one of refused) {
    expect(one).toMatchObject({ status: "rejected", reason: { code: "HOME_MARK_UNUSABLE" } });
  }
});
