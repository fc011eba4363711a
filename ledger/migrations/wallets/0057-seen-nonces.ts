/**
 * Beside the balance that a wallet's worker last saw stands the wallet's nonce of the same block: payments
 * below it are taken of that balance already, and count against it no more while they wait to be booked.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";
import { mayNameAdded } from "../added-columns.js";

/** Unknown of the wallets that there are: all that is open counts until their workers look again. */
const NONCES = `
  ALTER TABLE hot_wallet ADD COLUMN seen_nonce numeric(20,0) CHECK (seen_nonce >= 0);`;

/** A column, and the right to it. */
export class SeenNonces1760000000057 implements MigrationInterface {
  readonly name = "SeenNonces1760000000057";

  /** Writes no row. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [NONCES, mayNameAdded("hot_wallet", ["seen_nonce"])]) {
      await runner.query(part);
    }
  }

  /** What it holds is seen again in the next round. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE hot_wallet DROP COLUMN seen_nonce`);
  }
}
