/**
 * With an outflow of a token that nobody asked for stands whether other code than was accepted told of it.
 * Whoever changed the code can say so in every block without the key of any wallet: it stops no signing.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";
import { mayNameAdded } from "../added-columns.js";

/** What is there stops what it stopped: nothing says which code told of it. */
const COLUMN = `
  ALTER TABLE foreign_outflow ADD COLUMN other_code boolean NOT NULL DEFAULT false`;

/** One column, and the right to it. */
export class OutflowsOfOtherCode1760000000064 implements MigrationInterface {
  readonly name = "OutflowsOfOtherCode1760000000064";

  /** No row is written. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [COLUMN, mayNameAdded("foreign_outflow", ["other_code"])]) {
      await runner.query(part);
    }
  }

  /** What stops no signing would stop it. */
  async down(): Promise<void> {
    throw new Error("whose code told of an outflow is never forgotten by a migration");
  }
}
