/** A token whose contract says what it likes: what customers have of it is more than any payment can be. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { readLiabilities } from "../../../ledger/books/liabilities.js";
import { readStatement } from "../../../ledger/books/statement.js";
import { customerBalances } from "../../../ledger/deposits/deposit-queries.js";
import { callOf, claimant, contractAt, createdAt, TokenBench } from "./token-bench.js";

let bench: TokenBench;

beforeAll(async () => {
  bench = await TokenBench.open();
  await bench.watch();
  await bench.deploy();
});
afterAll(() => bench?.close());

const MAX = 2n ** 256n - 1n;

it("stops no block, no other asset and no figure", async () => {
  const addresses = [];
  for (let n = 0; n < 12; n += 1) addresses.push(await bench.register("alice"));
  await bench.caughtUp();
  await bench.mine(addresses.map((address) => callOf("PlainToken", "mint", [address, MAX])));
  await bench.mine([{ to: addresses[0] ?? "", value: 7n }]);
  await bench.mine([]);
  await bench.caughtUp();
  const balances = await customerBalances(bench.database, parseCustomerId("alice"));
  const shown = balances?.map(({ asset, availableUnits }) => `${asset} ${availableUnits}`);
  expect(shown?.toSorted()).toEqual([`PLAIN ${12n * MAX}`, "TOKEN 7"]);
  const report = await bench.reconcile();
  expect(report.clean).toBe(true);
  const { signal } = new AbortController();
  const period = { from: new Date(0), to: new Date(Date.now() + 1_000) };
  const customer = parseCustomerId("alice");
  const { assets } = await readStatement(bench.ledger.owner, customer, period, { signal });
  expect(assets.map(({ closing }) => closing.availableUnits)).toEqual([12n * MAX, 7n]);
  const owed = await readLiabilities(bench.ledger.owner, { height: undefined });
  expect(owed.liabilities.map(({ units }) => units)).toEqual([12n * MAX, 7n]);
});

it("is not stopped for by what it says that an address gave", async () => {
  const bob = await bench.register("bob");
  await bench.caughtUp();
  await bench.mine([{ data: claimant(bob, 20) }]);
  await bench.mine([callOf("UpgradableProxy", "upgradeTo", [createdAt(21)])]);
  await bench.mine([{ to: contractAt("UpgradableProxy") }, { to: bob, value: 9n }]);
  await bench.mine([]);
  await bench.caughtUp();
  const balances = await customerBalances(bench.database, parseCustomerId("bob"));
  expect(balances?.map(({ availableUnits }) => availableUnits)).toEqual([9n]);
  const { owner } = bench.ledger;
  expect(await owner.query(`SELECT asset FROM foreign_outflow`)).toEqual([]);
  const claims = await owner.query<{ reason: string; claimed: string }>(
    `SELECT reason, claimed::text AS claimed FROM token_sighting WHERE address = $1`,
    [bob],
  );
  expect(claims).toEqual(
    Array.from({ length: 20 }, () => ({ reason: "NOT_LEFT", claimed: `${MAX}` })),
  );
  const [states] = await bench.ledger.owner.query<{ asset: string }>(
    `SELECT string_agg(asset, ' ') AS asset FROM token_state WHERE paused`,
  );
  expect(states?.asset).toBe("PROXY");
});
