/** Figures of webhooks, for Prometheus. */
import type { DeliveryOutcome } from "../../ledger/webhooks/deliveries.js";
import { type Metrics, sharedRead } from "../../runtime/process/metrics.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { listWebhooks, type Webhook } from "../../ledger/webhooks/subscriptions.js";

/** What the dispatcher counts. */
export interface WebhookMetrics {
  ended(kind: DeliveryOutcome["kind"]): void;
}

/** Registers the figures; those of the tables are read when a page is asked for. */
export function createWebhookMetrics(metrics: Metrics, database: SqlDatabase): WebhookMetrics {
  const name = (suffix: string) => `causeway_webhook_${suffix}`;
  const tries = metrics.counter(name("tries_total"), "Tries to deliver an event, by outcome.", [
    "outcome",
  ]);
  // A page is served without the database, too.
  const read = sharedRead(() => listWebhooks(database).catch(() => undefined));
  const show = (suffix: string, help: string, valueOf: (webhook: Webhook) => number) => {
    metrics.gauge(name(suffix), help, ["webhook"], async (gauge) => {
      const webhooks = await read();
      gauge.reset();
      for (const webhook of webhooks ?? []) gauge.set({ webhook: webhook.id }, valueOf(webhook));
    });
  };
  show("backlog_events", "Events that a webhook waits for.", (webhook) => {
    return webhook.behindEvents + webhook.pending;
  });
  show("dead_deliveries", "Deliveries that were given up.", ({ dead }) => dead);
  show("disabled", "1 for a webhook that is switched off because it kept failing.", (webhook) => {
    return webhook.status === "disabled" ? 1 : 0;
  });
  return { ended: (outcome) => tries.inc({ outcome }) };
}
