/** The operator console in a real browser: axe-core, keyboard, phone, and that it needs no script. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { reconcileOnce } from "../../deposit-watcher/reconcile-loop.js";
import {
  axeFindings,
  crumbledTexts,
  expectWalkable,
  keepPicture,
  LOOKS,
  openChromium,
  openEye,
  overhangPixels,
} from "../helpers/pages/chromium.js";
import { ConsoleStage } from "../helpers/pages/console.js";
import { silentLog, recordIncident } from "../helpers/services/ledger.js";
import { STRANGER } from "../helpers/services/watcher.js";
import { until } from "../helpers/until.js";
import { policyOf } from "../integration/policy/terms.js";

const PASSWORD = "chosen by them admin";

let stage: ConsoleStage;
let browser: Browser;
let pages: Readonly<Record<string, string>>;

const origin = () => `http://127.0.0.1:${stage.port}`;

beforeAll(async () => {
  browser = await openChromium();
  stage = await ConsoleStage.open();
  const { bench } = stage;
  const { database } = bench.ledger;
  const { address } = await bench.register("alice");
  bench.pay([address, 1_000_000n]);
  bench.chain.mine();
  bench.chain.mine();
  let deposit: { id: string; tx_hash: string } | undefined;
  await until(
    async () => {
      const text = `SELECT id, tx_hash FROM deposit WHERE status = 'credited'`;
      [deposit] = await database.query<{ id: string; tx_hash: string }>(text);
      return deposit !== undefined;
    },
    { timeoutMs: 60_000, what: "the deposit is credited" },
  );
  const parts = { database, node: bench.node, log: silentLog };
  for (let run = 0; run < 2; run += 1) {
    await reconcileOnce(parts, new AbortController().signal);
    bench.chain.mine();
    await bench.caughtUp();
  }
  stage.policy = policyOf({ approvals: [{ aboveUnits: 10n, needed: 2, signed: true }] });
  const body = { customerId: "alice", asset: "TOKEN", to: STRANGER, amountAtoken: "1000" };
  const waiting = await stage.call("/v1/withdrawals", body, "waits for persons");
  const { addWebhook } = await import("../../ledger/webhooks/subscriptions.js");
  const url = "http://127.0.0.1:9/hook";
  const { webhook } = await addWebhook(database, { url, events: ["*"], description: "a & <b>" });
  await recordIncident(database, {
    kind: "LEDGER_CONFLICT",
    height: 1,
    message: `</td><script>alert(1)</script>&"'\u202e`,
    details: {},
  });
  pages = {
    overview: "/",
    deposits: "/deposits",
    deposit: `/deposits/${deposit?.id}`,
    explain: "/explain",
    explained: `/explain?txHash=${deposit?.tx_hash}`,
    withdrawals: "/withdrawals",
    withdrawal: `/withdrawals/${String(waiting["id"])}`,
    approvals: "/approvals",
    approval: `/approvals/${String(waiting["id"])}`,
    wallets: "/wallets",
    treasury: "/treasury",
    reconciliation: "/reconciliation",
    incidents: "/incidents",
    audit: "/audit",
    decisions: "/audit/decisions",
    fees: "/fees",
    policy: "/policy",
    webhooks: "/webhooks",
    webhook: `/webhooks/${webhook.id}`,
    account: "/account",
    missing: "/no-such-page",
    unknown: "/withdrawals/wd_none",
  };
  await stage.login("the-admin", "admin");
});

afterAll(async () => {
  await browser?.close();
  await stage?.close();
});

/** Logs in as a person with a keyboard does. */
async function enter(page: Page): Promise<void> {
  await page.goto("/");
  await page.locator("#login-user").focus();
  await page.keyboard.type("the-admin");
  await page.keyboard.press("Tab");
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${origin()}/`);
}

describe("every page of the console", () => {
  for (const { device, scheme, size } of LOOKS) {
    it(`has no fault for axe-core and fits its window: ${scheme}, ${device}`, async () => {
      const options = { origin: origin(), scheme, size };
      const { context, page, complaints } = await openEye(browser, options);
      await page.goto("/login");
      expect(await axeFindings(page)).toEqual([]);
      expect(await overhangPixels(page)).toBe(0);
      await enter(page);
      for (const [name, target] of Object.entries(pages)) {
        await page.goto(target);
        expect({ name, at: new URL(page.url()).pathname }).toEqual({
          name,
          at: target.split("?", 1)[0],
        });
        expect({ name, findings: await axeFindings(page) }).toEqual({ name, findings: [] });
        expect({ name, overhang: await overhangPixels(page) }).toEqual({ name, overhang: 0 });
        expect({ name, crumbled: await crumbledTexts(page) }).toEqual({ name, crumbled: [] });
        await keepPicture(page, `console-${name}-${scheme}-${device}`);
      }
      expect(complaints).toEqual([]);
      await context.close();
    });
  }

  it("can be walked through with a keyboard, in order, and one sees where one is", async () => {
    const { context, page } = await openEye(browser, { origin: origin() });
    await enter(page);
    for (const [name, target] of Object.entries(pages)) {
      await page.goto(target);
      await expectWalkable(page, name);
    }
    await context.close();
  });

  it("needs no script, from the login to an action and the way out", async () => {
    const options = { origin: origin(), hasScripts: false };
    const { context, page, complaints } = await openEye(browser, options);
    await enter(page);
    await page.locator("nav a[href='/incidents']").click();
    await page.waitForURL("**/incidents");
    await page.locator("#resume-reason").fill("understood: a drill");
    await page.locator("form[action='/incidents/resume'] button").click();
    await page.waitForURL(/\/incidents\?/);
    expect(await page.locator("main").innerText()).toContain("understood: a drill");
    await page.locator("form[action='/logout'] button").click();
    await page.waitForURL("**/login");
    expect((await page.goto("/deposits"))?.url()).toMatch(/\/login$/);
    expect(complaints).toEqual([]);
    await context.close();
  });
});
