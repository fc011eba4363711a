/**
 * Holds a ledger against what the home remembers of it. One that is behind, or another one, is put
 * into recovery in the database itself, so that every process sees it; what is told to others is
 * remembered in the home first.
 */
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { Logger } from "../../runtime/process/logger.js";
import { sleep } from "../../runtime/process/task.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { holdForIncident, openIncident, writeIncident } from "../incidents.js";
import { storedInteger, timeTextSql } from "../stored-values.js";
import { HomeMark, type LedgerMark } from "./home-mark.js";
import { addTold, eventOf, hasToldNumber, TOLD_BEFORE } from "./told-before.js";

/** A ledger's own account of itself. */
export interface LedgerState extends LedgerMark {
  /** Ledgers whose losses this one has taken over in recoveries. */
  readonly recoveredIds: readonly string[];
  /** When the event was written that was told last, by its number; undefined where there is none. */
  readonly toldEventAt: string | undefined;
  /** Epoch of that event, or of the last one before it; undefined where there is none. */
  readonly toldEventEpoch: number | undefined;
  /**
   * Whether a recovery has told it again by a number of its own, or was made by the very mark that is held
   * against the ledger: what its home knew is taken over.
   */
  readonly isEventTakenOver: boolean;
  /** When the address was given out that was told last, by its index; undefined where there is none. */
  readonly toldAddressAt: string | undefined;
  /**
   * Whether a recovery has registered that address, for nobody, or was made by a home that had told it as
   * well: a person was told that it may have two customers.
   */
  readonly isAddressTakenOver: boolean;
}

/** Reads what a ledger says of itself. @param told what a home remembers of it */
export async function readLedgerState(sql: Sql, told?: LedgerMark): Promise<LedgerState> {
  const rows = await sql.query<{
    ledger_id: string | null;
    epoch: number;
    seq: string;
    next_address_index: string;
    recovered: readonly string[] | null;
    event_at: string | null;
    told_at: string | null;
    told_epoch: number | null;
    event_taken_over: boolean;
    address_at: string | null;
    told_address_at: string | null;
    address_taken_over: boolean;
    read_at: string;
  }>(
    `WITH told AS MATERIALIZED (${TOLD_BEFORE} AND resolved_at IS NOT NULL)
     SELECT (SELECT value FROM meta WHERE key = 'ledger_id') AS ledger_id, counter.epoch, counter.seq,
            next_address_index,
            (SELECT array_agg(DISTINCT ledger_id) FROM remembered_ledger) AS recovered,
            (SELECT ${timeTextSql("at")} FROM event e WHERE e.seq = counter.seq) AS event_at,
            (SELECT ${timeTextSql("at")} FROM event e WHERE e.seq = $1::bigint) AS told_at,
            event.epoch AS told_epoch,
            ${hasToldNumber()} OR EXISTS (SELECT 1 FROM told WHERE told.details @> $3::jsonb)
              AS event_taken_over,
            (SELECT ${timeTextSql("registered_at")} FROM deposit_address
              WHERE index = next_address_index - 1) AS address_at,
            ${timeTextSql("address.registered_at")} AS told_address_at,
            EXISTS (SELECT 1 FROM told
                     -- In the commit of a recovery, or behind what its home had told by then.
                     WHERE told.resolved_at = address.registered_at
                        OR (told.next_address_index > address.index
                            AND told.addresses_at < address.registered_at)
                        OR told.details @> $4::jsonb) AS address_taken_over,
            ${timeTextSql("clock_timestamp()")} AS read_at
       FROM event_counter counter CROSS JOIN watch_cursor
       LEFT JOIN LATERAL (SELECT * FROM event WHERE event.seq <= $1::bigint
                           ORDER BY event.seq DESC LIMIT 1) AS event ON true
       LEFT JOIN deposit_address address ON address.index = $2::bigint - 1`,
    [
      told?.eventSeq ?? null,
      told?.nextAddressIndex ?? null,
      told === undefined ? null : JSON.stringify(eventOf(told)),
      told === undefined ? null : JSON.stringify(addressOf(told)),
    ],
  );
  const row = rows[0];
  if (row === undefined || row.ledger_id === null) {
    throw new LedgerError("CORRUPT_ROW", "the ledger has no identity");
  }
  return {
    ledgerId: row.ledger_id,
    epoch: row.epoch,
    eventSeq: storedInteger(row.seq),
    nextAddressIndex: storedInteger(row.next_address_index),
    recoveredIds: row.recovered ?? [],
    eventAt: row.event_at ?? undefined,
    toldEventAt: row.told_at ?? undefined,
    toldEventEpoch: row.told_epoch ?? undefined,
    isEventTakenOver: row.event_taken_over,
    addressAt: row.address_at ?? undefined,
    toldAddressAt: row.told_address_at ?? undefined,
    isAddressTakenOver: row.address_taken_over,
    readAt: row.read_at,
  };
}

/** The last address that a mark knows, as the incident has it that was opened by the mark. */
function addressOf({ ledgerId, epoch, nextAddressIndex, addressAt }: LedgerMark) {
  return { ledgerId, epoch, nextAddressIndex, addressAt };
}

/** Pure: why a ledger is not the one that a home remembers, or behind it; undefined when it is. */
function lossOf(mark: LedgerMark, state: LedgerState): string | undefined {
  if (mark.ledgerId !== state.ledgerId && !state.recoveredIds.includes(mark.ledgerId)) {
    return `this is another ledger (${state.ledgerId}) than the one that answered (${mark.ledgerId})`;
  }
  if (state.nextAddressIndex < mark.nextAddressIndex) {
    return (
      `the ledger knows ${state.nextAddressIndex} addresses, and ${mark.nextAddressIndex} ` +
      "were given out"
    );
  }
  // What others have given out since may have reached the index, also behind a recovery that knew less.
  const isOtherAddress = mark.addressAt !== undefined && state.toldAddressAt !== mark.addressAt;
  if (isOtherAddress && (state.epoch === mark.epoch || !state.isAddressTakenOver)) {
    return (
      `the ledger's address ${mark.nextAddressIndex - 1} is not the one that was given out: it may have ` +
      "been given to two customers, of whom the ledger knows the second"
    );
  }
  // Behind the addresses: that one has two customers is told by nothing else, nor again behind a recovery.
  if (state.epoch < mark.epoch) {
    return `the ledger is at epoch ${state.epoch}, and epoch ${mark.epoch} was answered`;
  }
  if (state.eventSeq < mark.eventSeq) {
    return `the ledger ends at event ${state.eventSeq}, and event ${mark.eventSeq} was told`;
  }
  // What others have written since may have reached the number, also before a recovery that knew less. Behind
  // one it may have no event.
  const isOtherEvent = mark.eventAt !== undefined && state.toldEventAt !== mark.eventAt;
  if (isOtherEvent && (state.epoch === mark.epoch || isStillTold(mark, state))) {
    return `the ledger's event ${mark.eventSeq} is not the one that was told`;
  }
  // A recovery by what another home remembered has begun its epoch at numbers that were told here.
  const isLater = state.toldEventEpoch !== undefined && state.toldEventEpoch > mark.epoch;
  if (isLater && !state.isEventTakenOver) {
    return (
      `event ${mark.eventSeq} was told in epoch ${mark.epoch}, and the ledger counts from a lower one in ` +
      `epoch ${state.toldEventEpoch}`
    );
  }
  return undefined;
}

/**
 * Pure: whether the event that has a mark's number was written before every recovery that the mark does not
 * know of, and is told under that number still.
 */
function isStillTold(mark: LedgerMark, state: LedgerState): boolean {
  const { toldEventAt, toldEventEpoch, isEventTakenOver } = state;
  if (toldEventAt === undefined || toldEventEpoch === undefined) return false;
  return toldEventEpoch <= mark.epoch && !isEventTakenOver;
}

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

/**
 * Closes a ledger if it is behind still when no other commit can change it: it may have been
 * recovered since it was looked at, and that would be undone.
 * @returns why it is behind
 */
function closeLost(
  database: SqlDatabase,
  { mark, reportedBy }: Omit<LossReport, "reason">,
): Promise<string | undefined> {
  return database.transaction(async (tx) => {
    await holdForIncident(tx, "RECOVERY");
    const reason = lossOf(mark, await readLedgerState(tx, mark));
    if (reason === undefined) return undefined;
    await writeLoss(tx, { reason, mark, reportedBy });
    await addTold(tx, mark);
    return reason;
  });
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

/** What is answered where the database has lost what this process had it write, and nobody was told of it. */
export function commitLost(): LedgerError {
  return new LedgerError("COMMIT_LOST", "the ledger has lost what it had just written", {
    retriable: true,
  });
}

/**
 * A person may type before any service has met an older ledger: it is closed first, so that nothing is
 * decided by what it has forgotten.
 * @returns whether this home remembers a ledger at all: else nothing was found out
 * @throws HOME_MARK_UNUSABLE
 */
export async function closeIfBehind(database: SqlDatabase, home: string): Promise<boolean> {
  const guard = await LedgerGuard.open({ database, home, reporter: "causeway" });
  await guard.check();
  return guard.isRemembering;
}

/** Between two looks of a process that waits for nothing else: a ledger may be put back under it. */
const LOOK_PAUSE_MS = 1_000;

/** What is to be told. */
interface Told {
  /** Highest number of the events. */
  readonly eventSeq?: number;
  readonly addresses?: readonly { readonly index: number; readonly customerId: string }[];
}

/**
 * Holds the ledger against what the home remembers of it, and remembers there what this process has told
 * of.
 */
export class LedgerGuard {
  readonly #database: SqlDatabase;
  readonly #mark: HomeMark;
  readonly #reporter: string;
  #trouble: string | undefined;

  private constructor(database: SqlDatabase, mark: HomeMark, reporter: string) {
    this.#database = database;
    this.#mark = mark;
    this.#reporter = reporter;
  }

  /**
   * Opens the home's mark and holds the ledger against it.
   * @throws HOME_MARK_UNUSABLE
   */
  static async open(options: {
    readonly database: SqlDatabase;
    readonly home: string;
    /** Name of the process. */
    readonly reporter: string;
  }): Promise<LedgerGuard> {
    const { database, home, reporter } = options;
    return new LedgerGuard(database, await HomeMark.open(home), reporter);
  }

  /** Looks again and again until the signal fires; the next look is made whatever one fails by. */
  async follow({ signal, log }: { readonly signal: AbortSignal; readonly log: Logger }) {
    for (;;) {
      await sleep(LOOK_PAUSE_MS, { signal });
      await this.look(log).catch(() => undefined);
    }
  }

  /** Why the home cannot remember its ledger, by the last look; undefined where it can. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Whether the home has met a ledger: one that has not takes whichever there is for its own. */
  get isRemembering(): boolean {
    return this.#mark.value !== undefined;
  }

  /** All lower address indexes may have been given out. */
  get nextAddressIndex(): number {
    return this.#mark.value?.nextAddressIndex ?? 0;
  }

  /**
   * Puts the ledger into recovery when it is not what the home remembers; one that stands is
   * remembered as it is now, on disk when this resolves.
   * @returns why it is not what the home remembers
   * @throws HOME_MARK_UNUSABLE
   */
  async keep(): Promise<string | undefined> {
    const judged = await this.#judge();
    if (typeof judged === "string") return judged;
    await this.#mark.raise(toMark(judged));
    return undefined;
  }

  /**
   * As `keep`, for work that goes on all the same where the home cannot be written: an older ledger is found
   * by what was written before. It is told of once.
   */
  async look(log: Logger): Promise<void> {
    try {
      await this.keep();
      this.#trouble = undefined;
    } catch (error) {
      if (errorCode(error) !== "HOME_MARK_UNUSABLE") throw error;
      const reason = errorMessage(error);
      if (this.#trouble !== reason) log.error({ reason }, "the home cannot remember its ledger");
      this.#trouble = reason;
    }
  }

  /**
   * Before something committed is told to others: it is remembered first. What a standby that took over has
   * not got is told to nobody: an address would be the next customer's.
   * @throws COMMIT_LOST, RECOVERY, HOME_MARK_UNUSABLE
   */
  async beforeTelling(told: Told): Promise<void> {
    const { eventSeq = 0, addresses = [] } = told;
    const known = this.#mark.value;
    const isKnown =
      known !== undefined &&
      known.eventSeq >= eventSeq &&
      addresses.every(({ index }) => known.nextAddressIndex > index);
    if (isKnown && addresses.length === 0) return;
    const reason = isKnown ? undefined : await this.keep();
    if (reason !== undefined) throw inRecovery(reason);
    // After the home has remembered it: if the commit is lost from now on, the guard notices.
    if (await this.#has({ eventSeq, addresses })) return;
    throw commitLost();
  }

  async #has({ eventSeq, addresses }: Required<Told>): Promise<boolean> {
    const rows = await this.#database.query(
      `SELECT 1 FROM event_counter
        WHERE seq >= $1 AND NOT EXISTS (
          SELECT 1 FROM unnest($2::bigint[], $3::text[]) AS told (index, customer_id)
           WHERE NOT EXISTS (SELECT 1 FROM deposit_address d
                              WHERE d.index = told.index AND d.customer_id = told.customer_id))`,
      [
        eventSeq,
        addresses.map(({ index }) => index),
        addresses.map(({ customerId }) => customerId),
      ],
    );
    return rows.length > 0;
  }

  /**
   * Before something is told that nobody asked for now: as `beforeTelling`, but nothing of a ledger in
   * recovery, or of one that is behind and that nobody has found yet. A number that was told already is no
   * proof: in an older ledger it may stand for another event.
   * @throws RECOVERY, HOME_MARK_UNUSABLE
   */
  async beforeSending(told: { readonly eventSeq: number }): Promise<void> {
    const reason = await this.check();
    if (reason !== undefined) throw inRecovery(reason);
    await refuseInRecovery(this.#database);
    await this.beforeTelling(told);
  }

  /**
   * In a commit that books: the database may be another one since the guard has looked at it. Nothing is
   * closed by this: who looks next does.
   * @throws RECOVERY where the ledger is not what the home remembers
   */
  async assertStands(tx: Sql): Promise<void> {
    const mark = this.#mark.value;
    const reason = mark && lossOf(mark, await readLedgerState(tx, mark));
    if (reason !== undefined) throw inRecovery(reason);
  }

  /** Puts the ledger into recovery when it is not what the home remembers. @returns why it is not */
  async check(): Promise<string | undefined> {
    const judged = await this.#judge();
    return typeof judged === "string" ? judged : undefined;
  }

  /** @returns the ledger's account of itself, or why it was closed */
  async #judge(): Promise<LedgerState | string> {
    for (;;) {
      const mark = this.#mark.value;
      const state = await readLedgerState(this.#database, mark);
      if (mark === undefined || lossOf(mark, state) === undefined) return state;
      const reason = await closeLost(this.#database, { mark, reportedBy: this.#reporter });
      if (reason !== undefined) return reason;
      // It was recovered at this moment: what it says of itself is another thing now.
    }
  }
}

function toMark(state: LedgerState): LedgerMark {
  const { ledgerId, epoch, nextAddressIndex, addressAt, eventSeq, eventAt, readAt } = state;
  return { ledgerId, epoch, nextAddressIndex, addressAt, eventSeq, eventAt, readAt };
}
