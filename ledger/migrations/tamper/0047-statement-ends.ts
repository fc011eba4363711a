/**
 * Up to when statements have told the books, and which entries they knew: the database's clock may go back
 * behind such a moment, and what is booked then belongs to the time after it.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const ENDS = `
  CREATE TABLE statement_end (
    -- A statement told everything before this moment.
    at timestamptz PRIMARY KEY,
    -- Of entries up to this one; later ones are of a later time, whatever the clock said.
    entry_id bigint NOT NULL CHECK (entry_id >= 0)
  );
  CREATE TRIGGER statement_end_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON statement_end
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE FUNCTION statement_end_forward() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (SELECT FROM statement_end s WHERE s.at >= NEW.at OR s.entry_id > NEW.entry_id) THEN
      RAISE EXCEPTION 'ends of statements only go forward' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER statement_end_forward BEFORE INSERT ON statement_end
    FOR EACH ROW EXECUTE FUNCTION statement_end_forward();`;

/** One table. */
export class StatementEnds1760000000047 implements MigrationInterface {
  readonly name = "StatementEnds1760000000047";

  /** Statements of before are not known: theirs are held by the clock alone, as they were. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(ENDS);
  }

  /** Statements that were handed out rely on it. */
  async down(): Promise<void> {
    throw new Error("what statements have told is never forgotten by a migration");
  }
}
