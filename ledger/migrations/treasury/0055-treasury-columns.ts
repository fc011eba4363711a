/**
 * Whose key a worker holds stands in the wallet's row, so that the treasury sends coins to no other. With a
 * request for coins of cold storage stands where they have to go, if one wallet alone needs them; with the
 * end of a sweep, which losses of blocks were over by then: they say nothing of its own block.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";
import { mayNameAdded } from "../added-columns.js";

/** Nobody has said it of the wallets that there are: their workers do within seconds. */
const KEYS = `ALTER TABLE hot_wallet ADD COLUMN key_held_until timestamptz;`;

/** To any, of those that are open. */
const REFILLS = `
  ALTER TABLE refill_request ADD COLUMN wallet text CHECK (wallet ~ '^0x[0-9a-f]{40}$');`;

/** Of those that have ended any loss may be one behind that: nobody wrote down which were before. */
const SWEEPS = `ALTER TABLE sweep ADD COLUMN rewinds integer CHECK (rewinds >= 0);`;

const RIGHTS = [
  mayNameAdded("hot_wallet", ["key_held_until"]),
  mayNameAdded("refill_request", ["wallet"]),
  mayNameAdded("sweep", ["rewinds"]),
];

/** Columns, and the rights to them. */
export class TreasuryColumns1760000000055 implements MigrationInterface {
  readonly name = "TreasuryColumns1760000000055";

  /** Writes no row. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [KEYS, REFILLS, SWEEPS, ...RIGHTS]) await runner.query(part);
  }

  /** Without it coins would be swept to wallets whose keys are lost. */
  async down(): Promise<void> {
    throw new Error("which wallets may be given coins is never forgotten by a migration");
  }
}
