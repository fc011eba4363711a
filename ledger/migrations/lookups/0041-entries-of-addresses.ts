/**
 * What moved a deposit address beside its deposits is found by the address. Where books and chain differ,
 * each of twenty addresses was asked about in some twenty steps, and each step read the whole journal: on a
 * large ledger a break was told long after it had been found.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** The memo of such an entry is a transaction and the address; that of others is one word, or none. */
const ADDRESSES = `
  CREATE INDEX journal_entry_of_address ON journal_entry ((split_part(memo, ' ', 2)))
    WHERE split_part(memo, ' ', 2) <> ''`;

/** One index. */
export class EntriesOfAddresses1760000000041 implements MigrationInterface {
  readonly name = "EntriesOfAddresses1760000000041";

  /** Entries are read once, and none is written. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(ADDRESSES);
  }

  /** Nothing is kept by it. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX journal_entry_of_address`);
  }
}
