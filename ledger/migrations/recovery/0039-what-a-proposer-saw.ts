/**
 * What a person saw who proposed a decision: approved by another one later, it must be so still. Proposals
 * of former releases say nothing of it, and are proposed anew.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const SEEN = `
  ALTER TABLE operator_decision ADD COLUMN seen text CHECK (length(seen) BETWEEN 1 AND 200);
  CREATE OR REPLACE FUNCTION operator_decision_is_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.status <> 'proposed'
       OR (OLD.id, OLD.kind, OLD.key, OLD.terms, OLD.reason, OLD.needs_second, OLD.proposed_by,
           OLD.proposed_at, OLD.seen)
          IS DISTINCT FROM
          (NEW.id, NEW.kind, NEW.key, NEW.terms, NEW.reason, NEW.needs_second, NEW.proposed_by,
           NEW.proposed_at, NEW.seen) THEN
      RAISE EXCEPTION 'decision % stands', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

/** One column of decisions, as fixed as the others. */
export class WhatAProposerSaw1760000000039 implements MigrationInterface {
  readonly name = "WhatAProposerSaw1760000000039";

  /** No row is read or written. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(SEEN);
  }

  /** Without it a proposal would be carried out about something else than was looked at. */
  async down(): Promise<void> {
    throw new Error("what was looked at is never forgotten by a migration");
  }
}
