/**
 * Amounts of rows that name an asset are counted in that asset's smallest unit, so their columns are
 * named for it: only the native coin is counted in atoken. Gas, fees and nonce slots stay atoken.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** Constraints, indexes and generated expressions follow a renamed column by themselves. */
const COLUMNS = `
  ALTER TABLE posting RENAME COLUMN amount_atoken TO amount_units;
  ALTER TABLE customer_balance RENAME COLUMN available_atoken TO available_units;
  ALTER TABLE customer_balance RENAME COLUMN held_atoken TO held_units;
  ALTER TABLE deposit RENAME COLUMN amount_atoken TO amount_units;
  ALTER TABLE withdrawal RENAME COLUMN amount_atoken TO amount_units;
  ALTER TABLE foreign_outflow RENAME COLUMN amount_atoken TO amount_units;
  ALTER TABLE recovered_payment RENAME COLUMN amount_atoken TO amount_units;`;

/** Bodies of functions are text and do not follow. */
const FUNCTIONS = `
  CREATE OR REPLACE FUNCTION move_customer_balances() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    change record;
  BEGIN
    -- In id order, so that two writers of the same customers wait instead of deadlocking.
    FOR change IN
      SELECT parts[2] AS customer_id, asset,
             coalesce(sum(amount) FILTER (WHERE parts[1] = 'customer'), 0) AS available,
             coalesce(sum(amount) FILTER (WHERE parts[1] = 'held'), 0) AS held
        FROM (
          SELECT regexp_match(account, '^liability:(customer|held):(.*)$') AS parts, asset, amount
            FROM (
              SELECT credit AS account, asset, amount_units AS amount FROM new_posting
              UNION ALL
              SELECT debit, asset, -amount_units FROM new_posting
            ) AS side
        ) AS leg
       WHERE parts IS NOT NULL
       GROUP BY parts[2], asset
       ORDER BY parts[2], asset
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

  CREATE OR REPLACE FUNCTION guard_deposit() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT (OLD.status = 'detected' AND NEW.status IN ('credited', 'held', 'suspense')
         OR OLD.status = 'held' AND NEW.status IN ('credited', 'suspense')
         OR OLD.status = 'suspense' AND NEW.status = 'credited'
         OR OLD.status <> 'reversed' AND NEW.status = 'reversed')
       OR (NEW.seq, NEW.id, NEW.address, NEW.asset, NEW.amount_units, NEW.height,
           NEW.block_hash, NEW.tx_hash, NEW.tx_index, NEW.op_index, NEW.seen_at, NEW.rewind)
          IS DISTINCT FROM
          (OLD.seq, OLD.id, OLD.address, OLD.asset, OLD.amount_units, OLD.height,
           OLD.block_hash, OLD.tx_hash, OLD.tx_index, OLD.op_index, OLD.seen_at, OLD.rewind)
       OR NEW.customer_id <> OLD.customer_id
          AND NOT (OLD.status = 'suspense' AND NEW.status = 'credited') THEN
      RAISE EXCEPTION 'deposit % may only move on from %', OLD.id, OLD.status
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;

  CREATE OR REPLACE FUNCTION withdrawal_terms_are_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.status IN ('settled', 'failed', 'rejected', 'cancelled') THEN
      RAISE EXCEPTION 'withdrawal % has ended', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF (OLD.id, OLD.position, OLD.idempotency_key, OLD.request_hash, OLD.customer_id, OLD.asset,
        OLD.wallet, OLD.destination, OLD.amount_units, OLD.expires_at)
       IS DISTINCT FROM
       (NEW.id, NEW.position, NEW.idempotency_key, NEW.request_hash, NEW.customer_id, NEW.asset,
        NEW.wallet, NEW.destination, NEW.amount_units, NEW.expires_at)
       OR OLD.cancel_cause IS NOT NULL
          AND (OLD.cancel_cause, OLD.cancel_reason)
              IS DISTINCT FROM (NEW.cancel_cause, NEW.cancel_reason) THEN
      RAISE EXCEPTION 'withdrawal % cannot change its terms', OLD.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;

  CREATE OR REPLACE FUNCTION recovered_payment_is_decided_once() RETURNS trigger
  LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.decision IS NOT NULL
       OR (OLD.tx_hash, OLD.wallet, OLD.nonce, OLD.height, OLD.block_hash, OLD.destination,
           OLD.amount_units, OLD.gas_used, OLD.gas_price_atoken, OLD.epoch)
          IS DISTINCT FROM
          (NEW.tx_hash, NEW.wallet, NEW.nonce, NEW.height, NEW.block_hash, NEW.destination,
           NEW.amount_units, NEW.gas_used, NEW.gas_price_atoken, NEW.epoch) THEN
      RAISE EXCEPTION 'recovered payment % is decided once', OLD.tx_hash
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;

  CREATE OR REPLACE FUNCTION undecided_payment_of(request text)
    RETURNS TABLE (tx_hash text, height bigint) LANGUAGE sql STABLE AS $$
    SELECT r.tx_hash, r.height FROM withdrawal w
      JOIN recovered_payment r
        ON r.destination = w.destination AND r.amount_units = w.amount_units
     WHERE w.id = request AND r.decision IS NULL
       AND NOT EXISTS (SELECT 1 FROM withdrawal_clearance c
                        WHERE c.withdrawal_id = w.id AND c.epoch >= r.epoch)
     ORDER BY r.nonce LIMIT 1
  $$;`;

/** Renames columns and the functions that name them. */
export class Units1760000000007 implements MigrationInterface {
  readonly name = "Units1760000000007";

  /** Catalogue changes only: no row is rewritten. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [COLUMNS, FUNCTIONS]) await runner.query(part);
  }

  /** A ledger is never taken back to names that hide what an amount is. */
  async down(): Promise<void> {
    throw new Error("the ledger's columns are never renamed back by a migration");
  }
}
