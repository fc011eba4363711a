/** `causeway keys`: how a key is made and shown, and what is refused. */
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import supertest from "supertest";
import { runCreateKey, runListKeys } from "../../../../cli/commands/keys.js";
import { ACCESS_SCOPES } from "../../../../ledger/access/scopes.js";
import type { HttpServer } from "../../../../runtime/http/http-server.js";
import { openTestLedger, type TestLedger } from "../../../helpers/services/ledger.js";
import { commandOver, createKeyedApi, makeHome } from "./keyed-api.js";

const nowMs = Date.UTC(2026, 10, 20);

let ledger: TestLedger;
let home: string;
let server: HttpServer;
let printed: string[] = [];

beforeAll(async () => {
  ledger = await openTestLedger(undefined, "watcher");
  home = makeHome();
  server = await createKeyedApi({ ledger, home, asked: ledger.database, nowMs: () => nowMs });
});
afterAll(async () => {
  await ledger.drop();
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  printed = [];
});

const command = (json = true) => commandOver({ ledger, home, json, printed });

const read = (key: string) =>
  supertest(server.app).get("/v1/deposits").set("authorization", `Bearer ${key}`);

describe("causeway keys", () => {
  it("shows a key once, or writes it where only its owner reads", async () => {
    const out = join(home, "bot.key");
    const options = { scope: "deposits:read", name: "bot", out };
    expect(await runCreateKey(command(false), options, nowMs)).toBe(0);
    const key = readFileSync(out, "utf8").trim();
    expect(printed.join("\n")).not.toContain(key);
    expect(printed.at(-1)).toMatch(/^ {2}npm run causeway -- keys revoke [0-9a-z]+ --home /);
    expect(printed.at(-1)).toContain(home);
    expect(statSync(out).mode & 0o777).toBe(0o600);
    expect((await read(key)).status).toBe(200);
    await expect(runCreateKey(command(), options, nowMs)).rejects.toThrow(/another file/);
    printed = [];
    await runListKeys(command());
    const { keys } = JSON.parse(printed.join("")) as { keys: Record<string, unknown>[] };
    expect(keys.filter(({ name }) => name === "bot")).toHaveLength(2);
    // The one whose file was taken opens nothing.
    expect(keys.findLast(({ name }) => name === "bot")?.["revokedAt"]).not.toBeNull();
    expect(printed.join("")).not.toContain(key);
  });

  it("says in full where a key lies: npm runs a command in the clone, wherever it is typed", async () => {
    const file = join(home, "full.key");
    const options = { scope: "deposits:read", name: "full", out: relative(process.cwd(), file) };
    expect(await runCreateKey(command(false), options, nowMs)).toBe(0);
    expect(printed).toContain(`The key is in ${file}.`);
  });

  it("leaves no key behind that nobody has, whatever keeps it from being written", async () => {
    const options = { scope: "deposits:read", name: "lost", out: join(home, "gone", "bot.key") };
    await expect(runCreateKey(command(), options, nowMs)).rejects.toThrow(/no such file or folder/);
    await runListKeys(command());
    const { keys } = JSON.parse(printed.join("")) as { keys: Record<string, unknown>[] };
    const lost = keys.filter(({ name }) => name === "lost");
    expect(lost).toHaveLength(1);
    expect(lost[0]?.["revokedAt"]).toEqual(expect.any(String));
  });

  it("refuses what it does not know, with what there is", async () => {
    const create = (more: object) =>
      runCreateKey(command(), { scope: "deposits:read", ...more }, nowMs);
    await expect(create({ scope: "deposits" })).rejects.toThrow(ACCESS_SCOPES.join(", "));
    await expect(create({ scope: "" })).rejects.toMatchObject({ code: "INVALID_KEY" });
    const noDays = ["2099-02-30", "2099-02-29T00:00:00Z", "2099-01-31 10:00", "2099-01-31 or so"];
    for (const wrong of ["yesterday", "0d", "2020-01-01", "5y", "-1d", ...noDays]) {
      const refused = create({ expires: wrong });
      await expect(refused).rejects.toMatchObject({ code: "USAGE" });
    }
    // 32 zeros in PEM: everybody can sign for that key.
    const weak = join(home, "weak.pem");
    const spki = Buffer.from(`302a300506032b6570032100${"00".repeat(32)}`, "hex");
    const pem = `-----BEGIN PUBLIC KEY-----\n${spki.toString("base64")}\n-----END PUBLIC KEY-----\n`;
    writeFileSync(weak, pem);
    const ofEverybody = create({ sign: "ed25519", publicKey: weak });
    await expect(ofEverybody).rejects.toThrow("--public-key needs");
    await expect(create({ rate: "0" })).rejects.toMatchObject({ code: "USAGE" });
    await expect(create({ name: "line\nbreak" })).rejects.toMatchObject({ code: "USAGE" });
  });
});
