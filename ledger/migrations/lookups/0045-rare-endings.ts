/**
 * Deposits that a chain has lost, and sweeps that were given up, are listed from among themselves: of most
 * ledgers there are none, and to find that every deposit, or every sweep, was read.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const ENDINGS = `
  CREATE INDEX deposit_reversed ON deposit (seq) WHERE status = 'reversed';
  CREATE INDEX sweep_given_up ON sweep (state, id) WHERE state IN ('void', 'foreign')`;

/** Two indexes. */
export class RareEndings1760000000045 implements MigrationInterface {
  readonly name = "RareEndings1760000000045";

  /** Rows are read once, and none is written. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(ENDINGS);
  }

  /** Nothing is kept by them. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX deposit_reversed, sweep_given_up`);
  }
}
