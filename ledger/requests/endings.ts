/** Ends of withdrawals that have no nonce: the hold goes back, unless the chain may show the payment. */
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { postJournals } from "../journal/journal.js";
import { fillShort } from "../deposits/deposit-credit.js";
import { appendEvents, type NewEvent } from "../events.js";
import { freezeRecovered } from "./recovered-payments.js";
import { freezeUnexplained } from "./unexplained-outflows.js";
import { voidLostGas } from "./lost-gas.js";
import { releasePostings, returnedHold } from "./holds.js";
import { lockWallet, type WalletLease } from "../wallets/wallet-lease.js";
import { type KnownNonces, readBehind } from "./signing-freeze.js";
import { type CancelCause, endOfCancel, WAITING_STATUSES } from "./withdrawal-status.js";
import { type Step, type StepResult, stepWithdrawals } from "./withdrawal-steps.js";
import { endingKey, type WithdrawalId } from "./withdrawal-id.js";

/**
 * Ends withdrawals that never got a nonce: paying them cannot work, a rule forbids it, or nobody
 * wants it any more. The hold goes back to the customer in the same commit. One that a recovered
 * payment may have paid freezes instead, or somebody by hand, or this ledger itself before it lost that:
 * only a person can tell.
 * @param shown see `readBehind`
 * @param lease of the worker that says so: what it saw before another took over may be otherwise by now
 * @returns the ids that ended
 * @throws LEASE_LOST
 */
export function endBeforeSlot(
  database: SqlDatabase,
  lease: WalletLease,
  to: "failed" | "rejected" | "cancelled",
  steps: readonly Step[],
  shown?: KnownNonces,
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    await lockWallet(tx, lease);
    const { moved, events } = await endBeforeSlotInside(tx, to, steps, shown);
    await appendEvents(tx, events);
    return new Set(moved.keys());
  });
}

/** What a process knows of a ledger that its database may have lost since. */
export interface KnownLedger {
  /** See `readBehind`. */
  readonly shown?: KnownNonces | undefined;
  /** Throws RECOVERY where its home knows more than the database. */
  readonly assertStands?: ((tx: Sql) => Promise<void>) | undefined;
}

/** The same inside a transaction; `moved` are those that ended, and the caller appends the events last. */
export async function endBeforeSlotInside(
  tx: Sql,
  to: "failed" | "rejected" | "cancelled",
  steps: readonly Step[],
  shown?: KnownNonces,
): Promise<StepResult> {
  const unseen = await freezeUnseen(tx, steps, shown);
  const ended = await endKnown(tx, to, steps);
  return { ...ended, events: [...unseen, ...ended.events] };
}

/**
 * While the chain has transactions of a wallet that this ledger does not know, one of them may have paid
 * whatever waits: which, nobody can say before the watcher has booked them.
 * @returns events to append last
 */
async function freezeUnseen(
  tx: Sql,
  steps: readonly Step[],
  shown?: KnownNonces,
): Promise<readonly NewEvent[]> {
  const why = steps.length === 0 ? undefined : await readBehind(tx, shown);
  if (why === undefined) return [];
  const reason =
    `it was to end, and may be paid: ${why}. First causeway recover, or causeway withdrawals release; ` +
    "then causeway withdrawals release ID --not-paid, or --paid-by";
  const doubts = steps.map(({ id }) => ({ id, reason: reason.replace("ID", id) }));
  return (await stepWithdrawals(tx, "frozen", doubts, WAITING_STATUSES)).events;
}

async function endKnown(
  tx: Sql,
  to: "failed" | "rejected" | "cancelled",
  steps: readonly Step[],
): Promise<StepResult> {
  const ids = steps.map(({ id }) => id);
  const repeats = await freezeRecovered(tx, ids);
  const doubtful = await freezeUnexplained(tx, ids);
  const { moved, events } = await stepWithdrawals(tx, to, steps, WAITING_STATUSES);
  await postJournals(
    tx,
    [...moved].map(([id, withdrawal]) => ({
      kind: "withdrawal.release",
      idemKey: endingKey(id),
      effectiveHeight: null,
      postings: releasePostings(withdrawal),
    })),
  );
  const filled = await fillShort(
    tx,
    [...moved].map(([id, withdrawal]) => returnedHold(id, withdrawal)),
  );
  await voidLostGas(tx, [...moved.keys()]);
  return { moved, events: [...repeats.events, ...doubtful, ...events, ...filled] };
}

/**
 * Keeps that a frozen withdrawal is not to be paid: whoever finds that it was not lets it end so, and not go
 * on. The first cause stays, as everywhere.
 */
export async function keepWish(
  tx: Sql,
  { id, cause, reason }: { readonly id: WithdrawalId } & KeptCause,
): Promise<void> {
  await tx.query(
    `UPDATE withdrawal SET cancel_cause = $2, cancel_reason = $3
      WHERE id = $1 AND status = 'frozen' AND cancel_cause IS NULL`,
    [id, cause, reason],
  );
}

/** Why a withdrawal is not to be paid. */
interface KeptCause {
  readonly cause: CancelCause;
  readonly reason: string;
}

/** Whether a person's word lets something end that is frozen. @param id this one; without it any */
export async function hasKeptWish(sql: Sql, id?: WithdrawalId): Promise<boolean> {
  const rows = await sql.query(
    `SELECT 1 FROM withdrawal
      WHERE phase = 'open' AND status = 'frozen' AND cancel_cause IS NOT NULL
        AND id = coalesce($1, id) LIMIT 1`,
    [id ?? null],
  );
  return rows.length > 0;
}

/**
 * Ends an accepted withdrawal whose cancelling was under way when it froze: nobody wants it paid, and a
 * person has said that it was not. It freezes again while the chain has payments that this ledger does not
 * know: of these nobody can have said anything.
 * @returns events to append last; none when it is to be paid
 */
export async function endIfCancelled(tx: Sql, id: WithdrawalId): Promise<readonly NewEvent[]> {
  const wish = await readWish(tx, id);
  if (wish === undefined) return [];
  return (await endBeforeSlotInside(tx, endOfCancel(wish.cause), [{ id, reason: wish.reason }]))
    .events;
}

/** Why an accepted withdrawal is not to be paid; undefined where it is. */
async function readWish(tx: Sql, id: WithdrawalId): Promise<KeptCause | undefined> {
  const [row] = await tx.query<KeptCause>(
    `SELECT cancel_cause AS cause, cancel_reason AS reason FROM withdrawal
      WHERE id = $1 AND status = 'accepted' AND cancel_cause IS NOT NULL`,
    [id],
  );
  return row;
}

/**
 * Ends a frozen withdrawal without a nonce, by a person's word that something else has paid it. The caller
 * holds it.
 * @returns events to append last; undefined where something that nobody has decided about may have paid it
 */
export async function endFrozen(
  tx: Sql,
  { id, reason }: { readonly id: WithdrawalId; readonly reason: string },
): Promise<readonly NewEvent[] | undefined> {
  await keepWish(tx, { id, cause: "request", reason });
  const { events } = await stepWithdrawals(tx, "accepted", [{ id }], ["frozen"]);
  const wish = await readWish(tx, id);
  // Whatever else the chain has: its hold does not go back, since it is paid.
  const ended =
    wish && (await endKnown(tx, endOfCancel(wish.cause), [{ id, reason: wish.reason }]));
  const rows = await tx.query(`SELECT 1 FROM withdrawal WHERE id = $1 AND phase = 'unpaid'`, [id]);
  return ended === undefined || rows.length === 0 ? undefined : [...events, ...ended.events];
}
