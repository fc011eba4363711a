/**
 * Transactions that take as long as they take: over all rows of large tables that is hours, and what is cut
 * off begins anew. Bounds on time that are set for a role or a database (30 to 120 s are common on servers
 * that others keep) are meant for what is done every day, which keeps them.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** A migration class; its name must end in a 13-digit timestamp (TypeORM orders by it). */
export type MigrationClass = new () => MigrationInterface;

/**
 * The first text of such a transaction: until its end the server gives up neither its statements nor their
 * waits for locks, nor, from PostgreSQL 17 on, the transaction.
 */
export const WITHOUT_BOUNDS = [
  "SET LOCAL statement_timeout = 0",
  "SET LOCAL lock_timeout = 0",
  "SELECT set_config('transaction_timeout', '0', true) " +
    "WHERE current_setting('transaction_timeout', true) IS NOT NULL",
].join("; ");

/** The same migration, of the same name, in such a transaction. */
export function withoutBounds(migration: MigrationClass): MigrationClass {
  const bounded = new migration();
  return class implements MigrationInterface {
    readonly name = bounded.name ?? migration.name;

    async up(runner: QueryRunner): Promise<void> {
      await runner.query(WITHOUT_BOUNDS);
      await bounded.up(runner);
    }

    async down(runner: QueryRunner): Promise<void> {
      await runner.query(WITHOUT_BOUNDS);
      await bounded.down(runner);
    }
  };
}
