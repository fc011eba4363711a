/**
 * A rule that names a table without a schema asks the session's own temporary one first, and one that asks
 * whether a trigger is at work is told so by any trigger. Where a service's role may make temporary tables,
 * because the database is somebody else's, it had both. Here the rules look for names in `public` first, and
 * customers' balances are moved by the tables' owner: services write none.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Triggers that read tables or have variables. Those which a payment or a deposit calls for itself name in
 * full what they name (`PER_ROW`): setting the path takes some microseconds each time.
 */
const ASKING = [
  "account_sum_cursor_forward",
  "assign_only_unassigned",
  "chain_links_follow",
  "guard_sweep",
  "guard_treasury_move",
  "guard_webhook_secret",
  "note_operator_decision",
  "note_sweep_due",
  "note_token_state",
  "record_wallet_change",
  "refuse_cursor_step_back",
  "refuse_own_approval",
  "refuse_paused_slots",
  "refuse_recovered_end",
  "refuse_recovered_payments",
  "refuse_unapproved_slots",
  "refuse_unapproved_step",
  "refuse_unknown_posting",
  "refuse_unproven_transfers",
  "refuse_withdrawal_of_treasury",
  "statement_end_forward",
  "webhook_delivery_is_over",
] as const;

/** As before, with the schema. */
const PER_ROW = `
  CREATE OR REPLACE FUNCTION refuse_slot_of_wallet() RETURNS trigger LANGUAGE plpgsql
  SET enable_seqscan = off AS $$
  DECLARE
    payer pg_catalog.text :=
      (SELECT s.wallet FROM public.nonce_slot s WHERE s.withdrawal_id = NEW.id AND s.live);
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM public.wallet WHERE address = payer AND status = 'active') THEN
      RAISE EXCEPTION 'withdrawal % has no nonce of an active wallet', NEW.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (SELECT 1 FROM public.wallet WHERE address = NEW.destination) THEN
      RAISE EXCEPTION 'withdrawal % would pay a wallet of ours', NEW.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;

  CREATE OR REPLACE FUNCTION refuse_unknown_asset() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM public.asset WHERE symbol = NEW.asset) THEN
      RAISE EXCEPTION 'no asset is called %', NEW.asset USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NEW;
  END $$;

  CREATE OR REPLACE FUNCTION refuse_paused_credit() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (SELECT 1 FROM public.token_state WHERE asset = NEW.asset AND paused) THEN
      RAISE EXCEPTION 'token % stands still: see causeway tokens state', NEW.asset
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;

  CREATE OR REPLACE FUNCTION withdrawal_end_is_proven() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.status = 'settled' THEN
      IF NOT EXISTS (SELECT 1 FROM public.nonce_slot
                      WHERE withdrawal_id = NEW.id AND outcome = 'paid') THEN
        RAISE EXCEPTION 'withdrawal % settles without a payment', NEW.id
          USING ERRCODE = 'restrict_violation';
      END IF;
    ELSIF EXISTS (SELECT 1 FROM public.nonce_slot
                   WHERE withdrawal_id = NEW.id AND (outcome IS NULL OR outcome = 'paid')) THEN
      RAISE EXCEPTION 'withdrawal % may still be paid, or is', NEW.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
  END $$;`;

/** The owner moves them, for postings and for nothing else that has columns of the same names. */
const MOVING = `
  CREATE OR REPLACE FUNCTION move_customer_balances() RETURNS trigger LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = public, pg_temp AS $$
  DECLARE
    change record;
  BEGIN
    IF TG_RELID <> 'public.posting'::regclass THEN
      RAISE EXCEPTION 'customer_balance follows postings alone'
        USING ERRCODE = 'restrict_violation';
    END IF;
    -- In id order, so that two writers of the same customers wait instead of deadlocking.
    FOR change IN
      SELECT customer_id, asset,
             coalesce(sum(amount) FILTER (WHERE NOT is_held), 0) AS available,
             coalesce(sum(amount) FILTER (WHERE is_held), 0) AS held
        FROM (
          SELECT starts_with(account, 'liability:held:') AS is_held,
                 substr(account, CASE WHEN starts_with(account, 'liability:held:') THEN 16
                                      ELSE 20 END) AS customer_id, asset, amount
            FROM (
              SELECT credit AS account, asset, amount_units AS amount FROM new_posting
              UNION ALL
              SELECT debit, asset, -amount_units FROM new_posting
            ) AS side
           WHERE starts_with(account, 'liability:customer:')
              OR starts_with(account, 'liability:held:')
        ) AS leg
       GROUP BY customer_id, asset
       ORDER BY customer_id, asset
    LOOP
      FOR attempt IN 1..2 LOOP
        UPDATE customer_balance
           SET available_units = available_units + change.available,
               held_units = held_units + change.held
         WHERE customer_id = change.customer_id AND asset = change.asset;
        EXIT WHEN FOUND;
        INSERT INTO customer_balance (customer_id, asset)
        VALUES (change.customer_id, change.asset) ON CONFLICT DO NOTHING;
      END LOOP;
    END LOOP;
    RETURN NULL;
  END $$;
  REVOKE EXECUTE ON FUNCTION move_customer_balances() FROM PUBLIC;`;

/**
 * Who is to book locks balances, which takes the right to change some column: none of these, whatever
 * trigger is at work. Rights of services that nobody grants anew behind this migration are as theirs are.
 */
const WRITING = `
  CREATE TRIGGER customer_balance_fixed BEFORE UPDATE OF customer_id, asset ON customer_balance
    FOR EACH ROW EXECUTE FUNCTION refuse_direct_balance();
  DO $$
  DECLARE
    who text;
  BEGIN
    FOR who IN
      SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
       CROSS JOIN LATERAL (VALUES (c.relacl), (a.attacl)) AS given (acl)
       CROSS JOIN LATERAL aclexplode(given.acl) AS g
       WHERE c.oid = 'public.customer_balance'::regclass AND g.grantee <> c.relowner
         AND g.privilege_type IN ('INSERT', 'UPDATE')
    LOOP
      EXECUTE format('REVOKE INSERT, UPDATE ON customer_balance FROM %s', who);
      EXECUTE format('GRANT UPDATE (customer_id) ON customer_balance TO %s', who);
    END LOOP;
  END $$;`;

/**
 * Who records no decisions of persons is no person. Asked for the right: a database that has another name, or
 * is a copy, has roles that are not called after it.
 */
const LOWERING = `
  CREATE OR REPLACE FUNCTION kill_switch_is_lowered_by_persons() RETURNS trigger LANGUAGE plpgsql
  SET search_path = public, pg_temp AS $$
  DECLARE
    levels text[] := ARRAY['none', 'stop-new', 'stop-sign', 'stop-broadcast'];
    before text := coalesce((SELECT level FROM kill_switch ORDER BY id DESC LIMIT 1), 'none');
  BEGIN
    IF array_position(levels, NEW.level) < array_position(levels, before)
       AND NOT has_any_column_privilege(current_user, 'public.operator_decision', 'INSERT') THEN
      RAISE EXCEPTION 'only a person lowers the kill switch from %', before
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

/** Rules and rights. */
export class RulesOfTheOwner1760000000052 implements MigrationInterface {
  readonly name = "RulesOfTheOwner1760000000052";

  /** No row is read or written. */
  async up(runner: QueryRunner): Promise<void> {
    for (const name of ASKING) {
      await runner.query(`ALTER FUNCTION ${name}() SET search_path = public, pg_temp`);
    }
    for (const part of [PER_ROW, MOVING, WRITING, LOWERING]) await runner.query(part);
  }

  /** The rules that refuse are never dropped. */
  async down(): Promise<void> {
    throw new Error("rules of the ledger are never dropped by a migration");
  }
}
