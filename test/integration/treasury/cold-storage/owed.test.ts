/** What customers are owed, and where the coins are: moves of the exchange's own change neither. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { renderReport } from "../../../../cli/ledger/reconcile-report.js";
import { createOperatorRoutes } from "../../../../deposit-watcher/api/operator-routes.js";
import { present } from "../../../../chain/errors.js";
import { reconciledAssets, recordRun } from "../../../../ledger/books/reconcile-runs.js";
import type { HttpRequest } from "../../../../runtime/http/http-route.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, COLD, TreasuryBench } from "../treasury-bench.js";

const ONE = 10n ** 18n;
const { signal } = new AbortController();

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 4n * ONE }]);
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([{ to: alice, value: ONE }]);
  for (let confirmations = 0; confirmations < 2; confirmations += 1) await bench.mine();
});
afterAll(() => bench.close());

/** What a comparison of now says of coins; the sum is what `/v1/figures` has of all coins. */
async function compared() {
  const { bench: tokens } = bench;
  const report = await tokens.reconcile();
  expect(report.clean).toBe(true);
  const { height, clean } = report;
  const run = { height, clean, findings: [], assets: reconciledAssets(report) };
  await recordRun(tokens.ledger.owner, run);
  const routes = createOperatorRoutes({ database: tokens.ledger.owner, clock: systemClock });
  const route = present(
    routes.find(({ path }) => path === "/v1/figures"),
    "figures",
  );
  const { body } = await route.handler({ query: {} } as HttpRequest);
  const { coins } = body as { coins: readonly Record<string, unknown>[] };
  const newest = present(coins.at(-1), "the newest run");
  const units = (name: string) => BigInt(String(newest[name]));
  const accounts = newest["accounts"] as readonly { readonly chainUnits: string }[];
  const onAddresses = accounts.reduce((sum, { chainUnits }) => sum + BigInt(chainUnits), 0n);
  const [coldUnits, inTransitUnits] = [units("coldUnits"), units("inTransitUnits")];
  return {
    owedUnits: units("owedUnits"),
    heldUnits: units("heldUnits"),
    coldUnits,
    inTransitUnits,
    allUnits: onAddresses + coldUnits + inTransitUnits,
    text: renderReport(report, 0).join("\n"),
  };
}

it("counts a move to cold storage as owed to nobody, and its coins once, on all its way", async () => {
  const before = await compared();
  expect(before).toMatchObject({ owedUnits: ONE, allUnits: 5n * ONE, coldUnits: 0n });
  const band = { lowUnits: 0n, targetUnits: ONE, highUnits: ONE };
  const rules = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress: COLD, band };
  bench.files.policy = bench.policyOf({ assets: { TOKEN: rules } });
  // The treasury goes by what the lane has seen.
  await bench.lane.runRound(signal);
  await bench.sweeper().round(signal);
  const opened = await compared();
  expect(opened.heldUnits).toBeGreaterThan(0n);
  expect(opened).toMatchObject({ owedUnits: ONE, allUnits: 5n * ONE, inTransitUnits: 0n });
  expect(opened.text).toContain("customers can withdraw 1, held for their withdrawals 0\n");
  expect(opened.text).toContain("held for the exchange's own moves 2.");
  // Mined, and not settled yet.
  await bench.lane.runRound(signal);
  await bench.mine();
  const mined = await compared();
  expect(mined.inTransitUnits).toBe(await bench.units(COLD));
  expect(mined.inTransitUnits).toBeGreaterThan(2n * ONE);
  await bench.rounds(2);
  const stored = await compared();
  expect(stored).toMatchObject({ owedUnits: ONE, heldUnits: 0n, inTransitUnits: 0n });
  expect(stored.coldUnits).toBe(mined.inTransitUnits);
  expect(stored.text).not.toContain("own moves");
  expect(stored.text).toContain("by the books beside these accounts: in cold storage 2.");
  // But for the fee.
  for (const { allUnits } of [mined, stored]) {
    expect(allUnits).toBeLessThan(5n * ONE);
    expect(allUnits).toBeGreaterThan(5n * ONE - ONE / 100n);
  }
  expect(stored.allUnits).toBe(mined.allUnits);
});
