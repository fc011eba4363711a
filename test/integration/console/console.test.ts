/**
 * The operator console over real APIs, a real watcher and a real database, used as people use it:
 * pages, forms and cookies, without a script.
 */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { runLiftSwitch } from "../../../cli/commands/policy/kill-switch.js";
import { reconcileOnce } from "../../../deposit-watcher/reconcile-loop.js";
import { readKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import { appendEvents } from "../../../ledger/events.js";
import { recordVerdicts } from "../../../ledger/policy/screening-verdicts.js";
import { judgeAtSlot, writeAtSlot } from "../../../ledger/policy/stored-judgement.js";
import { toWithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { killSwitchPath } from "../../../ledger/policy/policy-paths.js";
import {
  type Browser,
  ConsoleStage,
  hiddenField,
  type SeenPage,
} from "../../helpers/pages/console.js";
import { all, elements, textOf } from "../../helpers/pages/html.js";
import { silentLog, recordIncident } from "../../helpers/services/ledger.js";
import { HOT, STRANGER } from "../../helpers/services/watcher.js";
import { PERMISSIVE } from "../../helpers/keys/signing.js";
import { until } from "../../helpers/until.js";
import { policyOf } from "../policy/terms.js";

let stage: ConsoleStage;
const people: Record<string, Browser> = {};
let depositId = "";
let depositHash = "";
let webhookId = "";
let asked = 0;

const who = (name: string): Browser => {
  const browser = people[name];
  if (browser === undefined) throw new Error(`nobody is called ${name}`);
  return browser;
};

/** A customer's request at the API. @returns its id */
async function request(amountAtoken = "1000"): Promise<string> {
  const key = `customer ${asked++}`;
  const body = { customerId: "alice", asset: "TOKEN", to: STRANGER, amountAtoken };
  return String((await stage.call("/v1/withdrawals", body, key))["id"]);
}

const statusOf = async (id: string) => {
  const rows = await stage.worker.query<{ status: string }>(
    `SELECT status FROM withdrawal WHERE id = $1`,
    [id],
  );
  return rows[0]?.status;
};

beforeAll(async () => {
  stage = await ConsoleStage.open();
  const { bench } = stage;
  const { address } = await bench.register("alice");
  bench.pay([address, 1_000_000n]);
  bench.chain.mine();
  bench.chain.mine();
  await until(
    async () => {
      const rows = await bench.ledger.database.query<{ id: string; tx_hash: string }>(
        `SELECT id, tx_hash FROM deposit WHERE status = 'credited'`,
      );
      depositId = rows[0]?.id ?? "";
      depositHash = rows[0]?.tx_hash ?? "";
      return depositId !== "";
    },
    { timeoutMs: 30_000, what: "the deposit is credited" },
  );
  const parts = { database: bench.ledger.database, node: bench.node, log: silentLog };
  await reconcileOnce(parts, new AbortController().signal);
  bench.chain.mine();
  await bench.caughtUp();
  await reconcileOnce(parts, new AbortController().signal);
  for (const role of ["viewer", "operator", "approver", "admin"]) {
    people[role] = await stage.login(`the-${role}`, role);
  }
});

afterAll(async () => {
  await stage.close();
});

describe("every page", () => {
  const paths = () => [
    "/",
    "/deposits",
    "/deposits?status=credited&customerId=alice",
    `/deposits/${depositId}`,
    "/explain",
    `/explain?txHash=${depositHash}`,
    "/withdrawals",
    "/approvals",
    "/wallets",
    "/treasury",
    "/treasury?state=frozen",
    "/reconciliation",
    "/incidents",
    "/audit",
    "/audit/decisions",
    "/fees",
    "/policy",
    "/webhooks",
    "/account",
    "/no-such-page",
    "/withdrawals/wd_none",
  ];

  /** WCAG 1.1.1, 1.3.1, 2.4.1, 3.3.2, 4.1.2, as far as a program sees them. */
  function accessible(about: string, { root }: SeenPage): void {
    const found = elements(root);
    expect({ about, h1: all(root, "h1").length }).toEqual({ about, h1: 1 });
    const ids = found.flatMap(({ attributes }) => attributes.get("id") ?? []);
    expect({ about, ids: new Set(ids).size }).toEqual({ about, ids: ids.length });
    const labels = new Set(all(root, "label").map(({ attributes }) => attributes.get("for")));
    const fields = found.filter(
      ({ name, attributes }) =>
        ["input", "select", "textarea"].includes(name) && attributes.get("type") !== "hidden",
    );
    const bare = fields.filter(({ attributes }) => !labels.has(attributes.get("id")));
    expect({ about, bare }).toEqual({ about, bare: [] });
    expect(all(root, "a")[0]?.attributes.get("href")).toBe("#content");
    for (const table of all(root, "table")) {
      expect({ about, captions: all(table, "caption").length }).toEqual({ about, captions: 1 });
      const heads = all(table, "th").map(({ attributes }) => attributes.get("scope"));
      expect({ about, heads: new Set(heads) }).toEqual({ about, heads: new Set(["col"]) });
    }
    for (const part of found.filter(({ name }) => ["svg", "nav", "pre"].includes(name))) {
      expect({ about, label: part.attributes.get("aria-label") ?? "" }).not.toEqual({
        about,
        label: "",
      });
    }
    for (const link of [...all(root, "a"), ...all(root, "button")]) {
      expect({ about, text: textOf(link).trim() }).not.toEqual({ about, text: "" });
    }
  }

  it("is well formed, labelled, in two languages, and has nothing inline or of others", async () => {
    const admin = who("admin");
    for (const language of ["de", "en"]) {
      for (const path of paths()) {
        const about = `${path} in ${language}`;
        const seen = await admin.get(`${path}${path.includes("?") ? "&" : "?"}lang=${language}`);
        const isMissing = path === "/no-such-page" || path.endsWith("none");
        expect({ about, status: seen.status }).toEqual({ about, status: isMissing ? 404 : 200 });
        expect({ about, lang: seen.root.attributes.get("lang") }).toEqual({
          about,
          lang: language,
        });
        accessible(about, seen);
        expect(seen.headers["cache-control"]).toBe("no-store");
        expect(seen.headers["content-security-policy"]).toContain("default-src 'none'");
        expect({ about, scripts: all(seen.root, "script").length }).toEqual({ about, scripts: 0 });
        for (const { attributes } of elements(seen.root)) {
          const names = [...attributes.keys()].filter((name) => /^(on|style$|srcdoc$)/.test(name));
          expect({ about, names }).toEqual({ about, names: [] });
        }
      }
    }
  });

  it("shows what the APIs know", async () => {
    const viewer = who("viewer");
    expect((await viewer.get("/deposits")).text).toContain(depositId);
    const one = await viewer.get(`/deposits/${depositId}`);
    expect(one.text).toContain("Chain and books agree");
    expect(one.text).toContain("liability:customer:alice");
    expect(one.text).toContain("causeway audit balance");
    const why = await viewer.get(`/explain?txHash=${depositHash}`);
    expect(why.text).toContain("CREDITED");
    expect((await viewer.get("/reconciliation")).text).toContain("They match");
    expect((await viewer.get("/wallets")).text).toContain("wallet-0");
    const overview = await viewer.get("/");
    expect(overview.text).toContain("Coins against what is owed to customers");
    // Two reconciliations: a line for the chain, one for all coins, one for what is owed.
    expect(all(overview.root, "polyline").length).toBeGreaterThanOrEqual(3);
    expect(overview.text).toContain("deposit-watcher");
  });

  it("leads on through lists whose positions are behind all that a lost ledger told", async () => {
    // As a recovery gives them: read off the time, and far beyond 2^31.
    const after = "6000000000000";
    const lists = ["deposits", "withdrawals", "approvals", "reconciliation", "incidents", "audit"];
    for (const path of [...lists, "audit/decisions"]) {
      const page = await who("viewer").get(`/${path}?after=${after}`);
      expect({ path, status: page.status }).toEqual({ path, status: 200 });
    }
    const page = await who("viewer").get(`/deposits?after=${after}`);
    expect(page.text).toContain(depositId);
  });

  it("says what was done in words of its own alone", async () => {
    for (const done of ["__proto__", "constructor", "nothing"]) {
      const page = await who("viewer").get(`/policy?done=${done}`);
      expect({ done, status: page.status }).toEqual({ done, status: 200 });
      expect(
        all(page.root, "p").some(({ attributes }) => attributes.get("role") === "status"),
      ).toBe(false);
    }
  });

  it("shows texts of strangers as texts", async () => {
    const hostile = `</td><script>alert(1)</script>&"'\u202e`;
    await recordIncident(stage.bench.ledger.database, {
      kind: "LEDGER_CONFLICT",
      height: 1,
      message: hostile,
      details: {},
    });
    const seen = await who("viewer").get("/incidents");
    expect(all(seen.root, "script")).toEqual([]);
    expect(seen.text).toContain("</td><script>alert(1)</script>");
  });
});

describe("an action", () => {
  it("is a form with a reason that becomes one recorded call, by name", async () => {
    const operator = who("operator");
    await operator.get("/incidents");
    // As browsers send what was written on two lines.
    const reason = "Ursache geklärt:\r\n„alter“ Knoten";
    await operator.submit("/incidents/resume", { reason });
    expect(operator.page.text).toContain("Crediting goes on");
    expect(operator.page.text).toContain("Ursache geklärt: „alter“ Knoten");
    const audit = await who("viewer").get("/audit");
    expect(audit.text).toContain("POST /v1/incidents/resume");
    expect(audit.text).toContain("the-operator");
    expect(audit.text).toContain("Ursache geklärt: „alter“ Knoten");
  });

  it("cancels a withdrawal; who sends the form again does nothing a second time", async () => {
    stage.policy = policyOf({ approvals: [{ aboveUnits: 10n, needed: 1, signed: false }] });
    const id = await request();
    const operator = who("operator");
    await operator.get(`/withdrawals/${id}`);
    const form = all(operator.page.root, "form").find(
      ({ attributes }) => attributes.get("action") === `/withdrawals/${id}/cancel`,
    );
    expect(form).toBeDefined();
    const before = operator.page;
    const values = { reason: "the customer asked" };
    await operator.submit(`/withdrawals/${id}/cancel`, values);
    expect(await statusOf(id)).toBe("cancelled");
    expect(operator.page.text).toContain("not to be paid any more");
    const fields = new URLSearchParams(
      elements(before.root).flatMap(({ name, attributes }): [string, string][] =>
        name === "input" && attributes.get("type") === "hidden"
          ? [[attributes.get("name") ?? "", attributes.get("value") ?? ""]]
          : [],
      ),
    );
    // The last form of the page is the cancellation: its key is the last one.
    const body = new URLSearchParams({
      token: fields.get("token") ?? "",
      formKey: fields.getAll("formKey").at(-1) ?? "",
      ...values,
    });
    const again = await operator.send(`/withdrawals/${id}/cancel`, body.toString());
    expect(again.status).toBe(200);
    const calls = await stage.worker.query(`SELECT 1 FROM api_call WHERE path = $1`, [
      `/v1/withdrawals/${id}/cancel`,
    ]);
    expect(calls).toHaveLength(1);
    // The same page, kept by a browser and sent for something else: the first answer would be a lie.
    const other = await request();
    const elsewhere = await operator.send(`/withdrawals/${other}/cancel`, body.toString());
    expect(elsewhere.status).toBe(403);
    body.set("reason", "for another reason");
    const reworded = await operator.send(`/withdrawals/${id}/cancel`, body.toString());
    expect(reworded.status).toBe(403);
    expect(all(reworded.root, "pre").map(textOf)).toEqual(["for another reason"]);
    expect(await statusOf(other)).not.toBe("cancelled");
  });

  it("loses nothing that was written when the session has ended", async () => {
    const id = await request();
    const late = await stage.login("latecomer", "operator");
    await late.get(`/withdrawals/${id}`);
    const same = stage.browser();
    for (const [name, value] of late.cookies) same.cookies.set(name, value);
    await same.get("/");
    await same.submit("/logout");
    const reason = "typed for minutes,\n<b>with care</b>";
    const ended = await late.submit(`/withdrawals/${id}/cancel`, { reason });
    expect(ended.status).toBe(401);
    expect(ended.text).toContain("The session has ended");
    expect(all(ended.root, "pre").map(textOf)).toEqual([reason]);
    expect(await statusOf(id)).not.toBe("cancelled");
    // A password is never shown.
    const secret = await late.send("/account/password", "current=hidden-one&new=hidden-two");
    expect(secret.status).toBe(401);
    expect(secret.text).not.toContain("hidden");
  });

  it("needs two persons where the policy does, and the role that fits", async () => {
    stage.policy = policyOf({ approvals: [{ aboveUnits: 10n, needed: 2, signed: false }] });
    const id = await request();
    const path = `/approvals/${id}`;
    const [approver, admin, viewer] = [who("approver"), who("admin"), who("viewer")];
    expect((await viewer.get("/approvals")).text).toContain("pending_approval");
    await viewer.get(path);
    expect(all(viewer.page.root, "form").map(({ attributes }) => attributes.get("action"))).toEqual(
      ["/logout"],
    );
    // A form that the page does not have, sent all the same.
    const token = new URLSearchParams({
      token: hiddenField(viewer, "token"),
      formKey: hiddenField(viewer, "formKey"),
      decision: "approve",
      reason: "let me",
    });
    expect((await viewer.send(path, token.toString())).status).toBe(403);
    await approver.get(path);
    await approver.submit(path, { reason: "known payee" });
    expect(approver.page.text).toContain("1 of 2 given");
    // The same person does not count twice.
    await approver.submit(path, { reason: "once more" });
    expect(approver.page.text).toContain("1 of 2 given");
    expect(await statusOf(id)).toBe("pending_approval");
    await admin.get(path);
    await admin.submit(path, { reason: "known payee, too" });
    expect(await statusOf(id)).toBe("accepted");
    expect(admin.page.text).toContain("2 of 2 given");
  });

  it("takes no approval from a page that was opened before screening wanted a review", async () => {
    const approvals = [{ aboveUnits: 10n, needed: 1, signed: false }];
    const screening = { url: "http://127.0.0.1:9/", timeoutMs: 1_000, reviewApprovals: 1 };
    stage.policy = policyOf({ approvals }, { screening });
    const id = await request();
    const path = `/approvals/${id}`;
    const [first, second] = [who("approver"), who("admin")];
    await first.get(path);
    await second.get(path);
    await first.submit(path, { reason: "known payee" });
    expect(await statusOf(id)).toBe("accepted");
    const withdrawalId = toWithdrawalId(id);
    await recordVerdicts(stage.worker, [
      { withdrawalId, verdict: "review", reference: "AML-4711" },
    ]);
    await stage.worker.transaction(async (tx) => {
      const at = { policy: stage.policy, wallet: HOT };
      const judged = await judgeAtSlot(tx, at, [withdrawalId]);
      await appendEvents(tx, (await writeAtSlot(tx, stage.policy, judged)).events);
    });
    const refused = await second.submit(path, { reason: "known payee" });
    expect(refused.status).toBe(409);
    expect(refused.text).toContain("POLICY_CHANGED");
    expect(all(refused.root, "pre").map(textOf)).toEqual(["approve", "known payee"]);
    expect(await statusOf(id)).toBe("pending_approval");
    expect((await second.get(path)).text).toContain("AML-4711");
    await second.submit(path, { reason: "looked at the review" });
    expect(await statusOf(id)).toBe("accepted");
  });

  it("shows the bytes of a signed approval, and takes a signature made elsewhere", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
    stage.policy = policyOf(
      { approvals: [{ aboveUnits: 10n, needed: 1, signed: true }] },
      { approvers: [{ name: "ann", publicKey: raw }] },
    );
    const id = await request();
    const path = `/approvals/${id}`;
    const approver = who("approver");
    const { root, text } = await approver.get(path);
    const message = all(root, "pre").map(textOf)[0] ?? "";
    expect(JSON.parse(message)).toEqual([
      "causeway-approval-v1",
      "6940",
      id,
      "alice",
      "TOKEN",
      STRANGER,
      "1000",
      stage.policy.hash,
      "approve",
    ]);
    const digest = createHash("sha256").update(message).digest();
    expect(text).toContain(digest.toString("hex"));
    const other = generateKeyPairSync("ed25519").privateKey;
    const said = (key: typeof privateKey) => ({
      reason: "looked at it",
      publicKey: raw,
      signature: sign(null, digest, key).toString("hex"),
    });
    const refused = await approver.submit(path, said(other));
    expect(refused.status).toBe(422);
    expect(refused.text).toContain("BAD_SIGNATURE");
    await approver.get(path);
    await approver.submit(path, said(privateKey));
    expect(await statusOf(id)).toBe("accepted");
  });

  it("stops payments at once, and starts none again", async () => {
    stage.policy = PERMISSIVE;
    const operator = who("operator");
    await operator.get("/policy");
    await operator.submit("/policy/kill-switch", { level: "stop-new", reason: "drill" });
    expect(operator.page.text).toContain("The kill switch is set.");
    expect(operator.page.text).toContain("(the-operator)");
    const body = { customerId: "alice", asset: "TOKEN", to: STRANGER, amountAtoken: "10" };
    expect((await stage.call("/v1/withdrawals", body, "while stopped"))["code"]).toBe(
      "WITHDRAWALS_STOPPED",
    );
    await operator.submit("/policy/kill-switch", { level: "stop-sign", reason: "more" });
    expect((await readKillSwitch(stage.worker)).level).toBe("stop-sign");
    // The form offers nothing lower, and the API refuses it.
    const lower = await operator.submit("/policy/kill-switch", { level: "stop-new", reason: "x" });
    expect(lower.status).toBe(409);
    expect(lower.text).toContain("SWITCH_LOWERED");
    const none = await stage.call("/v1/kill-switch", { level: "none", reason: "x" }, "lift");
    expect(none["httpStatus"]).toBe(422);
    await runLiftSwitch(stage.command(), { reason: "the drill is over", operator: "ann" });
    expect((await readKillSwitch(stage.worker)).level).toBe("none");
    expect(JSON.parse(readFileSync(killSwitchPath(stage.home), "utf8"))).toMatchObject({
      level: "none",
      by: "ann",
    });
  });

  it("sends a webhook's events again", async () => {
    const { database } = stage.bench.ledger;
    const { addWebhook } = await import("../../../ledger/webhooks/subscriptions.js");
    const { webhook } = await addWebhook(database, {
      url: "http://127.0.0.1:9/hook",
      events: ["*"],
      description: undefined,
    });
    webhookId = webhook.id;
    const operator = who("operator");
    expect((await operator.get("/webhooks")).text).toContain(webhookId);
    await operator.get(`/webhooks/${webhookId}`);
    const values = { fromSeq: "1", reason: "they lost some" };
    await operator.submit(`/webhooks/${webhookId}/redeliver`, values);
    expect(operator.page.text).toContain("sent again");
    await operator.get(`/webhooks/${webhookId}`);
    const above = { fromSeq: "99999999", reason: "a slip of the pen" };
    await operator.submit(`/webhooks/${webhookId}/redeliver`, above);
    expect(operator.page.text).toContain("no event with that number");
    await operator.get(`/webhooks/${webhookId}`);
    const rows = await database.query<{ cursor_seq: string }>(
      `SELECT cursor_seq FROM webhook WHERE id = $1`,
      [webhookId],
    );
    expect(rows[0]?.cursor_seq).toBe("0");
    const older = await operator.get(`/webhooks/${webhookId}?after=6000000000000`);
    expect(older.status).toBe(200);
  });
});

describe("the record of calls", () => {
  it("is listed from either end, each row once", async () => {
    const walk = async (order: string) => {
      const seqs: number[] = [];
      for (let after: string | null = "0"; after !== null; ) {
        const page = await stage.read(`/v1/calls?order=${order}&limit=3&after=${after}`);
        seqs.push(...(page["calls"] as { seq: number }[]).map(({ seq }) => seq));
        after = page["next"] as string | null;
      }
      return seqs;
    };
    const oldest = await walk("oldest");
    expect(oldest.length).toBeGreaterThan(6);
    expect(oldest).toEqual(oldest.toSorted((left, right) => left - right));
    expect(await walk("newest")).toEqual(oldest.toReversed());
  });

  it("has the names and reasons that callers give, and refuses what nobody can read", async () => {
    const body = { decision: "reject", reason: "x" };
    const path = "/v1/withdrawals/wd_none/approvals";
    const said = async (headers: Record<string, string>) =>
      (await stage.call(path, body, "k", headers))["httpStatus"];
    expect(await said({ "causeway-actor": "J%C3%B6rg", "causeway-reason": "a b" })).toBe(404);
    const [last] = (await stage.read("/v1/calls?order=newest&limit=1"))["calls"] as object[];
    expect(last).toMatchObject({ actor: "Jörg", reason: "a b", keyId: "api.key", path });
    expect(await said({ "causeway-actor": "%E4" })).toBe(400);
    expect(await said({ "causeway-actor": " " })).toBe(400);
    expect(await said({ "causeway-actor": "x".repeat(101) })).toBe(400);
    const heads = (count: number) => ({ "causeway-actor": encodeURIComponent("😀".repeat(count)) });
    expect([await said(heads(100)), await said(heads(101))]).toEqual([404, 400]);
    expect(await said({ "causeway-reason": "x".repeat(501) })).toBe(400);
  });
});
