/**
 * What a hot wallet pays for the exchange itself: gas for a deposit address, coins for cold storage.
 * Each is a withdrawal of the treasury with all rules of one; meanwhile its coins are in transit.
 */
import { randomUUID } from "node:crypto";
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import {
  type AccountCode,
  COLD_STORAGE,
  customerAccount,
  IN_TRANSIT,
  NATIVE_ASSET,
  SUSPENSE,
  TREASURY,
} from "../journal/accounts.js";
import { type JournalEntry, postJournal, postJournals } from "../journal/journal.js";
import { inSuspense, lockInSuspense } from "../deposits/suspense.js";
import { LedgerError } from "../errors.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedHeight,
  storedInteger,
} from "../stored-values.js";
import { ageSecondsSql, readDatabaseClock } from "../database-clock.js";
import { IS_IN_TRANSIT } from "./stranded-moves.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";
import { acceptInside, type AcceptRefusal, type AcceptRules } from "../withdrawals/withdrawals.js";

/** A move before it is written. */
export type NewMove = {
  readonly destination: Address;
  /** In the asset's smallest unit. */
  readonly amountUnits: bigint;
  /**
   * The newest move of the sweep, or of the asset to cold storage, that its amount was decided behind; 0 for
   * none.
   */
  readonly afterId: number;
} & (
  | { readonly kind: "top-up"; readonly sweepId: number }
  | { readonly kind: "cold"; readonly asset: string }
);

/**
 * After a move that was not paid none is asked for so soon: what refused one refuses the next, and each
 * costs rows, and a fee where the chain was what refused.
 */
const PAUSE_SECONDS = 600;

/** What is not paid by then is given up. By the database's clock, which ends it: a host's may be another. */
const DEADLINE_MS = 3_600_000;

/** Rules of the withdrawal; the time is the database's. */
export type MoveRules = Omit<AcceptRules, "nowMs">;

/** Ends the transaction of a move that the rules of withdrawals refuse. */
class RefusedMove extends Error {
  constructor(readonly refusal: AcceptRefusal) {
    super(refusal);
  }
}

/**
 * Books a move and asks for its payment in one commit, once: of a sweep there is one open top-up, and of
 * an asset one open move to cold storage, none for a while after one that was not paid, and none that was
 * decided before another one.
 * @returns why it was refused; undefined for one that is open now, or was before, or is not wanted any more
 * @throws RECOVERY
 */
export async function openMove(
  database: SqlDatabase,
  move: NewMove,
  rules: MoveRules,
): Promise<AcceptRefusal | undefined> {
  try {
    await database.transaction((tx) => openInside(tx, move, rules));
    return undefined;
  } catch (error) {
    if (error instanceof RefusedMove) return error.refusal;
    throw error;
  }
}

async function openInside(tx: Sql, move: NewMove, rules: MoveRules): Promise<void> {
  const asset = move.kind === "cold" ? move.asset : NATIVE_ASSET;
  const sweepId = move.kind === "top-up" ? move.sweepId : null;
  const natural = sweepId === null ? `cold ${asset}` : `top-up ${sweepId}`;
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 8085))`, [natural]);
  const known = await tx.query(
    `SELECT 1 FROM treasury_move
      WHERE (sweep_id = $1 OR $1::bigint IS NULL AND kind = 'cold' AND asset = $2)
        AND (state = 'open' OR id > $4::bigint OR state = 'void'
             AND ${ageSecondsSql("created_at")} < $3::integer)`,
    [sweepId, asset, PAUSE_SECONDS, move.afterId],
  );
  if (known.length > 0) return;
  // Before customers' balances and events, as where the watcher ends sweeps.
  if (sweepId !== null && !(await lockWanting(tx, sweepId))) return;
  const { destination, amountUnits } = move;
  if (move.kind === "cold" && (await isDepositAddress(tx, destination))) {
    throw new RefusedMove("OWN_WALLET");
  }
  // Nobody can have used this key: it is made here.
  const idempotencyKey = `treasury:${randomUUID()}`;
  await postJournal(tx, {
    kind: "treasury.open",
    idemKey: `${idempotencyKey}:open`,
    effectiveHeight: null,
    postings: [{ asset, debit: IN_TRANSIT, credit: customerAccount(TREASURY), amountUnits }],
  });
  const nowMs = await readDatabaseClock(tx);
  const request = {
    idempotencyKey,
    customerId: TREASURY,
    asset,
    destination,
    destinationText: destination,
    amountUnits,
    expiresAtMs: nowMs + DEADLINE_MS,
  };
  const [outcome] = await acceptInside(tx, [request], { ...rules, nowMs });
  if (outcome === undefined) throw new Error("a move was not answered");
  if (outcome.outcome === "refused") throw new RefusedMove(outcome.refusal);
  await tx.query(
    `INSERT INTO treasury_move (kind, withdrawal_id, asset, destination, amount_units, sweep_id)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    [move.kind, outcome.withdrawal.id, asset, destination, amountUnits.toString(), sweepId],
  );
}

/**
 * Another treasury may have given the sweep up, or a block may have ended it: gas for it would come beside
 * that of the next one.
 */
async function lockWanting(tx: Sql, sweepId: number): Promise<boolean> {
  const rows = await tx.query<{ state: string; given: boolean }>(
    `SELECT state, EXISTS (SELECT 1 FROM treasury_move m WHERE m.sweep_id = sweep.id) AS given
       FROM sweep WHERE id = $1 FOR UPDATE`,
    [sweepId],
  );
  const [row] = rows;
  if (row?.state === "needs-gas") return !row.given;
  return row?.state === "signed" || row?.state === "sent";
}

/** Gas that is on its way to sweeps. */
export async function countOpenTopUps(sql: Sql): Promise<number> {
  const rows = await sql.query<{ count: string }>(
    `SELECT count(*)::text AS count FROM treasury_move WHERE state = 'open' AND kind = 'top-up'`,
  );
  return storedInteger(rows[0]?.count);
}

/**
 * The newest move to cold storage of each asset: what is decided by books of this moment is decided behind
 * it.
 */
export async function newestColdMoves(sql: Sql): Promise<ReadonlyMap<string, number>> {
  const rows = await sql.query<Record<"asset" | "id", string>>(
    `SELECT asset, max(id)::text AS id FROM treasury_move WHERE kind = 'cold' GROUP BY asset`,
  );
  return new Map(rows.map(({ asset, id }) => [asset, storedInteger(id)]));
}

/** A move to cold storage that waits for a wallet to pay it, and has for long. */
export interface UncoveredMove {
  readonly asset: string;
  readonly withdrawalId: WithdrawalId;
  readonly amountUnits: bigint;
}

/** Those to which no wallet has given a nonce within so many seconds: one of an asset at most. */
export async function unpaidColdMoves(
  sql: Sql,
  { afterSeconds }: { readonly afterSeconds: number },
): Promise<UncoveredMove[]> {
  const rows = await sql.query<Record<"asset" | "withdrawal_id" | "amount", string>>(
    `SELECT m.asset, m.withdrawal_id, m.amount_units::text AS amount
       FROM treasury_move m JOIN withdrawal w ON w.id = m.withdrawal_id
      WHERE m.kind = 'cold' AND m.state = 'open' AND w.phase = 'waiting'
        AND ${ageSecondsSql("m.created_at")} >= $1::integer`,
    [afterSeconds],
  );
  return rows.map((row) => ({
    asset: row.asset,
    withdrawalId: toWithdrawalId(row.withdrawal_id),
    amountUnits: storedAtoken(row.amount),
  }));
}

/** A customer would be credited with what goes there. */
async function isDepositAddress(tx: Sql, address: Address): Promise<boolean> {
  const rows = await tx.query(`SELECT 1 FROM deposit_address WHERE address = $1`, [address]);
  return rows.length > 0;
}

/** Moves that one transaction ends. */
const ENDED_AT_ONCE = 500;

interface EndedRow {
  readonly id: string;
  readonly withdrawal_id: string;
  readonly kind: "top-up" | "cold";
  readonly asset: string;
  readonly amount: string;
  readonly is_paid: boolean;
  /** Hash of the transaction that paid it; null where nothing did. */
  readonly hash: string | null;
  /** Block in which it was paid, or in which late gas was seen. */
  readonly height: string | null;
}

/** SQL: whether a deposit `d` is what a move's gas came as. @param hash of what paid it */
export function isGasOf(move: string, hash: string): string {
  return `(${move}.kind = 'top-up' AND d.tx_hash = ${hash} AND d.address = ${move}.destination
            AND d.asset = ${move}.asset AND d.amount_units = ${move}.amount_units)`;
}

/** SQL: moves `m` in transit whose withdrawals have ended, with late gas and the slot that paid. */
const ENDED = `treasury_move m
  JOIN withdrawal w ON w.id = m.withdrawal_id
  LEFT JOIN nonce_slot paid ON paid.withdrawal_id = w.id AND paid.outcome = 'paid'
  LEFT JOIN LATERAL (
         SELECT max(d.height) AS height FROM deposit d
          WHERE ${isGasOf("m", "paid.mined_hash")} AND d.status = 'suspense') AS late ON true
 WHERE ${IS_IN_TRANSIT}
   AND (w.phase = 'unpaid'
        OR w.phase = 'paid' AND (m.kind = 'cold' OR late.height IS NOT NULL))`;

/** A move that the books refuse to end. */
export interface RefusedEnding {
  readonly moveId: number;
  readonly withdrawalId: string;
  readonly error: LedgerError;
}

/**
 * Ends moves whose withdrawal ended without payment, and those to cold storage that are settled. Gas
 * that was paid arrives when the watcher sees it; after a recovery the watcher may have seen it before
 * anybody said that it was this: then it is taken out of suspense. It comes last, the least first: what
 * suspense does not hold keeps nothing else from ending. Nor does what the books refuse: then each ends in
 * a commit of its own.
 * @param onRefused is told of each that did not end, behind the others
 * @returns how many ended
 */
export async function endMoves(
  database: SqlDatabase,
  {
    limit = ENDED_AT_ONCE,
    onRefused,
  }: { readonly limit?: number; readonly onRefused: (refused: RefusedEnding) => void },
): Promise<number> {
  try {
    return await database.transaction(async (tx) => end(tx, await readEnded(tx, { limit })));
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
  }
  const refused: RefusedEnding[] = [];
  let endedCount = 0;
  for (const { id, withdrawal_id: withdrawalId } of await readEnded(database, { limit })) {
    try {
      endedCount += await database.transaction(async (tx) => {
        return end(tx, await readEnded(tx, { id, limit: 1 }));
      });
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
      refused.push({ moveId: storedInteger(id), withdrawalId, error });
    }
  }
  for (const each of refused) onRefused(each);
  return endedCount;
}

/** Those that have ended and are not booked so, held where this is a transaction; or one of them. */
function readEnded(
  sql: Sql,
  { limit, id = null }: { readonly limit: number; readonly id?: string | null },
): Promise<EndedRow[]> {
  return sql.query<EndedRow>(
    `SELECT m.id::text, m.withdrawal_id, m.kind, m.asset, m.amount_units::text AS amount,
            w.phase = 'paid' AS is_paid, paid.mined_hash AS hash,
            coalesce(late.height, paid.block_number)::text AS height
       FROM ${ENDED} AND m.id = coalesce($2::bigint, m.id)
      ORDER BY late.height IS NOT NULL, CASE WHEN late.height IS NOT NULL THEN m.amount_units END,
               m.id
      LIMIT $1 FOR UPDATE OF m`,
    [limit, id],
  );
}

async function end(tx: Sql, rows: readonly EndedRow[]): Promise<number> {
  const ended = await withinSuspense(tx, rows);
  if (ended.length === 0) return 0;
  await tx.query(
    `UPDATE treasury_move m SET state = input.state
       FROM unnest($1::bigint[], $2::text[]) AS input (id, state) WHERE m.id = input.id`,
    [ended.map(({ id }) => id), ended.map((row) => (row.is_paid ? "arrived" : "void"))],
  );
  await postJournals(tx, ended.map(endingOf));
  return ended.length;
}

/**
 * Units of an asset on the treasury's account beyond what moves take from there that ended unpaid: given by a
 * person's word of a former release. Below zero what such a word has taken of it.
 */
export async function beyondMoves(sql: Sql, asset: string): Promise<bigint> {
  const [row] = await sql.query<{ units: string }>(
    `SELECT (coalesce((SELECT sum(available_units) FROM customer_balance
                        WHERE customer_id = $1 AND asset = $2), 0)
             - coalesce((SELECT sum(m.amount_units)
                 FROM treasury_move m
                 JOIN withdrawal w ON w.id = m.withdrawal_id AND w.phase = 'unpaid'
                WHERE m.asset = $2 AND m.state <> 'void'
                  -- Of gas that had arrived, before a chain lost its block.
                  AND NOT EXISTS (SELECT 1 FROM journal_entry e
                                   WHERE e.idem_key = 'treasury-move:' || m.id || ':end')), 0)
            )::text AS units`,
    [TREASURY, asset],
  );
  return BigInt(row?.units ?? "0");
}

/** Gas that was paid and is in transit by the books, since a person has booked it elsewhere. */
export interface GivenGas {
  readonly hash: Hash32;
  readonly address: Address;
  readonly amountAtoken: Atoken;
}

/** All that suspense does not hold, oldest first, at most `limit`. */
export async function listGivenGas(sql: Sql, limit: number): Promise<readonly GivenGas[]> {
  const rows = await sql.query<Record<"hash" | "address" | "amount", string>>(
    `SELECT paid.mined_hash AS hash, m.destination AS address, m.amount_units::text AS amount
       FROM ${ENDED} AND w.phase = 'paid' AND m.kind = 'top-up'
        AND m.amount_units > ${inSuspense("m.asset")}
      ORDER BY m.id LIMIT $1`,
    [limit],
  );
  return rows.map((row) => ({
    hash: storedHash(row.hash),
    address: storedAddress(row.address),
    amountAtoken: storedAtoken(row.amount),
  }));
}

/**
 * SQL: of a deposit `d`, whether it is gas that the treasury is known to have paid. `endMoves` takes it
 * out of suspense, and it keeps its status: it is nobody's deposit.
 */
export const IS_GAS = `EXISTS (
  SELECT 1 FROM treasury_move m
    JOIN nonce_slot s ON s.withdrawal_id = m.withdrawal_id AND s.outcome = 'paid'
   WHERE ${isGasOf("m", "s.mined_hash")})`;

/** Keys of the entries that took a deposit out of suspense as such gas; none where it lies there. */
export async function keysOfGas(sql: Sql, depositId: string): Promise<readonly string[]> {
  const rows = await sql.query<{ key: string }>(
    `SELECT 'treasury-move:' || m.id || ':end' AS key
       FROM deposit d
       JOIN treasury_move m ON m.destination = d.address
       JOIN nonce_slot s ON s.withdrawal_id = m.withdrawal_id AND s.outcome = 'paid'
      WHERE d.id = $1 AND d.status = 'suspense' AND ${isGasOf("m", "s.mined_hash")}`,
    [depositId],
  );
  return rows.map(({ key }) => key);
}

/** Without gas that suspense does not hold any more: a person has booked it elsewhere. */
async function withinSuspense(tx: Sql, rows: readonly EndedRow[]): Promise<readonly EndedRow[]> {
  if (!rows.some(isLateGas)) return rows;
  let leftUnits = await lockInSuspense(tx, NATIVE_ASSET);
  return rows.filter((each) => {
    if (!isLateGas(each)) return true;
    const units = storedAtoken(each.amount);
    if (units > leftUnits) return false;
    leftUnits -= units;
    return true;
  });
}

function isLateGas({ kind, is_paid: isPaid }: EndedRow): boolean {
  return kind === "top-up" && isPaid;
}

function endingOf(row: EndedRow): JournalEntry {
  const effectiveHeight: Height | null = row.is_paid ? storedHeight(row.height) : null;
  const kind = isLateGas(row) ? "treasury.late" : row.is_paid ? "treasury.cold" : "treasury.void";
  const debit: Readonly<Record<typeof kind, AccountCode>> = {
    "treasury.late": SUSPENSE,
    "treasury.cold": COLD_STORAGE,
    "treasury.void": customerAccount(TREASURY),
  };
  return {
    kind,
    idemKey: `treasury-move:${row.id}:end`,
    effectiveHeight,
    ...(row.is_paid && row.hash !== null ? { memo: row.hash } : {}),
    postings: [
      {
        asset: row.asset,
        debit: debit[kind],
        credit: IN_TRANSIT,
        amountUnits: storedAtoken(row.amount),
      },
    ],
  };
}

/** Keeps the cold addresses that the policy names: what comes back from one is the exchange's. */
export async function nameColdAddresses(
  sql: Sql,
  named: readonly { readonly asset: string; readonly address: Address }[],
): Promise<void> {
  if (named.length === 0) return;
  await sql.query(
    `INSERT INTO cold_address (asset, address)
     SELECT input.asset, input.address FROM unnest($1::text[], $2::text[]) AS input (asset, address)
       JOIN asset ON asset.symbol = input.asset
     ON CONFLICT (asset, address) DO NOTHING`,
    [named.map(({ asset }) => asset), named.map(({ address }) => address)],
  );
}
