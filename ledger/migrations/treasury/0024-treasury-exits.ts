/**
 * Ways out for what the treasury waited on for ever: a refill request with the block since which it is
 * needless, a sweep towards another wallet than it began with, and one that froze before it was signed.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Since which block the hot wallets have had enough without a pause: what came until then fills the
 * request once the watcher has booked that block, and only one that nothing filled is taken back.
 */
const ENOUGH = `
  ALTER TABLE refill_request ADD COLUMN enough_height bigint CHECK (enough_height >= 0)`;

/** Where an attempt goes; none for those of before, which go where the sweep says. */
const WALLET = `
  ALTER TABLE sweep_attempt ADD COLUMN wallet text REFERENCES wallet (address)`;

/** As before; a sweep that froze before anything was signed for it may be signed for. */
const GUARD = `
  CREATE OR REPLACE FUNCTION guard_sweep() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.state IN ('settled', 'failed', 'void', 'foreign')
       OR (OLD.address, OLD.asset, OLD.wallet) IS DISTINCT FROM (NEW.address, NEW.asset, NEW.wallet)
       OR OLD.nonce IS NOT NULL
          AND (OLD.nonce, OLD.gas_price_atoken, OLD.amount_units, OLD.gas_limit) IS DISTINCT FROM
              (NEW.nonce, NEW.gas_price_atoken, NEW.amount_units, NEW.gas_limit)
       OR NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN
          (('needs-gas', 'ready'), ('needs-gas', 'void'), ('ready', 'signed'),
           ('ready', 'frozen'), ('signed', 'sent'), ('frozen', 'ready'),
           ('signed', 'frozen'), ('sent', 'frozen'), ('frozen', 'signed'), ('frozen', 'foreign'),
           ('signed', 'settled'), ('sent', 'settled'), ('frozen', 'settled'),
           ('signed', 'failed'), ('sent', 'failed'), ('frozen', 'failed'))
       -- Who is to be signed for has no bytes; who is to be sent has some.
       OR OLD.state = 'frozen' AND NEW.state IN ('ready', 'signed')
          AND (NEW.state = 'signed') IS DISTINCT FROM
              EXISTS (SELECT 1 FROM sweep_attempt t WHERE t.sweep_id = OLD.id) THEN
      RAISE EXCEPTION 'sweep % cannot go from % to %', OLD.id, OLD.state, NEW.state
        USING ERRCODE = 'restrict_violation';
    END IF;
    NEW.changed_at := clock_timestamp();
    RETURN NEW;
  END $$`;

/** Two columns and a guard. */
export class TreasuryExits1760000000024 implements MigrationInterface {
  readonly name = "TreasuryExits1760000000024";

  async up(runner: QueryRunner): Promise<void> {
    for (const part of [ENOUGH, WALLET, GUARD]) await runner.query(part);
  }

  /** Where signed bytes go is never forgotten. */
  async down(): Promise<void> {
    throw new Error("treasury tables are never dropped: they hold what was signed");
  }
}
