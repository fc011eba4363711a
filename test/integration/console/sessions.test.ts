/** Who gets into the operator console: logins, sessions and forms of other sites. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import { Browser, ConsoleStage, FILE_KEY, hiddenField } from "../../helpers/pages/console.js";
import { all, textOf } from "../../helpers/pages/html.js";
import { rawRequest } from "../../helpers/http/raw-request.js";
import { until } from "../../helpers/until.js";

let stage: ConsoleStage;
let operator: Browser;

beforeAll(async () => {
  stage = await ConsoleStage.open();
  for (const role of ["viewer", "approver", "admin"]) await stage.login(`the-${role}`, role);
  operator = await stage.login("the-operator", "operator");
});

afterAll(async () => {
  await stage.close();
});

describe("a login", () => {
  it("asks first, refuses wrong words alike, and makes a new user choose a password", async () => {
    const browser = stage.browser();
    const first = await browser.get("/withdrawals");
    expect(browser.address).toBe("/login");
    expect(first.status).toBe(200);
    const password = await stage.add("newcomer", "viewer");
    expect(password).toMatch(/^([a-z2-9]{5}-){3}[a-z2-9]{5}$/);
    const wrong = await stage.enter(browser, "newcomer", "not it at all");
    const nobody = await stage.enter(browser, "nobody-at-all", "not it at all");
    expect([wrong.status, nobody.status]).toEqual([401, 401]);
    expect(nobody.text).toBe(wrong.text);
    await stage.enter(browser, "newcomer", password);
    expect(browser.address).toBe("/account");
    await browser.get("/deposits");
    expect(browser.address).toBe("/account");
    const change = (next: string, again = next, current = password) =>
      browser.submit("/account/password", { current, new: next, again });
    for (const [next, again] of [
      ["too short"],
      ["my name is newcomer here"],
      ["long enough, but", "another one"],
      [password],
    ]) {
      expect({ next, status: (await change(next ?? "", again)).status }).toEqual({
        next,
        status: 422,
      });
      // The form stands below the reason: the next round fills it in again.
      expect(browser.page.text).toContain("The new password has to have 12 to 128 characters");
    }
    const other = stage.browser();
    await stage.enter(other, "newcomer", password);
    await change("a password of my own");
    expect(browser.page.text).toContain("Your password is changed");
    await browser.get("/deposits");
    expect(browser.page.status).toBe(200);
    // Other sessions of the user end with the password, and so does the password itself.
    await other.get("/deposits");
    expect(other.address).toBe("/login");
    expect((await stage.enter(other, "newcomer", password)).status).toBe(401);
    await browser.submit("/logout");
    await browser.get("/deposits");
    expect(browser.address).toBe("/login");
  });

  it("keeps neither passwords nor keys readable, in files of their owner alone", () => {
    const folder = join(stage.home, "data", "console", "users");
    const files = readdirSync(folder);
    expect(files.length).toBeGreaterThan(4);
    for (const file of files) {
      expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
      const text = readFileSync(join(folder, file), "utf8");
      expect(text).not.toContain("cwk_");
      expect(text).not.toContain("chosen by them");
    }
  });

  it("gives cookies that no script and no other site has", async () => {
    const browser = stage.browser();
    await browser.get("/login");
    const [set] = [browser.page.headers["set-cookie"] ?? []].flat();
    expect(set).toMatch(/; Path=\/; HttpOnly; SameSite=Strict$/);
  });

  it("ends for a user who is removed, and begins anew for one who is reset", async () => {
    const browser = await stage.login("leaver", "admin");
    const again = await stage.reset("leaver");
    await until(async () => (await browser.get("/audit")).status === 401, { timeoutMs: 10_000 });
    const second = stage.browser();
    await stage.enter(second, "leaver", again);
    expect(second.address).toBe("/account");
    await stage.remove("leaver");
    expect((await stage.enter(stage.browser(), "leaver", again)).status).toBe(401);
  });

  it("stays where the user's other browser has one of before the key was changed", async () => {
    const old = await stage.login("double", "admin");
    const again = await stage.reset("double");
    const fresh = stage.browser();
    await stage.enter(fresh, "double", again);
    await until(async () => (await old.get("/audit")).status === 401, { timeoutMs: 10_000 });
    await fresh.get("/account");
    expect(fresh.address).toBe("/account");
  });

  it("is told to be made where its password could not be written", async () => {
    await stage.add("unwritten", "viewer");
    const out = join(stage.home, "missing", "password");
    await expect(stage.reset("unwritten", { out })).rejects.toMatchObject({
      code: "HOME_UNUSABLE",
      message: expect.stringMatching(
        /^Cannot write .*: no such .* The user is made, and nobody has the password: causeway console user reset unwritten --out FILE\.$/,
      ),
    });
  });
});

describe("a form of somebody else", () => {
  const post = (path: string, body: string, headers: Record<string, string>) =>
    rawRequest(stage.port, path, {
      method: "POST",
      body,
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    });

  it("is refused without the session's token, from another page, and under another name", async () => {
    await operator.get("/policy");
    const cookie = [...operator.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const right = new URLSearchParams({
      token: hiddenField(operator, "token"),
      formKey: hiddenField(operator, "formKey"),
      level: "stop-new",
      reason: "forged",
    }).toString();
    const wrong = right.replace(/token=[^&]+/, "token=AAAA");
    const status = async (body: string, headers: Record<string, string>) =>
      (await post("/policy/kill-switch", body, { cookie, ...headers })).status;
    expect(await status(wrong, {})).toBe(403);
    expect(await status(right, { origin: "https://evil.example" })).toBe(403);
    expect(await status(right, { origin: "null" })).toBe(403);
    expect(await status(right, { "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await status(right, { host: "evil.example" })).toBe(421);
    expect(await status(right, { cookie: "causeway-session=AAAA" })).toBe(401);
    expect(await status(right, { "content-type": "application/json" })).toBe(415);
    expect(await status(`${right}&token=twice`, {})).toBe(400);
    expect(await status(`x=${"y".repeat(20_000)}`, {})).toBe(413);
    expect((await readKillSwitch(stage.worker)).level).toBe("none");
  });

  it("does not log anybody in", async () => {
    const password = await stage.add("victim", "viewer");
    const body = new URLSearchParams({ user: "victim", password, token: "AAAA" }).toString();
    expect((await post("/login", body, {})).status).toBe(403);
    expect((await post("/login", body, { cookie: "causeway-login=AAAA" })).status).toBe(403);
  });

  it("comes back filled with a valid token where a login was refused for its own", async () => {
    const password = await stage.add("returner", "viewer");
    const browser = stage.browser();
    await browser.get("/login");
    const stale = await browser.submit("/login", { user: "returner", password, token: "AAAA" });
    expect(stale.status).toBe(403);
    expect(stale.text).toContain("opened too long ago");
    await browser.submit("/login", { user: "returner", password });
    expect(browser.address).toBe("/account");
  });

  it("names the way back to its page, and to no other site", async () => {
    await operator.get("/policy");
    const body = new URLSearchParams({
      token: hiddenField(operator, "token"),
      formKey: hiddenField(operator, "formKey"),
      level: "stop-new",
    }).toString();
    const linksFrom = async (referer: string) => {
      const { status, root } = await operator.send("/policy/kill-switch", body, { referer });
      expect(status).toBe(400);
      return all(root, "a").flatMap((a) =>
        textOf(a) === "Back to the form" ? [a.attributes.get("href")] : [],
      );
    };
    const own = `http://127.0.0.1:${stage.port}`;
    expect(await linksFrom(`${own}/policy?x=1`)).toEqual(["/policy?x=1"]);
    for (const other of ["https://evil.example/policy", `${own}//evil.example/`, "policy", ""]) {
      expect(await linksFrom(other)).toEqual([]);
    }
  });

  it("is no way around the home's key, and probes need none", async () => {
    expect((await rawRequest(stage.port, "/health", { headers: { host: "x" } })).status).toBe(200);
    expect((await rawRequest(stage.port, "/ready")).text).toBe('{"ready":true}');
    expect((await rawRequest(stage.port, "/metrics")).text).toContain("causeway_console_sessions");
    const methods = await rawRequest(stage.port, "/deposits", { method: "DELETE" });
    expect([methods.status, methods.headers["allow"]]).toEqual([405, "GET, HEAD, POST"]);
    const bearer = { authorization: `Bearer ${FILE_KEY}` };
    expect((await rawRequest(stage.port, "/deposits", { headers: bearer })).status).toBe(303);
  });
});

describe("a console of its own settings", () => {
  it("lets nobody try passwords for long, and asks again after a while", async () => {
    const clock = { ms: 0, nowMs: () => Date.now(), monotonicMs: () => clock.ms };
    const env = {
      CAUSEWAY_CONSOLE_LOGIN_TRIES_PER_MINUTE: "3",
      CAUSEWAY_CONSOLE_SESSION_IDLE_MINUTES: "5",
    };
    const password = await stage.add("patient", "viewer");
    const opened = await stage.openConsole(env, clock);
    try {
      const browser = new Browser(opened.server.port);
      const statuses: number[] = [];
      for (let attempt = 0; attempt < 4; attempt += 1) {
        statuses.push((await stage.enter(browser, "patient", `guess ${attempt}`)).status);
      }
      expect(statuses).toEqual([401, 401, 401, 429]);
      // Not even with the right one, and the answer says how long.
      const late = await stage.enter(browser, "patient", password);
      expect([late.status, late.headers["retry-after"]]).toEqual([429, "20"]);
      clock.ms += 20_000;
      await stage.enter(browser, "patient", password);
      expect(browser.address).toBe("/account");
      clock.ms += 5 * 60_000;
      await browser.get("/account");
      expect(browser.address).toBe("/login");
    } finally {
      for (const service of opened.services.toReversed()) await service.stop();
    }
  });

  it("counts tries at a user's name wherever they come from, and keeps no other words", async () => {
    const clock = { nowMs: () => Date.now(), monotonicMs: () => 0 };
    const env = { CAUSEWAY_CONSOLE_LOGIN_TRIES_PER_MINUTE: "1" };
    await stage.add("target", "viewer");
    const opened = await stage.openConsole(env, clock);
    try {
      let clients = 1;
      const status = async (name: string) => {
        clients += 1;
        const browser = new Browser(opened.server.port, {}, `127.0.0.${clients}`);
        return (await stage.enter(browser, name, "a guess")).status;
      };
      expect([await status("target"), await status("target")]).toEqual([401, 429]);
      const words = "no name of anybody's ".repeat(500);
      expect([await status(words), await status(words)]).toEqual([401, 401]);
    } finally {
      for (const service of opened.services.toReversed()) await service.stop();
    }
  });

  it("keeps cookies to https where it is reached that way, under its own name alone", async () => {
    const opened = await stage.openConsole({
      CAUSEWAY_CONSOLE_SERVER_PUBLIC_URL: "https://console.example",
    });
    try {
      const { port } = opened.server;
      const headers = { host: "console.example" };
      const reply = await rawRequest(port, "/login", { headers });
      expect([reply.headers["set-cookie"] ?? []].flat()[0]).toMatch(
        /^__Host-causeway-login=[\w-]+; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
      );
      const other = await rawRequest(port, "/login", { headers: { host: "other.example" } });
      expect(other.status).toBe(421);
    } finally {
      for (const service of opened.services.toReversed()) await service.stop();
    }
  });

  it("keeps its login beside that of another console on the same machine", async () => {
    const opened = await stage.openConsole();
    try {
      const first = await stage.login("of-both", "viewer");
      const second = new Browser(opened.server.port);
      // A browser has one set of cookies for all ports of a host.
      const share = (from: Browser, to: Browser) =>
        from.cookies.forEach((value, name) => to.cookies.set(name, value));
      share(first, second);
      await stage.enter(second, "of-both", "chosen by them viewer");
      expect(second.address).toBe("/");
      share(second, first);
      for (const browser of [first, second]) {
        await browser.get("/deposits");
        expect(browser.address).toBe("/deposits");
      }
    } finally {
      for (const service of opened.services.toReversed()) await service.stop();
    }
  });

  it("says so where an API does not answer, and does nothing", async () => {
    const opened = await stage.openConsole({
      CAUSEWAY_CONSOLE_API_WITHDRAWAL_URL: "http://127.0.0.1:9",
    });
    try {
      const browser = new Browser(opened.server.port);
      await stage.enter(browser, "the-operator", "chosen by them operator");
      const overview = await browser.get("/");
      expect(overview.status).toBe(200);
      expect(overview.text).toContain("failed");
      expect((await browser.get("/withdrawals")).status).toBe(503);
      expect((await browser.get("/deposits")).status).toBe(200);
    } finally {
      for (const service of opened.services.toReversed()) await service.stop();
    }
  });
});
