/**
 * An entry is of the moment in which it is written, not of the one in which its transaction began: a
 * statement of a time that is over must not gain entries afterwards.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** One default. */
export class PostingTime1760000000016 implements MigrationInterface {
  readonly name = "PostingTime1760000000016";

  /** No row is touched. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE journal_entry ALTER COLUMN posted_at SET DEFAULT clock_timestamp()`,
    );
  }

  /** Statements that were handed out rely on it. */
  async down(): Promise<void> {
    throw new Error("the time of entries is never changed back by a migration");
  }
}
