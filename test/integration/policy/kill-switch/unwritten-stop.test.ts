/** Who stops payments over the API while the ledger takes no record of calls, or cannot be asked at all. */
import { createHmac, createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import request from "supertest";
import { listCalls } from "../../../../ledger/access/api-calls.js";
import {
  createApiKey,
  newSigningSecret,
  revokeApiKey,
} from "../../../../ledger/access/api-keys.js";
import { KEY_LIFE_MS, KeyRing, RECALL_MS } from "../../../../ledger/access/key-ring.js";
import { readKillSwitch, setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { readKillSwitchFile } from "../../../../ledger/kill-switch/kill-switch-file.js";
import { createHttpServer, type HttpServer } from "../../../../runtime/http/http-server.js";
import type { RequestVerifier } from "../../../../runtime/http/signed-request.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { SqlError } from "../../../../runtime/sql/sql-errors.js";
import { mapWithdrawalError } from "../../../../withdrawal-worker/api/api-errors.js";
import { createPolicyRoutes } from "../../../../withdrawal-worker/api/policy-routes.js";
import { createWithdrawalRoutes } from "../../../../withdrawal-worker/api/routes.js";
import { ensureKillSwitchFile, fileSwitch } from "../../../../withdrawal-worker/kill-switch.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { House } from "../../../helpers/exchange/house.js";
import { silentLog, standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";

const FILE_KEY = "the-key-of-the-home";
const STOP = { level: "stop-sign", reason: "a key has leaked" };
/** The advisory lock of who sets the switch in the ledger. */
const SWITCH_LOCK = 8_083_000_009;
/** The advisory lock that a COMMIT of tests waits for. */
const COMMIT_LOCK = 77;
/** A call of the console (`api.timeout-ms`), which shows an answer that comes later to nobody. */
const CONSOLE_PATIENCE_MS = 10_000;
const TICK_MS = 50;
const UNHEARD = new SqlError("DATABASE_UNAVAILABLE", "nobody there", { retriable: true });

let house: House;
let folder: string;
let file: string;
/** Takes a statement's place; undefined where the database is asked. */
let fault: (text: string) => Promise<never> | undefined;
let server: HttpServer;

beforeEach(async () => {
  house = await House.open();
  folder = mkdtempSync(join(tmpdir(), "causeway-unwritten-stop-"));
  file = join(folder, "kill-switch.json");
  await ensureKillSwitchFile(file, house.database);
  fault = () => undefined;
  server = serve();
});
afterEach(async () => {
  await house.close();
  rmSync(folder, { recursive: true });
});

function serve(): HttpServer {
  const { database: real, clock } = house;
  const database: SqlDatabase = Object.assign(Object.create(real), {
    query: (text: string, values?: readonly unknown[]) => fault(text) ?? real.query(text, values),
    transaction: (work: never) => fault("BEGIN") ?? real.transaction(work),
  });
  const policy = { current: async () => house.files.policy };
  const chainId = FAKE_CHAIN_ID;
  return createHttpServer({
    name: "withdrawal-api",
    apiSpecPath: resolve("openapi/withdrawal.yaml"),
    listen: { host: "127.0.0.1", port: 0 },
    routes: [
      ...createWithdrawalRoutes({
        database,
        // Nothing is asked for here.
        accept: {} as never,
        policy,
        chainId,
        tokens: [],
        shownNonces: new Map(),
        onCancelled: () => undefined,
      }),
      ...createPolicyRoutes({ database, policy, chainId, switchFile: file, clock, log: silentLog }),
    ],
    access: new KeyRing({ database, fileKey: FILE_KEY, service: "withdrawal-api", clock }),
    mapError: mapWithdrawalError,
    readiness: () => ({ ready: true }),
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 4_096,
  });
}

const post = (key: string, path: string, body: object) =>
  request(server.app).post(path).set("authorization", `Bearer ${key}`).send(body);
const stop = (key: string) => post(key, "/v1/kill-switch", STOP);
const cancel = (key: string) =>
  post(key, "/v1/withdrawals/wd_01a22179-c0f8-7f09-99d3-ea30393458c7/cancel", { reason: "x" });

async function makeKey(verifier?: RequestVerifier): Promise<{ id: string; key: string }> {
  const { key, stored } = await createApiKey(house.ledger.owner, {
    name: "of ann",
    scopes: ["operations:write", "withdrawals:write"],
    callsPerSecond: undefined,
    expiresAt: undefined,
    verifier,
  });
  return { id: stored.id, key };
}

const fileLevel = () => fileSwitch(file).level;
const ledgerLevel = async () => (await readKillSwitch(house.database)).level;

it("stops this home where the ledger cannot be asked, and says so", async () => {
  fault = () => Promise.reject(UNHEARD);
  const told = await stop(FILE_KEY);
  expect([told.status, told.body.code]).toEqual([503, "UNAVAILABLE"]);
  expect(told.body.message).toBe(
    "this home is at stop-sign and obeys; the ledger could not be told: set it again; " +
      "the call could not be written down",
  );
  expect(readKillSwitchFile(file)).toMatchObject({ ...STOP, by: "api.key" });
  // What does more than stop waits for the record.
  expect((await cancel(FILE_KEY)).status).toBe(503);
  fault = () => undefined;
  expect(await ledgerLevel()).toBe("none");
  expect((await stop(FILE_KEY)).status).toBe(200);
  expect(await ledgerLevel()).toBe("stop-sign");
});

it("stops the ledger, too, which takes that and no record of the call", async () => {
  const refusal = new SqlError("DATABASE_FAULT", "permission denied for table api_call");
  fault = (text) => (text.includes("INTO api_call") ? Promise.reject(refusal) : undefined);
  const told = await stop(FILE_KEY);
  expect([told.status, told.body.code]).toEqual([503, "UNAVAILABLE"]);
  expect(told.body.message).toBe(
    "this home and the ledger are at stop-sign; the call could not be written down: see the log",
  );
  expect([fileLevel(), await ledgerLevel()]).toEqual(["stop-sign", "stop-sign"]);
});

it("tells the ledger, too, where the record of the call does not end", async () => {
  fault = (text) =>
    text.includes("INTO api_call") ? new Promise<never>(() => undefined) : undefined;
  const told = await stop(FILE_KEY);
  expect([told.status, told.body.message]).toEqual([
    503,
    "this home and the ledger are at stop-sign; the call could not be written down: see the log",
  ]);
  expect([fileLevel(), await ledgerLevel()]).toEqual(["stop-sign", "stop-sign"]);
});

it("tells the ledger nothing behind its answer that it could not be told", async () => {
  fault = (text) =>
    text.includes("INTO api_call") ? new Promise<never>(() => undefined) : undefined;
  await standing(house.ledger.owner, async (tx) => {
    await tx.query(`SELECT pg_advisory_xact_lock(${SWITCH_LOCK})`);
    expect((await stop(FILE_KEY)).body.message).toMatch(
      /the ledger could not be told: set it again/,
    );
  });
  // Behind whoever still waits for the lock.
  const level = await house.ledger.owner.transaction(async (tx) => {
    await tx.query(`SELECT pg_advisory_xact_lock(${SWITCH_LOCK})`);
    return (await readKillSwitch(tx)).level;
  });
  expect([fileLevel(), level]).toEqual(["stop-sign", "none"]);
});

it("says that nobody knows whether the ledger is told whose COMMIT does not end", async () => {
  const { owner } = house.ledger;
  // As behind a synchronous standby that is away.
  await owner.query(
    `CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       PERFORM set_config('lock_timeout', '0', true), pg_advisory_xact_lock(${COMMIT_LOCK});
       RETURN NULL;
     END $$;
     CREATE CONSTRAINT TRIGGER wait_at_commit AFTER INSERT ON kill_switch
       DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`,
  );
  await standing(owner, async (tx) => {
    await tx.query(`SELECT pg_advisory_xact_lock(${COMMIT_LOCK})`);
    const told = await stop(FILE_KEY);
    expect([told.status, told.body.message]).toEqual([
      503,
      "this home is at stop-sign and obeys; it is not known whether the ledger was told: set it again",
    ]);
    expect([fileLevel(), await ledgerLevel()]).toEqual(["stop-sign", "none"]);
  });
  const what = "the COMMIT counts";
  await until(async () => (await ledgerLevel()) === "stop-sign", { timeoutMs: 10_000, what });
});

it("says that both are told where the ledger is gone right behind that", async () => {
  fault = (text) => (text.includes("FROM kill_switch") ? Promise.reject(UNHEARD) : undefined);
  const told = await stop(FILE_KEY);
  expect([told.status, told.body]).toMatchObject([
    200,
    { level: "stop-sign", home: STOP, ledger: { ...STOP, by: "api.key" }, homeFault: null },
  ]);
  fault = () => undefined;
  const { at } = await readKillSwitch(house.database);
  expect(told.body.ledger.at).toBe(at);
});

it("stops at once while somebody keeps the lock of the record, and nobody waits for ever", async () => {
  await standing(house.ledger.owner, async (tx) => {
    await tx.query("SELECT pg_advisory_xact_lock(8083000038)");
    let isTold = false;
    const told = stop(FILE_KEY).then((answer) => {
      isTold = true;
      return answer;
    });
    const what = "the home is stopped";
    await until(async () => isTold || fileLevel() === "stop-sign", { timeoutMs: 3_000, what });
    expect(isTold).toBe(false);
    const [stopped, other] = await Promise.all([told, cancel(FILE_KEY)]);
    expect(stopped.body.message).toMatch(/^this home and the ledger are at stop-sign; the call/);
    expect([stopped.status, other.status]).toEqual([503, 503]);
    expect(await ledgerLevel()).toBe("stop-sign");
  });
});

it("takes a key that was good when the ledger was last asked, to stop and for nothing else", async () => {
  const [known, stranger, ended] = [await makeKey(), await makeKey(), await makeKey()];
  await cancel(known.key);
  await cancel(ended.key);
  await revokeApiKey(house.ledger.owner, ended.id);
  house.clock.ms += KEY_LIFE_MS;
  expect((await stop(ended.key)).status).toBe(401);
  fault = () => Promise.reject(UNHEARD);
  for (const key of [stranger.key, ended.key]) expect((await stop(key)).status).toBe(503);
  expect((await cancel(known.key)).status).toBe(503);
  expect(fileLevel()).toBe("none");
  house.clock.ms += RECALL_MS;
  expect((await stop(known.key)).status).toBe(503);
  expect(fileLevel()).toBe("none");
  house.clock.ms -= RECALL_MS;
  const told = await stop(known.key);
  expect(told.body.message).toMatch(/^this home is at stop-sign and obeys/);
  expect(readKillSwitchFile(file)).toMatchObject({ ...STOP, by: known.id });
  // A database that says nothing is not waited for without an end.
  fault = () => new Promise<never>(() => undefined);
  const more = { ...STOP, level: "stop-broadcast" };
  // In ticks: what the machine stands still for is one of them, however long it is.
  let ticks = 0;
  const ticking = setInterval(() => (ticks += 1), TICK_MS);
  const silent = await post(known.key, "/v1/kill-switch", more);
  clearInterval(ticking);
  expect(ticks).toBeLessThan(CONSOLE_PATIENCE_MS / TICK_MS);
  expect(silent.body.message).toMatch(/^this home is at stop-broadcast and obeys/);
  expect(fileLevel()).toBe("stop-broadcast");
});

it("says to whom a call is refused that the home has stopped all the same", async () => {
  const secret = newSigningSecret();
  const { id, key } = await makeKey({ kind: "hmac", secret });
  const timestamp = String(house.clock.ms + 1_600_000_000_000);
  house.clock.ms = Number(timestamp);
  const text = JSON.stringify(STOP);
  const sha256 = createHash("sha256").update(text).digest("hex");
  const signed = ["POST", "/v1/kill-switch", timestamp, sha256].join("\n");
  const signature = createHmac("sha256", secret).update(signed).digest("hex");
  const send = () =>
    request(server.app)
      .post("/v1/kill-switch")
      .set("authorization", `Bearer ${key}`)
      .set("content-type", "application/json")
      .set("causeway-timestamp", timestamp)
      .set("causeway-signature", `v1=${signature}`)
      .send(text);
  expect((await send()).status).toBe(200);
  await setKillSwitch(house.ledger.owner, { level: "none", reason: "a drill", by: "ben" });
  rmSync(file);
  await ensureKillSwitchFile(file, house.database);
  const again = await send();
  expect([again.status, again.body.code]).toEqual([401, "SIGNATURE_REPLAYED"]);
  expect(again.body.message).toMatch(/this home is at stop-sign all the same$/);
  expect([fileLevel(), await ledgerLevel()]).toEqual(["stop-sign", "none"]);
  const calls = await listCalls(house.ledger.owner, { keyId: id, afterSeq: 0, limit: 10 });
  expect(calls).toHaveLength(1);
});

it("says that the home has stopped where the ledger stops more already", async () => {
  await setKillSwitch(house.ledger.owner, {
    level: "stop-broadcast",
    reason: "a drill",
    by: "ben",
  });
  const told = await stop(FILE_KEY);
  expect([told.status, told.body.code]).toEqual([409, "SWITCH_LOWERED"]);
  expect(told.body.message).toMatch(/this home's own file is at stop-sign as of now$/);
  expect([fileLevel(), await ledgerLevel()]).toEqual(["stop-sign", "stop-broadcast"]);
  const again = await stop(FILE_KEY);
  expect([again.status, again.body.message]).toEqual([409, expect.stringMatching(/`lift`$/)]);
});
