/**
 * Transactions that pay several recipients: what one that no request asked for may have paid, beside what it
 * took as a whole, and which request has been frozen for which transaction.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const TABLES = `
  -- Of a recovered payment only what its row does not say; of an outflow everything.
  CREATE TABLE possible_payment (
    tx_hash text NOT NULL CHECK (tx_hash ~ '^0x[0-9a-f]{64}$'),
    destination text NOT NULL CHECK (destination ~ '^0x[0-9a-f]{40}$'),
    -- Of a token; empty for coins, as no part of a key is NULL.
    contract text NOT NULL CHECK (contract ~ '^(0x[0-9a-f]{40})?$'),
    amount_units numeric(78,0) NOT NULL CHECK (amount_units > 0),
    PRIMARY KEY (tx_hash, destination, contract, amount_units)
  );
  CREATE INDEX possible_payment_terms ON possible_payment (destination, amount_units);
  CREATE TRIGGER possible_payment_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON possible_payment FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- A request freezes once for one transaction: from then on it is what a person has said.
  CREATE TABLE withdrawal_doubt (
    withdrawal_id text NOT NULL REFERENCES withdrawal (id),
    tx_hash text NOT NULL CHECK (tx_hash ~ '^0x[0-9a-f]{64}$'),
    frozen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (withdrawal_id, tx_hash)
  );
  CREATE TRIGGER withdrawal_doubt_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON withdrawal_doubt FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** Both parts are found by destination and amount: without statistics a plan could read all of either. */
const TERMS = `
  CREATE VIEW recovered_terms AS
    SELECT r.tx_hash, r.wallet, r.nonce, r.height, r.epoch, r.decision,
           r.destination, r.contract, r.amount_units
      FROM recovered_payment r WHERE r.destination IS NOT NULL AND r.amount_units > 0
    UNION ALL
    SELECT r.tx_hash, r.wallet, r.nonce, r.height, r.epoch, r.decision,
           p.destination, nullif(p.contract, '') AS contract, p.amount_units
      FROM possible_payment p JOIN recovered_payment r ON r.tx_hash = p.tx_hash;

  CREATE OR REPLACE FUNCTION undecided_payment_of(request text)
    RETURNS TABLE (tx_hash text, height bigint) LANGUAGE sql STABLE AS $$
    SELECT r.tx_hash, r.height FROM withdrawal w
      JOIN asset a ON a.symbol = w.asset
      JOIN recovered_terms r
        ON r.destination = w.destination AND r.amount_units = w.amount_units
       AND r.contract IS NOT DISTINCT FROM a.contract
     WHERE w.id = request AND r.decision IS NULL
       AND NOT EXISTS (SELECT 1 FROM withdrawal_clearance c
                        WHERE c.withdrawal_id = w.id AND c.epoch >= r.epoch)
     ORDER BY r.nonce LIMIT 1
  $$;`;

/** Two tables, a view and a function. */
export class PossiblePayments1760000000032 implements MigrationInterface {
  readonly name = "PossiblePayments1760000000032";

  /** No row is written: what a payment of before paid to others, nobody has kept. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [TABLES, TERMS]) await runner.query(part);
  }

  /** What may have been paid is never forgotten. */
  async down(): Promise<void> {
    throw new Error("what refuses to pay twice is never dropped by a migration");
  }
}
