/**
 * Two rules of `posting` called others by names without a schema. A session that searches none (a dump of
 * pg_dump that is put back, a subscriber of logical replication) did not find them, and kept no posting.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * As before, with the schema. Not SET search_path: what has settings of its own is not put into the
 * expression that calls it.
 */
const ACCOUNTS = `
  CREATE OR REPLACE FUNCTION is_account(code text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
      WHEN starts_with(code, 'liability:customer:') THEN public.is_name(substr(code, 20))
      WHEN starts_with(code, 'liability:held:') THEN public.is_name(substr(code, 16))
      ELSE code IN ('asset:hot_wallet', 'asset:deposit_addresses', 'asset:break',
                    'liability:suspense', 'equity:opening_capital', 'expense:network_fee',
                    'revenue:failed_payouts') END
  $$;
  CREATE OR REPLACE FUNCTION is_wallet_account(code text) RETURNS boolean
  LANGUAGE sql IMMUTABLE AS $$
    SELECT starts_with(code, 'asset:wallet:') AND public.is_prefixed_hex(substr(code, 14), 40)
  $$`;

/** Two functions. */
export class RulesWithoutAPath1760000000050 implements MigrationInterface {
  readonly name = "RulesWithoutAPath1760000000050";

  /** No row is read or written: the rules say what they said. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(ACCOUNTS);
  }

  /** The rules that refuse are never dropped. */
  async down(): Promise<void> {
    throw new Error("rules of the journal are never dropped by a migration");
  }
}
