/**
 * What a ledger says of itself, and whether that is what a home remembers: the rule by which a ledger is
 * another one, or behind. It changes nothing.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { storedInteger, timeTextSql } from "../stored-values.js";
import type { LedgerMark } from "./home-mark.js";
import { eventOf, hasToldNumber, TOLD_BEFORE } from "./told-before.js";

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
export function lossOf(mark: LedgerMark, state: LedgerState): string | undefined {
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

/** What a home remembers of a ledger that says this of itself. */
export function toMark(state: LedgerState): LedgerMark {
  const { ledgerId, epoch, nextAddressIndex, addressAt, eventSeq, eventAt, readAt } = state;
  return { ledgerId, epoch, nextAddressIndex, addressAt, eventSeq, eventAt, readAt };
}
