/** Figures of webhooks, for Prometheus. */
import type { DeliveryOutcome } from "../../ledger/webhooks/deliveries.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { listWebhooks } from "../../ledger/webhooks/subscriptions.js";

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
  const backlog = metrics.gauge(name("backlog_events"), "Events that a webhook waits for.", [
    "webhook",
  ]);
  const dead = metrics.gauge(name("dead_deliveries"), "Deliveries that were given up.", [
    "webhook",
  ]);
  metrics.gauge(
    name("disabled"),
    "Webhooks that are switched off because they kept failing.",
    [],
    async (gauge) => {
      // A page is served without the database, too.
      const hooks = await listWebhooks(database).catch(() => []);
      backlog.reset();
      dead.reset();
      for (const hook of hooks) {
        backlog.set({ webhook: hook.id }, hook.behindEvents + hook.pending);
        dead.set({ webhook: hook.id }, hook.dead);
      }
      gauge.set(hooks.filter(({ status }) => status === "disabled").length);
    },
  );
  return { ended: (outcome) => tries.inc({ outcome }) };
}
