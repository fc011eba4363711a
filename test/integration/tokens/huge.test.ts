/** A token whose contract says what it likes: what customers have of it is more than any payment can be. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { parseCustomerId } from "../../../ledger/books/accounts.js";
import { readLiabilities } from "../../../ledger/books/liabilities.js";
import { readStatement } from "../../../ledger/books/statement.js";
import { customerBalances } from "../../../ledger/deposits/deposit-queries.js";
import { callOf, TokenBench } from "./token-bench.js";

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
