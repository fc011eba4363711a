/** A Data API whose list is older than the watcher's: it has no operations of a token that is followed. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../../chain/hex.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { depositIdsOfTransaction } from "../../../../ledger/deposits/deposit-evidence.js";
import { customerBalances } from "../../../../ledger/deposits/deposit-queries.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { callOf, contractAt, THIEF, TokenBench, TOKENS } from "../token-bench.js";

let bench: TokenBench;

beforeEach(async () => {
  const older = TOKENS.filter(({ symbol }) => symbol !== "PLAIN");
  bench = await TokenBench.open(undefined, older);
  await bench.deploy();
  await bench.mine([callOf("PlainToken", "mint", [WALLET, 500n])]);
});
afterEach(() => bench.close());

it("hides no deposit of the token, beside one that it tells of", async () => {
  await bench.watch();
  const alice = await bench.register("alice");
  const [plain = "0x" as Hash32, moody = "0x" as Hash32] = await bench.mine([
    callOf("PlainToken", "mint", [alice, 70n]),
    callOf("MoodyToken", "mint", [alice, 5n]),
    callOf("PlainToken", "transferMany", [
      [alice, alice],
      [0n, 0n],
    ]),
  ]);
  await bench.mine([]);
  await bench.caughtUp();
  expect((await depositIdsOfTransaction(bench.database, plain)).ids).toHaveLength(1);
  expect((await depositIdsOfTransaction(bench.database, moody)).ids).toHaveLength(1);
  const balances = await customerBalances(bench.database, parseCustomerId("alice"));
  const available = new Map(balances?.map(({ asset, availableUnits }) => [asset, availableUnits]));
  expect([available.get("PLAIN"), available.get("MOODY")]).toEqual([70n, 5n]);
  const report = await bench.reconcile();
  expect(report.clean).toBe(true);
  expect(report.tokens.find(({ asset }) => asset === "PLAIN")?.lines).toMatchObject([
    { ledgerUnits: 500n, chainUnits: 500n },
    { ledgerUnits: 70n, chainUnits: 70n },
  ]);
});

it("hides no payment of the hot wallet's tokens that nobody asked for", async () => {
  await bench.watch();
  await bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  const stolen = callOf("PlainToken", "transfer", [contractAt("Payer"), 30n]);
  const [hash] = await bench.mine([{ from: THIEF, ...stolen }]);
  await bench.caughtUp();
  const outflows = await bench.database.query(
    `SELECT tx_hash, amount_units::text AS units FROM foreign_outflow WHERE asset = 'PLAIN'`,
  );
  expect(outflows).toEqual([{ tx_hash: hash, units: "30" }]);
});
