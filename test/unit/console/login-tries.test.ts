/** How often passwords are tried: by strangers seldom, and so that they keep nobody out who was in before. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createConsole, type OperatorConsole } from "../../../console/app.js";
import { consoleConfig } from "../../../console/config.js";
import { LoginTries } from "../../../console/server/login-tries.js";
import { sealKey } from "../../../console/users/sealed-key.js";
import { createUser, readUser, replaceUser } from "../../../console/users/user-files.js";
import { present } from "../../../chain/errors.js";
import { loadConfig } from "../../../runtime/config/config.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { createGate } from "../../helpers/gate.js";
import { Browser } from "../../helpers/pages/console.js";
import { silentLog } from "../../helpers/services/ledger.js";

const CHEAP = { n: 16, r: 1, p: 1 };
const PASSWORDS = { ann: "what ann was given", bob: "what bob was given" };
const TRIES = 2;

/** Nothing is forgotten while a test runs. */
const clock = { nowMs: () => Date.now(), monotonicMs: () => 0 };

let home: string;
let opened: OperatorConsole[];
/** Addresses of strangers so far. */
let places = 0;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "causeway-tries-"));
  opened = [];
  for (const [name, password] of Object.entries(PASSWORDS)) {
    const key = await sealKey("cwk_1", password, name, CHEAP);
    const createdAt = new Date(0).toISOString();
    const rest = { role: "admin", keyId: "1", mustChange: true, createdAt } as const;
    createUser(home, { format: 1, name, ...rest, key });
  }
});
afterEach(async () => {
  for (const { services } of opened) {
    for (const service of services.toReversed()) await service.stop();
  }
  rmSync(home, { recursive: true, force: true });
});

async function open(env: Readonly<Record<string, string>> = {}): Promise<number> {
  const settings = {
    CAUSEWAY_CONSOLE_SERVER_LISTEN: "127.0.0.1:0",
    CAUSEWAY_CONSOLE_LOGIN_TRIES_PER_MINUTE: String(TRIES),
    ...env,
  };
  const made = createConsole({
    config: loadConfig({ home, env: settings, portOffset: 0 }, consoleConfig),
    home,
    clock,
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    signal: new AbortController().signal,
    passwordCost: CHEAP,
  });
  await made.server.start();
  opened.push(made);
  return made.server.port;
}

async function enter(browser: Browser, user: string, password: string): Promise<number> {
  await browser.get("/login");
  return (await browser.submit("/login", { user, password })).status;
}

/** Takes all tries of a name, each from another place. */
async function useUp(port: number, name: string): Promise<void> {
  const statuses: number[] = [];
  for (let at = 0; at <= TRIES; at += 1) {
    places += 1;
    statuses.push(await enter(new Browser(port, {}, `127.0.1.${places}`), name, "a guess"));
  }
  expect(statuses.at(-1)).toBe(429);
}

/** A browser in which a user was in before, and is not now. */
async function leftBrowser(port: number, user: "ann" | "bob", from?: string): Promise<Browser> {
  const browser = new Browser(port, {}, from);
  expect(await enter(browser, user, PASSWORDS[user])).toBe(200);
  await browser.submit("/logout");
  return browser;
}

it("does not keep out whom this browser knows, while strangers try the name", async () => {
  const port = await open();
  const [known, other] = [await leftBrowser(port, "ann"), new Browser(port, {}, "127.0.0.3")];
  await useUp(port, "ann");
  expect(await enter(other, "ann", PASSWORDS.ann)).toBe(429);
  expect(await enter(known, "ann", PASSWORDS.ann)).toBe(200);
  expect(known.address).toBe("/account");
});

it("is bounded for such a browser, too, however often somebody was in", async () => {
  const port = await open({ CAUSEWAY_CONSOLE_LOGIN_TRIES_PER_MINUTE: "4" });
  const browser = await leftBrowser(port, "ann");
  const statuses: number[] = [];
  for (const password of [PASSWORDS.ann, "1", "2", "3", PASSWORDS.ann]) {
    statuses.push(await enter(browser, "ann", password));
    if (browser.address === "/account") await browser.submit("/logout");
  }
  expect(statuses).toEqual([200, 401, 401, 401, 429]);
});

it("knows a browser for the name alone that was in, and for the password with which it was", async () => {
  const port = await open();
  const known = await leftBrowser(port, "ann");
  const [cookie = ""] = [...known.cookies.keys()].filter((name) => name.includes("-known-ann"));
  expect(cookie).not.toBe("");
  await useUp(port, "bob");
  const asBob = new Browser(port, {}, "127.0.0.4");
  asBob.cookies.set(cookie.replace("-ann", "-bob"), known.cookies.get(cookie) ?? "");
  expect(await enter(asBob, "bob", PASSWORDS.bob)).toBe(429);
  const ann = present(readUser(home, "ann"), "user");
  await replaceUser(home, { ...ann, key: await sealKey("cwk_2", "a reset one", "ann", CHEAP) });
  await useUp(port, "ann");
  expect(await enter(known, "ann", "a reset one")).toBe(429);
});

it("knows it over a restart, with a key that its owner alone reads", async () => {
  const known = await leftBrowser(await open(), "ann");
  const port = await open();
  const file = join(home, "data", "console", "users", "browsers.key");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8")).toMatch(/^[0-9a-f]{64}\n$/);
  const again = new Browser(port);
  const portOf = (name: string) => name.replace(/-\d+$/, `-${port}`);
  for (const [name, value] of known.cookies) again.cookies.set(portOf(name), value);
  await useUp(port, "ann");
  expect(await enter(again, "ann", PASSWORDS.ann)).toBe(200);
});

it("lets people in where the file of that key cannot be used", async () => {
  writeFileSync(join(home, "data", "console", "users", "browsers.key"), "no key\n");
  const port = await open();
  const known = await leftBrowser(port, "ann");
  await useUp(port, "ann");
  expect(await enter(known, "ann", PASSWORDS.ann)).toBe(200);
});

it("lets who is in change the password, while strangers try the name", async () => {
  const port = await open();
  const browser = new Browser(port);
  expect(await enter(browser, "ann", PASSWORDS.ann)).toBe(200);
  await useUp(port, "ann");
  const change = async (current: string) => {
    const words = { current, new: "a password of ann's", again: "a password of ann's" };
    return (await browser.submit("/account/password", words)).status;
  };
  expect([await change("a guess"), await change(PASSWORDS.ann)]).toEqual([422, 200]);
  expect(browser.page.text).toContain("Your password is changed");
});

it("counts tries of a password in one session", async () => {
  const browser = new Browser(await open());
  expect(await enter(browser, "ann", PASSWORDS.ann)).toBe(200);
  const statuses: number[] = [];
  for (const current of ["1", "2", PASSWORDS.ann]) {
    const words = { current, new: "a password of ann's", again: "a password of ann's" };
    await browser.get("/account");
    statuses.push((await browser.submit("/account/password", words)).status);
  }
  expect(statuses).toEqual([422, 422, 429]);
});

it("counts no address behind a proxy with https, which has one for all", async () => {
  const port = await open({ CAUSEWAY_CONSOLE_SERVER_PUBLIC_URL: "https://console.example" });
  const proxied = async (user: string, password: string) =>
    enter(new Browser(port, { host: "console.example" }), user, password);
  const tries = ["carl", "carl", "dora", "emil", "bob"];
  const statuses: number[] = [];
  for (const name of tries) statuses.push(await proxied(name, "a guess"));
  expect(statuses).toEqual([401, 401, 401, 401, 401]);
  expect([await proxied("ann", PASSWORDS.ann), await proxied("carl", "a guess")]).toEqual([
    200, 429,
  ]);
});

describe("tries at names of nobody", () => {
  const SIGNAL = new AbortController().signal;
  const stranger = (name: string) => ({
    remoteAddress: "127.0.0.1",
    name,
    knownBrowser: undefined,
  });
  const limits = () => new LoginTries({ home, perMinute: 1, isProxied: true, clock });

  it("make no user's tries forgotten", async () => {
    const tries = limits();
    const work = async () => undefined;
    await tries.enter(stranger("ann"), SIGNAL, work);
    for (let at = 0; at <= 10_000; at += 1) await tries.enter(stranger(`n${at}`), SIGNAL, work);
    await expect(tries.enter(stranger("ann"), SIGNAL, work)).rejects.toMatchObject({
      code: "RATE_LIMITED",
    });
  });

  it("take no turn from who is known, or is in", async () => {
    const tries = limits();
    const gate = createGate();
    const slow = ["n1", "n2", "n3"].map((name) =>
      tries.enter(stranger(name), SIGNAL, () => gate.opened),
    );
    const known = { ...stranger("ann"), knownBrowser: "a browser of ann's" };
    expect(await tries.enter(known, SIGNAL, async () => "in")).toBe("in");
    expect(await tries.change("a session", SIGNAL, async () => "changed")).toBe("changed");
    gate.open();
    await Promise.all(slow);
  });
});
