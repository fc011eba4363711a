/** The kill switch in the ledger: append-only, its latest row counts. */
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { storedTime } from "../stored-values.js";
import { LedgerError } from "../errors.js";
import {
  isKillSwitchLevel,
  isSameSwitch,
  type KillSwitchLevel,
  type KillSwitchState,
  stricter,
  SWITCH_UNTOUCHED,
} from "./kill-switch-level.js";

/** Advisory lock: shared by whoever takes new requests, alone for who sets the switch. */
const SWITCH_LOCK = 8_083_000_009n;

/** SQL: has who sets the switch wait for this transaction, or waits for who sets it now. */
export const HOLD_SWITCH = `pg_advisory_xact_lock_shared(${SWITCH_LOCK})`;

/**
 * Wait for who holds what the switch needs: commits of the kit, for some milliseconds, and a recovery.
 * Whoever else keeps a session open with it would have who stops payments wait for ever.
 */
const LOCK_WAIT_MS = 5_000;

/** What the ledger says now. */
export async function readKillSwitch(sql: Sql): Promise<KillSwitchState> {
  const [row] = await sql.query<{ level: string; reason: string; set_by: string; at: unknown }>(
    `SELECT level, reason, set_by, at FROM kill_switch ORDER BY id DESC LIMIT 1`,
  );
  if (row === undefined) return SWITCH_UNTOUCHED;
  const { level } = row;
  if (!isKillSwitchLevel(level)) throw new Error(`the ledger holds an unknown level: ${level}`);
  return { level, reason: row.reason, by: row.set_by, at: storedTime(row.at) };
}

/** The same, held: who sets the switch waits for the caller's commit, or is seen. */
export async function lockKillSwitch(tx: Sql): Promise<KillSwitchState> {
  await tx.query(`SELECT ${HOLD_SWITCH}`);
  return readKillSwitch(tx);
}

/** What who sets the switch may not do. */
export interface SwitchBounds {
  /** Stop less than is stopped. */
  readonly neverLower?: boolean;
  /** Stop less than is stopped, where the ledger says something else than this, which the caller has seen. */
  readonly seen?: KillSwitchState;
  /** No COMMIT is sent behind it: whoever waited has been told that the ledger was not. */
  readonly signal?: AbortSignal;
  /** Called right before the COMMIT: from then on it may count, however late it is answered. */
  readonly onCommit?: () => void;
}

/** What the ledger said before, and says now. */
export interface SwitchSet {
  readonly before: KillSwitchState;
  readonly now: KillSwitchState;
}

/**
 * Sets or lifts the switch. When it resolves, every commit that takes a request, a nonce or a
 * signature was made before, or knows it.
 * @throws SWITCH_LOWERED; the signal's reason; DATABASE_UNAVAILABLE where somebody keeps a lock that it needs
 */
export function setKillSwitch(
  database: Pick<SqlDatabase, "transaction">,
  wanted: { readonly level: KillSwitchLevel; readonly reason: string; readonly by: string },
  { neverLower = false, seen, signal, onCommit }: SwitchBounds = {},
): Promise<SwitchSet> {
  return database.transaction(async (tx) => {
    await tx.query(`SELECT set_config('lock_timeout', $1, true)`, [String(LOCK_WAIT_MS)]);
    await tx.query(`SELECT pg_advisory_xact_lock($1::bigint)`, [SWITCH_LOCK]);
    // Signatures are stored under these rows' locks.
    await tx.query(`SELECT wallet FROM signing_freeze ORDER BY wallet FOR UPDATE`);
    const before = await readKillSwitch(tx);
    const isLowered = stricter({ ...SWITCH_UNTOUCHED, level: wanted.level }, before) === before;
    const isNew = seen !== undefined && !isSameSwitch(seen, before);
    if (isLowered && (neverLower || isNew)) {
      throw new LedgerError("SWITCH_LOWERED", `the kill switch is at ${before.level}`);
    }
    const { level, reason, by } = wanted;
    const [row] = await tx.query<{ at: unknown }>(
      `INSERT INTO kill_switch (level, reason, set_by) VALUES ($1, $2, $3) RETURNING at`,
      [level, reason, by],
    );
    signal?.throwIfAborted();
    onCommit?.();
    return { before, now: { level, reason, by, at: storedTime(row?.at) } };
  });
}
