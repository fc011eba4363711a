/**
 * Numbers behind all that any life of a ledger has told. What was told between a backup and its return is
 * lost, and two losses that bring back the same backup go on from the same place: a fixed step leads both
 * to the same numbers.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** A hundred thousand a second since 2025: no ledger tells so many, and JSON holds them for centuries. */
const NUMBERS = `
  CREATE FUNCTION number_behind_all() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp() - timestamptz '2025-01-01 00:00:00Z')
            * 100000)::bigint;
  $$;
  CREATE OR REPLACE FUNCTION skip_told_positions() RETURNS void LANGUAGE sql SECURITY DEFINER
    SET search_path = public, pg_temp AS $$
    SELECT setval('deposit_seq_seq',
                  greatest(nextval('deposit_seq_seq') + 1000000000, number_behind_all()));
    SELECT setval('withdrawal_position',
                  greatest(nextval('withdrawal_position') + 1000000000, number_behind_all()));
  $$`;

/** Two functions. */
export class NumbersBehindAll1760000000031 implements MigrationInterface {
  readonly name = "NumbersBehindAll1760000000031";

  /** No row is touched. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(NUMBERS);
  }

  /** Numbers that were told are never given again. */
  async down(): Promise<void> {
    throw new Error("told numbers are never forgotten by a migration");
  }
}
