/**
 * A database of encoding SQL_ASCII counts the bytes of a text where others count characters, as the program
 * does: what a person wrote in Chinese, or a service answered, was too long for its column. A verdict of the
 * screening service ended the worker with it, a reason every call that was recorded at once.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const ANY = "BETWEEN 1 AND";

/** Texts of people and of strangers. Names, keys and addresses are ASCII by rules of their own. */
const TEXTS = [
  ["api_call", "actor", `${ANY} 100`],
  ["api_call", "reason", `${ANY} 500`],
  ["api_key", "name", `${ANY} 64`],
  ["foreign_transaction_acknowledged", "acknowledged_by", `${ANY} 200`],
  ["foreign_transaction_acknowledged", "reason", `${ANY} 1000`],
  ["kill_switch", "reason", `${ANY} 1000`],
  ["kill_switch", "set_by", `${ANY} 100`],
  ["operator_decision", "reason", `${ANY} 1000`],
  ["operator_decision", "proposed_by", `${ANY} 100`],
  ["operator_decision", "decided_by", `${ANY} 100`],
  ["operator_decision_outcome", "decided_by", `${ANY} 100`],
  ["screening_verdict", "reference", "<= 200"],
  ["token_state", "reason", "<= 1000"],
  ["token_state", "changed_by", `${ANY} 200`],
  ["wallet", "reason", `${ANY} 1000`],
  ["wallet", "operator", `${ANY} 100`],
  ["wallet", "label", "<= 64"],
  ["webhook", "description", `${ANY} 200`],
  ["webhook", "reason", `${ANY} 1000`],
  ["webhook_delivery", "last_error", "<= 500"],
  ["withdrawal_approval", "reason", `${ANY} 500`],
] as const;

/** Rules about texts, in characters wherever they lie. */
export class CharactersOfTexts1760000000051 implements MigrationInterface {
  readonly name = "CharactersOfTexts1760000000051";

  /** No row is read or written: what was short enough in bytes is so in characters. */
  async up(runner: QueryRunner): Promise<void> {
    for (const [table, column, bounds] of TEXTS) {
      const rule = `${table}_${column}_check`;
      await runner.query(
        `ALTER TABLE ${table} DROP CONSTRAINT ${rule}, ADD CONSTRAINT ${rule}
           CHECK (length(convert_to(${column}, 'UTF8'), 'UTF8') ${bounds}) NOT VALID`,
      );
    }
  }

  /** There may be texts by now that the former rules refuse. */
  async down(): Promise<void> {
    throw new Error("the ledger's records are never cut by a migration");
  }
}
