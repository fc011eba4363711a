/** How accepted requests are written: hold, event, row, history and the policy's decision at once. */
import { present } from "../../chain/errors.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { amountFields } from "../journal/amount-fields.js";
import { postJournals } from "../journal/journal.js";
import { appendEvents } from "../events.js";
import type { AcceptTerms } from "../policy/accept-judge.js";
import type { HashedPolicy } from "../policy/policy.js";
import { type DecisionOutcome, recordDecisions } from "../policy/policy-store.js";
import { storedInteger, storedTime } from "../stored-values.js";
import { holdPostings } from "../requests/holds.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";
import type { Withdrawal, WithdrawalRequest } from "./withdrawal-request.js";

/** A request that is accepted, with the terms it is accepted with. */
export interface DecidedRequest {
  readonly request: WithdrawalRequest;
  readonly id: WithdrawalId;
  /** By `hashRequest`. */
  readonly requestHash: string;
  readonly terms: AcceptTerms;
  /**
   * Why it would be refused: it is taken only because the ledger may have lost that it is paid. Where a
   * person says that it was not, the rules are still to be asked.
   */
  readonly refused: { readonly refusal: string; readonly rule?: string } | undefined;
}

/** Where an accepted request begins. */
function firstStatus({ terms }: DecidedRequest): "pending_approval" | "accepted" {
  return terms.needed > 0 ? "pending_approval" : "accepted";
}

function firstOutcome({ refused, terms }: DecidedRequest): DecisionOutcome {
  if (refused !== undefined) return "reject";
  return terms.needed > 0 ? "approve" : "pay";
}

/** Writes accepted requests, in order. @returns what was written, as it would be read back */
export async function writeAccepted(
  tx: Sql,
  accepted: readonly DecidedRequest[],
  policy: HashedPolicy,
): Promise<ReadonlyMap<WithdrawalId, Withdrawal>> {
  if (accepted.length === 0) return new Map();
  await postJournals(
    tx,
    accepted.map(({ id, request, terms }) => ({
      kind: "withdrawal.hold",
      idemKey: `withdrawal:${id}:hold`,
      effectiveHeight: null,
      postings: holdPostings({
        customerId: request.customerId,
        asset: request.asset,
        amountUnits: request.amountUnits,
        feeUnits: terms.feeUnits,
      }),
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
        feeUnits: entry.terms.feeUnits.toString(),
      },
    })),
  );
  const rows = new Map(
    (await insertRows(tx, accepted, policy)).map((row) => [row.id, row] as const),
  );
  await recordDecisions(
    tx,
    { policy, stage: "accept" },
    accepted.map((entry) => {
      const { needed, signed, feeUnits } = entry.terms;
      return {
        withdrawalId: entry.id,
        outcome: firstOutcome(entry),
        rules: {
          approvals: needed,
          signed,
          feeUnits: feeUnits.toString(),
          // Who asked never approves. Decisions are linked; the withdrawal's column for it is not.
          requestedBy: entry.request.requestedBy ?? null,
          ...entry.refused,
        },
      };
    }),
  );
  return new Map(
    accepted.map((entry) => [
      entry.id,
      asStored(entry, policy, present(rows.get(entry.id), "a row that was written")),
    ]),
  );
}

/** What the database adds to a request. */
interface WrittenRow {
  readonly id: string;
  readonly position: string;
  readonly created_at: unknown;
  readonly expires_at: unknown;
}

function asStored(
  entry: DecidedRequest,
  policy: HashedPolicy,
  { position, created_at, expires_at }: WrittenRow,
): Withdrawal {
  const { id, request, terms } = entry;
  const { customerId, asset, destination, destinationText, amountUnits } = request;
  const status = firstStatus(entry);
  return {
    id,
    position: storedInteger(position),
    customerId,
    asset,
    wallet: undefined,
    destination,
    destinationText,
    amountUnits,
    feeUnits: terms.feeUnits,
    status,
    reason: undefined,
    expiresAt: expires_at === null ? undefined : storedTime(expires_at),
    nonce: undefined,
    hashes: [],
    txHash: undefined,
    blockNumber: undefined,
    history: [{ status, at: storedTime(created_at) }],
    approval: {
      needed: terms.needed,
      signed: terms.signed,
      policyHash: terms.needed > 0 ? policy.hash : undefined,
      approvals: [],
    },
  };
}

/**
 * Behind the event counter's lock, so that positions appear in the order of commits. Nobody can make
 * this insert wait: its keys are locked.
 */
async function insertRows(
  tx: Sql,
  accepted: readonly DecidedRequest[],
  policy: HashedPolicy,
): Promise<readonly WrittenRow[]> {
  const column = <T>(read: (entry: DecidedRequest) => T) => accepted.map(read);
  return tx.query<WrittenRow>(
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
       RETURNING id, status, position, created_at, expires_at
     ), history AS (
       INSERT INTO withdrawal_history (withdrawal_id, seq, status)
       SELECT id, 1, status FROM written)
     SELECT id, position::text, created_at, expires_at FROM written`,
    [
      column(({ id }) => id),
      column(({ request }) => request.idempotencyKey),
      column(({ requestHash }) => requestHash),
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
