/**
 * Rules that were found missing: which asset a recovered payment was of stands as everything else of
 * it does.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const RECOVERED_PAYMENT = `
  CREATE OR REPLACE FUNCTION recovered_payment_is_decided_once() RETURNS trigger
  LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.decision IS NOT NULL
       OR (OLD.tx_hash, OLD.wallet, OLD.nonce, OLD.height, OLD.block_hash, OLD.destination,
           OLD.contract, OLD.amount_units, OLD.gas_used, OLD.gas_price_atoken, OLD.epoch)
          IS DISTINCT FROM
          (NEW.tx_hash, NEW.wallet, NEW.nonce, NEW.height, NEW.block_hash, NEW.destination,
           NEW.contract, NEW.amount_units, NEW.gas_used, NEW.gas_price_atoken, NEW.epoch) THEN
      RAISE EXCEPTION 'recovered payment % is decided once', OLD.tx_hash
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

/** Guards of rows that are there already. */
export class Guards1760000000015 implements MigrationInterface {
  readonly name = "Guards1760000000015";

  /** Replaces functions; no row is touched. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(RECOVERED_PAYMENT);
  }

  /** Rules about money are never taken away by software. */
  async down(): Promise<void> {
    throw new Error("the ledger's guards are never dropped by a migration");
  }
}
