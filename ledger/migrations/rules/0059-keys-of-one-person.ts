/**
 * A user of the console who is reset gets another key, and stays one person: approvals of both keys counted
 * as those of two. A key names the first one of its user, and persons are counted by that.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";
import { mayNameAdded } from "../added-columns.js";

/** Which keys of before had which users nobody knows: each of them is a person, as it was. */
const FIRST_KEYS = `
  -- The first key of whom this one is of, where he had others; null for every first one.
  ALTER TABLE api_key ADD COLUMN first_key text REFERENCES api_key (id);

  CREATE FUNCTION person_of_key(key text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT k.first_key FROM public.api_key k WHERE k.id = key), key)
  $$;

  CREATE OR REPLACE FUNCTION guard_api_key() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL
       OR (NEW.id, NEW.digest, NEW.name, NEW.scopes, NEW.calls_per_second, NEW.created_at,
           NEW.expires_at, NEW.first_key)
          IS DISTINCT FROM
          (OLD.id, OLD.digest, OLD.name, OLD.scopes, OLD.calls_per_second, OLD.created_at,
           OLD.expires_at, OLD.first_key) THEN
      RAISE EXCEPTION 'an API key may only be revoked, once' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

/** As before, by persons. */
const APPROVALS = `
  CREATE OR REPLACE FUNCTION has_approvals(request text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT w.approvals_needed <= (
        SELECT count(DISTINCT public.person_of_key(a.key_id)) FROM public.withdrawal_approval a
         WHERE a.withdrawal_id = w.id AND a.policy_hash = w.approval_policy
           AND a.decision = 'approve' AND (a.signature IS NOT NULL OR NOT w.approvals_signed))
      FROM public.withdrawal w WHERE w.id = request
  $$;

  CREATE OR REPLACE FUNCTION refuse_own_approval() RETURNS trigger LANGUAGE plpgsql
  SET search_path = public, pg_temp AS $$
  DECLARE
    person text := person_of_key(NEW.key_id);
  BEGIN
    IF NEW.decision <> 'approve' THEN
      RETURN NEW;
    END IF;
    IF EXISTS (SELECT 1 FROM withdrawal
                WHERE id = NEW.withdrawal_id AND person_of_key(requested_by) = person) THEN
      RAISE EXCEPTION 'withdrawal % was asked for with this key, or one of the same person',
        NEW.withdrawal_id USING ERRCODE = 'restrict_violation';
    END IF;
    -- The same key a second time is refused by its own constraint, or is no fault.
    IF EXISTS (SELECT 1 FROM withdrawal_approval
                WHERE withdrawal_id = NEW.withdrawal_id AND policy_hash = NEW.policy_hash
                  AND key_id <> NEW.key_id AND person_of_key(key_id) = person) THEN
      RAISE EXCEPTION 'withdrawal % has an approval by another key of the same person',
        NEW.withdrawal_id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;`;

/** A column, the right to it, and rules. */
export class KeysOfOnePerson1760000000059 implements MigrationInterface {
  readonly name = "KeysOfOnePerson1760000000059";

  /** Writes no row. */
  async up(runner: QueryRunner): Promise<void> {
    for (const part of [FIRST_KEYS, mayNameAdded("api_key", ["first_key"]), APPROVALS]) {
      await runner.query(part);
    }
  }

  /** The rules that refuse are never dropped. */
  async down(): Promise<void> {
    throw new Error("rules of the ledger are never dropped by a migration");
  }
}
