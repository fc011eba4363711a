/** Webhooks of one test file: a ledger, a receiver, the API, and dispatchers that tests start. */
import { createHmac, randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { expect } from "@jest/globals";
import supertest from "supertest";
import { mapDepositError } from "../../../deposit-watcher/api/api-errors.js";
import { WebhookDispatcher } from "../../../deposit-watcher/webhooks/dispatcher.js";
import { createWebhookRoutes } from "../../../deposit-watcher/webhooks/routes.js";
import { createWebhookMetrics } from "../../../deposit-watcher/webhooks/webhook-metrics.js";
import { appendEvents, type NewEvent } from "../../../ledger/events.js";
import { singleKeyAccess } from "../../helpers/services/single-key.js";
import { createHttpServer, type HttpServer } from "../../../runtime/http/http-server.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { type SqlDatabase } from "../../../runtime/sql/sql.js";
import { openTestLedger, silentLog, type TestLedger } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { Receiver } from "../../helpers/services/receiver.js";

/** The ledger of the file's tests. */
export let ledger: TestLedger;
/** The ledger in the watcher's role. */
export let database: SqlDatabase;
/** Whom webhooks of the tests are sent to. */
export let receiver: Receiver;
let server: HttpServer;
/** Numbers of the events that the home was told of before they were sent. */
export const told: number[] = [];
/** Metrics of all dispatchers of the file. */
export const metrics = createMetrics({ processMetrics: false });

/** Opens a ledger in the watcher's role, a receiver and the API over them. */
export async function openHooks(): Promise<void> {
  ledger = await openTestLedger(undefined, "watcher");
  ({ database } = ledger);
  receiver = await Receiver.open();
  server = createHttpServer({
    name: "deposit-api",
    apiSpecPath: fileURLToPath(new URL("../../../openapi/deposit.yaml", import.meta.url)),
    listen: { host: "127.0.0.1", port: 0 },
    routes: createWebhookRoutes({ database, allowLocal: true, onChanged: () => undefined }),
    access: singleKeyAccess("key"),
    mapError: mapDepositError,
    readiness: () => ({ ready: true }),
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 65_536,
  });
}

/** Closes the receiver and drops the ledger. */
export async function closeHooks(): Promise<void> {
  receiver.close();
  await ledger.drop();
}

/** Dispatchers of one test. */
let running: (() => Promise<void>)[] = [];

/** Ends the dispatchers of a test and removes its webhooks. */
export async function endTest(): Promise<void> {
  await Promise.all(running.map((stop) => stop()));
  running = [];
  receiver.manners.clear();
  for (const { id } of (await call("get", "").expect(200)).body.webhooks) {
    await call("delete", `/${id}`).expect(200);
  }
}

interface StartOptions {
  readonly allowLocal?: boolean;
  readonly beforeSending?: () => Promise<void>;
  /** The ledger as the dispatcher sees it; by default as the watcher's role does. */
  readonly seen?: SqlDatabase;
}

/** Starts a dispatcher. Returns what stops it; the end of the test does it too. */
export function start({
  allowLocal = true,
  beforeSending,
  seen = database,
}: StartOptions = {}): () => Promise<void> {
  const dispatcher = new WebhookDispatcher({
    database: seen,
    guard: {
      beforeSending: async ({ eventSeq }) => {
        await beforeSending?.();
        told.push(eventSeq);
      },
    },
    owner: randomUUID(),
    // Who hangs does so for longer than a busy machine takes for everybody else.
    settings: { allowLocal, pollIntervalMs: 20, timeoutMs: 600_000 },
    metrics: createWebhookMetrics(metrics, database),
    clock: systemClock,
    log: silentLog,
  });
  const controller = new AbortController();
  const done = dispatcher.run(controller.signal);
  const stop = () => {
    controller.abort();
    return done;
  };
  running.push(stop);
  return stop;
}

/** A request to the API of webhooks. */
export function call(method: "get" | "post" | "delete", path: string) {
  return supertest(server.app)[method](`/v1/webhooks${path}`).set("authorization", "Bearer key");
}

/** What the API answers when it makes a webhook or a secret. */
export interface Made {
  readonly id: string;
  readonly secret: string;
}

/** Registers a webhook at a path of the receiver. */
export async function add(path: string, events: readonly string[] = ["*"]): Promise<Made> {
  const reply = await call("post", "").send({ url: receiver.url(path), events });
  expect([reply.status, reply.body.secret]).toEqual([201, expect.stringMatching(/^whsec_/)]);
  return reply.body as Made;
}

/** Commits events; returns their identifiers. */
export async function emit(...types: NewEvent["type"][]): Promise<string[]> {
  const events = types.map((type) => ({ type, data: { depositId: randomUUID() } }));
  const first = await database.transaction((tx) => appendEvents(tx, events));
  return types.map((_, index) => `evt_1_${(first ?? 0) + index}`);
}

/** A webhook as the API shows it. */
export async function show(id: string): Promise<Record<string, unknown>> {
  return (await call("get", `/${id}`).expect(200)).body;
}

/** Lets everything that waits for its next try be due now. */
export const makeDue = () => ledger.owner.query(`UPDATE webhook_delivery SET next_try_at = now()`);

/** Waits until a webhook has nothing left to send. */
export const settled = (id: string) =>
  until(
    async () => {
      const { pending, behindEvents } = await show(id);
      return pending === 0 && behindEvents === 0;
    },
    { timeoutMs: 10_000, what: `webhook ${id} has nothing left to send` },
  );

/** Deliveries of a webhook as the API lists them. */
export async function deliveriesOf(id: string): Promise<Record<string, unknown>[]> {
  return (await call("get", `/${id}/deliveries`).expect(200)).body.deliveries;
}

/** The signature that a delivery must have under a secret, hex. */
export const verify = (secret: string, { id, headers, body }: Receiver["received"][number]) =>
  createHmac("sha256", secret)
    .update(`${id}.${String(headers["causeway-timestamp"])}.${body}`)
    .digest("hex");
