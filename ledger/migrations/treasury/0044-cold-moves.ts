/**
 * What went to cold storage is found among itself: each round of the treasury asks for the newest move of
 * each asset, and read all gas that any sweep was ever given.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const COLD = `CREATE INDEX treasury_move_cold ON treasury_move (asset, id) WHERE kind = 'cold'`;

/** One index. */
export class ColdMoves1760000000044 implements MigrationInterface {
  readonly name = "ColdMoves1760000000044";

  /** Moves are read once, and none is written. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(COLD);
  }

  /** Nothing is kept by it. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX treasury_move_cold`);
  }
}
