/**
 * Gas for a sweep that is signed: where the price rose beyond what its address can pay, its nonce waited for
 * the price to fall, since gas was given once for each sweep.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** What replaces the one key there was: of a sweep one is open, however many have ended. */
const ONE_OPEN = `
  ALTER TABLE treasury_move DROP CONSTRAINT treasury_move_sweep_id_key;
  CREATE UNIQUE INDEX treasury_move_one_to_sweep ON treasury_move (sweep_id)
    WHERE sweep_id IS NOT NULL AND state = 'open';
  CREATE INDEX treasury_move_of_sweep ON treasury_move (sweep_id) WHERE sweep_id IS NOT NULL`;

/** As before; a token's sweep may be given gas again once its bytes are signed, and once before. */
const GUARD = `
  CREATE OR REPLACE FUNCTION guard_treasury_move() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF OLD.state <> 'open' OR (OLD.id, OLD.kind, OLD.withdrawal_id, OLD.asset, OLD.destination,
            OLD.amount_units, OLD.sweep_id) IS DISTINCT FROM (NEW.id, NEW.kind, NEW.withdrawal_id,
            NEW.asset, NEW.destination, NEW.amount_units, NEW.sweep_id) THEN
        RAISE EXCEPTION 'treasury move % has ended or is fixed', OLD.id
          USING ERRCODE = 'restrict_violation';
      END IF;
      RETURN NEW;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM withdrawal w WHERE w.id = NEW.withdrawal_id
          AND w.customer_id = 'causeway:treasury' AND w.asset = NEW.asset AND w.fee_units = 0
          AND w.destination = NEW.destination AND w.amount_units = NEW.amount_units)
       OR NEW.kind = 'top-up' AND NOT EXISTS (SELECT 1 FROM sweep s
          WHERE s.id = NEW.sweep_id AND s.address = NEW.destination
            AND (s.state IN ('signed', 'sent') AND s.asset <> 'TOKEN'
                 OR s.state = 'needs-gas' AND NOT EXISTS (
                   SELECT 1 FROM treasury_move m WHERE m.sweep_id = s.id))) THEN
      RAISE EXCEPTION 'treasury move of % is not what its withdrawal pays', NEW.withdrawal_id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$`;

/** Two indexes in place of one, and a guard. */
export class GasGivenAgain1760000000035 implements MigrationInterface {
  readonly name = "GasGivenAgain1760000000035";

  /** No row is written. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [ONE_OPEN, GUARD]) await runner.query(part);
  }

  /** What was paid for the exchange itself is never forgotten. */
  async down(): Promise<void> {
    throw new Error("treasury tables are never dropped: they hold what was signed");
  }
}
