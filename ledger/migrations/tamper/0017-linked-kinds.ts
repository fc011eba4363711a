/**
 * The chain of hashes over what allowed coins to move, too: assets and the state of their code, what
 * arrived and was not credited, policies, lists, decisions, approvals, screening, the kill switch.
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
]
  .map((kind) => `'${kind}'`)
  .join(", ");

/** Rows are linked by rising numbers; these two had only names. */
const NUMBERS = `
  ALTER TABLE asset ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY UNIQUE;
  ALTER TABLE screening_verdict ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY UNIQUE;`;

const CHAIN = `
  ALTER TABLE chain_link DROP CONSTRAINT chain_link_kind_check,
    ADD CONSTRAINT chain_link_kind_check CHECK (kind IN (${KINDS}));
  ALTER TABLE chain_cursor DROP CONSTRAINT chain_cursor_kind_check,
    ADD CONSTRAINT chain_cursor_kind_check CHECK (kind IN (${KINDS}));
  INSERT INTO chain_cursor SELECT kind, 0 FROM unnest(ARRAY[${KINDS}]) AS kind
    ON CONFLICT (kind) DO NOTHING;`;

/** More kinds of links. */
export class LinkedKinds1760000000017 implements MigrationInterface {
  readonly name = "LinkedKinds1760000000017";

  /** What is there already is linked by the chainer. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [NUMBERS, CHAIN]) await runner.query(part);
  }

  /** What is linked stays linked. */
  async down(): Promise<void> {
    throw new Error("the chain of hashes is never cut by a migration");
  }
}
