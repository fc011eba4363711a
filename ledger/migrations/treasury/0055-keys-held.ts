/** Whose key a worker holds stands in the wallet's row, so that the treasury sends coins to no other. */
import type { MigrationInterface, QueryRunner } from "typeorm";
import { mayNameAdded } from "../added-columns.js";

/** Nobody has said it of the wallets that there are: their workers do within seconds. */
const COLUMN = `ALTER TABLE hot_wallet ADD COLUMN key_held_until timestamptz;`;

/** The column, and the right to it. */
export class KeysHeld1760000000055 implements MigrationInterface {
  readonly name = "KeysHeld1760000000055";

  /** Writes no row. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [COLUMN, mayNameAdded("hot_wallet", ["key_held_until"])]) {
      await runner.query(part);
    }
  }

  /** Without it coins would be swept to wallets whose keys are lost. */
  async down(): Promise<void> {
    throw new Error("whose key is held is never forgotten by a migration");
  }
}
