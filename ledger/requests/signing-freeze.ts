/**
 * Whether a hot wallet signs: its own switch, the kill switch and incidents. While frozen nothing new
 * is signed, whoever asks.
 */
import type { Address } from "../../chain/address.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { type Incident, incidentText, openIncident } from "../incidents.js";
import { readKillSwitch } from "../kill-switch/kill-switch.js";
import { type KillSwitchState, stops } from "../kill-switch/kill-switch-level.js";
import { storedTime } from "../stored-values.js";
import { SWITCH_RELEASE, type SwitchRelease, toSwitchRelease } from "../wallets/wallet-lease.js";
import {
  ALSO,
  BEHIND_CAUSE,
  behindReason,
  causeInWords,
  HAS_BEHIND_CAUSE,
  MAX_CAUSE_LENGTH,
  RELEASED,
  seenIn,
  seenInReleased,
  withBehindReason,
} from "./freeze-causes.js";
import { STOPS_SIGNING } from "./unexplained-outflows.js";

/** Whether a wallet may sign, and since when and why not. */
export interface SigningFreeze {
  /** True by its switch, by the kill switch, and while an incident is open (D10). */
  readonly frozen: boolean;
  /** Why it was frozen or released; empty where neither ever happened. */
  readonly reason: string;
  /** RFC 3339, UTC; undefined where it never changed. */
  readonly changedAt: string | undefined;
  /**
   * Why nothing new gets a nonce although it may sign: the chain knows payments of another wallet that
   * this ledger does not, and what they paid may be asked for again.
   */
  readonly behindElsewhere?: string | undefined;
}

type ReleaseRow = Parameters<typeof toSwitchRelease>[0];

interface FreezeRow {
  readonly frozen: boolean;
  readonly reason: string;
  readonly changed_at: unknown;
}

/** Reads whether a wallet may sign; one without a row was never frozen by its switch. */
export async function readFreeze(sql: Sql, wallet: Address): Promise<SigningFreeze> {
  const rows = await sql.query<FreezeRow>(
    `SELECT frozen, reason, changed_at FROM signing_freeze WHERE wallet = $1`,
    [wallet],
  );
  const freeze = toFreeze(rows[0], await readKillSwitch(sql), await openIncident(sql));
  return { ...freeze, behindElsewhere: await readBehindElsewhere(sql, wallet) };
}

/**
 * The same inside a signing transaction, held: a freeze or an incident that comes at the same time
 * waits for the commit, or is seen.
 */
export async function lockFreeze(tx: Sql, wallet: Address): Promise<SigningFreeze> {
  const rows = await tx.query<FreezeRow>(
    `SELECT frozen, reason, changed_at FROM signing_freeze WHERE wallet = $1 FOR SHARE`,
    [wallet],
  );
  // Read behind the lock: an incident is written and the kill switch set under it.
  const freeze = toFreeze(rows[0], await readKillSwitch(tx), await openIncident(tx));
  return { ...freeze, behindElsewhere: await readBehindElsewhere(tx, wallet) };
}

/**
 * A wallet that somebody pays with by hand is behind by its nonces, or, where its lane opened behind them or
 * never did, by what the watcher has found. A retired wallet pays nothing: its key may be anybody's.
 */
async function readBehindElsewhere(sql: Sql, wallet: Address): Promise<string | undefined> {
  const [row] = await sql.query<{ wallet: string; reason: string }>(
    `SELECT f.wallet, f.reason FROM signing_freeze f JOIN wallet w ON w.address = f.wallet
      WHERE f.frozen AND f.wallet <> $1 AND w.status <> 'retired'
        AND (f.reason ~ $2 OR EXISTS (
              SELECT 1 FROM (SELECT * FROM foreign_outflow o WHERE o.wallet = w.address) AS f
               WHERE ${STOPS_SIGNING}))
      ORDER BY w.place LIMIT 1`,
    [wallet, HAS_BEHIND_CAUSE],
  );
  return row && `wallet ${row.wallet} is frozen: ${row.reason}`;
}

/** The highest next nonce of a wallet that a process was shown: it never falls by itself. */
export interface ShownNonce {
  readonly nonce: bigint;
  /** When the wallet was let go on last, as far as the process was shown: see `isLetGo`. */
  readonly releasedAt?: bigint | undefined;
}

/** What a process was shown of wallets. */
export type KnownNonces = ReadonlyMap<Address, ShownNonce>;

/**
 * Why what waits may be paid without this ledger's knowing: a wallet has used nonces that the ledger gave
 * nobody, or gave and has lost since. Undefined where nothing says so.
 * @param shown what the caller was shown
 */
export async function readBehind(
  sql: Sql,
  shown: KnownNonces = new Map(),
): Promise<string | undefined> {
  const [row] = await sql.query<{ wallet: string; reason: string }>(
    `SELECT f.wallet, f.reason FROM signing_freeze f JOIN wallet w ON w.address = f.wallet
      WHERE f.frozen AND w.status <> 'retired' AND f.reason ~ $1
      ORDER BY w.place LIMIT 1`,
    [HAS_BEHIND_CAUSE],
  );
  if (row !== undefined) return `wallet ${row.wallet} is frozen: ${row.reason}`;
  const lost = await lostNonces(sql, shown);
  return lost && `the ledger has lost nonces of wallet ${lost} that it had given`;
}

/**
 * A wallet whose next nonce is below what was shown of it, and which nobody has let go on since; undefined
 * where none is. Not a retired one, as of `readBehind`.
 */
export async function lostNonces(sql: Sql, shown: KnownNonces): Promise<Address | undefined> {
  if (shown.size === 0) return undefined;
  const rows = await sql.query<{ wallet: string; released: ReleaseRow }>(
    `SELECT shown.wallet, CASE WHEN NOT f.frozen THEN ${SWITCH_RELEASE} END AS released
       FROM unnest($1::text[], $2::numeric[]) AS shown (wallet, nonce)
       LEFT JOIN hot_wallet h USING (wallet)
       LEFT JOIN signing_freeze f USING (wallet)
       LEFT JOIN wallet w ON w.address = shown.wallet
      WHERE coalesce(h.next_nonce, -1) < shown.nonce AND w.status IS DISTINCT FROM 'retired'`,
    [[...shown.keys()], [...shown.values()].map(({ nonce }) => nonce.toString())],
  );
  const released = new Map(rows.map((row) => [row.wallet, toSwitchRelease(row.released)]));
  const isLost = ([wallet, { nonce: seen, releasedAt: knownAt }]: [Address, ShownNonce]) =>
    released.has(wallet) && !isLetGo(released.get(wallet), { seen, knownAt });
  return [...shown].find(isLost)?.[0];
}

/**
 * Pure: whether a person has let a wallet go on that was frozen for these lost nonces. What was known of
 * them before counts no more then; what is known since does, also of the same nonces: they were given and
 * lost anew.
 * @param lost.seen the next nonce that shows them
 * @param lost.knownAt the last release that was known when it was shown; undefined for none
 */
export function isLetGo(
  released: SwitchRelease | undefined,
  { seen, knownAt }: { readonly seen: bigint; readonly knownAt: bigint | undefined },
): boolean {
  if (released === undefined || released.at <= (knownAt ?? -1n)) return false;
  const named = seenInReleased(released.reason);
  return named !== undefined && seen <= named;
}

/**
 * Freezes signing. A further cause stands behind the first, so that whoever takes one away sees the
 * others; of many the first ones and the last stay, and what says that nonces are lost. They are left out in
 * whole: a database of SQL_ASCII would cut within a character, and nobody could read the row.
 * @param words of persons or strangers, too: they are read as no lost nonces
 * @returns false if it was frozen for this cause already
 */
export function freezeSigning(sql: Sql, wallet: Address, words: string): Promise<boolean> {
  return addCause(sql, wallet, causeInWords(words));
}

async function addCause(sql: Sql, wallet: Address, cause: string): Promise<boolean> {
  const rows = await sql.query(
    `WITH changed AS (
       INSERT INTO signing_freeze AS old (wallet, frozen, reason) VALUES ($1, true, $2)
       ON CONFLICT (wallet) DO UPDATE
          SET frozen = true,
              reason = coalesce((
                SELECT string_agg(cause, $3::text ORDER BY place)
                  FROM (SELECT cause, place, sum(length(cause)) OVER (ORDER BY place) AS total
                          FROM unnest(string_to_array(old.reason, $3::text)) WITH ORDINALITY
                            AS causes (cause, place)) AS causes
                 WHERE old.frozen AND (place = 1 OR total <= $5 OR cause ~ $4)) || $3::text, '') || $2,
              changed_at = CASE WHEN old.frozen THEN old.changed_at ELSE now() END
         WHERE NOT old.frozen OR $2 <> ALL (string_to_array(old.reason, $3::text))
       RETURNING wallet)
     SELECT wallet FROM changed`,
    [wallet, cause, ALSO, BEHIND_CAUSE, MAX_CAUSE_LENGTH],
  );
  return rows.length > 0;
}

/**
 * Freezes signing because the chain knows nonces that the ledger does not, if that is so still: a
 * recovery may have taken them over since the wallet was read, or a person have let it go on, and nothing
 * would lift this again. Where it is frozen for less of them the cause names these, so that whoever lets it
 * go on has seen all.
 * @param behind.seen the chain's next nonce
 * @param behind.known the ledger's
 * @param behind.released as the wallet was read
 * @returns false if it was frozen for this cause already, the ledger knows the nonces, or a person does
 */
export function freezeBehindChain(
  database: SqlDatabase,
  {
    wallet,
    seen,
    known,
    released: before,
  }: {
    readonly wallet: Address;
    readonly seen: bigint;
    readonly known: bigint;
    readonly released?: SwitchRelease | undefined;
  },
): Promise<boolean> {
  return database.transaction(async (tx) => {
    // A recovery takes this lock before it changes nonces.
    const [row] = await tx.query<{
      frozen: boolean;
      reason: string;
      released: ReleaseRow;
    }>(
      `SELECT f.frozen, f.reason, CASE WHEN NOT f.frozen THEN ${SWITCH_RELEASE} END AS released
         FROM signing_freeze f WHERE wallet = $1 FOR UPDATE`,
      [wallet],
    );
    if (isLetGo(toSwitchRelease(row?.released), { seen, knownAt: before?.at })) return false;
    const rows = await tx.query<{ is_known: boolean }>(
      `SELECT next_nonce >= $2::numeric AS is_known FROM hot_wallet WHERE wallet = $1`,
      [wallet, seen.toString()],
    );
    if (rows[0]?.is_known === true) return false;
    const reason = behindReason(seen, known);
    const named = row?.frozen === true ? seenIn(row.reason) : undefined;
    if (row === undefined || named === undefined) return addCause(tx, wallet, reason);
    if (named >= seen) return false;
    await tx.query(`UPDATE signing_freeze SET reason = $2 WHERE wallet = $1`, [
      wallet,
      withBehindReason(row.reason, reason),
    ]);
    return true;
  });
}

/** At the end of a recovery: lifts a freeze whose only cause is what was recovered. */
export async function releaseBehindChain(tx: Sql, wallet: Address): Promise<void> {
  await tx.query(
    `UPDATE signing_freeze SET frozen = false, reason = 'recovered', changed_at = now()
      WHERE wallet = $1 AND frozen AND reason ~ $2`,
    [wallet, BEHIND_CAUSE],
  );
}

/** Why a wallet's own switch is thrown. */
export interface SwitchCause {
  /** All causes in one text. */
  readonly reason: string;
  /** When the first of them threw it, as the database writes it. */
  readonly since: string;
}

/** Why a wallet's own switch is thrown; undefined while it is not. */
export async function readSwitchCause(sql: Sql, wallet: Address): Promise<SwitchCause | undefined> {
  const [row] = await sql.query<{ reason: string; since: string }>(
    `SELECT reason, changed_at::text AS since FROM signing_freeze WHERE wallet = $1 AND frozen`,
    [wallet],
  );
  return row;
}

/**
 * Lifts the freeze; the caller has looked first. Its causes stay named behind the reason: see `isLetGo`.
 * @param looked what `readSwitchCause` said before: a cause that came since has nobody looked at, and
 *   nothing is lifted; nor where it was lifted and thrown again; absent where whatever there is may be
 * @returns false if it was not frozen, or not for these causes alone
 */
export async function releaseSigning(
  sql: Sql,
  wallet: Address,
  looked?: SwitchCause,
): Promise<boolean> {
  const rows = await sql.query(
    `WITH changed AS (
       UPDATE signing_freeze old
          SET frozen = false, reason = $2 || old.reason, changed_at = now()
        WHERE wallet = $1 AND frozen AND old.reason = coalesce($3, old.reason)
          AND old.changed_at = coalesce($4::timestamptz, old.changed_at)
       RETURNING wallet)
     SELECT wallet FROM changed`,
    [wallet, RELEASED, looked?.reason ?? null, looked?.since ?? null],
  );
  return rows.length > 0;
}

function toFreeze(
  row: FreezeRow | undefined,
  killSwitch: KillSwitchState,
  incident: Incident | undefined,
): SigningFreeze {
  if (row?.frozen !== true && stops(killSwitch.level, "stop-sign")) {
    const { level, reason, at } = killSwitch;
    return { frozen: true, reason: `kill switch ${level}: ${reason}`, changedAt: at };
  }
  // The switch comes first: it stays when the incident is over.
  if (row?.frozen !== true && incident !== undefined) {
    return { frozen: true, reason: incidentText(incident), changedAt: incident.openedAt };
  }
  if (row === undefined) return { frozen: false, reason: "", changedAt: undefined };
  return { frozen: row.frozen, reason: row.reason, changedAt: storedTime(row.changed_at) };
}
