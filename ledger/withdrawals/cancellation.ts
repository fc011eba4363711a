/**
 * Withdrawals that are not to be paid any more: at once while they have no nonce; afterwards by a
 * transfer of nothing on the same nonce, and whichever of the two is mined decides.
 */
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { appendEvents } from "../events.js";
import { refuseInRecovery } from "../guard/recovery-incident.js";
import {
  type CancelCause,
  WAITING_STATUSES,
  type WithdrawalStatus,
} from "../requests/withdrawal-status.js";
import { endBeforeSlotInside, keepWish, type KnownLedger } from "../requests/endings.js";
import { type Step, stepWithdrawals } from "../requests/withdrawal-steps.js";
import { type KnownNonces, readBehind } from "../requests/signing-freeze.js";
import { lockWallet, type WalletLease } from "../wallets/wallet-lease.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";
import { storedStatus } from "./withdrawals.js";

/**
 * What became of a wish to cancel: `done`, now or before, or written down for whoever lets it go on;
 * `mined` too late; `ended` in another way; `unknown` id.
 */
export type CancelOutcome = "done" | "mined" | "ended" | "unknown";

/** States in which the nonce is taken and nothing is known to be mined. */
const OPEN_WITH_SLOT: readonly WithdrawalStatus[] = ["slotted", "signed", "broadcast"];

/**
 * Cancels a withdrawal, or starts to; may be repeated. A frozen one stays frozen, because it may be
 * paid; the wish is kept, so that it is not paid when a person finds that it was not.
 * @param known what its process knows of the ledger
 * @throws RECOVERY
 */
export function cancelWithdrawal(
  database: SqlDatabase,
  id: WithdrawalId,
  reason: string,
  { shown, assertStands }: KnownLedger = {},
): Promise<CancelOutcome> {
  return database.transaction(async (tx) => {
    // Held: a slot that is being taken at this moment is seen, or sees the cancellation.
    const rows = await tx.query<{ status: string; cancel_cause: string | null }>(
      `SELECT status, cancel_cause FROM withdrawal WHERE id = $1 FOR UPDATE`,
      [id],
    );
    // What an older ledger says of a request may be otherwise: it may be paid, or be in what was lost.
    await refuseInRecovery(tx);
    await assertStands?.(tx);
    const [row] = rows;
    if (row === undefined) return "unknown";
    switch (storedStatus(row.status)) {
      case "pending_approval":
      case "accepted":
        // A payment that this ledger does not know may be its own: then it freezes instead.
        if (!(await endUnpaid(tx, { id, reason }, shown))) {
          await keepWish(tx, { id, cause: "request", reason });
        }
        return "done";
      case "slotted":
      case "signed":
      case "broadcast":
        await markCancelling(tx, [{ id, reason, cancelCause: "request" }]);
        return "done";
      case "cancelling":
      case "cancelled":
        return "done";
      case "included":
        return (await isCancelMined(tx, id)) ? "done" : "mined";
      case "settled":
        return "mined";
      case "frozen":
        await keepWish(tx, { id, cause: "request", reason });
        return "done";
      default:
        return "ended";
    }
  });
}

/** A withdrawal whose nonce is to be used up, and why. */
export interface CancelIntent {
  readonly id: WithdrawalId;
  readonly cause: CancelCause;
  readonly reason: string;
}

/**
 * Moves withdrawals with an open slot to `cancelling`, as the worker that holds their wallet: another one
 * has signed or seen since what it did not. @returns those that moved @throws LEASE_LOST
 */
export function beginCancelling(
  database: SqlDatabase,
  lease: WalletLease,
  intents: readonly CancelIntent[],
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    await lockWallet(tx, lease);
    return markCancelling(
      tx,
      intents.map(({ id, cause, reason }) => ({ id, reason, cancelCause: cause })),
    );
  });
}

/** Whether anything was not paid by its deadline. */
export async function hasExpired(sql: Sql): Promise<boolean> {
  return (await sql.query(`SELECT 1 FROM withdrawal WHERE ${EXPIRED} LIMIT 1`)).length > 0;
}

/** Pure: the step to `cancelling`, or to its end, of what was not paid by its deadline. */
export function deadlineStep(id: WithdrawalId): Step {
  return { id, reason: "its deadline passed before it was paid", cancelCause: "deadline" };
}

/** SQL: of a withdrawal, whether it was not paid by its deadline, and may end for that. */
const EXPIRED = `expires_at <= now() AND expires_at IS NOT NULL AND phase IN ('waiting', 'open')
          AND status IN ('pending_approval', 'accepted', 'slotted', 'signed', 'broadcast')`;

/**
 * Cancels what was not paid by its deadline, whichever wallet pays it: at once, or from now on by its
 * nonce. What has none waits while the ledger lacks payments that the chain may have (`readBehind`): a
 * person's word about these ends it, or freezes it.
 * @returns how many withdrawals moved; `limit` means that more may be waiting
 * @throws RECOVERY
 */
export function cancelExpired(
  database: SqlDatabase,
  options: { readonly limit: number; readonly shown?: KnownNonces },
): Promise<number> {
  return database.transaction(async (tx) => {
    const isBehind = (await readBehind(tx, options.shown)) !== undefined;
    const rows = await tx.query<{ id: string; status: string }>(
      `SELECT id, status FROM withdrawal
        WHERE ${EXPIRED} AND (NOT $2 OR status <> ALL ($3::text[]))
        ORDER BY expires_at, position LIMIT $1 FOR UPDATE SKIP LOCKED`,
      [options.limit, isBehind, WAITING_STATUSES],
    );
    const stepsOf = (isChosen: (status: string) => boolean) =>
      rows
        .filter(({ status }) => isChosen(status))
        .map(({ id }) => deadlineStep(toWithdrawalId(id)));
    const isWaiting = (status: string) => WAITING_STATUSES.some((waiting) => waiting === status);
    const waiting = stepsOf(isWaiting);
    const ended = await endBeforeSlotInside(tx, "cancelled", waiting);
    const open = stepsOf((status) => !isWaiting(status));
    const marked = await stepWithdrawals(tx, "cancelling", open, OPEN_WITH_SLOT);
    await appendEvents(tx, [...ended.events, ...marked.events]);
    return ended.moved.size + marked.moved.size;
  });
}

/** Of an included withdrawal, whether it is the transfer of nothing that was mined. */
async function isCancelMined(tx: Sql, id: WithdrawalId): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM nonce_slot s
       JOIN withdrawal_attempt a ON a.slot_id = s.id AND a.hash = s.mined_hash
      WHERE s.withdrawal_id = $1 AND s.outcome IS NULL AND a.kind = 'cancel'`,
    [id],
  );
  return rows.length > 0;
}

/** @returns false when it froze: a payment that this ledger does not know may be its own */
async function endUnpaid(tx: Sql, step: Step, shown: KnownNonces | undefined): Promise<boolean> {
  const { moved, events } = await endBeforeSlotInside(tx, "cancelled", [step], shown);
  await appendEvents(tx, events);
  return moved.has(step.id);
}

async function markCancelling(tx: Sql, steps: readonly Step[]): Promise<ReadonlySet<WithdrawalId>> {
  const { moved, events } = await stepWithdrawals(tx, "cancelling", steps, OPEN_WITH_SLOT);
  await appendEvents(tx, events);
  return new Set(moved.keys());
}
