/**
 * A payment is below 2^256, and a balance is a sum of payments. In the 78 digits of one there was room for
 * eight of the largest: the next deposit of such a token was refused by the column, with the block that
 * it was in, and nothing of any asset was credited any more.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** The rule about zero stays; amounts of single postings keep their bound. */
const BALANCES = `
  ALTER TABLE customer_balance ALTER COLUMN available_units TYPE numeric,
    ALTER COLUMN held_units TYPE numeric`;

/** Two columns. */
export class BalancesWithoutBound1760000000028 implements MigrationInterface {
  readonly name = "BalancesWithoutBound1760000000028";

  /** No row is read or written: the wider type holds the same values in the same form. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(BALANCES);
  }

  /** There may be balances by now that the former columns cannot hold. */
  async down(): Promise<void> {
    throw new Error("balances are not made narrower by a migration");
  }
}
