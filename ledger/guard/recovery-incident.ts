/**
 * The incident of a ledger that is not what was told of it: how it is opened, by a home or by a person's
 * word, what it refuses, and how the end of a recovery closes it. It stands in the database, so that every
 * process sees it.
 */
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { openIncident, writeIncident } from "../incidents.js";
import { storedInteger } from "../stored-values.js";
import type { LedgerMark } from "./home-mark.js";
import { readLedgerState, toMark } from "./ledger-state.js";

/** Why a ledger is closed, by what is remembered, and who says so. */
interface LossReport {
  readonly reason: string;
  readonly mark: LedgerMark;
  readonly reportedBy: string;
}

/**
 * Closes a ledger until it is recovered: signing, address issue and crediting stop. What the home
 * remembers is stored beside the reason. A repeat changes nothing.
 */
export async function writeLoss(tx: Sql, { mark, reason, reportedBy }: LossReport): Promise<void> {
  await tx.query(
    `INSERT INTO remembered_ledger
       (ledger_id, epoch, next_address_index, event_seq, reported_by)
     VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
    [mark.ledgerId, mark.epoch, mark.nextAddressIndex, mark.eventSeq, reportedBy],
  );
  const message =
    `${reason}: it comes from an older backup, or is a new one; ` +
    "nothing is signed, credited or given out before it is recovered";
  const details = { ...mark, reportedBy };
  await writeIncident(tx, { kind: "RECOVERY", height: undefined, message, details });
}

/** Numbers of events that one epoch stands for, where an epoch is read off the time. */
const NUMBERS_OF_EPOCH = 100_000;

/**
 * An operator's word that a ledger is older than what was answered from it, where no home remembers:
 * it is closed like one that was found. Nobody knows the last epoch and number that were told: both go on
 * behind what the time alone says of any life of the ledger, also of one that began at the same backup.
 * What was written since the backup was made has numbers that others may have been told: only a person knows
 * of when it is. Said again, the last word counts.
 * @param declared.nextAddressIndex all lower ones may have been given out
 * @param declared.backupAt of when the backup is; undefined where nobody says it
 */
export async function declareRecovery(
  database: SqlDatabase,
  declared: {
    readonly reason: string;
    readonly operator: string;
    readonly nextAddressIndex: number;
    readonly backupAt?: Date | undefined;
  },
): Promise<void> {
  const state = await readLedgerState(database);
  const [row] = await database.query<{ number: string }>(`SELECT number_behind_all() AS number`);
  const toldBelow = storedInteger(row?.number);
  const mark = {
    ...toMark(state),
    epoch: Math.max(state.epoch, Math.floor(toldBelow / NUMBERS_OF_EPOCH)),
    nextAddressIndex: Math.max(state.nextAddressIndex, declared.nextAddressIndex),
    eventSeq: Math.max(state.eventSeq, toldBelow),
  };
  const { operator, backupAt } = declared;
  await database.transaction(async (tx) => {
    await writeLoss(tx, {
      reason: `${operator} declared the ledger lost (${declared.reason})`,
      mark,
      reportedBy: operator,
    });
    if (backupAt === undefined) return;
    // Also where a home has closed it before: others may have been told more than that home knows.
    await tx.query(
      `UPDATE incident SET details = details || $1::jsonb
        WHERE resolved_at IS NULL AND kind = 'RECOVERY'`,
      [JSON.stringify({ backupAt: backupAt.toISOString(), toldSeq: mark.eventSeq })],
    );
  });
}

/** Opens the ledger again at the end of a recovery, inside its transaction. */
export async function closeRecovery(tx: Sql, operator: string): Promise<void> {
  await tx.query(
    `UPDATE incident SET resolved_at = now(), resolved_by = $1
      WHERE resolved_at IS NULL AND kind = 'RECOVERY'`,
    [operator],
  );
}

/**
 * Refuses what a ledger in recovery must not do.
 * @throws RECOVERY
 */
export async function refuseInRecovery(sql: Sql): Promise<void> {
  const incident = await openIncident(sql);
  if (incident?.kind === "RECOVERY") throw inRecovery(incident.message, incident.remedy);
}

/**
 * Refuses what an open incident of any kind stops.
 * @throws RECOVERY; INCIDENT_OPEN
 */
export async function refuseWhileHalted(sql: Sql): Promise<void> {
  const incident = await openIncident(sql);
  if (incident === undefined) return;
  const { kind, message, remedy } = incident;
  if (kind === "RECOVERY") throw inRecovery(message, remedy);
  throw new LedgerError("INCIDENT_OPEN", `${message}; ${remedy}`);
}

/**
 * The refusal, with what a person does about it.
 * @param remedy behind the reason
 */
export function inRecovery(reason: string, remedy = "see causeway recover"): LedgerError {
  return new LedgerError("RECOVERY", `${reason}; ${remedy}`);
}
