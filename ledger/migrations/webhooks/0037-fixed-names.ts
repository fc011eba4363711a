/**
 * The function that forgets ended deliveries works in the owner's name, whoever calls it, and looked
 * for its tables by the path that its owner had when it was made: first in a schema that is called as
 * the owner, which a role that may make schemas can make. It looks in the ledger's own alone.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const PATH = `
  ALTER FUNCTION prune_webhook_deliveries(integer, integer) SET search_path = public, pg_temp`;

/** Where one function looks. */
export class FixedNames1760000000037 implements MigrationInterface {
  readonly name = "FixedNames1760000000037";

  /** No row is read or written. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(PATH);
  }

  /** Rights of the owner are not given away again. */
  async down(): Promise<void> {
    throw new Error("what keeps the owner's rights is never taken away by a migration");
  }
}
