/**
 * Rows of tokens are found by the token. A reconciliation asks for the books of each token by itself, and
 * read what all assets had ever moved, several times for each of them.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** Of the chain's own coin, which is most of what there is, an index would only cost. */
const TOKENS = `
  CREATE INDEX posting_of_token ON posting (asset) WHERE asset <> 'TOKEN';
  CREATE INDEX deposit_of_token ON deposit (asset) WHERE asset <> 'TOKEN';
  CREATE INDEX customer_balance_of_token ON customer_balance (asset) WHERE asset <> 'TOKEN'`;

/** Three indexes. */
export class BooksOfTokens1760000000042 implements MigrationInterface {
  readonly name = "BooksOfTokens1760000000042";

  /** Rows are read once, and none is written. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TOKENS);
  }

  /** Nothing is kept by them. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX posting_of_token, deposit_of_token, customer_balance_of_token`);
  }
}
