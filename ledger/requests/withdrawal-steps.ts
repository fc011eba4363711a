/** Steps of withdrawals as compare-and-set on the former state, with history and event. */
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { amountFields } from "../journal/amount-fields.js";
import { appendEvents, type NewEvent } from "../events.js";
import { type CancelCause, statusesBefore, type WithdrawalStatus } from "./withdrawal-status.js";
import { toWithdrawalId, type WithdrawalId } from "./withdrawal-id.js";

/** One withdrawal that is to go on. */
export interface Step {
  readonly id: WithdrawalId;
  /** Why it ends without payment, freezes or waits; none on the usual way. */
  readonly reason?: string;
  /** On the way to `cancelling`, with `reason`: what makes it so. The first one stays. */
  readonly cancelCause?: CancelCause;
  /** Further fields of the event. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** What a set of steps did: which withdrawals moved, and the events to append last. */
export interface StepResult {
  readonly moved: ReadonlyMap<WithdrawalId, MovedWithdrawal>;
  readonly events: readonly NewEvent[];
}

/** Terms of a withdrawal that moved, for its postings. */
export interface MovedWithdrawal {
  readonly customerId: string;
  readonly asset: string;
  readonly amountUnits: bigint;
  readonly feeUnits: bigint;
}

/**
 * Moves withdrawals to a state; those that are not in a state from which it may be reached stay
 * where they are and are missing in the result. `from` narrows the former states further. The
 * caller appends the events as the last thing of its transaction.
 */
export async function stepWithdrawals(
  tx: Sql,
  to: WithdrawalStatus,
  steps: readonly Step[],
  from: readonly WithdrawalStatus[] = statusesBefore(to),
): Promise<StepResult> {
  if (steps.length === 0) return { moved: new Map(), events: [] };
  const allowed = statusesBefore(to).filter((status) => from.includes(status));
  const rows = await tx.query<MovedRow>(
    `WITH moved AS (
       UPDATE withdrawal w
          SET status = $1, steps = w.steps + 1, reason = input.reason,
              -- Indexed: it changes only where it is asked for.
              next_try_at = CASE WHEN $1 = 'accepted' THEN now() ELSE w.next_try_at END,
              cancel_cause = coalesce(w.cancel_cause, input.cancel_cause),
              cancel_reason = coalesce(w.cancel_reason,
                CASE WHEN input.cancel_cause IS NOT NULL THEN input.reason END)
         FROM unnest($2::text[], $3::text[], $5::text[]) AS input (id, reason, cancel_cause)
        WHERE w.id = input.id AND w.status = ANY ($4::text[])
       RETURNING w.id, w.steps, w.customer_id, w.asset, w.destination_text, w.amount_units,
                 w.fee_units, w.position
     ), history AS (
       INSERT INTO withdrawal_history (withdrawal_id, seq, status) SELECT id, steps, $1 FROM moved
     )
     SELECT id, customer_id, asset, destination_text, amount_units::text, fee_units::text
       FROM moved
      ORDER BY position`,
    [
      to,
      steps.map((step) => step.id),
      steps.map((step) => step.reason ?? null),
      allowed,
      steps.map((step) => step.cancelCause ?? null),
    ],
  );
  const stepById = new Map(steps.map((step) => [step.id, step]));
  const moved = new Map<WithdrawalId, MovedWithdrawal>();
  const events = rows.map((row): NewEvent => {
    const id = toWithdrawalId(row.id);
    const step = stepById.get(id);
    const { asset } = row;
    const amountUnits = BigInt(row.amount_units);
    const feeUnits = BigInt(row.fee_units);
    moved.set(id, { customerId: row.customer_id, asset, amountUnits, feeUnits });
    const amounts = amountFields(asset, amountUnits);
    // Member by member: copies of objects are made slowly, and this is done at each step of each payment.
    const data: Record<string, unknown> = {
      withdrawalId: id,
      customerId: row.customer_id,
      asset,
      to: row.destination_text,
      amountUnits: amounts.amountUnits,
      amountAtoken: amounts.amountAtoken,
      feeUnits: feeUnits.toString(),
    };
    Object.assign(data, step?.data);
    if (step?.reason !== undefined) data["reason"] = step.reason;
    return { type: `withdrawal.${to}`, data };
  });
  return { moved, events };
}

/**
 * Whether a withdrawal is frozen for the cause that was looked at, held until the commit: let go on and
 * frozen again meanwhile, it waits for somebody who looks at the new one.
 */
export async function isFrozenFor(
  tx: Sql,
  { id, reason }: { readonly id: WithdrawalId; readonly reason: string },
): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM withdrawal
      WHERE id = $1 AND status = 'frozen' AND coalesce(reason, '') = $2 FOR UPDATE`,
    [id, reason],
  );
  return rows.length > 0;
}

/** Steps that need nothing but themselves, in one transaction. @returns the ids that moved */
export function moveWithdrawals(
  database: SqlDatabase,
  to: WithdrawalStatus,
  steps: readonly Step[],
  from?: readonly WithdrawalStatus[],
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    const { moved, events } = await stepWithdrawals(tx, to, steps, from);
    await appendEvents(tx, events);
    return new Set(moved.keys());
  });
}

/** Puts requests off without a step: shows why, and when they are looked at again. */
export async function postponeWithdrawals(
  sql: Sql,
  options: {
    readonly ids: readonly WithdrawalId[];
    readonly reason: string;
    readonly delayMs: number;
  },
): Promise<void> {
  if (options.ids.length === 0) return;
  await sql.query(
    `UPDATE withdrawal
        SET reason = $2, next_try_at = now() + $3::integer * interval '1 millisecond'
      WHERE id = ANY ($1::text[]) AND status = 'accepted'`,
    [options.ids, options.reason, options.delayMs],
  );
}

/**
 * Whether requests have waited for all their time: they were accepted so long ago, and put off since.
 * @returns those that have
 */
export async function readWaitedOut(
  sql: Sql,
  { ids, forMs }: { readonly ids: readonly WithdrawalId[]; readonly forMs: number },
): Promise<ReadonlySet<WithdrawalId>> {
  const rows = await sql.query<{ id: string }>(
    `SELECT id FROM withdrawal w
      WHERE id = ANY ($1::text[]) AND status = 'accepted' AND reason IS NOT NULL
        AND (SELECT max(h.at) FROM withdrawal_history h
              WHERE h.withdrawal_id = w.id AND h.status = 'accepted')
            <= now() - $2::bigint * interval '1 millisecond'`,
    [ids, forMs],
  );
  return new Set(rows.map(({ id }) => toWithdrawalId(id)));
}

/**
 * Makes requests due that wait until a time so far ahead that it is of a clock that has gone back since. What
 * somebody is at work on is left to the next time.
 * @returns how many
 */
export async function drawBack(
  sql: Sql,
  { beyondMs, limit }: { readonly beyondMs: number; readonly limit: number },
): Promise<number> {
  const rows = await sql.query(
    `WITH drawn AS (
       UPDATE withdrawal w SET next_try_at = now()
         FROM (SELECT id FROM withdrawal
                WHERE phase = 'waiting' AND status = 'accepted'
                  AND next_try_at > now() + $1::bigint * interval '1 millisecond'
                ORDER BY next_try_at, position LIMIT $2 FOR UPDATE SKIP LOCKED) AS late
        WHERE w.id = late.id RETURNING 1)
     SELECT 1 FROM drawn`,
    [beyondMs, limit],
  );
  return rows.length;
}

interface MovedRow {
  readonly id: string;
  readonly customer_id: string;
  readonly asset: string;
  readonly destination_text: string;
  readonly amount_units: string;
  readonly fee_units: string;
}
