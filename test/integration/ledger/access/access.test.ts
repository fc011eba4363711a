/**
 * API keys over a real database and a real server: what a key opens, when it ends, what it leaves
 * behind. Keys are made and ended by the operator's commands; the API runs in the watcher's role.
 */
import { createHash, createHmac, generateKeyPairSync, sign } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import supertest from "supertest";
import {
  type CreateKeyOptions,
  runCreateKey,
  runListCalls,
  runListKeys,
  runRevokeKey,
} from "../../../../cli/commands/keys.js";
import { KEY_LIFE_MS } from "../../../../ledger/access/key-ring.js";
import type { HttpServer } from "../../../../runtime/http/http-server.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { openTestLedger, type TestLedger } from "../../../helpers/services/ledger.js";
import { BUSINESS_FIGURE, commandOver, createKeyedApi, FILE_KEY, makeHome } from "./keyed-api.js";

const START_MS = Date.UTC(2026, 10, 20);

let ledger: TestLedger;
let home: string;
let server: HttpServer;
let nowMs = START_MS;
let printed: string[] = [];
/** Statements of the API's process. */
let statements: string[] = [];

beforeAll(async () => {
  ledger = await openTestLedger(undefined, "watcher");
  home = makeHome();
  const counted: SqlDatabase = Object.create(ledger.database, {
    query: {
      value: (text: string, values?: readonly unknown[]) => {
        statements.push(text);
        return ledger.database.query(text, values);
      },
    },
  });
  server = await createKeyedApi({ ledger, home, asked: counted, nowMs: () => nowMs });
});
afterAll(async () => {
  await ledger.drop();
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  printed = [];
  statements = [];
});

const command = (json = true) => commandOver({ ledger, home, json, printed });

interface Made {
  readonly id: string;
  readonly key: string;
}

async function make(scope: string, more: { expires?: string; rate?: string } = {}): Promise<Made> {
  expect(await runCreateKey(command(), { scope, ...more }, nowMs)).toBe(0);
  return JSON.parse(printed.at(-1) ?? "") as Made;
}

const read = (key: string, path = "/v1/deposits") =>
  supertest(server.app).get(path).set("authorization", `Bearer ${key}`);
const register = (key: string, customerId = "alice") =>
  supertest(server.app)
    .post("/v1/addresses")
    .set("authorization", `Bearer ${key}`)
    .send({ customerId });

describe("an API key", () => {
  it("opens what its scopes name, and says which it lacks", async () => {
    const reader = await make("deposits:read");
    expect((await read(reader.key)).status).toBe(200);
    expect((await read(reader.key, "/v1/events")).status).toBe(200);
    const refused = await register(reader.key);
    expect(refused.status).toBe(403);
    expect(refused.body).toMatchObject({
      code: "FORBIDDEN",
      details: { scope: "addresses:write" },
    });
    expect(refused.body.message).toContain("addresses:write");
    const writer = await make("addresses:write, audit:read");
    expect((await register(writer.key)).status).toBe(201);
    expect((await read(writer.key)).status).toBe(403);
    expect(
      (
        await supertest(server.app)
          .head("/v1/deposits")
          .set("authorization", `Bearer ${writer.key}`)
      ).status,
    ).toBe(403);
    // The home's own key may do everything, and a path that is not there is that for all.
    expect((await register(FILE_KEY)).status).toBe(201);
    expect((await read(writer.key, "/v1/other")).status).toBe(404);
  });

  it("is shown the figures of business for metrics:read alone", async () => {
    const wanted = { "metrics:read": true, "deposits:read": false, "audit:read": false };
    for (const [scope, isShown] of Object.entries(wanted)) {
      const { key } = await make(scope);
      const { status, text } = await read(key, "/metrics");
      expect([scope, status, text.includes(BUSINESS_FIGURE)]).toEqual([scope, 200, isShown]);
    }
    // A key for figures reads nothing else.
    expect((await read((await make("metrics:read")).key)).status).toBe(403);
  });

  it("is needed, and no other text is one", async () => {
    const { key } = await make("deposits:read");
    for (const wrong of [
      "",
      "x",
      `${key}x`,
      key.slice(0, -1),
      key.toUpperCase(),
      "a".repeat(10_000),
    ]) {
      const answer = await read(wrong);
      expect([wrong.slice(0, 20), answer.status]).toEqual([wrong.slice(0, 20), 401]);
      expect(answer.body.code).toBe("UNAUTHORIZED");
    }
    expect((await supertest(server.app).get("/v1/deposits")).status).toBe(401);
  });

  it("ends when it is revoked, or has expired", async () => {
    const { id, key } = await make("deposits:read");
    expect((await read(key)).status).toBe(200);
    expect(await runRevokeKey(command(), id)).toBe(0);
    nowMs += KEY_LIFE_MS;
    expect((await read(key)).status).toBe(401);
    await expect(runRevokeKey(command(), "nobodyhasit0")).rejects.toMatchObject({
      code: "KEY_UNKNOWN",
    });
    const short = await make("deposits:read", { expires: "30m" });
    nowMs += 30 * 60_000 - 1;
    expect((await read(short.key)).status).toBe(200);
    nowMs += 1;
    expect((await read(short.key)).status).toBe(401);
    // Times as every API writes them, and as programs do.
    const until = [new Date(nowMs + 45_000).toISOString(), "45s"];
    for (const expires of until) {
      const made = await make("deposits:read", { expires });
      expect(made).toMatchObject({ expiresAt: until[0] });
    }
  });

  it("makes no more calls a second than it was given", async () => {
    const { key } = await make("deposits:read", { rate: "3" });
    const statuses: number[] = [];
    for (let call = 0; call < 5; call++) statuses.push((await read(key)).status);
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    nowMs += 334;
    expect((await read(key)).status).toBe(200);
    const refused = await read(key);
    expect(refused.body).toMatchObject({ code: "RATE_LIMITED", details: { callsPerSecond: 3 } });
    expect(refused.headers["retry-after"]).toBe("1");
    expect((await read(FILE_KEY)).status).toBe(200);
  });

  it("is asked for once in its life in memory, and strangers share their questions", async () => {
    const { key } = await make("deposits:read");
    statements = [];
    for (let call = 0; call < 20; call++) await read(key);
    expect(statements.filter((text) => text.includes("api_key"))).toHaveLength(1);
    statements = [];
    await Promise.all(Array.from({ length: 50 }, (_, index) => read(`stranger-${index}`)));
    expect(statements.length).toBeLessThan(50);
  });

  it("is nowhere in the database, and nobody changes it", async () => {
    const { id, key } = await make("deposits:read");
    const [row] = await ledger.owner.query<{ all: string; digest: string }>(
      `SELECT to_jsonb(api_key)::text AS all, digest FROM api_key WHERE id = $1`,
      [id],
    );
    expect(row?.all).not.toContain(key);
    // The secret may have underscores of its own.
    expect(row?.all).not.toContain(key.split("_").slice(2).join("_"));
    expect(row?.digest).toBe(createHash("sha256").update(key).digest("hex"));
    for (const change of [
      `UPDATE api_key SET scopes = '{withdrawals:write}' WHERE id = '${id}'`,
      `UPDATE api_key SET expires_at = now() + '1 year' WHERE id = '${id}'`,
      `UPDATE api_key SET revoked_at = NULL WHERE revoked_at IS NOT NULL`,
      `DELETE FROM api_key`,
      `UPDATE api_call SET path = '/'`,
      `DELETE FROM api_call`,
      `TRUNCATE api_call`,
    ]) {
      await expect(ledger.owner.query(change)).rejects.toThrow();
    }
    // The API's own role can neither make nor end a key.
    const { database } = ledger;
    await expect(
      database.query(
        `INSERT INTO api_key (id, digest, name, scopes) VALUES ('aaaaaaaaaaaa', $1, 'x', '{x}')`,
        ["0".repeat(64)],
      ),
    ).rejects.toThrow(/permission denied/);
    await expect(database.query(`UPDATE api_key SET revoked_at = now()`)).rejects.toThrow(
      /permission denied/,
    );
  });
});

describe("a key that signs its requests", () => {
  const target = "/v1/addresses";
  const hmac = (secret: string) => (text: string) =>
    createHmac("sha256", secret).update(text).digest("hex");

  interface Signed {
    readonly body?: object;
    readonly sent?: object;
    readonly timestamp?: string;
    readonly signedTarget?: string;
    readonly signature?: string;
    /** Signed, and sent unless `sentKey` is. */
    readonly idempotencyKey?: string;
    readonly sentKey?: string;
  }

  /** A request as the guide tells it: method, target, timestamp, SHA-256 of the body. */
  function signed(key: string, signer: (text: string) => string, options: Signed = {}) {
    const body = JSON.stringify(options.body ?? { customerId: "signed" });
    const { timestamp = `${nowMs}`, signedTarget = target } = options;
    const digest = createHash("sha256").update(body).digest("hex");
    const { idempotencyKey, sentKey = idempotencyKey } = options;
    const lines = [
      "POST",
      signedTarget,
      timestamp,
      digest,
      ...(idempotencyKey ? [idempotencyKey] : []),
    ];
    const signature = signer(lines.join("\n"));
    return supertest(server.app)
      .post(target)
      .set("authorization", `Bearer ${key}`)
      .set("content-type", "application/json")
      .set("causeway-timestamp", timestamp)
      .set("causeway-signature", options.signature ?? `v1=${signature}`)
      .set(sentKey === undefined ? {} : { "idempotency-key": sentKey })
      .send(options.sent === undefined ? body : JSON.stringify(options.sent));
  }

  async function makeSigning(
    options: Partial<CreateKeyOptions>,
  ): Promise<Made & { signingSecret: string }> {
    await runCreateKey(command(), { scope: "addresses:write,deposits:read", ...options }, nowMs);
    return JSON.parse(printed.at(-1) ?? "");
  }

  it("changes nothing unsigned, and reads without", async () => {
    const { key, signingSecret } = await makeSigning({ sign: "hmac" });
    const refused = await register(key);
    expect([refused.status, refused.body.code]).toEqual([401, "SIGNATURE_MISSING"]);
    expect((await read(key)).status).toBe(200);
    expect((await signed(key, hmac(signingSecret))).status).toBe(201);
    // Not even told what is wrong with the body.
    const wrong = await signed(key, hmac("another"), { body: { customerId: 5 } });
    expect([wrong.status, wrong.body.code]).toEqual([401, "SIGNATURE_INVALID"]);
  });

  it("is held to method, target, time and body", async () => {
    const { key, signingSecret } = await makeSigning({ sign: "hmac" });
    const signer = hmac(signingSecret);
    const stranger = await makeSigning({ sign: "hmac" });
    nowMs += 1;
    const seconds = (shiftMs: number) => `${Math.floor((nowMs + shiftMs) / 1_000)}`;
    const cases: readonly (readonly [Signed, string])[] = [
      [{ sent: { customerId: "other" } }, "SIGNATURE_INVALID"],
      [{ signedTarget: "/v1/deposits" }, "SIGNATURE_INVALID"],
      [{ signature: `v1=${"0".repeat(64)}` }, "SIGNATURE_INVALID"],
      [{ signature: "v1=" }, "SIGNATURE_INVALID"],
      [{ signature: signer("x") }, "SIGNATURE_INVALID"],
      [{ timestamp: `${nowMs - 300_001}` }, "SIGNATURE_EXPIRED"],
      [{ timestamp: `${nowMs + 300_001}` }, "SIGNATURE_EXPIRED"],
      [{ timestamp: seconds(-302_000) }, "SIGNATURE_EXPIRED"],
      [{ timestamp: "now" }, "SIGNATURE_EXPIRED"],
    ];
    for (const [options, code] of cases) {
      const reply = await signed(key, signer, options);
      expect([options, reply.status, reply.body.code]).toEqual([options, 401, code]);
    }
    expect((await signed(key, hmac(stranger.signingSecret))).status).toBe(401);
    expect((await signed(key, signer, { timestamp: seconds(-290_000) })).status).toBe(201);
    expect((await signed(key, signer, { timestamp: `${nowMs + 299_999}` })).status).toBe(201);
  });

  it("is held to its Idempotency-Key: another one would make a repeat another payment", async () => {
    const { key, signingSecret } = await makeSigning({ sign: "hmac" });
    const signer = hmac(signingSecret);
    nowMs += 1;
    for (const options of [
      { idempotencyKey: "order-1", sentKey: "order-2" },
      { sentKey: "order-1" },
      { idempotencyKey: "order-1\nx", sentKey: "order-1" },
    ]) {
      const reply = await signed(key, signer, options);
      expect([options, reply.status, reply.body.code]).toEqual([options, 401, "SIGNATURE_INVALID"]);
    }
    expect((await signed(key, signer, { idempotencyKey: "order-1" })).status).toBe(201);
  });

  it("is let through once with each signed request, also by another process", async () => {
    const { key, signingSecret } = await makeSigning({ sign: "hmac" });
    const signer = hmac(signingSecret);
    nowMs += 1;
    const racing = await Promise.all(Array.from({ length: 8 }, () => signed(key, signer)));
    const outcomes = racing.map(({ status, body }) => `${status} ${body.code}`).toSorted();
    expect(outcomes).toEqual([
      "201 undefined",
      ...Array.from({ length: 7 }, () => "401 SIGNATURE_REPLAYED"),
    ]);
    const rows = await ledger.owner.query<{ count: string }>(
      `SELECT count(*) FROM api_call WHERE signed_digest IS NOT NULL AND key_id = $1`,
      [JSON.parse(printed.at(-1) ?? "").id],
    );
    expect(rows[0]?.count).toBe("1");
    nowMs += 1;
    expect((await signed(key, signer)).status).toBe(201);
  });

  it("may keep its private key to itself", async () => {
    const pair = generateKeyPairSync("ed25519");
    const file = join(home, "signer.pem");
    writeFileSync(file, pair.publicKey.export({ type: "spki", format: "pem" }));
    const { key, ...shown } = await makeSigning({ sign: "ed25519", publicKey: file });
    expect(shown).not.toHaveProperty("signingSecret");
    const signer = (text: string) => sign(null, Buffer.from(text), pair.privateKey).toString("hex");
    nowMs += 1;
    expect((await signed(key, signer)).status).toBe(201);
    const other = generateKeyPairSync("ed25519").privateKey;
    const forged = (text: string) => sign(null, Buffer.from(text), other).toString("hex");
    expect((await signed(key, forged)).body.code).toBe("SIGNATURE_INVALID");
    expect((await signed(key, signer, { sent: {} })).body.code).toBe("SIGNATURE_INVALID");
    for (const wrong of [
      { sign: "ed25519" },
      { sign: "rsa" },
      { sign: "hmac", publicKey: file },
      { publicKey: file },
      { sign: "ed25519", publicKey: join(home, "config", "hot-wallet.json") },
    ]) {
      await expect(makeSigning(wrong)).rejects.toMatchObject({ code: "USAGE" });
    }
    await expect(
      ledger.owner.query(`UPDATE api_key_signature SET verifier = repeat('0', 64)`),
    ).rejects.toThrow();
  });

  it("refuses a private key where the public one belongs, and makes no key of it", async () => {
    const { privateKey } = generateKeyPairSync("ed25519");
    const file = join(home, "private.pem");
    const locked = { cipher: "aes-256-cbc", passphrase: "secret" };
    for (const lock of [{}, locked]) {
      writeFileSync(file, privateKey.export({ type: "pkcs8", format: "pem", ...lock }));
      const asked = { name: "of a private key", sign: "ed25519", publicKey: file };
      await expect(makeSigning(asked)).rejects.toMatchObject({
        code: "USAGE",
        message: expect.stringMatching(/private\.pem holds a private key.*openssl pkey .*-pubout/),
      });
    }
    await runListKeys(command());
    expect(JSON.parse(printed.at(-1) ?? "").keys).not.toContainEqual(
      expect.objectContaining({ name: "of a private key" }),
    );
  });
});

describe("the record of calls", () => {
  it("has every call that was let through to change something, and no other", async () => {
    const { id, key } = await make("addresses:write,deposits:read");
    const body = JSON.stringify({ customerId: "recorded" });
    await register(key, "recorded");
    await read(key);
    await register("no-key-at-all", "recorded");
    await supertest(server.app)
      .post("/v1/addresses")
      .set("authorization", `Bearer ${key}`)
      .send({});
    await register(FILE_KEY, "recorded");
    printed = [];
    expect(await runListCalls(command(), { key: id })).toBe(0);
    const { calls } = JSON.parse(printed.join("")) as { calls: Record<string, unknown>[] };
    expect(calls).toMatchObject([
      {
        keyId: id,
        service: "deposit-api",
        method: "POST",
        path: "/v1/addresses",
        bodySha256: createHash("sha256").update(body).digest("hex"),
      },
    ]);
    printed = [];
    await runListCalls(command(), { key: "api.key" });
    expect(JSON.parse(printed.join("")).calls.length).toBeGreaterThan(0);
    expect(JSON.parse(printed.join(""))).toMatchObject({ next: null });
    printed = [];
    await runListCalls(command(), { limit: "1" });
    const { calls: first, next } = JSON.parse(printed.join(""));
    expect([first.length, next]).toEqual([1, first[0].seq]);
    await expect(runListCalls(command(), { limit: "5000" })).rejects.toMatchObject({
      code: "USAGE",
      message: '--limit takes a whole number from 1 to 1000, not "5000".',
    });
  });
});
