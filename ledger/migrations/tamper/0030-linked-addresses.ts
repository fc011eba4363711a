/**
 * The chain of hashes over whose a deposit address is, too: who owns the database could have given an
 * address to another customer, and what came to it from then on was booked, and told, as that one's.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** As in `link-rules.ts` when this was written. */
const KINDS = [
  "event",
  "entry",
  "deposit",
  "withdrawal",
  "asset",
  "token_state",
  "sighting",
  "activation",
  "listing",
  "decision",
  "approval",
  "verdict",
  "kill_switch",
  "address",
  "assignment",
]
  .map((kind) => `'${kind}'`)
  .join(", ");

const CHAIN = `
  ALTER TABLE chain_link DROP CONSTRAINT chain_link_kind_check,
    ADD CONSTRAINT chain_link_kind_check CHECK (kind IN (${KINDS}));
  ALTER TABLE chain_cursor DROP CONSTRAINT chain_cursor_kind_check,
    ADD CONSTRAINT chain_cursor_kind_check CHECK (kind IN (${KINDS}));
  INSERT INTO chain_cursor SELECT kind, 0 FROM unnest(ARRAY[${KINDS}]) AS kind
    ON CONFLICT (kind) DO NOTHING;
  -- Keys of links begin at 1: asked for every two seconds, whatever the number of addresses.
  CREATE INDEX deposit_address_link_key ON deposit_address ((index + 1));`;

/** Two more kinds of links, and the key of one. */
export class LinkedAddresses1760000000030 implements MigrationInterface {
  readonly name = "LinkedAddresses1760000000030";

  /** What is there already is linked by the chainer. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(CHAIN);
  }

  /** What is linked stays linked. */
  async down(): Promise<void> {
    throw new Error("the chain of hashes is never cut by a migration");
  }
}
