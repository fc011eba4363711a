/**
 * Sweeps: coins of a deposit address to a hot wallet. Intent and nonce are stored before anything is
 * signed, bytes before they are sent; every step is compare-and-set on the state. The watcher ends
 * them, in the commit that books what the chain shows (`treasury-flows.ts`).
 */
import type { Address } from "../../chain/address.js";
import { type Hash32, type Height, hexToBytes, parseHex } from "../../chain/hex.js";
import { decodeTransaction } from "../../chain/transaction.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { IS_LOST, MINED_IN } from "../assets/lost-sweeps.js";
import { isPausedSql } from "../assets/token-state.js";
import { LedgerError } from "../errors.js";
import { openIncident } from "../incidents.js";
import { lockKillSwitch } from "../kill-switch/kill-switch.js";
import { stops } from "../kill-switch/kill-switch-level.js";
import { refuseInRecovery } from "../guard/recovery-incident.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedHeight,
  storedInteger,
  storedTime,
} from "../stored-values.js";
import { lockPayable } from "../wallets/payable-wallets.js";
import { arrivalsOf } from "../requests/lost-gas.js";
import { insertAttempts, type NewSweepAttempt, type SweepAttempt } from "./sweep-attempt-rows.js";
import {
  IS_LATE,
  MOVING_STATES,
  type SweepState,
  type TopUpState,
  toSweepState,
  toTopUp,
} from "./sweep-states.js";
import { lookAgain, takeOff } from "../assets/sweep-due.js";
import { ageSecondsSql } from "../database-clock.js";

/** Nonce and price, once there is gas. */
export interface SweepGas {
  readonly nonce: bigint;
  readonly gasPriceAtoken: Atoken;
}

/** A sweep before it is written. */
export interface NewSweep {
  readonly address: Address;
  readonly asset: string;
  readonly wallet: Address;
  readonly amountUnits: bigint;
  readonly gasLimit: bigint;
  /** Undefined where the address has to be given gas first. */
  readonly gas: SweepGas | undefined;
}

/** A sweep as stored. */
export interface Sweep {
  readonly id: number;
  readonly address: Address;
  readonly index: number;
  readonly asset: string;
  readonly contract: Address | undefined;
  /** The token's code changed: it may do anything with what is sent, until a person accepts it. */
  readonly isPaused: boolean;
  /** Where its mined attempt went, or the newest goes; without any where it is meant to go. */
  readonly wallet: Address;
  /** What it was meant to bring; see `broughtUnits`. */
  readonly amountUnits: bigint;
  readonly gasLimit: bigint;
  readonly gas: SweepGas | undefined;
  /** As of `DueSweep`, by the other sweeps of the address. */
  readonly nextNonce: bigint;
  readonly state: SweepState;
  readonly reason: string | undefined;
  readonly minedHash: Hash32 | undefined;
  readonly blockNumber: Height | undefined;
  /** Oldest first. */
  readonly attempts: readonly SweepAttempt[];
  /** State of the newest move of gas to the address. */
  readonly topUp: TopUpState;
  /** Number of that move; 0 for none. */
  readonly topUpId: number;
  /** Highest block in which gas of it is booked as arrived; 0 for none. */
  readonly gasHeight: Height;
  /** All gas that it was given, or that is on its way. */
  readonly givenAtoken: Atoken;
  /** RFC 3339, UTC. */
  readonly createdAt: string;
  /** Time since `state` changed last. */
  readonly ageMs: number;
  /** Signed long ago and not booked: no block takes its price, or the watcher is behind. Keeps no place. */
  readonly isLate: boolean;
}

/**
 * Addresses that failed within a day after which an asset is left alone until the day is over, and
 * failures of one address after which it is.
 */
export const MAX_SWEEP_FAILURES = 3;

/**
 * Writes intents; an address that has an open sweep, or a nonce that was used before, gets none. Nor does
 * what is not due any more as it was looked at: another treasury has swept it since, or put it off. A deposit
 * above the block that was looked at makes it due again, also one that is booked already.
 * @param height the block whose state they were decided by
 * @returns how many were written; none while signing is stopped
 * @throws RECOVERY
 */
export function intendSweeps(
  database: SqlDatabase,
  sweeps: readonly NewSweep[],
  height: Height,
): Promise<number> {
  if (sweeps.length === 0) return Promise.resolve(0);
  return database.transaction(async (tx) => {
    await refuseInRecovery(tx);
    if (stops((await lockKillSwitch(tx)).level, "stop-sign")) return 0;
    const rows = await tx.query<{ address: string; asset: string }>(
      `WITH written AS (
         INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, nonce,
                            gas_price_atoken, state)
         SELECT address, asset, wallet, amount, gas, nonce, price,
                CASE WHEN nonce IS NULL THEN 'needs-gas' ELSE 'ready' END
           FROM unnest($1::text[], $2::text[], $3::text[], $4::numeric[], $5::numeric[],
                       $6::numeric[], $7::numeric[])
                AS input (address, asset, wallet, amount, gas, nonce, price)
           JOIN sweep_due due USING (address, asset)
          WHERE due.due_at <= now() AND due.height <= $8
          ORDER BY address
         ON CONFLICT DO NOTHING RETURNING address, asset)
       SELECT address, asset FROM written`,
      [
        sweeps.map(({ address }) => address),
        sweeps.map(({ asset }) => asset),
        sweeps.map(({ wallet }) => wallet),
        sweeps.map(({ amountUnits }) => amountUnits.toString()),
        sweeps.map(({ gasLimit }) => gasLimit.toString()),
        sweeps.map(({ gas }) => gas?.nonce.toString() ?? null),
        sweeps.map(({ gas }) => gas?.gasPriceAtoken.toString() ?? null),
        height,
      ],
    );
    const begun = rows.map(({ address, asset }) => ({ address: storedAddress(address), asset }));
    // Behind the sweeps, as where the watcher ends them.
    await takeOff(tx, begun, height);
    return rows.length;
  });
}

/**
 * Sweeps under way in the order of their age, without the frozen ones: those wait for a person, and
 * take nobody's place until then. Nor do those of assets that the policy does not name any more, and late
 * ones: of these any, so that in time each is looked at, however many there are.
 * @param window.limit how many of named assets, as many late ones, and as many of all others
 */
export function readMovingSweeps(
  sql: Sql,
  { assets, limit }: { readonly assets: readonly string[]; readonly limit: number },
): Promise<Sweep[]> {
  const moving = `SELECT s.id FROM sweep s WHERE s.state = ANY ($1::text[])`;
  const oldest = `ORDER BY s.changed_at, s.id LIMIT $2`;
  return readSweeps(
    sql,
    `WHERE s.id IN (
       (${moving} AND s.asset = ANY ($3::text[]) AND NOT ${IS_LATE} ${oldest})
       UNION ALL
       (${moving} AND s.asset = ANY ($3::text[]) AND ${IS_LATE} ORDER BY random() LIMIT $2)
       UNION ALL
       (${moving} AND s.asset <> ALL ($3::text[]) ${oldest}))
     ORDER BY s.changed_at, s.id`,
    [MOVING_STATES, limit, assets],
  );
}

/** A page of the list, oldest first. */
export function listSweeps(
  sql: Sql,
  page: {
    /** As stored: one whose block a chain has lost is among those that ended as it had. */
    readonly state?: SweepState | undefined;
    /** Only sweeps behind this one; 0 for all. */
    readonly afterId: number;
    readonly limit: number;
  },
): Promise<Sweep[]> {
  return readSweeps(
    sql,
    `WHERE s.id > $1 AND ($2::text IS NULL OR s.state = $2) ORDER BY s.id LIMIT $3`,
    [page.afterId, page.state ?? null, page.limit],
  );
}

/** What its mined attempt brings, or the newest: of coins less where it is dearer, or some were lost. */
export function broughtUnits({ contract, attempts, minedHash, amountUnits }: Sweep): bigint {
  const shown = shownOf(attempts, minedHash);
  if (contract !== undefined || shown === undefined) return amountUnits;
  return decodeTransaction(hexToBytes(shown.raw)).valueAtoken;
}

/** Those that have these nonces of their addresses, however they ended. */
export function readSweepsAt(
  sql: Sql,
  places: readonly { readonly address: Address; readonly nonce: bigint }[],
): Promise<Sweep[]> {
  return readSweeps(
    sql,
    `JOIN unnest($1::text[], $2::numeric[]) AS place (address, nonce)
       ON s.address = place.address AND s.nonce = place.nonce`,
    [places.map(({ address }) => address), places.map(({ nonce }) => nonce.toString())],
  );
}

/** One sweep, if there is one. */
export async function findSweep(sql: Sql, id: number): Promise<Sweep | undefined> {
  return (await readSweeps(sql, `WHERE s.id = $1`, [id]))[0];
}

/**
 * There is gas: nonce and price are fixed.
 * @returns false when it is not waiting for gas any more, or signing is stopped
 */
export function readySweep(database: SqlDatabase, id: number, gas: SweepGas): Promise<boolean> {
  const { nonce, gasPriceAtoken } = gas;
  return database.transaction(async (tx) => {
    if (stops((await lockKillSwitch(tx)).level, "stop-sign")) return false;
    return step(
      tx,
      `UPDATE sweep SET state = 'ready', nonce = $2, gas_price_atoken = $3
        WHERE id = $1 AND state = 'needs-gas'`,
      [id, nonce.toString(), gasPriceAtoken.toString()],
    );
  });
}

/**
 * Nothing was signed: the intent ends, its nonce is free for another one, and the address is looked at
 * again. @returns false when it went on meanwhile
 */
export function voidSweep(
  database: SqlDatabase,
  id: number,
  { reason, delayMs }: { readonly reason: string; readonly delayMs: number },
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const isVoid = await step(
      tx,
      `UPDATE sweep SET state = 'void', reason = $2, nonce = NULL, gas_price_atoken = NULL
        WHERE id = $1 AND state IN ('needs-gas', 'ready')`,
      [id, reason],
    );
    if (isVoid) await lookAgain(tx, [id], delayMs);
    return isVoid;
  });
}

/**
 * Stores signed bytes before they may be sent, of sweeps that are open, and of those whose block is lost; the
 * first attempt moves the sweep on. Those towards a wallet that may be given nothing any more are dropped:
 * whoever retires one has seen all bytes towards it. So are all where the kill switch was set, or an incident
 * opened, since they were signed.
 * @returns the sweeps whose attempt is stored now: of two that sign at once one gets in
 */
export function storeSweepAttempts(
  database: SqlDatabase,
  signed: readonly NewSweepAttempt[],
): Promise<ReadonlySet<number>> {
  if (signed.length === 0) return Promise.resolve(new Set());
  return database.transaction(async (tx) => {
    if (stops((await lockKillSwitch(tx)).level, "stop-sign")) return new Set();
    // Sweeps before wallets, as where the watcher ends them and freezes one.
    await tx.query(`SELECT 1 FROM sweep WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE`, [
      signed.map(({ sweepId }) => sweepId),
    ]);
    const payable = await lockPayable(tx, [...new Set(signed.map(({ wallet }) => wallet))]);
    // Behind the wallets' switches: it is written under them.
    if ((await openIncident(tx)) !== undefined) return new Set();
    const attempts = signed.filter(({ wallet }) => payable.has(wallet));
    // Locked above, since another treasury may be giving one up.
    return insertAttempts(
      tx,
      attempts,
      `SELECT s.id FROM sweep s WHERE s.id IN (SELECT id FROM input)
          AND (s.state IN ('ready', 'signed', 'sent') OR ${IS_LOST})`,
    );
  });
}

/** Notes of signed sweeps that a node has taken their bytes. */
export async function markSweepsSent(sql: Sql, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await sql.query(
    // In the order in which the watcher ends them: a block may have come already.
    `WITH signed AS (
       SELECT id FROM sweep WHERE id = ANY ($1::bigint[]) AND state = 'signed'
        ORDER BY id FOR UPDATE)
     UPDATE sweep s SET state = 'sent' FROM signed WHERE s.id = signed.id`,
    [ids],
  );
}

/** Nobody knows what used its nonce: nothing more is signed for the address until a person looked. */
export async function freezeSweep(sql: Sql, id: number, reason: string): Promise<boolean> {
  return step(
    sql,
    `UPDATE sweep SET state = 'frozen', reason = $2
      WHERE id = $1 AND state IN ('ready', 'signed', 'sent')`,
    [id, reason],
  );
}

/**
 * A person looked at a frozen sweep: its nonce is free, and its bytes are sent again, or it is signed
 * where it never was; or another transaction used it, and the address is looked at anew. Inside the caller's
 * transaction; its next step overwrites the reason.
 * @throws NOT_FROZEN
 */
export async function releaseSweep(
  tx: Sql,
  id: number,
  release: { readonly isNonceUsed: boolean; readonly reason: string },
): Promise<void> {
  const isDone = await step(
    tx,
    `UPDATE sweep
        SET state = CASE WHEN $2 THEN 'foreign'
                    WHEN EXISTS (SELECT 1 FROM sweep_attempt t WHERE t.sweep_id = sweep.id)
                    THEN 'signed' ELSE 'ready' END,
            reason = $3
      WHERE id = $1 AND state = 'frozen'`,
    [id, release.isNonceUsed, release.reason],
  );
  if (!isDone) throw new LedgerError("NOT_FROZEN", `sweep ${id} is not frozen`);
  if (release.isNonceUsed) await lookAgain(tx, [id], 0);
}

async function step(sql: Sql, statement: string, values: readonly unknown[]): Promise<boolean> {
  const rows = await sql.query(`WITH moved AS (${statement} RETURNING 1) SELECT 1 FROM moved`, [
    ...values,
  ]);
  return rows.length > 0;
}

interface SweepRow {
  readonly id: string;
  readonly address: string;
  readonly index: string;
  readonly asset: string;
  readonly contract: string | null;
  readonly is_paused: boolean;
  readonly wallet: string;
  readonly amount: string;
  readonly gas_limit: string;
  readonly nonce: string | null;
  readonly price: string | null;
  readonly next_nonce: string;
  readonly state: string;
  readonly reason: string | null;
  readonly mined_hash: string | null;
  readonly block_number: string | null;
  readonly top_up: string | null;
  readonly top_up_id: string | null;
  readonly gas_height: string;
  readonly given: string;
  readonly created_at: unknown;
  readonly age_ms: string;
  readonly is_late: boolean;
  readonly attempts:
    | readonly {
        readonly n: number;
        readonly raw: string;
        readonly hash: string;
        readonly wallet: string;
        readonly price: string;
        readonly age_ms: string;
      }[]
    | null;
}

async function readSweeps(sql: Sql, where: string, values: readonly unknown[]): Promise<Sweep[]> {
  const rows = await sql.query<SweepRow>(
    `SELECT s.id::text, s.address, d.index::text, s.asset, a.contract, s.wallet,
            ${isPausedSql("s.asset")} AS is_paused,
            s.amount_units::text AS amount, s.gas_limit::text, s.nonce::text,
            s.gas_price_atoken::text AS price, coalesce(mined.state, s.state) AS state,
            coalesce(mined.reason, s.reason) AS reason, mined.hash AS mined_hash,
            mined.height::text AS block_number, s.created_at,
            gas.top_up, gas.top_up_id, gas.given, gas.gas_height,
            (SELECT coalesce(max(o.nonce) + 1, 0)::text FROM sweep o
              WHERE o.address = s.address AND o.id <> s.id) AS next_nonce,
            (${ageSecondsSql("s.changed_at")} * 1000)::bigint::text AS age_ms,
            ${IS_LATE} AS is_late,
            (SELECT jsonb_agg(jsonb_build_object('n', t.n, 'raw', t.raw, 'hash', t.hash,
                      'wallet', coalesce(t.wallet, s.wallet), 'price', t.gas_price_atoken::text, 'age_ms',
                      (${ageSecondsSql("t.created_at")} * 1000)::bigint::text)
                      ORDER BY t.n)
               FROM sweep_attempt t WHERE t.sweep_id = s.id) AS attempts
       FROM sweep s
       JOIN deposit_address d ON d.address = s.address
       JOIN asset a ON a.symbol = s.asset
      CROSS JOIN LATERAL (${MINED_IN}) AS mined
      CROSS JOIN LATERAL (
              SELECT (array_agg(m.state ORDER BY m.id DESC))[1] AS top_up,
                     max(m.id)::text AS top_up_id,
                     coalesce(max((SELECT max(e.effective_height) FROM ${arrivalsOf("m.id")})),
                              0)::text AS gas_height,
                     coalesce(sum(m.amount_units) FILTER (WHERE m.state NOT IN ('void', 'stranded')), 0)::text
                       AS given
                FROM treasury_move m WHERE m.sweep_id = s.id) AS gas ${where}`,
    [...values],
  );
  return rows.map(toSweep);
}

function toSweep(row: SweepRow): Sweep {
  const attempts = (row.attempts ?? []).map((attempt) => ({
    n: attempt.n,
    wallet: storedAddress(attempt.wallet),
    raw: parseHex(attempt.raw),
    hash: storedHash(attempt.hash),
    gasPriceAtoken: storedAtoken(attempt.price),
    ageMs: storedInteger(attempt.age_ms),
  }));
  const minedHash = row.mined_hash === null ? undefined : storedHash(row.mined_hash);
  return {
    id: storedInteger(row.id),
    address: storedAddress(row.address),
    index: storedInteger(row.index),
    asset: row.asset,
    contract: row.contract === null ? undefined : storedAddress(row.contract),
    isPaused: row.is_paused,
    wallet: shownOf(attempts, minedHash)?.wallet ?? storedAddress(row.wallet),
    amountUnits: storedAtoken(row.amount),
    gasLimit: storedAtoken(row.gas_limit),
    gas:
      row.nonce === null || row.price === null
        ? undefined
        : { nonce: storedAtoken(row.nonce), gasPriceAtoken: storedAtoken(row.price) },
    nextNonce: storedAtoken(row.next_nonce),
    state: toSweepState(row.state),
    reason: row.reason ?? undefined,
    minedHash,
    blockNumber: row.block_number === null ? undefined : storedHeight(row.block_number),
    attempts,
    topUp: toTopUp(row.top_up),
    topUpId: row.top_up_id === null ? 0 : storedInteger(row.top_up_id),
    gasHeight: storedHeight(row.gas_height),
    givenAtoken: storedAtoken(row.given),
    createdAt: storedTime(row.created_at),
    ageMs: storedInteger(row.age_ms),
    isLate: row.is_late,
  };
}

/** The one that is mined, or the newest. */
function shownOf(
  attempts: readonly SweepAttempt[],
  minedHash: Hash32 | undefined,
): SweepAttempt | undefined {
  return attempts.find(({ hash }) => hash === minedHash) ?? attempts.at(-1);
}
