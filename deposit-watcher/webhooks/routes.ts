/** Webhooks in the deposit API: made, listed, ended, their secrets and their deliveries. */
import type { StoredDelivery } from "../../ledger/webhooks/deliveries.js";
import {
  DELIVERY_STATUSES,
  listDeliveries,
  nothingToRedeliver,
  redeliver,
} from "../../ledger/webhooks/deliveries.js";
import {
  addSecret,
  addWebhook,
  findWebhook,
  listWebhooks,
  parseEventFilters,
  removeWebhook,
  retireSecret,
  type Webhook,
} from "../../ledger/webhooks/subscriptions.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest, KeyedRoute } from "../../runtime/http/http-route.js";
import { parseTarget } from "../../runtime/http/outgoing/guarded-post.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";

/** What these routes need. */
export interface WebhookRouteParts {
  readonly database: SqlDatabase;
  /** Whether loopback may be named. */
  readonly allowLocal: boolean;
  /** Told when there may be something to send. */
  readonly onChanged: () => void;
}

/** Rows on a page without `limit`, as in the API file. */
const DEFAULT_LIMIT = 100;

/** Routes below `/v1/webhooks` of `openapi/deposit.yaml`. */
export function createWebhookRoutes(parts: WebhookRouteParts): readonly KeyedRoute[] {
  const { database, onChanged } = parts;
  const changing = (
    method: "post" | "delete",
    path: string,
    handler: KeyedRoute["handler"],
  ): KeyedRoute => ({ method, path, scope: "operations:write", handler });
  const reading = (path: string, handler: KeyedRoute["handler"]): KeyedRoute => ({
    method: "get",
    path,
    scope: "audit:read",
    handler,
  });
  return [
    changing("post", "/v1/webhooks", (request) => create(parts, request)),
    reading("/v1/webhooks", async () => ({
      body: { webhooks: (await listWebhooks(database)).map(encodeWebhook) },
    })),
    reading("/v1/webhooks/{id}", async (request) => ({
      body: encodeWebhook(await findWebhook(database, idOf(request))),
    })),
    changing("delete", "/v1/webhooks/{id}", async (request) => {
      const id = idOf(request);
      await removeWebhook(database, id);
      return { body: { id, status: "removed" } };
    }),
    changing("post", "/v1/webhooks/{id}/secrets", async (request) => ({
      status: 201,
      body: await addSecret(database, idOf(request)),
    })),
    changing("delete", "/v1/webhooks/{id}/secrets/{secretId}", async (request) => {
      const id = idOf(request);
      await retireSecret(database, id, request.params["secretId"] ?? "");
      return { body: encodeWebhook(await findWebhook(database, id)) };
    }),
    changing("post", "/v1/webhooks/{id}/redeliver", async (request) => {
      const id = idOf(request);
      const fromSeq = numberOf(request.body, "fromSeq");
      await redeliver(database, id, fromSeq);
      onChanged();
      const webhook = await findWebhook(database, id);
      const note = nothingToRedeliver(webhook, fromSeq);
      return { body: { ...encodeWebhook(webhook), ...(note !== undefined && { note }) } };
    }),
    reading("/v1/webhooks/{id}/deliveries", (request) => deliveries(parts, request)),
  ];
}

async function create(parts: WebhookRouteParts, { body }: HttpRequest): Promise<HttpReply> {
  const url = parseTarget(String(fieldOf(body, "url")), { allowLoopback: parts.allowLocal });
  const filters = fieldOf(body, "events");
  const events = parseEventFilters(Array.isArray(filters) ? filters.map(String) : []);
  const given = fieldOf(body, "description");
  const description = typeof given === "string" ? given : undefined;
  const { webhook, secret } = await addWebhook(parts.database, {
    url: url.href,
    events,
    description,
  });
  parts.onChanged();
  return { status: 201, body: { ...encodeWebhook(webhook), secret: secret.secret } };
}

async function deliveries(parts: WebhookRouteParts, request: HttpRequest): Promise<HttpReply> {
  const { query } = request;
  const limit = typeof query["limit"] === "number" ? query["limit"] : DEFAULT_LIMIT;
  const { id } = await findWebhook(parts.database, idOf(request));
  const rows = await listDeliveries(parts.database, id, {
    status: DELIVERY_STATUSES.find((known) => known === query["status"]),
    afterSeq: typeof query["after"] === "string" ? Number(query["after"]) : 0,
    limit: limit + 1,
    order: query["order"] === "newest" ? "newest" : "oldest",
  });
  const page = rows.slice(0, limit);
  const next = rows.length > limit ? (page.at(-1)?.seq.toString() ?? null) : null;
  return { body: { deliveries: page.map(encodeDelivery), next } };
}

function encodeWebhook(webhook: Webhook) {
  return {
    id: webhook.id,
    url: webhook.url,
    events: webhook.events,
    description: webhook.description ?? null,
    status: webhook.status,
    reason: webhook.reason ?? null,
    createdAt: webhook.createdAt.toISOString(),
    changedAt: webhook.changedAt.toISOString(),
    cursorSeq: webhook.cursorSeq,
    newestSeq: webhook.newestSeq,
    behindEvents: webhook.behindEvents,
    pending: webhook.pending,
    dead: webhook.dead,
    secrets: webhook.secrets.map((secret) => ({
      id: secret.id,
      createdAt: secret.createdAt.toISOString(),
    })),
  };
}

function encodeDelivery(delivery: StoredDelivery) {
  return {
    seq: delivery.seq,
    type: delivery.eventType,
    status: delivery.status,
    attempts: delivery.attempts,
    nextTryAt: delivery.nextTryAt?.toISOString() ?? null,
    lastStatus: delivery.lastStatus ?? null,
    lastError: delivery.lastError ?? null,
    changedAt: delivery.changedAt.toISOString(),
  };
}

function idOf(request: HttpRequest): string {
  return request.params["id"] ?? "";
}

function fieldOf(body: unknown, name: string): unknown {
  return typeof body === "object" && body !== null ? Reflect.get(body, name) : undefined;
}

/** The validator has seen that it is one. */
function numberOf(body: unknown, name: string): number {
  return Number(fieldOf(body, name));
}
