/**
 * With a deposit that waits because its token runs other code stands which code told of it: who accepts code
 * says nothing of what yet another one told. With a token's code stands in how many slots an implementation
 * was looked for: what was seen in fewer than now says nothing of the others.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";
import { mayNameAdded } from "../added-columns.js";

/** Rows of before have none, and are not looked at: a table of deposits is long. */
const COLUMNS = `
  -- What the token ran after the deposit's block, where it was not the accepted code; zeros where nobody
  -- knows.
  ALTER TABLE deposit ADD COLUMN other_code_hash text, ADD COLUMN other_implementation text,
    ADD CONSTRAINT deposit_of_other_code CHECK (
      (other_code_hash IS NULL) = (other_implementation IS NULL)
      AND concat(other_code_hash, other_implementation) ~ '^(0x[0-9a-f]{64}){0,2}$') NOT VALID;`;

/**
 * Former releases did not write down which code it was of deposits that wait by now. Those of blocks before
 * the token was paused are of the accepted one (see `pausedAfterSql`).
 */
const WAITING = `
  ALTER TABLE deposit DISABLE TRIGGER deposit_guard;
  UPDATE deposit d
     SET other_code_hash = '0x' || repeat('0', 64), other_implementation = '0x' || repeat('0', 64)
    FROM token_state t
   WHERE t.asset = d.asset AND t.paused AND d.status = 'held' AND d.held_for = 'token-paused'
     AND d.height >= coalesce((
       SELECT least(
                coalesce(substring(c.reason
                           FROM '^its contract runs other code after block ([0-9]+) ')::bigint, 0),
                (SELECT min(r.to_height) + 1 FROM chain_rewind r WHERE r.at >= c.at))
         FROM token_state_change c
        WHERE c.asset = t.asset AND c.paused AND NOT EXISTS (
          SELECT 1 FROM token_state_change later
           WHERE later.asset = t.asset AND NOT later.paused AND later.id > c.id)
        ORDER BY c.id LIMIT 1), 0);
  ALTER TABLE deposit ENABLE TRIGGER deposit_guard;`;

const GUARD = `
  CREATE OR REPLACE FUNCTION guard_deposit() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT (OLD.status = 'detected' AND NEW.status IN ('credited', 'held', 'suspense')
         OR OLD.status = 'held' AND NEW.status IN ('credited', 'suspense')
         OR OLD.status = 'suspense' AND NEW.status = 'credited'
         OR OLD.status <> 'reversed' AND NEW.status = 'reversed')
       OR (NEW.seq, NEW.id, NEW.address, NEW.asset, NEW.amount_units, NEW.height,
           NEW.block_hash, NEW.tx_hash, NEW.tx_index, NEW.op_index, NEW.seen_at, NEW.rewind,
           NEW.other_code_hash, NEW.other_implementation)
          IS DISTINCT FROM
          (OLD.seq, OLD.id, OLD.address, OLD.asset, OLD.amount_units, OLD.height,
           OLD.block_hash, OLD.tx_hash, OLD.tx_index, OLD.op_index, OLD.seen_at, OLD.rewind,
           OLD.other_code_hash, OLD.other_implementation)
       OR NEW.customer_id <> OLD.customer_id
          AND NOT (OLD.status = 'suspense' AND NEW.status = 'credited') THEN
      RAISE EXCEPTION 'deposit % may only move on from %', OLD.id, OLD.status
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

const SLOTS = `
  -- Former releases knew the one of EIP-1967.
  ALTER TABLE token_state ADD COLUMN read_slots integer NOT NULL DEFAULT 1 CHECK (read_slots > 0);

  CREATE OR REPLACE FUNCTION guard_token_state() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    -- Other code is accepted only where the token stood still because of it; a list may name the
    -- code alone, and the implementation is then what is seen first. So it is where none was found in
    -- fewer slots.
    IF NEW.asset <> OLD.asset OR OLD.opened AND NOT NEW.opened OR NEW.read_slots < OLD.read_slots
       OR NOT OLD.paused
          AND (OLD.code_hash IS DISTINCT FROM NEW.code_hash AND OLD.code_hash IS NOT NULL
            OR OLD.implementation IS DISTINCT FROM NEW.implementation
               AND OLD.implementation IS NOT NULL
               AND NOT (NEW.read_slots > OLD.read_slots AND OLD.implementation ~ '^0x0+$')) THEN
      RAISE EXCEPTION 'the accepted code of % stands', OLD.asset
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

const RIGHTS = [
  mayNameAdded("deposit", ["other_code_hash", "other_implementation"]),
  mayNameAdded("token_state", ["read_slots"]),
];

/** Columns, the rules that keep them, and the rights to them. */
export class CodesOfTokens1760000000054 implements MigrationInterface {
  readonly name = "CodesOfTokens1760000000054";

  /** Writes rows of deposits that wait for a token, no others. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [COLUMNS, WAITING, GUARD, SLOTS, ...RIGHTS]) await runner.query(part);
  }

  /** What is known of a deposit is never forgotten by a migration. */
  async down(): Promise<void> {
    throw new Error("whose code told of a deposit is never forgotten by a migration");
  }
}
