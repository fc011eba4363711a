/**
 * A day of an exchange's operators, on a running kit and in a real browser: a deposit arrives, a
 * withdrawal waits for two persons and is paid, coins leave the hot wallet that nobody asked for, are
 * found, explained and booked. What the pages say is held against the chain by ethers.
 */
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { JsonRpcProvider, parseEther, Wallet } from "ethers";
import type { Browser, Page } from "playwright-core";
import { keepPicture, openChromium, openEye } from "../helpers/pages/chromium.js";
import { callApi, kitOffset, runCauseway, type RunningKit, startKit } from "../helpers/kit.js";
import { until } from "../helpers/until.js";

const PAYEE = "0x00000000000000000000000000000000c0ffee01";
const STRANGER = "0x00000000000000000000000000000000deadbe0f";

let kit: RunningKit;
let browser: Browser;
let provider: JsonRpcProvider;

/** Pages of the persons, by name. */
const desks: Record<string, Page> = {};
const complaints: string[] = [];

/** The page of a person. */
function desk(name: string): Page {
  const page = desks[name];
  if (page === undefined) throw new Error(`${name} is not logged in`);
  return page;
}

/** Logs in for the first time: the password that was shown is good for choosing another one. */
async function arrive(name: string, shown: string): Promise<void> {
  const eye = await openEye(browser, { origin: kit.url("console") });
  eye.complaints.push = (...found) => complaints.push(...found.map((text) => `${name}: ${text}`));
  const { page } = eye;
  await page.goto("/");
  await page.locator("#login-user").fill(name);
  await page.locator("#login-password").fill(shown);
  await page.locator("main form button").click();
  await page.waitForURL("**/account");
  const chosen = `the own choice of ${name.split("").toReversed().join("")}`;
  await page.locator("#account-current").fill(shown);
  await page.locator("#account-new").fill(chosen);
  await page.locator("#account-again").fill(chosen);
  await page.locator("form[action='/account/password'] button").click();
  await page.locator("nav a[href='/deposits']").waitFor();
  desks[name] = page;
}

/** Loads a page anew until its text has all of these. */
async function reads(page: Page, target: string, ...wanted: readonly string[]): Promise<string> {
  let text = "";
  await until(
    async () => {
      await page.goto(target);
      text = await page.locator("main").innerText();
      return wanted.every((part) => text.includes(part));
    },
    { timeoutMs: 60_000, what: `${target} says ${wanted.join(", ")}` },
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}; it says:\n${text}`);
  });
  return text;
}

/** A command that has to succeed. */
async function causeway(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCauseway(kit, words);
  if (code !== 0) throw new Error(`${words.join(" ")}: ${code}\n${stdout}\n${stderr}`);
  return stdout;
}

beforeAll(async () => {
  browser = await openChromium();
  kit = await startKit({
    portOffset: kitOffset(0),
    args: ["--no-demo", "--no-explorer", "--no-indexer"],
    env: { CAUSEWAY_WATCHER_WATCHER_RECONCILE_INTERVAL_S: "5" },
  });
  provider = new JsonRpcProvider(kit.url("jsonRpc"), 6940, { staticNetwork: true });
});

afterAll(async () => {
  provider?.destroy();
  await browser?.close();
  expect(await kit?.stop()).toBe(0);
  kit?.remove();
});

it("begins with a login that is shown once, and persons with roles", async () => {
  await until(() => /user admin, password \S+/.test(kit.output()), {
    timeoutMs: 60_000,
    what: "a login is shown",
  });
  const [, shown = ""] = /user admin, password (\S+)/.exec(kit.output()) ?? [];
  await arrive("admin", shown);
  for (const name of ["ann", "ben"]) {
    const file = path.join(kit.home, `${name}.password`);
    await causeway("console", "user", "add", name, "--role", "approver", "--out", file);
    await arrive(name, fs.readFileSync(file, "utf8").trim());
  }
  await reads(desk("admin"), "/", "deposit-watcher", "withdrawal-worker");
});

it("shows a deposit from its arrival to the customer's account", async () => {
  const body = { customerId: "alice" };
  const made = await callApi(kit, "depositApi", { path: "/v1/addresses", body });
  const faucet = new Wallet(kit.key("faucet.key"), provider);
  const sent = await faucet.sendTransaction({
    to: String(made.body["address"]),
    value: parseEther("12.5"),
    gasLimit: 21_000n,
    type: 0,
    gasPrice: 25_000_000n,
  });
  // "credited" is also a heading of the list: the code is what says that it is.
  await reads(desk("admin"), `/explain?txHash=${sent.hash}`, "CREDITED");
  const text = await reads(desk("admin"), "/deposits", "alice", "credited");
  expect(text).toContain("12.5");
  await desk("admin").goto(`/explain?txHash=${sent.hash}`);
  await keepPicture(desk("admin"), "day-1-deposit");
});

it("lets two persons agree before coins leave, and each of them counts once", async () => {
  const file = path.join(kit.home, "config", "policy.json");
  const policy = JSON.parse(fs.readFileSync(file, "utf8")) as {
    assets: { "*": { approvals: unknown[] } };
  };
  policy.assets["*"].approvals = [{ aboveUnits: "1000000000000000000", needed: 2, signed: false }];
  fs.writeFileSync(file, JSON.stringify(policy));
  await reads(desk("admin"), "/policy", "1000000000000000000");
  const asked = {
    customerId: "alice",
    asset: "TOKEN",
    to: PAYEE,
    amountAtoken: `${4n * 10n ** 18n}`,
  };
  const made = await callApi(kit, "withdrawalApi", {
    path: "/v1/withdrawals",
    body: asked,
    headers: { "Idempotency-Key": "alice buys a house" },
  });
  const id = String(made.body["id"]);
  expect(made.body["status"]).toBe("pending_approval");
  await desk("ann").goto("/approvals");
  await desk("ann").locator(`main a[href='/approvals/${id}']`).click();
  const agree = async (name: string, reason: string) => {
    const page = desk(name);
    await page.goto(`/approvals/${id}`);
    await page.locator("#approve-reason").fill(reason);
    await page.locator("form:has(#approve-reason) button").click();
    await page.waitForURL(/\/approvals\/[^?]+\?/);
    return page.locator("main").innerText();
  };
  expect(await agree("ann", "the notary's account, I called")).toContain("1 of 2 given");
  await keepPicture(desk("ann"), "day-2-one-of-two");
  expect(await agree("ann", "and again")).toContain("1 of 2 given");
  expect(await provider.getBalance(PAYEE)).toBe(0n);
  expect(await agree("ben", "I called, too")).toContain("2 of 2 given");
  await reads(desk("ben"), `/withdrawals/${id}`, "settled");
  await keepPicture(desk("ben"), "day-2-paid");
  expect(await provider.getBalance(PAYEE)).toBe(4n * 10n ** 18n);
});

it("finds coins that left unasked, stops, and goes on when persons have explained and booked it", async () => {
  const admin = desk("admin");
  await reads(admin, "/reconciliation", "They match");
  const keystore = kit.key("hot-wallet.json");
  const thief = (
    await Wallet.fromEncryptedJson(keystore, kit.key("hot-wallet.passphrase"))
  ).connect(provider);
  const stolen = await thief.sendTransaction({
    to: STRANGER,
    value: parseEther("0.25"),
    gasLimit: 21_000n,
    type: 0,
    gasPrice: 25_000_000n,
  });
  const newest = () => admin.locator("main table tbody tr").first().innerText();
  await until(
    async () => {
      await admin.goto("/reconciliation");
      return (await newest()).includes(stolen.hash);
    },
    { timeoutMs: 60_000, what: "the newest reconciliation names the transaction" },
  );
  await keepPicture(admin, "day-3-break");
  await reads(admin, "/wallets", "Frozen");
  await keepPicture(admin, "day-3-frozen");
  await causeway("ledger", "accept-outflow", stolen.hash, "--reason", "the drill of the 3rd");
  await causeway(
    "withdrawals",
    "release",
    "--acknowledge",
    stolen.hash,
    "--reason",
    "a drill, the key is safe",
  );
  await until(
    async () => {
      await admin.goto("/reconciliation");
      return (await newest()).includes("They match");
    },
    { timeoutMs: 60_000, what: "the newest reconciliation is clean" },
  ).catch(async (error: unknown) => {
    throw new Error(`${String(error)}: ${await newest()}`);
  });
  await keepPicture(admin, "day-3-booked");
  await reads(admin, "/audit/decisions", stolen.hash, "the drill of the 3rd");
});

it("keeps who did what, and ends with lights that are green", async () => {
  const admin = desk("admin");
  await reads(admin, "/audit", "ann", "ben", "the notary's account, I called");
  await reads(admin, "/", "deposit-watcher");
  await keepPicture(admin, "day-4-overview");
  const bad = await admin.locator("main .lights .bad").allInnerTexts();
  expect(bad).toEqual([]);
  expect(complaints).toEqual([]);
});
