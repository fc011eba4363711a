/** How accepted requests are written: hold, event, row, history and the policy's decision at once. */
import type { Sql } from "../../runtime/sql/sql.js";
import { amountFields } from "../books/amount-fields.js";
import { postJournals } from "../books/journal.js";
import { appendEvents } from "../events.js";
import type { AcceptTerms } from "../policy/accept-judge.js";
import type { HashedPolicy } from "../policy/policy.js";
import { recordDecisions } from "../policy/policy-store.js";
import { holdPostings } from "./holds.js";
import type { WithdrawalId } from "./withdrawal-id.js";
import type { WithdrawalStatus } from "./withdrawal-status.js";
import { hashRequest, type WithdrawalRequest } from "./withdrawal-request.js";

/** A request that is accepted, with the terms it is accepted with. */
export interface DecidedRequest {
  readonly request: WithdrawalRequest;
  readonly id: WithdrawalId;
  readonly terms: AcceptTerms;
}

/** Where an accepted request begins. */
function firstStatus({ terms }: DecidedRequest): WithdrawalStatus {
  return terms.needed > 0 ? "pending_approval" : "accepted";
}

/** Writes accepted requests, in order. */
export async function writeAccepted(
  tx: Sql,
  accepted: readonly DecidedRequest[],
  policy: HashedPolicy,
): Promise<void> {
  if (accepted.length === 0) return;
  await postJournals(
    tx,
    accepted.map(({ id, request, terms }) => ({
      kind: "withdrawal.hold",
      idemKey: `withdrawal:${id}:hold`,
      effectiveHeight: null,
      postings: holdPostings({ ...request, feeUnits: terms.feeUnits }),
    })),
  );
  await appendEvents(
    tx,
    accepted.map((entry) => ({
      type: `withdrawal.${firstStatus(entry)}`,
      data: {
        withdrawalId: entry.id,
        customerId: entry.request.customerId,
        asset: entry.request.asset,
        to: entry.request.destinationText,
        ...amountFields(entry.request.asset, entry.request.amountUnits),
      },
    })),
  );
  await insertRows(tx, accepted, policy);
  await recordDecisions(
    tx,
    { policy, stage: "accept" },
    accepted.map(({ id, terms: { needed, signed, feeUnits } }) => ({
      withdrawalId: id,
      outcome: needed > 0 ? "approve" : "pay",
      rules: { approvals: needed, signed, feeUnits: feeUnits.toString() },
    })),
  );
}

/**
 * Behind the event counter's lock, so that positions appear in the order of commits. Nobody can make
 * this insert wait: its keys are locked.
 */
async function insertRows(
  tx: Sql,
  accepted: readonly DecidedRequest[],
  policy: HashedPolicy,
): Promise<void> {
  const column = <T>(read: (entry: DecidedRequest) => T) => accepted.map(read);
  await tx.query(
    `WITH version AS (
       INSERT INTO policy_version (hash, body) VALUES ($14, $15) ON CONFLICT (hash) DO NOTHING
     ), written AS (
       INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset,
         destination, destination_text, amount_units, expires_at, status, fee_units,
         requested_by, approvals_needed, approvals_signed, approval_policy)
       SELECT id, key, request_hash, customer_id, asset, destination, destination_text,
              amount, expires_at, status, fee, requested_by, needed, signed,
              CASE WHEN needed > 0 THEN $14 END
         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[],
                     $6::text[], $7::text[], $8::numeric[], $9::timestamptz[], $10::text[],
                     $11::numeric[], $12::text[], $13::integer[], $16::boolean[])
              WITH ORDINALITY AS input (id, key, request_hash, customer_id, asset,
                destination, destination_text, amount, expires_at, status, fee, requested_by,
                needed, signed, place)
        ORDER BY place
       RETURNING id, status)
     INSERT INTO withdrawal_history (withdrawal_id, seq, status)
     SELECT id, 1, status FROM written`,
    [
      column(({ id }) => id),
      column(({ request }) => request.idempotencyKey),
      column(({ request }) => hashRequest(request)),
      column(({ request }) => request.customerId),
      column(({ request }) => request.asset),
      column(({ request }) => request.destination),
      column(({ request }) => request.destinationText),
      column(({ request }) => request.amountUnits.toString()),
      column(({ request: { expiresAtMs } }) =>
        expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
      ),
      column(firstStatus),
      column(({ terms }) => terms.feeUnits.toString()),
      column(({ request }) => request.requestedBy ?? null),
      column(({ terms }) => terms.needed),
      policy.hash,
      policy.text,
      column(({ terms }) => terms.signed),
    ],
  );
}
