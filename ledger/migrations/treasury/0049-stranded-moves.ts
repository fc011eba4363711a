/**
 * A move of the treasury whose nonce stands on a wallet that was retired with it, its key lost, say, is open
 * until that nonce is used, which may be never: no other move of the asset went to cold storage, and no other
 * gas to the address. It has a state of its own, which keeps no place.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** What has not ended is still found by one index. */
const STATE = `
  ALTER TABLE treasury_move
    DROP CONSTRAINT treasury_move_state_check,
    ADD CONSTRAINT treasury_move_state_check
      CHECK (state IN ('open', 'stranded', 'arrived', 'void'));
  DROP INDEX treasury_move_open;
  CREATE INDEX treasury_move_open ON treasury_move (id) WHERE state IN ('open', 'stranded')`;

/** As before; a stranded one ends as an open one does, and does not take its place again. */
const GUARD = `
  CREATE OR REPLACE FUNCTION guard_treasury_move() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      IF OLD.state NOT IN ('open', 'stranded') OR OLD.state = 'stranded' AND NEW.state = 'open'
         OR (OLD.id, OLD.kind, OLD.withdrawal_id, OLD.asset, OLD.destination,
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

/** A state, an index and a guard. */
export class StrandedMoves1760000000049 implements MigrationInterface {
  readonly name = "StrandedMoves1760000000049";

  /** No row is written: the treasury finds them in its next round. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [STATE, GUARD]) await runner.query(part);
  }

  /** What was paid for the exchange itself is never forgotten. */
  async down(): Promise<void> {
    throw new Error("treasury tables are never dropped: they hold what was signed");
  }
}
