/**
 * Outflows that nobody asked for: which of them stand and wait for a person, and which requests one of them
 * may have paid.
 */
import type { Hash32 } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import type { NewEvent } from "../events.js";
import { storedHash } from "../stored-values.js";
import { WAITING_STATUSES } from "./withdrawal-status.js";
import { stepWithdrawals } from "./withdrawal-steps.js";
import { toWithdrawalId, type WithdrawalId } from "./withdrawal-id.js";
import { stands } from "../watch/lost-heights.js";

/** SQL: of an outflow `f`, whether no loss of blocks that the watcher went back for has taken it. */
export const STANDS = stands("f.height", "f.rewinds");

/**
 * SQL: of an outflow `f`, whether it stands, nothing explains it, and nobody acknowledged it. In this order:
 * what explains one takes forty times as long to ask, and of all that were ever seen few wait for a person.
 */
export const UNACKNOWLEDGED = `${STANDS} AND CASE
  WHEN EXISTS (SELECT 1 FROM foreign_transaction_acknowledged a
                WHERE a.wallet = f.wallet AND a.tx_hash = f.tx_hash) THEN false
  ELSE explanation_of(f.wallet, f.tx_hash) IS NULL END`;

/**
 * SQL: of an outflow `f` of a hot wallet, whether signing waits for a person because of it. Not where other
 * code than its token was accepted with told of it, which says nothing of the wallet's key: that waits, too,
 * and holds up nothing but requests which it may have paid. Wallets are frozen in tables of a former release,
 * too, which have no such column.
 */
export const STOPS_SIGNING = `${UNACKNOWLEDGED}
  AND NOT coalesce((to_jsonb(f)->>'other_code')::boolean, false)`;

/**
 * SQL: of an outflow `f` and a withdrawal `w` of an asset `a`, whether the one may have paid the other: by
 * what the watcher has kept of it; as a whole, whatever was kept; and where nothing was kept of the asset,
 * in part.
 */
export const MAY_HAVE_PAID = `(f.asset = w.asset AND f.amount_units = w.amount_units
  OR EXISTS (SELECT 1 FROM possible_payment p
              WHERE p.tx_hash = f.tx_hash AND p.destination = w.destination
                AND p.amount_units = w.amount_units AND p.contract = coalesce(a.contract, ''))
  OR f.asset = w.asset AND f.amount_units > w.amount_units
     AND NOT EXISTS (SELECT 1 FROM possible_payment p
                      WHERE p.tx_hash = f.tx_hash AND p.contract = coalesce(a.contract, '')))`;

/** A withdrawal and a transaction that may have paid it. */
export interface Doubt {
  readonly id: WithdrawalId;
  readonly hash: Hash32;
}

/**
 * SQL: of a withdrawal `w`, whether a transaction of hash `hash` that may have paid it is news: it waits, or
 * is frozen without a nonce, and nobody was told of this one.
 * @param hash @param waiting expressions: the second an array of the statuses of what waits
 */
export function mayBeDoubted(hash: string, waiting: string): string {
  return `w.phase IN ('waiting', 'open') AND (w.status = ANY (${waiting})
    OR w.status = 'frozen'
       AND NOT EXISTS (SELECT 1 FROM nonce_slot s
                        WHERE s.withdrawal_id = w.id AND s.outcome IS DISTINCT FROM 'foreign')
       AND NOT EXISTS (SELECT 1 FROM withdrawal_doubt d
                        WHERE d.withdrawal_id = w.id AND d.tx_hash = ${hash}))`;
}

/** Transactions that a reason names at most. */
const MAX_NAMED = 3;

/**
 * Freezes waiting withdrawals for the transactions that may have paid them, and keeps that this was done.
 * What is frozen already has them behind its cause: whoever says that it was not paid has been told of all.
 * @param said of these transactions, what they did
 * @returns whose cause is new, and events to append last
 */
export async function freezeDoubted(
  tx: Sql,
  doubts: readonly Doubt[],
  said: (hashes: string) => string,
): Promise<{ readonly frozen: ReadonlySet<WithdrawalId>; readonly events: readonly NewEvent[] }> {
  const hashesOf = new Map<WithdrawalId, Hash32[]>();
  for (const { id, hash } of doubts) hashesOf.set(id, [...(hashesOf.get(id) ?? []), hash]);
  const steps = [...hashesOf].map(([id, hashes]) => {
    const more = hashes.length - MAX_NAMED;
    const named = hashes.slice(0, MAX_NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
    return { id, reason: said(named) };
  });
  await hold(tx, [...hashesOf.keys()]);
  const { moved, events } = await stepWithdrawals(tx, "frozen", steps, WAITING_STATUSES);
  const told = await tellFrozen(
    tx,
    steps.filter(({ id }) => !moved.has(id)),
  );
  const frozen = new Set([...moved.keys(), ...told]);
  const kept = doubts.filter(({ id }) => frozen.has(id));
  if (kept.length > 0) {
    await tx.query(
      `INSERT INTO withdrawal_doubt (withdrawal_id, tx_hash)
       SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING`,
      [kept.map(({ id }) => id), kept.map(({ hash }) => hash)],
    );
  }
  return { frozen, events };
}

/** Whoever lets one go on at this moment would be seen neither as frozen still nor as waiting again. */
async function hold(tx: Sql, ids: readonly WithdrawalId[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.query(
    `SELECT 1 FROM withdrawal WHERE id = ANY ($1::text[]) ORDER BY position FOR UPDATE`,
    [ids],
  );
}

/** A further cause of what is frozen. @returns of which */
async function tellFrozen(
  tx: Sql,
  steps: readonly { readonly id: WithdrawalId; readonly reason: string }[],
): Promise<readonly WithdrawalId[]> {
  if (steps.length === 0) return [];
  const rows = await tx.query<{ id: string }>(
    `WITH told AS (
       UPDATE withdrawal w SET reason = coalesce(w.reason || '; also: ', '') || input.reason
         FROM unnest($1::text[], $2::text[]) AS input (id, reason)
        WHERE w.id = input.id AND w.status = 'frozen' RETURNING w.id)
     SELECT id FROM told`,
    [steps.map(({ id }) => id), steps.map(({ reason }) => reason)],
  );
  return rows.map(({ id }) => toWithdrawalId(id));
}

/**
 * Freezes those of the waiting withdrawals that are to end unpaid while an outflow of a hot wallet which may
 * have paid them waits for a person: the hold would go back, too. The caller appends the events last.
 */
export async function freezeUnexplained(
  tx: Sql,
  ids: readonly WithdrawalId[],
): Promise<readonly NewEvent[]> {
  return ids.length === 0 ? [] : (await freezeTaken(tx, { ids })).events;
}

/**
 * Freezes all withdrawals without a nonce that this outflow of a hot wallet may have paid by what the ledger
 * knows of it, while nothing explains it and nobody acknowledged it. The caller appends the events last.
 */
export function freezeAsMuch(tx: Sql, hash: Hash32): ReturnType<typeof freezeDoubted> {
  return freezeTaken(tx, { hash });
}

async function freezeTaken(
  tx: Sql,
  which: { readonly ids: readonly WithdrawalId[] } | { readonly hash: Hash32 },
): ReturnType<typeof freezeDoubted> {
  const matches = await tx.query<{ id: string; hash: string }>(
    // First those that wait: there are few, and mostly none.
    `WITH waiting AS MATERIALIZED (
       SELECT f.tx_hash, f.asset, f.amount_units FROM foreign_outflow f
         JOIN wallet h ON h.address = f.wallet
        WHERE ($3::text IS NULL OR f.tx_hash = $3) AND ${UNACKNOWLEDGED})
     SELECT DISTINCT w.id, f.tx_hash AS hash
       FROM waiting f
       JOIN withdrawal w ON ${mayBeDoubted("f.tx_hash", "$2::text[]")}
        AND ($1::text[] IS NULL OR w.id = ANY ($1))
       JOIN asset a ON a.symbol = w.asset
      WHERE ${MAY_HAVE_PAID}
      ORDER BY w.id, f.tx_hash`,
    ["ids" in which ? which.ids : null, WAITING_STATUSES, "hash" in which ? which.hash : null],
  );
  const doubts = matches.map(({ id, hash }) => ({
    id: toWithdrawalId(id),
    hash: storedHash(hash),
  }));
  return freezeDoubted(
    tx,
    doubts,
    (hashes) =>
      `transaction ${hashes}, unknown to the ledger, took the same amount or more: look where it went, ` +
      // Of what other code said no release waits, and none names it.
      "then causeway withdrawals release, with --acknowledge and its hash where that does not name it",
  );
}

/** How many outflows of a token, that other code than was accepted has told of, wait for a person. */
export async function countOfOtherCode(sql: Sql, asset: string): Promise<number> {
  const [row] = await sql.query<{ count: number }>(
    `SELECT count(*)::integer AS count FROM foreign_outflow f
      WHERE f.asset = $1 AND f.other_code AND ${UNACKNOWLEDGED}`,
    [asset],
  );
  return row?.count ?? 0;
}
