/** Incidents and fees as operators are shown them, from answers of the APIs. */
import { expect, it } from "@jest/globals";
import { recordRoutes } from "../../../console/pages/records.js";
import { treasuryRoutes } from "../../../console/pages/treasury.js";
import type { ConsoleRoutes } from "../../../console/server/route.js";
import type { ApiQuestion } from "../../../console/sources/exchange-api.js";
import { shownPage } from "../../helpers/pages/console-page.js";
import { all } from "../../helpers/pages/html.js";

/** The page of a path, of an operator whose APIs answer so by their paths. */
async function shown(
  routes: ConsoleRoutes,
  path: string,
  answers: Readonly<Record<string, unknown>>,
) {
  const answer = (question: ApiQuestion<unknown>) => answers[question.path];
  const { text, root } = await shownPage(routes, path, { role: "operator", answer });
  return { text, forms: all(root, "form").length };
}

const incident = (id: number, kind: string, message: string, remedy: string) => ({
  id,
  kind,
  blockNumber: 7,
  message,
  remedy,
  openedAt: "2026-01-01T00:00:00Z",
  resolvedAt: null,
  resolvedBy: null,
});

it("shows the recovery first that is open beside another incident: nothing else is resumed before it", async () => {
  const recovery = incident(4, "RECOVERY", "the ledger is behind", "causeway recover");
  const other = incident(5, "BALANCE_MISMATCH", "a balance differs", "causeway deposits resume");
  for (const incidents of [
    [other, recovery],
    [{ ...recovery, id: 6 }, other],
  ]) {
    const answers = { "/v1/incidents": { incidents, next: null } };
    const { text, forms } = await shown(recordRoutes(), "/incidents", answers);
    expect(text).toContain("stopped: RECOVERY: the ledger is behind");
    expect(text).toContain("What to do: causeway recover");
    // What the API would refuse is not offered.
    expect(forms).toBe(0);
  }
  const answers = { "/v1/incidents": { incidents: [other], next: null } };
  expect(await shown(recordRoutes(), "/incidents", answers)).toMatchObject({ forms: 1 });
});

it("says since when fees are counted: of a busy ledger older days are left out", async () => {
  const day = { networkFeeUnits: "1", serviceFeeUnits: "2", failedPayoutUnits: "0" };
  const { text } = await shown(treasuryRoutes(), "/fees", {
    "/v1/assets": { assets: [{ asset: "TOKEN", decimals: 18, paused: false, reason: null }] },
    "/v1/fees": {
      from: "2026-01-30T00:00:00.000Z",
      fees: [{ day: "2026-01-30", asset: "TOKEN", ...day }],
    },
  });
  expect(text).toContain("Counted from 2026-01-30 00:00:00 UTC on.");
});

it("shows what a token's contract makes up, above any payment, beside what is true", async () => {
  // Ten thousand deposits of 2^256 - 1.
  const units = `${(2n ** 256n - 1n) * 10_000n}`;
  const account = {
    account: "asset:deposit_addresses",
    chainUnits: "7",
    ledgerUnits: units,
    inFlightUnits: "0",
  };
  const assets = [
    { asset: "LIE", accounts: [account], availableUnits: units, heldUnits: "0" },
    { asset: "TOKEN", accounts: [], availableUnits: "3", heldUnits: "0" },
  ];
  const run = { id: 1, at: "2026-01-01T00:00:00Z", blockNumber: 9, clean: false };
  const { text } = await shown(treasuryRoutes(), "/reconciliation", {
    "/v1/assets": { assets: [{ asset: "LIE", decimals: 0, paused: false, reason: null }] },
    "/v1/reconciliations": {
      reconciliations: [{ ...run, findings: ["LIE differs"], assets }],
      next: null,
    },
  });
  expect(text).toContain("LIE differs");
  expect(text.replaceAll(/[^0-9]/g, "")).toContain(units);
});
