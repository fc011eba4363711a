/**
 * The chain of hashes over what persons decide, too: decisions about the books, wallets and their status,
 * transactions that were acknowledged, and blocks that the watcher went back behind. Each of them moves
 * coins, or lets them move, and could have been written anew by who owns the database.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** As in `link-rules.ts` when this was written. */
const KINDS = [
  "event",
  "entry",
  "deposit",
  "withdrawal",
  "asset",
  "token_state",
  "sighting",
  "activation",
  "listing",
  "decision",
  "approval",
  "verdict",
  "kill_switch",
  "address",
  "assignment",
  "proposal",
  "outcome",
  "wallet",
  "wallet_change",
  "acknowledgement",
  "rewind",
]
  .map((kind) => `'${kind}'`)
  .join(", ");

/** Rows are linked by rising numbers. */
const NUMBERS = `
  ALTER TABLE foreign_transaction_acknowledged
    ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY UNIQUE;`;

/** A decision's row changes once; what is linked never does. */
const OUTCOMES = `
  CREATE TABLE operator_decision_outcome (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    decision_id bigint NOT NULL UNIQUE REFERENCES operator_decision (id),
    status text NOT NULL CHECK (status IN ('done', 'refused')),
    decided_by text NOT NULL CHECK (length(decided_by) BETWEEN 1 AND 100),
    at timestamptz NOT NULL
  );
  INSERT INTO operator_decision_outcome (decision_id, status, decided_by, at)
    SELECT id, status, decided_by, decided_at FROM operator_decision
     WHERE status <> 'proposed' ORDER BY decided_at, id;
  CREATE TRIGGER operator_decision_outcome_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON operator_decision_outcome FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE FUNCTION note_operator_decision() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO operator_decision_outcome (decision_id, status, decided_by, at)
    VALUES (NEW.id, NEW.status, NEW.decided_by, NEW.decided_at);
    RETURN NULL;
  END $$;
  CREATE TRIGGER operator_decision_noted AFTER INSERT OR UPDATE ON operator_decision
    FOR EACH ROW WHEN (NEW.status <> 'proposed') EXECUTE FUNCTION note_operator_decision();`;

const CHAIN = `
  ALTER TABLE chain_link DROP CONSTRAINT chain_link_kind_check,
    ADD CONSTRAINT chain_link_kind_check CHECK (kind IN (${KINDS}));
  ALTER TABLE chain_cursor DROP CONSTRAINT chain_cursor_kind_check,
    ADD CONSTRAINT chain_cursor_kind_check CHECK (kind IN (${KINDS}));
  INSERT INTO chain_cursor SELECT kind, 0 FROM unnest(ARRAY[${KINDS}]) AS kind
    ON CONFLICT (kind) DO NOTHING;`;

/** Six more kinds of links, one table and one number. */
export class LinkedPersons1760000000038 implements MigrationInterface {
  readonly name = "LinkedPersons1760000000038";

  /** What is there already is linked by the chainer. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [NUMBERS, OUTCOMES, CHAIN]) await runner.query(part);
  }

  /** What is linked stays linked. */
  async down(): Promise<void> {
    throw new Error("the chain of hashes is never cut by a migration");
  }
}
