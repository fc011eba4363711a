/** Pieces of the console that guard it: sessions, passwords, forms, names, and its words. */
import { createHash, scryptSync } from "node:crypto";
import { PassThrough } from "node:stream";
import type { IncomingMessage } from "node:http";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { present } from "../../../chain/errors.js";
import { readForm } from "../../../console/server/form-body.js";
import { checkHost, checkOrigin } from "../../../console/server/request-guards.js";
import { isSameToken, SessionStore } from "../../../console/server/session-store.js";
import { CATALOGUES } from "../../../console/text/catalogue.js";
import { isAble, scopesOf } from "../../../console/users/roles.js";
import { newPassword, openKey, PASSWORD_COST, sealKey } from "../../../console/users/sealed-key.js";
import { UserService } from "../../../console/users/user-service.js";
import {
  createUser,
  isUserName,
  listUnreadableUsers,
  listUsers,
  readUser,
} from "../../../console/users/user-files.js";
import { ACCESS_SCOPES } from "../../../ledger/access/scopes.js";
import { linesChart } from "../../../web/html/chart.js";
import { el, renderDocument } from "../../../web/html/element.js";
import { all, parseHtml } from "../../helpers/pages/html.js";

const CHEAP = { n: 16, r: 1, p: 1 };

const ANN = { user: "ann", role: "viewer", apiKey: "cwk_x", mustChange: false } as const;

function store(limits: { idleMs?: number; maxMs?: number; maxSessions?: number } = {}) {
  const clock = { ms: 0, nowMs: () => clock.ms, monotonicMs: () => clock.ms };
  const sessions = new SessionStore(
    { idleMs: 100, maxMs: 1_000, maxSessions: 10, ...limits },
    clock,
  );
  return { sessions, clock };
}

describe("sessions", () => {
  it("end when they are not used, and in any case", () => {
    const { sessions, clock } = store();
    const id = sessions.begin(ANN);
    for (let use = 0; use < 9; use += 1) {
      clock.ms += 99;
      expect(sessions.use(id)?.user).toBe("ann");
    }
    clock.ms = 990;
    expect(sessions.use(id)?.user).toBe("ann");
    clock.ms = 1_000;
    expect(sessions.use(id)).toBeUndefined();
    const idle = sessions.begin(ANN);
    clock.ms += 100;
    expect(sessions.use(idle)).toBeUndefined();
    // Asked for in time afterwards, it stays ended.
    expect(sessions.size).toBe(0);
  });

  it("are known by what nobody can guess, and are as many as there may be", () => {
    const { sessions } = store({ maxSessions: 2 });
    const ids = [sessions.begin(ANN), sessions.begin(ANN), sessions.begin(ANN)];
    expect(new Set(ids).size).toBe(3);
    expect(ids[0]).toMatch(/^[\w-]{43}$/);
    expect(ids.map((id) => sessions.use(id) !== undefined)).toEqual([false, true, true]);
    expect(sessions.use("made up")).toBeUndefined();
    expect(sessions.use(undefined)).toBeUndefined();
  });

  it("end by logging out, and all of a user at once", () => {
    const { sessions } = store();
    const [one, two] = [sessions.begin(ANN), sessions.begin(ANN)];
    const ben = sessions.begin({ ...ANN, user: "ben" });
    sessions.end(one);
    expect(sessions.use(one)).toBeUndefined();
    expect(sessions.use(two)).toBeDefined();
    sessions.endAllOf("ann");
    expect(sessions.use(two)).toBeUndefined();
    expect(sessions.use(ben)).toBeDefined();
  });

  it("have tokens of their own, and logins one for each browser", () => {
    const { sessions } = store();
    const tokens = [sessions.begin(ANN), sessions.begin(ANN)].map(
      (id) => sessions.use(id)?.formToken ?? "",
    );
    expect(isSameToken(tokens[0] ?? "", tokens[1] ?? "")).toBe(false);
    expect(isSameToken(tokens[0] ?? "", tokens[0] ?? "")).toBe(true);
    expect(isSameToken("", tokens[0] ?? "")).toBe(false);
    expect(sessions.loginToken("a")).toBe(sessions.loginToken("a"));
    expect(sessions.loginToken("a")).not.toBe(sessions.loginToken("b"));
    expect(store().sessions.loginToken("a")).not.toBe(sessions.loginToken("a"));
  });
});

describe("a sealed key", () => {
  it("opens with its password alone, for its owner alone", async () => {
    const sealed = await sealKey("cwk_secret", "korrekt Ähre", "ann", CHEAP);
    expect(JSON.stringify(sealed)).not.toContain(Buffer.from("cwk_secret").toString("hex"));
    expect(await openKey(sealed, "korrekt Ähre", "ann")).toBe("cwk_secret");
    // The same letters, composed otherwise by another keyboard.
    expect(await openKey(sealed, "korrekt A\u0308hre", "ann")).toBe("cwk_secret");
    expect(await openKey(sealed, "korrekt ähre", "ann")).toBeUndefined();
    expect(await openKey(sealed, "", "ann")).toBeUndefined();
    await expect(openKey(sealed, "korrekt Ähre", "ben")).rejects.toThrow();
    const other = await sealKey("cwk_secret", "korrekt Ähre", "ann", CHEAP);
    expect([other.salt, other.verifier, other.sealed]).not.toEqual([
      sealed.salt,
      sealed.verifier,
      sealed.sealed,
    ]);
  });

  it("has the verifier that scrypt and SHA-256 make", async () => {
    const { salt, verifier } = await sealKey("k", "pass word", "ann", CHEAP);
    const bytes = scryptSync("pass word", Buffer.from(salt, "hex"), 64, { N: 16, r: 1, p: 1 });
    expect(verifier).toBe(createHash("sha256").update(bytes.subarray(0, 32)).digest("hex"));
    // What costs an attacker 32 MiB and three rounds for each try.
    expect(PASSWORD_COST).toEqual({ n: 2 ** 15, r: 8, p: 3 });
  });

  it("gets passwords that are never the same", () => {
    const made = new Set(Array.from({ length: 1_000 }, newPassword));
    expect(made.size).toBe(1_000);
  });
});

describe("users", () => {
  it("have names that are files, and files that are whole", () => {
    for (const name of ["ann", "a", "desk-2", "a_b"])
      expect([name, isUserName(name)]).toEqual([name, true]);
    for (const name of ["", "Ann", "../x", "a/b", "a.b", "2x", "a".repeat(33), "a\n"]) {
      expect([name, isUserName(name)]).toEqual([name, false]);
    }
    const home = mkdtempSync(join(tmpdir(), "causeway-users-"));
    try {
      expect(listUsers(home)).toEqual([]);
      expect(readUser(home, "../../etc/passwd")).toBeUndefined();
      mkdirSync(join(home, "data", "console", "users"), { recursive: true });
      writeFileSync(join(home, "data", "console", "users", "ann.json"), "{}");
      expect(() => readUser(home, "ann")).toThrow("no user of the console");
      expect([listUsers(home), listUnreadableUsers(home)]).toEqual([[], ["ann"]]);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });

  it("that were reset while their password is changed stay reset", async () => {
    const home = mkdtempSync(join(tmpdir(), "causeway-console-"));
    const made = async (apiKey: string, password: string) => ({
      format: 1 as const,
      name: "ann",
      role: "approver" as const,
      keyId: apiKey,
      mustChange: true,
      createdAt: "2026-01-01T00:00:00Z",
      key: await sealKey(apiKey, password, "ann", CHEAP),
    });
    createUser(home, await made("former", "the former words"));
    const reset = await made("latter", "the latter words");
    const users = new UserService(home, CHEAP);
    const next = "words of my own";
    const changing = users.change("ann", { current: "the former words", next, again: next });
    // The former file was read: it is a person at the command line who writes here.
    writeFileSync(join(home, "data", "console", "users", "ann.json"), JSON.stringify(reset));
    await expect(changing).rejects.toMatchObject({ code: "WRONG_LOGIN" });
    expect(readUser(home, "ann")).toEqual(reset);
    expect((await users.enter("ann", "the latter words")).apiKey).toBe("latter");
    rmSync(home, { recursive: true });
  });

  it("are not let in by a password that was changed, or a user that was removed, while it was tried", async () => {
    const home = mkdtempSync(join(tmpdir(), "causeway-console-"));
    const [old, next] = ["the former words", "words of my own"];
    try {
      createUser(home, {
        format: 1,
        name: "ann",
        role: "viewer",
        keyId: "key",
        mustChange: false,
        createdAt: "2026-01-01T00:00:00Z",
        key: await sealKey("key", old, "ann", CHEAP),
      });
      const users = new UserService(home, CHEAP);
      const latter = await sealKey("key", next, "ann", CHEAP);
      // The former file was read, and the former password fits it.
      const tried = users.enter("ann", old);
      const changed = { ...present(readUser(home, "ann"), "ann"), key: latter };
      const file = join(home, "data", "console", "users", "ann.json");
      writeFileSync(file, JSON.stringify(changed));
      await expect(tried).rejects.toMatchObject({ code: "WRONG_LOGIN" });
      const known = users.enter("ann", next);
      rmSync(file);
      await expect(known).rejects.toMatchObject({ code: "WRONG_LOGIN" });
    } finally {
      rmSync(home, { recursive: true });
    }
  });

  it("choose passwords without their name in them, but for names that hardly any words are without", async () => {
    const home = mkdtempSync(join(tmpdir(), "causeway-console-"));
    const current = "what was given";
    try {
      for (const name of ["a", "ann", "anna"]) {
        createUser(home, {
          format: 1,
          name,
          role: "viewer",
          keyId: name,
          mustChange: true,
          createdAt: "2026-01-01T00:00:00Z",
          key: await sealKey("key", current, name, CHEAP),
        });
      }
      const users = new UserService(home, CHEAP);
      const next = "Annapolis bananas";
      const change = (name: string) => users.change(name, { current, next, again: next });
      expect((await change("a")).mustChange).toBe(false);
      expect((await change("ann")).mustChange).toBe(false);
      await expect(change("anna")).rejects.toMatchObject({ code: "PASSWORD_UNFIT" });
    } finally {
      rmSync(home, { recursive: true });
    }
  });

  it("have keys of scopes that there are, none of which makes addresses", () => {
    for (const role of ["viewer", "operator", "approver", "admin"] as const) {
      const scopes: readonly string[] = scopesOf(role);
      expect(scopes.filter((scope) => !ACCESS_SCOPES.some((known) => known === scope))).toEqual([]);
      expect(scopes.includes("approvals:write")).toBe(isAble(role, "approve"));
      expect(scopes.includes("operations:write")).toBe(isAble(role, "operate"));
      expect(scopes).not.toContain("addresses:write");
    }
  });
});

const asked = (headers: Record<string, string>) => ({ headers }) as unknown as IncomingMessage;

describe("a request", () => {
  it("is answered under the console's own names", () => {
    for (const host of ["127.0.0.1:3001", "localhost", "LOCALHOST:1", "[::1]:3001"]) {
      expect(() => checkHost(asked({ host }), undefined)).not.toThrow();
    }
    for (const host of [
      "127.0.0.1.evil.example",
      "evil.example:3001",
      "",
      "localhost@evil",
      "10.0.0.1",
    ]) {
      expect(() => checkHost(asked({ host }), "console.example")).toThrow("another name");
    }
    expect(() => checkHost(asked({ host: "Console.Example" }), "console.example")).not.toThrow();
  });

  it("is a form of the console's own pages", () => {
    const host = "localhost:3001";
    const right: Record<string, string>[] = [
      {},
      { origin: "http://localhost:3001" },
      { "sec-fetch-site": "same-origin" },
      { "sec-fetch-site": "none" },
    ];
    for (const headers of right) {
      expect(() => checkOrigin(asked({ host, ...headers }))).not.toThrow();
    }
    const wrong: Record<string, string>[] = [
      { origin: "http://localhost:3000" },
      { origin: "null" },
      { origin: "" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "cross-site", origin: "http://localhost:3001" },
    ];
    for (const headers of wrong) {
      expect(() => checkOrigin(asked({ host, ...headers }))).toThrow("another page");
    }
  });

  it("is a form that is bounded and says each thing once", async () => {
    const send = (body: string, type = "application/x-www-form-urlencoded") => {
      const stream = new PassThrough();
      stream.end(body);
      return readForm(Object.assign(stream, asked({ "content-type": type })));
    };
    const fields = await send("reason=a%0D%0Ab&x=%C3%A4");
    expect([...fields]).toEqual([
      ["reason", "a\nb"],
      ["x", "ä"],
    ]);
    await expect(send("a=1&a=2")).rejects.toMatchObject({ code: "BAD_REQUEST" });
    await expect(send("a=1", "text/plain")).rejects.toMatchObject({ code: "NO_FORM" });
    await expect(send("a=1", "multipart/form-data; boundary=x")).rejects.toMatchObject({
      code: "NO_FORM",
    });
    await expect(send(`a=${"x".repeat(17_000)}`)).rejects.toMatchObject({ code: "TOO_LARGE" });
    const many = Array.from({ length: 40 }, (_, index) => `f${index}=1`).join("&");
    await expect(send(many)).rejects.toMatchObject({ code: "BAD_REQUEST" });
  });
});

describe("the console's words", () => {
  const places = (text: string) =>
    new Set([...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));

  it("are whole in every language", () => {
    const { en, ...others } = CATALOGUES;
    for (const catalogue of Object.values(others)) {
      expect(Object.keys(catalogue)).toEqual(Object.keys(en));
      for (const [key, text] of Object.entries(en)) {
        const theirs = Object.entries(catalogue).find(([name]) => name === key)?.[1] ?? "";
        expect({ key, places: places(theirs) }).toEqual({
          key,
          places: places(text),
        });
        expect({ key, isEmpty: theirs.trim() === "" }).toEqual({ key, isEmpty: false });
      }
    }
  });
});

describe("a chart of several lines", () => {
  const format = (value: bigint) => value.toString();
  const text = { title: "two", from: "a", to: "b", format };
  const series = (name: string, values: readonly bigint[]) => ({
    name,
    points: values.map((value, x) => ({ x, value })),
  });

  it("draws them on one scale, told apart by more than colour, and none for too few points", () => {
    const chart = linesChart([series("high", [10n, 20n]), series("low", [0n, 0n])], text);
    const root = parseHtml(renderDocument(el("html", {}, chart)));
    const lines = all(root, "polyline").map(({ attributes }) => attributes);
    expect(lines.map((attributes) => attributes.get("class"))).toEqual(["line", "line line-2"]);
    const [high, low] = lines.map((attributes) =>
      (attributes.get("points") ?? "").split(" ").map((point) => Number(point.split(",")[1])),
    );
    // Downwards is less: 20 at the top, 0 at the bottom, 10 in the middle.
    expect(low?.[0]).toBe(low?.[1]);
    expect(((high?.[1] ?? 0) + (low?.[0] ?? 0)) / 2).toBeCloseTo(high?.[0] ?? 0);
    expect(linesChart([series("one", [1n])], text)).toBeUndefined();
    expect(linesChart([], text)).toBeUndefined();
  });
});
