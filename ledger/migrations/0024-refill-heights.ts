/**
 * Since which block the hot wallets have had enough without a pause: what came until then fills the
 * request once the watcher has booked that block, and only a request that nothing filled is taken back.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const HEIGHT = `
  ALTER TABLE refill_request ADD COLUMN enough_height bigint CHECK (enough_height >= 0)`;

/** A column. */
export class RefillHeights1760000000024 implements MigrationInterface {
  readonly name = "RefillHeights1760000000024";

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(HEIGHT);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE refill_request DROP COLUMN enough_height`);
  }
}
