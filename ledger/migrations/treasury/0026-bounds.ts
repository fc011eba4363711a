/**
 * Two things that had no bound: how long a sweep keeps its place when nothing may be signed for it any
 * more, and how many rows a rule about one payment reads.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** As before; a sweep that nothing was signed for may be given up, and gives its nonce back. */
const GUARD = `
  CREATE OR REPLACE FUNCTION guard_sweep() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.state IN ('settled', 'failed', 'void', 'foreign')
       OR (OLD.address, OLD.asset, OLD.wallet) IS DISTINCT FROM (NEW.address, NEW.asset, NEW.wallet)
       OR OLD.nonce IS NOT NULL
          AND (OLD.amount_units, OLD.gas_limit) IS DISTINCT FROM (NEW.amount_units, NEW.gas_limit)
       OR OLD.nonce IS NOT NULL AND NEW.state <> 'void'
          AND (OLD.nonce, OLD.gas_price_atoken) IS DISTINCT FROM (NEW.nonce, NEW.gas_price_atoken)
       OR NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN
          (('needs-gas', 'ready'), ('needs-gas', 'void'), ('ready', 'void'), ('ready', 'signed'),
           ('ready', 'frozen'), ('signed', 'sent'), ('frozen', 'ready'),
           ('signed', 'frozen'), ('sent', 'frozen'), ('frozen', 'signed'), ('frozen', 'foreign'),
           ('signed', 'settled'), ('sent', 'settled'), ('frozen', 'settled'),
           ('signed', 'failed'), ('sent', 'failed'), ('frozen', 'failed'))
       -- Who is to be signed for has no bytes; who is to be sent has some.
       OR OLD.state = 'frozen' AND NEW.state IN ('ready', 'signed')
          AND (NEW.state = 'signed') IS DISTINCT FROM
              EXISTS (SELECT 1 FROM sweep_attempt t WHERE t.sweep_id = OLD.id)
       -- Bytes that exist may be mined: their nonce is theirs.
       OR NEW.state = 'void' AND (NEW.nonce IS NOT NULL
          OR EXISTS (SELECT 1 FROM sweep_attempt t WHERE t.sweep_id = OLD.id)) THEN
      RAISE EXCEPTION 'sweep % cannot go from % to %', OLD.id, OLD.state, NEW.state
        USING ERRCODE = 'restrict_violation';
    END IF;
    NEW.changed_at := clock_timestamp();
    RETURN NEW;
  END $$`;

/**
 * A connection keeps the plan that it made on tables that were next to empty: reading them from end to
 * end was the cheapest way then. Each of these questions is about one key, and has an index for it.
 */
const LOOKUPS = `
  ALTER FUNCTION explanation_of(text, text) SET enable_seqscan = off;
  ALTER FUNCTION refuse_slot_of_wallet() SET enable_seqscan = off`;

/** A guard, and how two functions are planned. */
export class Bounds1760000000026 implements MigrationInterface {
  readonly name = "Bounds1760000000026";

  /** No row is read or written. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [GUARD, LOOKUPS]) await runner.query(part);
  }

  /** The rules that refuse are never dropped. */
  async down(): Promise<void> {
    throw new Error("what refuses to sign twice is never dropped by a migration");
  }
}
