/** Deposits by transaction hash: support asks "why not credited?" with nothing else in hand. */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** One index. */
export class DepositEvidence1760000000006 implements MigrationInterface {
  readonly name = "DepositEvidence1760000000006";

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE INDEX deposit_by_transaction ON deposit (tx_hash)`);
  }

  /** A ledger is never taken down by software. */
  async down(): Promise<void> {
    throw new Error("the ledger's tables are never changed back by a migration");
  }
}
