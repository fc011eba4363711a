/** Pages about payments while the deposit API is away: who has to stop one needs the other API alone. */
import { expect, it } from "@jest/globals";
import { ConsoleError } from "../../../console/errors.js";
import { approvalRoutes } from "../../../console/pages/approvals.js";
import type { PageContext } from "../../../console/pages/context.js";
import { overviewRoutes } from "../../../console/pages/overview.js";
import { treasuryRoutes } from "../../../console/pages/treasury.js";
import { withdrawalRoutes } from "../../../console/pages/withdrawals.js";
import type { ConsoleRoutes } from "../../../console/server/route.js";
import type { ApiQuestion } from "../../../console/sources/exchange-api.js";
import { PageError } from "../../../web/errors.js";
import { shownPage } from "../../helpers/pages/console-page.js";
import { all } from "../../helpers/pages/html.js";

const ID = "0b0e7a52-5f0e-4c6e-9a52-8f6f0a3d1c11";

const withdrawal = (asset: string) => ({
  id: ID,
  customerId: "ann",
  asset,
  to: `0x${"70".repeat(20)}`,
  amountUnits: "1500000000000000000",
  feeUnits: "0",
  status: "pending_approval",
  reason: null,
  expiresAt: null,
  wallet: null,
  nonce: null,
  hashes: [],
  txHash: null,
  blockNumber: null,
  history: [{ status: "pending_approval", at: "2026-01-01T00:00:00Z" }],
  approvalsNeeded: 1,
  approvalsGiven: 0,
  approvals: [],
});

/** The page of a path, of an admin, where only the withdrawal API answers, and of payments in an asset. */
async function shown(routes: ConsoleRoutes, path: string, asset: string) {
  const own = `/v1/withdrawals/${ID}`;
  const answers: Readonly<Record<string, unknown>> = {
    "/v1/withdrawals": { withdrawals: [withdrawal(asset)], next: null },
    [own]: withdrawal(asset),
    [`${own}/approvals`]: {
      status: "pending_approval",
      needed: 1,
      given: 0,
      signed: false,
      policyHash: null,
      approvers: [],
      messages: [],
    },
    "/v1/wallets": { wallets: [] },
  };
  const answer = (question: ApiQuestion<unknown>) => {
    if (question.api === "deposit") throw new PageError("UNAVAILABLE", "no answer");
    return answers[question.path];
  };
  const params = { id: ID };
  const { text, root } = await shownPage(routes, path, { role: "admin", params, answer });
  const forms = all(root, "form").flatMap(({ attributes }) =>
    attributes.get("method") === "post" ? [attributes.get("action")] : [],
  );
  return { text, forms };
}

it("are there, with what can be done about a payment", async () => {
  for (const [routes, path, forms] of [
    [withdrawalRoutes(), "/withdrawals", []],
    [withdrawalRoutes(), "/withdrawals/{id}", [`/withdrawals/${ID}/cancel`]],
    [approvalRoutes(), "/approvals", []],
    [approvalRoutes(), "/approvals/{id}", [`/approvals/${ID}`, `/approvals/${ID}`]],
  ] as const) {
    const coins = await shown(routes, path, "TOKEN");
    expect({ path, forms: coins.forms }).toEqual({ path, forms });
    expect(coins.text).toContain("1.5 TOKEN");
    // Of a token only that API knows the decimals: its units are no whole ones.
    const token = await shown(routes, path, "USDX");
    expect(token.text).toContain("1500000000000000000 units of USDX");
  }
  expect((await shown(treasuryRoutes(), "/wallets", "TOKEN")).text).toContain(
    "There is no wallet.",
  );
});

it("are there on the first page where an API refuses, with what it said", async () => {
  const away = () => Promise.reject(new Error("no node"));
  const context = { parts: [], evm: { getBlockHeader: away } } as unknown as PageContext;
  const answer = ({ api, path }: ApiQuestion<unknown>) => {
    if (api === "withdrawal" && path === "/v1/kill-switch") {
      const set = { level: "stop-sign", reason: "a drill", by: "ann", at: "2026-01-01T00:00:00Z" };
      return { level: "stop-sign", home: set, ledger: set };
    }
    throw new ConsoleError("API_REFUSED", "deposit-api answered 429 TOO_MANY_REQUESTS: wait");
  };
  const { text } = await shownPage(overviewRoutes(context), "/", { role: "admin", answer });
  expect(text).toContain("stop-sign");
  expect(text.match(/429 TOO_MANY_REQUESTS/g)?.length).toBe(7);
});
