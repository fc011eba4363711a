/**
 * Transactions of the hot wallet that nobody asked for, what an operator said about them, and slots whose
 * nonce one of them has used.
 */
import type { Address } from "../../chain/address.js";
import { present } from "../../chain/errors.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import type { AccountCode } from "../journal/accounts.js";
import { appendEvents, type NewEvent } from "../events.js";
import {
  freezeAsMuch,
  freezeDoubted,
  mayBeDoubted,
  MAY_HAVE_PAID,
  STANDS,
  STOPS_SIGNING,
  UNACKNOWLEDGED,
} from "../requests/unexplained-outflows.js";
import { freezeRecovered } from "../requests/recovered-payments.js";
import { storedAtoken, storedHash, storedHeight } from "../stored-values.js";
import { endIfCancelled } from "../requests/endings.js";
import type { ForeignPayment } from "../requests/possible-payments.js";
import { WAITING_STATUSES } from "../requests/withdrawal-status.js";
import { stepWithdrawals } from "../requests/withdrawal-steps.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";

/** A foreign transaction as the watcher booked it, not acknowledged yet. */
export interface ForeignOutflow {
  readonly hash: Hash32;
  readonly height: Height;
  readonly asset: string;
  /** In the asset's smallest unit. */
  readonly amountUnits: bigint;
  readonly feeAtoken: Atoken;
}

/** An operator's word about foreign transactions; kept for ever. */
export interface Acknowledgement {
  readonly hashes: readonly Hash32[];
  /** Who looked, 1-200 characters. */
  readonly by: string;
  /** What they found, 1-1,000 characters. */
  readonly reason: string;
}

/** Outflows that one release names at most; further ones follow once these are acknowledged. */
const MAX_NAMED = 1_000;

/**
 * What explains a transaction of one of our addresses: a payment that a recovery booked, a
 * withdrawal, or an outflow that a person accepted; undefined when nothing does. Whoever books it
 * asks here: others wait until the caller's transaction ends.
 */
export async function lockExplanation(
  tx: Sql,
  { wallet, hash }: { readonly wallet: Address; readonly hash: Hash32 },
): Promise<string | undefined> {
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 8084))`, [hash]);
  const rows = await tx.query<{ explanation: string | null }>(
    `SELECT explanation_of($1, $2) AS explanation`,
    [wallet, hash],
  );
  return rows[0]?.explanation ?? undefined;
}

/** A transaction that a person booked as an outflow. */
export interface AcceptedOutflow {
  /** Who bears what it took of each asset beside its fee. */
  readonly bornBy: ReadonlyMap<string, AccountCode>;
}

/** Those of these transactions of wallets that a person booked as outflows. */
export async function acceptedOutflows(
  sql: Sql,
  transactions: readonly { readonly wallet: Address; readonly hash: Hash32 }[],
): Promise<ReadonlyMap<Hash32, AcceptedOutflow>> {
  if (transactions.length === 0) return new Map();
  const rows = await sql.query<{ hash: string; asset: string; debit: AccountCode }>(
    `SELECT DISTINCT ON (mined.hash, p.asset) mined.hash, p.asset, p.debit
       FROM unnest($1::text[], $2::text[]) AS mined (wallet, hash)
       JOIN journal_entry e ON e.idem_key = 'outflow:' || mined.hash || ':' || mined.wallet
       JOIN posting p ON p.journal_id = e.id
      -- The fee stands last, and alone where nothing else was taken.
      ORDER BY mined.hash, p.asset, p.place`,
    [transactions.map(({ wallet }) => wallet), transactions.map(({ hash }) => hash)],
  );
  const found = new Map<Hash32, { readonly bornBy: Map<string, AccountCode> }>();
  for (const row of rows) {
    const hash = storedHash(row.hash);
    const outflow = found.get(hash) ?? { bornBy: new Map<string, AccountCode>() };
    outflow.bornBy.set(row.asset, row.debit);
    found.set(hash, outflow);
  }
  return found;
}

/**
 * Outflows of a wallet that the watcher found, that nothing explains and that nobody acknowledged,
 * oldest first; without those that stop no signing.
 */
export async function readUnacknowledged(sql: Sql, wallet: Address): Promise<ForeignOutflow[]> {
  const rows = await sql.query<{
    tx_hash: string;
    height: string;
    asset: string;
    amount_units: string;
    fee_atoken: string;
  }>(
    `SELECT f.tx_hash, f.height, f.asset, f.amount_units::text, f.fee_atoken::text
       FROM foreign_outflow f
      WHERE f.wallet = $1 AND ${STOPS_SIGNING} ORDER BY f.id LIMIT $2`,
    [wallet, MAX_NAMED],
  );
  return rows.map((row) => ({
    hash: storedHash(row.tx_hash),
    height: storedHeight(row.height),
    asset: row.asset,
    amountUnits: storedAtoken(row.amount_units),
    feeAtoken: storedAtoken(row.fee_atoken),
  }));
}

/** An outflow that may have paid a withdrawal by what the ledger knows of it. */
export interface DoubtfulOutflow extends Pick<ForeignOutflow, "hash" | "height"> {
  /** A person has booked it: whether it paid this one, too, nobody has said. */
  readonly isBooked: boolean;
}

/** Doubtful outflows that are read at a time. */
export const DOUBTFUL_AT_A_TIME = 100;

/**
 * SQL: how much earlier an outflow may seem than the request that it paid. Both times are of the database's
 * clock, which goes back where a standby takes over whose own is behind, or where somebody sets it right.
 */
const CLOCK_SLACK = `interval '1 day'`;

/**
 * Outflows of every wallet since a withdrawal was asked for, and of the day before, that may have paid it,
 * and that no withdrawal and no recovery explains, acknowledged or not, oldest first, all of them. Whether
 * they did is the chain's to say.
 */
export async function* doubtfulOutflows(
  sql: Sql,
  id: WithdrawalId,
): AsyncGenerator<DoubtfulOutflow, void> {
  let lastId = "0";
  for (;;) {
    const rows = await sql.query<{
      id: string;
      tx_hash: string;
      height: string;
      is_booked: boolean;
    }>(
      `SELECT f.id::text, f.tx_hash, f.height, explanation_of(f.wallet, f.tx_hash) IS NOT NULL AS is_booked
         FROM withdrawal w
         JOIN asset a ON a.symbol = w.asset
         JOIN foreign_outflow f ON f.seen_at >= w.created_at - ${CLOCK_SLACK} AND ${MAY_HAVE_PAID}
        WHERE w.id = $1 AND f.id > $2::bigint AND ${STANDS}
          AND coalesce(explanation_of(f.wallet, f.tx_hash), 'outflow') = 'outflow'
        ORDER BY f.id LIMIT $3`,
      [id, lastId, DOUBTFUL_AT_A_TIME],
    );
    for (const row of rows) {
      const { tx_hash: hash, height, is_booked: isBooked } = row;
      yield { hash: storedHash(hash), height: storedHeight(height), isBooked };
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < DOUBTFUL_AT_A_TIME) return;
    lastId = last.id;
  }
}

/** Which of these transactions an operator has acknowledged. */
export function readAcknowledged(
  sql: Sql,
  wallet: Address,
  hashes: readonly Hash32[],
): Promise<ReadonlySet<Hash32>> {
  return hashesIn("foreign_transaction_acknowledged", sql, wallet, hashes);
}

/** Which of these transactions the watcher found as outflows that nothing explained then. */
export function readRecorded(
  sql: Sql,
  wallet: Address,
  hashes: readonly Hash32[],
): Promise<ReadonlySet<Hash32>> {
  return hashesIn("foreign_outflow", sql, wallet, hashes);
}

async function hashesIn(
  table: "foreign_transaction_acknowledged" | "foreign_outflow",
  sql: Sql,
  wallet: Address,
  hashes: readonly Hash32[],
): Promise<ReadonlySet<Hash32>> {
  const rows = await sql.query<{ tx_hash: string }>(
    `SELECT tx_hash FROM ${table} WHERE wallet = $1 AND tx_hash = ANY ($2::text[])`,
    [wallet, hashes],
  );
  return new Set(rows.map((row) => storedHash(row.tx_hash)));
}

/**
 * Stores an operator's word; the first about each transaction stays. Waiting withdrawals that one of
 * these may have paid freeze in the same commit: from it on no freeze of the wallet holds them back.
 * @param payments what the transactions may have paid, as far as the chain shows it; of others the ledger
 *   says it
 * @returns the withdrawals that froze
 */
export function acknowledge(
  database: SqlDatabase,
  wallet: Address,
  { hashes, by, reason }: Acknowledgement,
  payments: readonly ForeignPayment[],
): Promise<ReadonlySet<WithdrawalId>> {
  return database.transaction(async (tx) => {
    const shown = new Set(payments.map(({ hash }) => hash));
    const results: Awaited<ReturnType<typeof freezeEqual>>[] = [];
    // Before it is acknowledged: only what waits for a person freezes anything.
    for (const hash of new Set(hashes)) {
      if (!shown.has(hash)) results.push(await freezeAsMuch(tx, hash));
    }
    const rows = await tx.query<{ tx_hash: string }>(
      `WITH stored AS (
         INSERT INTO foreign_transaction_acknowledged (wallet, tx_hash, acknowledged_by, reason)
         SELECT $1, hash, $3, $4 FROM unnest($2::text[]) AS hash ON CONFLICT DO NOTHING
         RETURNING tx_hash)
       SELECT tx_hash FROM stored`,
      [wallet, [...new Set(hashes)], by, reason],
    );
    // Said a second time, it freezes nothing that was asked for since.
    const isNew = new Set(rows.map(({ tx_hash }) => tx_hash));
    results.push(
      await freezeEqual(
        tx,
        payments.filter(({ hash }) => isNew.has(hash)),
      ),
    );
    await appendEvents(
      tx,
      results.flatMap(({ events }) => events),
    );
    return new Set(results.flatMap(({ frozen }) => [...frozen]));
  });
}

/**
 * Freezes waiting withdrawals that one of these transactions may have paid: only an operator can tell. One
 * that was frozen for it before has been told about already.
 * @returns who froze, and events to append last
 */
export async function freezeEqual(
  tx: Sql,
  payments: readonly ForeignPayment[],
): ReturnType<typeof freezeDoubted> {
  const paid = payments.flatMap(({ hash, paid: all }) => all.map((terms) => ({ hash, ...terms })));
  const matches = await tx.query<{ id: string; hash: string }>(
    `SELECT DISTINCT w.id, paid.hash
       FROM unnest($1::text[], $2::numeric[], $3::text[], $4::text[])
            AS paid (destination, amount, hash, contract)
       JOIN withdrawal w ON w.destination = paid.destination AND w.amount_units = paid.amount
       JOIN asset a ON a.symbol = w.asset AND a.contract IS NOT DISTINCT FROM paid.contract
      WHERE ${mayBeDoubted("paid.hash", "$5::text[]")}
        AND NOT EXISTS (SELECT 1 FROM withdrawal_doubt d
                         WHERE d.withdrawal_id = w.id AND d.tx_hash = paid.hash)
      ORDER BY w.id, paid.hash`,
    [
      paid.map(({ destination }) => destination),
      paid.map(({ amountUnits }) => amountUnits.toString()),
      paid.map(({ hash }) => hash),
      paid.map(({ contract }) => contract ?? null),
      WAITING_STATUSES,
    ],
  );
  const doubts = matches.map(({ id, hash }) => ({
    id: toWithdrawalId(id),
    hash: storedHash(hash),
  }));
  return freezeDoubted(
    tx,
    doubts,
    (hashes) =>
      `transaction ${hashes}, unknown to the ledger, paid the same amount to this address`,
  );
}

/** An outflow of a hot wallet that is booked before anybody has acknowledged it; undefined for any other. */
export async function findUnlooked(
  sql: Sql,
  hash: Hash32,
): Promise<Pick<ForeignOutflow, "hash" | "height"> | undefined> {
  const rows = await sql.query<{ height: string }>(
    `SELECT f.height::text FROM foreign_outflow f
       JOIN wallet h ON h.address = f.wallet
      WHERE f.tx_hash = $1 AND ${UNACKNOWLEDGED} LIMIT 1`,
    [hash],
  );
  return rows[0] && { hash, height: storedHeight(rows[0].height) };
}

/**
 * Freezes waiting withdrawals that an outflow may have paid which a person books now, as its
 * acknowledgement would: booked, it holds no payment back any more. One that was acknowledged before has
 * frozen them then.
 * @param paid what the transaction may have paid; undefined where the chain does not show it: then the
 *   ledger says it
 * @returns events to append last
 */
export async function freezeBooked(
  tx: Sql,
  hash: Hash32,
  paid: ForeignPayment | undefined,
): Promise<readonly NewEvent[]> {
  if ((await findUnlooked(tx, hash)) === undefined) return [];
  return (await (paid === undefined ? freezeAsMuch(tx, hash) : freezeEqual(tx, [paid]))).events;
}

/** Proof that another transaction consumed a slot's nonce: none of its attempts can ever pay. */
export interface ForeignNonce {
  readonly slotId: string;
  readonly withdrawalId: WithdrawalId;
  readonly foreignHash: Hash32;
  readonly blockNumber: Height;
}

/**
 * Books the proof that a foreign transaction consumed a frozen withdrawal's nonce. The withdrawal
 * becomes `accepted` again and may get a second slot: its first can never pay. One that was to be
 * cancelled ends instead; one that a recovered payment may have paid stays frozen, without a slot.
 * @returns false when the withdrawal was not frozen with that slot open
 */
export function releaseWithForeignNonce(
  database: SqlDatabase,
  proof: ForeignNonce,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const { withdrawalId: id, foreignHash } = proof;
    // Held until the commit: a receipt that is recorded at this moment is seen, or sees the release.
    const frozen = await tx.query(
      `SELECT id FROM withdrawal WHERE id = $1 AND status = 'frozen' FOR UPDATE`,
      [id],
    );
    if (frozen.length === 0 || !(await closeForeignSlot(tx, proof))) return false;
    const step = { id, data: { foreignTxHash: foreignHash } };
    const { moved, events } = await stepWithdrawals(tx, "accepted", [step], ["frozen"]);
    // Thrown, so that the slot is not closed without it.
    present(moved.get(id), "frozen withdrawal of a slot that was closed");
    const repeat = await freezeRecovered(tx, [id]);
    const ended = await endIfCancelled(tx, id);
    await appendEvents(tx, [...events, ...repeat.events, ...ended]);
    return true;
  });
}

/** Closes the slot; the caller holds its frozen withdrawal. @returns false where it is not open */
export async function closeForeignSlot(tx: Sql, proof: ForeignNonce): Promise<boolean> {
  const closed = await tx.query(
    `WITH closed AS (
       UPDATE nonce_slot s SET outcome = 'foreign', mined_hash = $2, block_number = $3::bigint
        WHERE s.id = $1::bigint AND s.outcome IS NULL AND s.withdrawal_id = $4
          AND NOT EXISTS (
            SELECT 1 FROM withdrawal_attempt a WHERE a.slot_id = s.id AND a.hash = $2)
       RETURNING s.id)
     SELECT id FROM closed`,
    [proof.slotId, proof.foreignHash, proof.blockNumber, proof.withdrawalId],
  );
  return closed.length > 0;
}
