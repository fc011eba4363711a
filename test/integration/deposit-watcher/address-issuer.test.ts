/** Requests for addresses that come together: what they share, and that none is told too early. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { HDNodeWallet } from "ethers";
import { AddressIssuer } from "../../../deposit-watcher/api/address-issuer.js";
import { markPath } from "../../../ledger/guard/home-mark.js";
import { LedgerGuard } from "../../../ledger/guard/ledger-guard.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { createAddressDerivation } from "../../../chain/derivation/address-derivation.js";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";
import { derivation } from "../../helpers/services/watcher.js";

const CLIENTS = 20;

let ledger: TestLedger;
let home: string;
let guard: LedgerGuard;
let issuer: AddressIssuer;

beforeEach(async () => {
  ledger = await openTestLedger();
  home = mkdtempSync(join(tmpdir(), "causeway-mark-"));
  guard = await LedgerGuard.open({ database: ledger.database, home, reporter: "test" });
  const { database } = ledger;
  issuer = new AddressIssuer({ database, derivation, guard, onRegistered: () => undefined });
});
afterEach(async () => {
  await ledger.drop();
  rmSync(home, { recursive: true, force: true });
});

const customerOf = (client: number) => parseCustomerId(`customer-${client % 7}`);
const giveAll = () =>
  Array.from({ length: CLIENTS }, (_, client) => issuer.give(customerOf(client)));
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
  const other = new AddressIssuer({
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

/** A home that was made beside the first one has another seed. */
const otherKey = createAddressDerivation(
  HDNodeWallet.fromPhrase(
    "legal winner thank year wave sausage worth useful legal winner thank yellow",
    undefined,
    "m/44'/60'/0'/0",
  ).neuter().extendedKey,
);

function issuerOfOtherKey(keyFromIndex?: number): AddressIssuer {
  const { database } = ledger;
  const parts = { database, derivation: otherKey, guard, onRegistered: () => undefined };
  return new AddressIssuer(keyFromIndex === undefined ? parts : { ...parts, keyFromIndex });
}

it("get none of another key than the ledger's: nobody sweeps what comes there", async () => {
  const { address } = await issuer.give(customerOf(1));
  const other = issuerOfOtherKey();
  await expect(other.give(customerOf(2))).rejects.toMatchObject({
    code: "OTHER_DEPOSIT_KEY",
    details: { index: 0, address },
  });
  // Nothing was given out for it, and the one with the key goes on.
  expect((await issuer.give(customerOf(3))).index).toBe(1);
});

it("get none of another key where both begin a ledger at once", async () => {
  const other = issuerOfOtherKey();
  const both = await Promise.allSettled([issuer.give(customerOf(1)), other.give(customerOf(2))]);
  expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
});

it("are of another key from the index on that says so", async () => {
  await issuer.give(customerOf(1));
  const given = await issuerOfOtherKey(1).give(customerOf(2));
  expect(given).toMatchObject({ index: 1, address: otherKey.addressAt(1) });
  await expect(issuer.give(customerOf(3))).resolves.toMatchObject({ index: 2 });
  const former = new AddressIssuer({
    database: ledger.database,
    derivation,
    guard,
    keyFromIndex: 1,
    onRegistered: () => undefined,
  });
  await expect(former.give(customerOf(4))).rejects.toMatchObject({ code: "OTHER_DEPOSIT_KEY" });
});
