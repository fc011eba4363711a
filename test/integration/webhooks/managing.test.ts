/** How persons and programs manage webhooks: by commands and by the API, and what both refuse. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import type { LedgerCommand } from "../../../cli/ledger/ledger-tools.js";
import {
  runAddSecret,
  runAddWebhook,
  runListDeliveries,
  runListWebhooks,
  runRedeliver,
  runRemoveWebhook,
  runRetireSecret,
} from "../../../cli/webhooks/commands.js";
import { listWebhooks, liveSecrets } from "../../../ledger/webhooks/subscriptions.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { roleUrl } from "../../helpers/services/ledger.js";
import { HOT } from "../../helpers/services/watcher.js";
import { until } from "../../helpers/until.js";
import {
  database,
  ledger,
  receiver,
  start,
  call,
  add,
  emit,
  settled,
  openHooks,
  closeHooks,
  endTest,
} from "./hooks.js";

beforeAll(openHooks);
afterEach(endTest);
afterAll(closeHooks);

describe("causeway webhooks", () => {
  let home: string;
  let printed: string[] = [];

  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), "causeway-webhooks-"));
    mkdirSync(join(home, "config"));
    const wallet = JSON.stringify({ address: HOT.slice(2) });
    writeFileSync(join(home, "config", "hot-wallet.json"), wallet);
  });
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  const command = (json: boolean): LedgerCommand => ({
    home,
    portOffset: 0,
    json,
    env: {
      DATABASE_URL: roleUrl(ledger.url, "operator"),
      CAUSEWAY_WATCHER_WEBHOOKS_ALLOW_LOCAL: "true",
    },
    signal: new AbortController().signal,
    print: (text) => void printed.push(text),
  });
  const json = () => JSON.parse(printed.at(-1) ?? "");

  it("does all that the API does, and shows a secret once or not at all", async () => {
    const out = join(home, "hook.secret");
    const options = { events: "deposit.credited,withdrawal.*", description: "desk", out };
    expect(await runAddWebhook(command(true), receiver.url("/desk"), options)).toBe(0);
    const { id } = json();
    const secret = readFileSync(out, "utf8").trim();
    expect([secret, statSync(out).mode & 0o777]).toEqual([expect.stringMatching(/^whsec_/), 0o600]);
    expect(printed.join("\n")).not.toContain(secret);
    await expect(runAddWebhook(command(true), receiver.url("/desk"), options)).rejects.toThrow(
      /another file/,
    );
    await runListWebhooks(command(true));
    // The one whose file was taken is removed again.
    expect(json().webhooks).toMatchObject([
      { id, status: "active", events: ["deposit.credited", "withdrawal.*"], description: "desk" },
    ]);
    const [eventId] = await emit("deposit.credited");
    start();
    await settled(id);
    await runListDeliveries(command(false), id, {});
    expect(printed.at(-1)).toMatch(/deposit\.credited {2}delivered {2}1 tries/);
    await runListDeliveries(command(true), id, { limit: "1" });
    expect(json()).toMatchObject({ next: json().deliveries[0].seq });
    await runListDeliveries(command(true), id, {});
    expect(json()).toMatchObject({ next: null });
    await expect(runListDeliveries(command(true), id, { limit: "5000" })).rejects.toMatchObject({
      code: "USAGE",
      message: '--limit takes a whole number from 1 to 1000, not "5000".',
    });
    expect(await runRedeliver(command(false), id, String(eventId?.split("_")[2]))).toBe(0);
    await until(() => receiver.ids("/desk").length === 2, { timeoutMs: 10_000 });
    await settled(id);
    expect(await runAddSecret(command(true), id, {})).toBe(0);
    const second = json();
    expect(second.secret).toMatch(/^whsec_/);
    expect(await runRetireSecret(command(false), id, second.id)).toBe(0);
    expect(await runRemoveWebhook(command(false), id)).toBe(0);
    printed = [];
    await runListWebhooks(command(false));
    expect(printed).toEqual(["No webhooks."]);
  });

  it("makes no secret that nobody has, where its file cannot be written", async () => {
    const out = join(home, "no-such-folder", "hook.secret");
    const adding = runAddWebhook(command(true), receiver.url("/lost"), { events: "*", out });
    await expect(adding).rejects.toMatchObject({ code: "HOME_UNUSABLE" });
    expect((await listWebhooks(database)).map(({ url }) => url)).not.toContain(
      receiver.url("/lost"),
    );
    const { id, secret } = await add("/kept");
    await expect(runAddSecret(command(true), id, { out })).rejects.toMatchObject({
      code: "HOME_UNUSABLE",
    });
    const live = await liveSecrets(database, [id]);
    expect(live.get(id)).toEqual([secret]);
  });

  it("refuses what cannot be", async () => {
    const addByHand = (url: string, events = "*") => runAddWebhook(command(true), url, { events });
    await expect(addByHand("http://10.0.0.1/")).rejects.toMatchObject({ code: "INVALID_TARGET" });
    await expect(addByHand("https://10.0.0.1/")).rejects.toMatchObject({
      code: "FORBIDDEN_TARGET",
    });
    for (const events of ["coins", "*,withdrawal.settle"]) {
      await expect(addByHand("https://hooks.example.com/", events)).rejects.toMatchObject({
        code: "INVALID_WEBHOOK",
      });
    }
    await expect(runRedeliver(command(true), "nobodyhasit0", "1")).rejects.toMatchObject({
      code: "WEBHOOK_UNKNOWN",
    });
    await expect(runRedeliver(command(true), "nobodyhasit0", "0")).rejects.toMatchObject({
      code: "USAGE",
    });
  });
});

describe("a webhook that is removed", () => {
  it("is sent nothing more, also where a delivery was about to be: it has no secret to sign it", async () => {
    const [gone] = [await add("/gone"), await add("/stays")];
    await emit("deposit.credited");
    const seen: SqlDatabase = Object.create(database, {
      query: {
        value: async (text: string, values: readonly unknown[]) => {
          const rows = await database.query(text, values);
          const isClaim = text.includes("claimed AS (") && rows.length > 0;
          if (isClaim) await call("delete", `/${gone.id}`).expect(200);
          return rows;
        },
      },
      transaction: { value: database.transaction.bind(database) },
    });
    const stop = start({ seen });
    await until(() => receiver.ids("/stays").length > 0, { timeoutMs: 10_000 });
    await stop();
    expect([receiver.ids("/gone"), receiver.ids("/stays").length]).toEqual([[], 1]);
  });
});

describe("POST /v1/webhooks", () => {
  it.each([
    ["no URL", { events: ["*"] }],
    ["no events", { url: "https://hooks.example.com/" }],
    ["an empty list of events", { url: "https://hooks.example.com/", events: [] }],
    ["an unknown kind of event", { url: "https://hooks.example.com/", events: ["coins.*"] }],
    ["a misspelt event", { url: "https://hooks.example.com/", events: ["deposit.creditted"] }],
    ["an event of another kind", { url: "https://hooks.example.com/", events: ["token.settled"] }],
    ["http to elsewhere", { url: "http://hooks.example.com/", events: ["*"] }],
    ["a private address", { url: "https://10.0.0.1/", events: ["*"] }],
    ["a metadata service", { url: "https://169.254.169.254/", events: ["*"] }],
    ["a user in the URL", { url: "https://a:b@hooks.example.com/", events: ["*"] }],
    ["an unknown field", { url: "https://hooks.example.com/", events: ["*"], secret: "mine" }],
  ])("refuses %s", async (_what, body) => {
    const reply = await call("post", "").send(body);
    expect([reply.status, reply.body.code]).toEqual([422, "INVALID_FIELD"]);
  });

  it("answers 404 for webhooks that are not there", async () => {
    const hook = await add("/gone");
    await call("delete", `/${hook.id}`).expect(200);
    for (const [method, path, body] of [
      ["get", "", undefined],
      ["delete", "", undefined],
      ["post", "/redeliver", { fromSeq: 1 }],
      ["post", "/secrets", undefined],
      ["get", "/deliveries", undefined],
    ] as const) {
      for (const id of [hook.id, "x".repeat(100)]) {
        const reply = await call(method, `/${id}${path}`).send(body);
        expect([path, reply.status, reply.body.code]).toEqual([path, 404, "NOT_FOUND"]);
      }
    }
  });
});
