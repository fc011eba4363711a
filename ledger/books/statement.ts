/**
 * A customer's statement: what the books said at its beginning, every movement with what stands behind
 * it, and what they said at its end, read apart from the movements and held against them.
 */
import assert from "node:assert/strict";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { storedAtoken, storedInteger, storedTime } from "../stored-values.js";
import { type CustomerId, customerAccount, heldAccount } from "../journal/accounts.js";
import { memoHash } from "../journal/journal.js";
import { beforeSql, tellUntil } from "./statement-ends.js";

/** A customer's coins of one asset, in its smallest unit. */
export interface CustomerUnits {
  readonly availableUnits: bigint;
  readonly heldUnits: bigint;
}

/** One journal entry's effect on a customer's coins of one asset. */
export interface StatementMovement {
  readonly entryId: number;
  /** RFC 3339, UTC. */
  readonly postedAt: string;
  readonly kind: string;
  /** Natural key of what happened, posted once for ever. */
  readonly key: string;
  /** Signed changes. */
  readonly change: CustomerUnits;
  /** What the customer had after it. */
  readonly after: CustomerUnits;
  readonly evidence: MovementEvidence;
}

/** What stands behind a movement; undefined for what it has not. */
export interface MovementEvidence {
  readonly depositId: string | undefined;
  readonly withdrawalId: string | undefined;
  readonly txHash: string | undefined;
  /** Block that moved the coins. */
  readonly height: number | undefined;
  /** Its link in the chain of hashes; undefined while it waits for one. */
  readonly link: { readonly n: number; readonly hash: string } | undefined;
}

/** All of one asset. */
export interface StatementAsset {
  readonly asset: string;
  readonly opening: CustomerUnits;
  readonly movements: readonly StatementMovement[];
  readonly closing: CustomerUnits;
}

/** All that changed a customer's balances in a time, and what they were before and after it. */
export interface Statement {
  readonly ledgerId: string;
  readonly customerId: CustomerId;
  /** From here on, RFC 3339. */
  readonly from: string;
  /** Up to here, and not this moment itself: nothing that is not over yet. */
  readonly to: string;
  readonly assets: readonly StatementAsset[];
}

/** Movements of one statement: more are several statements. */
const MAX_MOVEMENTS = 100_000;

/**
 * Reads a statement from one moment of the database, behind all entries of its time. A time that is not over
 * ends at the moment of asking: what comes after it is no part of what the statement says, nor of any other
 * that ends there or begins before.
 * @throws UNKNOWN_CUSTOMER, STATEMENT_NOT_BEGUN, STATEMENT_TOO_LONG; the signal's reason
 */
export async function readStatement(
  database: SqlDatabase,
  customerId: CustomerId,
  period: { readonly from: Date; readonly to: Date },
  options: { readonly signal: AbortSignal },
): Promise<Statement> {
  const { from } = period;
  const to = await endOf(database, period);
  await tellUntil(database, to, options);
  return database.transaction(async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    const known = await tx.query<{ ledger_id: string }>(
      `SELECT value AS ledger_id FROM meta, customer WHERE key = 'ledger_id' AND id = $1`,
      [customerId],
    );
    const [row] = known;
    if (row === undefined) {
      throw new LedgerError("UNKNOWN_CUSTOMER", `the ledger does not know ${customerId}`);
    }
    const opening = await sumsBefore(tx, customerId, from);
    const closing = await sumsBefore(tx, customerId, to);
    const movements = await readMovements(tx, customerId, { from, to });
    const names = [...closing.keys()].toSorted();
    return {
      ledgerId: row.ledger_id,
      customerId,
      from: from.toISOString(),
      to: to.toISOString(),
      assets: names.map((asset) =>
        toAsset(asset, {
          opening: opening.get(asset) ?? NOTHING,
          closing: closing.get(asset) ?? NOTHING,
          rows: movements.filter((movement) => movement.asset === asset),
        }),
      ),
    };
  });
}

/** The end of a time, or this moment of the clock that entries have their times of. */
async function endOf(
  sql: Sql,
  { from, to }: { readonly from: Date; readonly to: Date },
): Promise<Date> {
  const [row] = await sql.query<{ now: unknown }>(
    `SELECT date_trunc('milliseconds', clock_timestamp()) AS now`,
  );
  const now = new Date(storedTime(row?.now));
  if (from >= now) {
    const message = `the time from ${from.toISOString()} on has not begun`;
    throw new LedgerError("STATEMENT_NOT_BEGUN", message);
  }
  return to < now ? to : now;
}

const NOTHING: CustomerUnits = { availableUnits: 0n, heldUnits: 0n };

interface MovementRow extends Omit<StatementMovement, "after"> {
  readonly asset: string;
}

/** Opening + movements = closing, or the books are not what they say. */
function toAsset(
  asset: string,
  parts: {
    readonly opening: CustomerUnits;
    readonly closing: CustomerUnits;
    readonly rows: readonly MovementRow[];
  },
): StatementAsset {
  const { opening, closing, rows } = parts;
  let after = opening;
  const movements = rows.map(({ asset: _asset, ...row }) => {
    after = {
      availableUnits: after.availableUnits + row.change.availableUnits,
      heldUnits: after.heldUnits + row.change.heldUnits,
    };
    return { ...row, after };
  });
  assert.deepEqual(after, closing, `opening and movements in ${asset} do not lead to the closing`);
  return { asset, opening, movements, closing };
}

/** Signed effect of a posting on an account. */
const effectOn = (account: string) => `
  CASE WHEN p.credit = ${account} THEN p.amount_units
       WHEN p.debit = ${account} THEN -p.amount_units ELSE 0 END`;

/** Sums of a customer's postings before a moment, by asset. */
async function sumsBefore(
  tx: Sql,
  customerId: CustomerId,
  moment: Date,
): Promise<ReadonlyMap<string, CustomerUnits>> {
  const rows = await tx.query<{ asset: string; available: string; held: string }>(
    `SELECT p.asset, sum(${effectOn("$1")})::text AS available, sum(${effectOn("$2")})::text AS held
       FROM posting p JOIN journal_entry e ON e.id = p.journal_id
      WHERE (p.debit IN ($1, $2) OR p.credit IN ($1, $2)) AND ${beforeSql("e", "$3")}
      GROUP BY p.asset`,
    [customerAccount(customerId), heldAccount(customerId), moment],
  );
  return new Map(
    rows.map((row) => [
      row.asset,
      { availableUnits: storedAtoken(row.available), heldUnits: storedAtoken(row.held) },
    ]),
  );
}

async function readMovements(
  tx: Sql,
  customerId: CustomerId,
  { from, to }: { readonly from: Date; readonly to: Date },
): Promise<readonly MovementRow[]> {
  const rows = await tx.query<StoredMovement>(
    `WITH moved AS (
       SELECT e.id, p.asset, sum(${effectOn("$1")}) AS available, sum(${effectOn("$2")}) AS held
         FROM posting p JOIN journal_entry e ON e.id = p.journal_id
        WHERE (p.debit IN ($1, $2) OR p.credit IN ($1, $2))
          AND NOT ${beforeSql("e", "$3")} AND ${beforeSql("e", "$4")}
        GROUP BY e.id, p.asset ORDER BY e.id LIMIT ${MAX_MOVEMENTS + 1}
     )
     SELECT e.id, moved.asset, e.posted_at, e.kind, e.idem_key, e.effective_height,
            moved.available::text, moved.held::text,
            coalesce(d.id, o.terms->>'depositId') AS deposit_id,
            coalesce(w.id, o.terms->>'withdrawalId') AS withdrawal_id,
            coalesce(d.tx_hash, s.mined_hash, ${memoHash("e")}) AS tx_hash, l.n, l.hash
       FROM moved JOIN journal_entry e USING (id)
       LEFT JOIN deposit d
         ON d.id = CASE e.kind WHEN 'deposit.reversal' THEN split_part(e.idem_key, ':', 3)
                               ELSE split_part(e.idem_key, ':', 2) END
        AND e.kind IN ('deposit.credit', 'deposit.reversal', 'ledger.suspense_release')
       LEFT JOIN withdrawal w ON e.idem_key LIKE 'withdrawal:%' AND w.id = split_part(e.idem_key, ':', 2)
       LEFT JOIN nonce_slot s ON s.withdrawal_id = w.id AND e.idem_key LIKE '%:end'
         AND s.outcome IN ('paid', 'reverted', 'cancelled')
       -- A correction's, by the decision that it is of.
       LEFT JOIN operator_decision o ON o.kind = 'adjustment' AND o.status = 'done'
         AND e.idem_key LIKE 'adjustment:%' AND o.key = substr(e.idem_key, length('adjustment:') + 1)
       LEFT JOIN chain_link l ON l.kind = 'entry' AND l.row_key = e.id
      ORDER BY e.posted_at, e.id, moved.asset`,
    [customerAccount(customerId), heldAccount(customerId), from, to],
  );
  if (rows.length > MAX_MOVEMENTS) {
    const message = `there are more than ${MAX_MOVEMENTS} movements: choose a shorter time`;
    throw new LedgerError("STATEMENT_TOO_LONG", message);
  }
  return rows.map((row) => ({
    entryId: storedInteger(row.id),
    asset: row.asset,
    postedAt: storedTime(row.posted_at),
    kind: row.kind,
    key: row.idem_key,
    change: { availableUnits: storedAtoken(row.available), heldUnits: storedAtoken(row.held) },
    evidence: {
      depositId: row.deposit_id ?? undefined,
      withdrawalId: row.withdrawal_id ?? undefined,
      txHash: row.tx_hash ?? undefined,
      height: row.effective_height === null ? undefined : storedInteger(row.effective_height),
      link:
        row.n === null || row.hash === null
          ? undefined
          : { n: storedInteger(row.n), hash: row.hash },
    },
  }));
}

interface StoredMovement {
  readonly id: string;
  readonly asset: string;
  readonly posted_at: unknown;
  readonly kind: string;
  readonly idem_key: string;
  readonly effective_height: string | null;
  readonly available: string;
  readonly held: string;
  readonly deposit_id: string | null;
  readonly withdrawal_id: string | null;
  readonly tx_hash: string | null;
  readonly n: string | null;
  readonly hash: string | null;
}
