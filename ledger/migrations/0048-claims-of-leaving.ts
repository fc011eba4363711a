/**
 * What listed tokens say left a hot wallet whose balance did not fall by it is recorded beside what did not
 * arrive. One transfer may claim both, of two of our addresses: until now its place in the block was told by
 * one row.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const SIGHTINGS = `
  ALTER TABLE token_sighting
    DROP CONSTRAINT token_sighting_reason_check,
    ADD CONSTRAINT token_sighting_reason_check CHECK (reason IN
      ('UNKNOWN_TOKEN', 'NFT', 'MALFORMED', 'NOT_ARRIVED', 'SHORTFALL', 'UNREADABLE', 'NOT_LEFT')),
    DROP CONSTRAINT token_sighting_height_tx_index_op_index_rewind_key,
    ADD CONSTRAINT token_sighting_once UNIQUE (height, tx_index, op_index, rewind, address);`;

/** One table. */
export class ClaimsOfLeaving1760000000048 implements MigrationInterface {
  readonly name = "ClaimsOfLeaving1760000000048";

  /** No row changes. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(SIGHTINGS);
  }

  /** There may be rows by now that the former rules refuse, and none is ever deleted. */
  async down(): Promise<void> {
    throw new Error("what tokens claimed is never forgotten by a migration");
  }
}
