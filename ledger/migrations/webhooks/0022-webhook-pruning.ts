/**
 * Deliveries of webhooks that have ended are forgotten after a time: events stay for ever, and whoever
 * wants one again is sent it again. Nothing that is still to be sent can be deleted.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** The table's own rule, whoever deletes. */
const RULE = `
  DROP TRIGGER webhook_delivery_keep ON webhook_delivery;
  CREATE TRIGGER webhook_delivery_keep BEFORE TRUNCATE ON webhook_delivery
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE FUNCTION webhook_delivery_is_over() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.changed_at > now() - interval '1 day'
       OR (OLD.status = 'pending'
           AND EXISTS (SELECT 1 FROM webhook w
                        WHERE w.id = OLD.webhook_id AND w.status <> 'removed')) THEN
      RAISE EXCEPTION 'delivery % of webhook % is not over for a day', OLD.seq, OLD.webhook_id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
  END $$;
  CREATE TRIGGER webhook_delivery_delete BEFORE DELETE ON webhook_delivery
    FOR EACH ROW EXECUTE FUNCTION webhook_delivery_is_over();`;

/**
 * Services delete nothing by themselves: this is all that may go. Of each webhook the newest stay, of
 * one that is removed none.
 */
const PRUNE = `
  CREATE FUNCTION prune_webhook_deliveries(kept integer, most integer) RETURNS integer
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    WITH ended AS (
      SELECT d.webhook_id, d.seq
        FROM webhook w
        CROSS JOIN LATERAL (
          SELECT newest.seq FROM webhook_delivery newest WHERE newest.webhook_id = w.id
           ORDER BY newest.seq DESC
           OFFSET CASE WHEN w.status = 'removed' THEN 0 ELSE kept END LIMIT 1) AS first_old
        JOIN webhook_delivery d ON d.webhook_id = w.id AND d.seq <= first_old.seq
         AND d.changed_at <= now() - interval '1 day'
         AND (d.status <> 'pending' OR w.status = 'removed')
       LIMIT most
    ), gone AS (
      DELETE FROM webhook_delivery d USING ended
       WHERE d.webhook_id = ended.webhook_id AND d.seq = ended.seq RETURNING d.seq
    )
    SELECT count(*)::integer FROM gone
  $$;`;

/** One rule in place of another, and one function. */
export class WebhookPruning1760000000022 implements MigrationInterface {
  readonly name = "WebhookPruning1760000000022";

  /** No row is rewritten. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [RULE, PRUNE]) await runner.query(part);
  }

  /** A record is never cut by software. */
  async down(): Promise<void> {
    throw new Error("the ledger's records are never cut by a migration");
  }
}
