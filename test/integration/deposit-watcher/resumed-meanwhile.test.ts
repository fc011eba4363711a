/** A person's word about an incident that somebody else has resumed, after which another one came. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import supertest from "supertest";
import { mapDepositError } from "../../../deposit-watcher/api/api-errors.js";
import { createOperatorRoutes } from "../../../deposit-watcher/api/operator-routes.js";
import { type IncidentKind, openIncident } from "../../../ledger/incidents.js";
import { createHttpServer, type HttpServer } from "../../../runtime/http/http-server.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import {
  openTestLedger,
  recordIncident,
  silentLog,
  type TestLedger,
} from "../../helpers/services/ledger.js";
import { singleKeyAccess } from "../../helpers/services/single-key.js";

const API_KEY = "the-key-of-the-test";

let ledger: TestLedger;
let server: HttpServer;

beforeAll(async () => {
  ledger = await openTestLedger(undefined, "watcher");
  const { database } = ledger;
  server = createHttpServer({
    name: "deposit-api",
    apiSpecPath: fileURLToPath(new URL("../../../openapi/deposit.yaml", import.meta.url)),
    listen: { host: "127.0.0.1", port: 0 },
    routes: createOperatorRoutes({ database, clock: systemClock }),
    access: singleKeyAccess(API_KEY),
    mapError: mapDepositError,
    readiness: () => ({ ready: true }),
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 1_024,
  });
});
afterAll(() => ledger.drop());

const resume = (incidentId?: number) =>
  supertest(server.app)
    .post("/v1/incidents/resume")
    .set("authorization", `Bearer ${API_KEY}`)
    .send({ reason: "the node was mended", incidentId });

/** Opens an incident. @returns its id */
async function open(kind: IncidentKind): Promise<number> {
  await recordIncident(ledger.owner, { kind, height: 7, message: "a test", details: {} });
  return (await openIncident(ledger.owner))?.id ?? 0;
}

it("resumes what it is about, and no other incident", async () => {
  const first = await open("HASH_CHANGED");
  expect((await resume(first)).body).toEqual({ resumed: true, incidentId: first });
  const second = await open("BALANCE_MISMATCH");
  const late = await resume(first);
  expect([late.status, late.body.code]).toEqual([409, "OTHER_INCIDENT"]);
  expect((await openIncident(ledger.owner))?.id).toBe(second);
  expect((await resume(second)).body).toEqual({ resumed: true, incidentId: second });
  expect((await resume(second)).status).toBe(409);
  // Who says no id means whichever is open.
  expect((await resume()).body).toEqual({ resumed: false, incidentId: null });
  const third = await open("HASH_CHANGED");
  expect((await resume()).body).toEqual({ resumed: true, incidentId: third });
});
