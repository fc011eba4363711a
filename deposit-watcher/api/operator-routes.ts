/** What operators look at in the deposit API: incidents, reconciliations, records, figures, fees. */
import { type StoredCall, listCalls } from "../../ledger/access/api-calls.js";
import { NATIVE_ASSET } from "../../ledger/journal/accounts.js";
import { readDurations } from "../../ledger/books/durations.js";
import { FeeTally, readFeeDays } from "../../ledger/books/fee-days.js";
import { listRuns, type ReconcileRun } from "../../ledger/books/reconcile-runs.js";
import { type Decision, listDecisionPage } from "../../ledger/decisions/decision-log.js";
import {
  listIncidents,
  openIncident,
  type PastIncident,
  resumeCrediting,
} from "../../ledger/incidents.js";
import { MAX_REASON_CHARACTERS, wholeLine } from "../../chain/evm/foreign-text.js";
import { present } from "../../chain/errors.js";
import { callerName } from "../../runtime/http/http-access.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest, KeyedRoute } from "../../runtime/http/http-route.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { DepositError } from "../errors.js";
import { nextCursor, readListQuery } from "./list-query.js";

/** What these routes need. */
export interface OperatorRouteParts {
  readonly database: SqlDatabase;
  readonly clock: Clock;
}

const DAY_MS = 86_400_000;

/** Days of fees without `days`, as in the API file. */
const DEFAULT_DAYS = 7;

/** Reconciliations that the figures show. */
const FIGURE_RUNS = 200;

/** Routes for operators of `openapi/deposit.yaml`. */
export function createOperatorRoutes(parts: OperatorRouteParts): readonly KeyedRoute[] {
  const { database } = parts;
  const tally = new FeeTally();
  const reading = (path: string, handler: KeyedRoute["handler"]): KeyedRoute => ({
    method: "get",
    path,
    scope: "audit:read",
    handler,
  });
  return [
    reading("/v1/incidents", async ({ query }) => {
      const { limit, after: afterId, order } = readListQuery(query);
      const rows = await listIncidents(database, { afterId, order, limit: limit + 1 });
      return page("incidents", rows, limit, encodeIncident);
    }),
    {
      method: "post",
      path: "/v1/incidents/resume",
      scope: "operations:write",
      handler: (request) => resume(database, request),
    },
    reading("/v1/reconciliations", async ({ query }) => {
      const { limit, after: afterId, order } = readListQuery(query);
      const rows = await listRuns(database, { afterId, order, limit: limit + 1 });
      return page("reconciliations", rows, limit, encodeRun);
    }),
    reading("/v1/calls", async ({ query }) => {
      const { limit, after: afterSeq, order } = readListQuery(query);
      const keyId = typeof query["keyId"] === "string" ? query["keyId"] : undefined;
      const found = await listCalls(database, { keyId, afterSeq, order, limit: limit + 1 });
      const rows = found.map((call) => ({ ...call, id: call.seq }));
      return page("calls", rows, limit, encodeCall);
    }),
    reading("/v1/decisions", async ({ query }) => {
      const { limit, after: afterId, order } = readListQuery(query);
      const rows = await listDecisionPage(database, { afterId, order, limit: limit + 1 });
      return page("decisions", rows, limit, encodeDecision);
    }),
    reading("/v1/figures", () => figures(database)),
    reading("/v1/fees", ({ query }) => fees({ ...parts, tally }, query)),
  ];
}

/** A page of rows that are known by an `id`. */
function page<Row extends { readonly id: number }>(
  name: string,
  rows: readonly Row[],
  limit: number,
  encode: (row: Row) => unknown,
): HttpReply {
  const next = nextCursor(
    rows.map(({ id }) => ({ seq: id })),
    limit,
  );
  return { body: { [name]: rows.slice(0, limit).map(encode), next } };
}

/** A person's word that the cause is gone; the watcher looks again. */
async function resume(database: SqlDatabase, request: HttpRequest): Promise<HttpReply> {
  const caller = present(request.caller, "caller of a gated route");
  const reason: unknown = Reflect.get(Object(request.body), "reason");
  const words =
    typeof reason === "string" ? wholeLine(reason, MAX_REASON_CHARACTERS.api) : undefined;
  // A longer one is refused by the API file before.
  if (words === undefined) {
    throw new DepositError("INVALID_FIELD", "reason: it says nothing", {
      details: { field: "reason" },
    });
  }
  const open = await openIncident(database);
  if (open?.kind === "RECOVERY") {
    throw new DepositError("RECOVERY_OPEN", `a recovery is not resumed; ${open.remedy}`);
  }
  const meant: unknown = Reflect.get(Object(request.body), "incidentId");
  // Whoever says which one has seen no other.
  if (meant !== undefined && meant !== open?.id) {
    const what = open === undefined ? "none is" : `incident ${open.id} is`;
    throw new DepositError("OTHER_INCIDENT", `it is not open any more, ${what}: look again`);
  }
  const by = `${callerName(caller, request.headers)}: ${words}`;
  const resumed = open === undefined ? 0 : await resumeCrediting(database, by, open.id);
  return { body: { resumed: resumed > 0, incidentId: resumed > 0 ? (open?.id ?? null) : null } };
}

async function figures(database: SqlDatabase): Promise<HttpReply> {
  const [runs, durations] = await Promise.all([
    listRuns(database, { afterId: 0, limit: FIGURE_RUNS, order: "newest", asset: NATIVE_ASSET }),
    readDurations(database),
  ]);
  return {
    body: {
      coins: runs.toReversed().flatMap(encodeCoins),
      depositDelays: durations.deposit,
      withdrawalLatencies: durations.withdrawal,
    },
  };
}

async function fees(
  { database, clock, tally }: OperatorRouteParts & { readonly tally: FeeTally },
  query: HttpRequest["query"],
): Promise<HttpReply> {
  const days = typeof query["days"] === "number" ? query["days"] : DEFAULT_DAYS;
  const nowMs = clock.nowMs();
  const from = new Date(nowMs - (nowMs % DAY_MS) - (days - 1) * DAY_MS);
  const found = await readFeeDays(database, from, { tally });
  return {
    body: {
      from: found.from.toISOString(),
      fees: found.days.map(({ day, asset, ...units }) => ({
        day,
        asset,
        networkFeeUnits: units.networkFeeUnits.toString(),
        serviceFeeUnits: units.serviceFeeUnits.toString(),
        failedPayoutUnits: units.failedPayoutUnits.toString(),
      })),
    },
  };
}

function encodeIncident(incident: PastIncident) {
  const { id, kind, height, message, remedy, openedAt, resolvedAt, resolvedBy } = incident;
  return {
    id,
    kind,
    blockNumber: height ?? null,
    message,
    remedy,
    openedAt,
    resolvedAt: resolvedAt ?? null,
    resolvedBy: resolvedBy ?? null,
  };
}

function encodeRun({ at, height, ...run }: ReconcileRun) {
  return { ...run, at: at.toISOString(), blockNumber: height };
}

/** The chain's own coin in one run; nothing of runs that kept none. */
function encodeCoins({ at, height, clean, assets }: ReconcileRun) {
  const found = assets.find(({ asset }) => asset === NATIVE_ASSET);
  if (found === undefined) return [];
  const { accounts, availableUnits, heldUnits, owedUnits, coldUnits, inTransitUnits } = found;
  return [
    {
      at: at.toISOString(),
      blockNumber: height,
      clean,
      availableUnits,
      heldUnits,
      owedUnits,
      coldUnits,
      inTransitUnits,
      accounts: accounts.map(({ account, chainUnits }) => ({ account, chainUnits })),
    },
  ];
}

function encodeCall(call: StoredCall) {
  return {
    seq: call.seq,
    keyId: call.keyId,
    actor: call.actor ?? null,
    reason: call.reason ?? null,
    service: call.service,
    method: call.method,
    path: call.path,
    idempotencyKey: call.idempotencyKey ?? null,
    bodySha256: call.bodySha256,
    at: call.at.toISOString(),
  };
}

function encodeDecision({ decidedBy, terms: _terms, ...decision }: Decision) {
  return { ...decision, decidedBy: decidedBy ?? null };
}
