/**
 * The right of one watcher among several to book blocks. The others stand by and take it over when
 * its lease runs out, or when whoever has it cannot book and gives it back; each commit proves it again,
 * so that a watcher which was stopped meanwhile writes nothing.
 */
import { errorMessage } from "../chain/errors.js";
import {
  acquireWatchLease,
  isWatchLeaseOfOther,
  proveWatchLease,
  releaseWatchLease,
  renewWatchLease,
  type WatchLease,
  WatchLeaseLostError,
} from "../ledger/watch/watch-lease.js";
import { lockCursor } from "../ledger/watch/watch-cursor.js";
import { type NewIncident, writeIncident } from "../ledger/incidents.js";
import { systemClock } from "../runtime/process/clock.js";
import { whileHolding } from "../runtime/process/lease-keeper.js";
import type { Logger } from "../runtime/process/logger.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";

/** Leases for which who gave the lease back leaves it to others: they look for it once a lease at least. */
const STAND_BACK_LEASES = 2;

/**
 * Leases that have to pass since another watcher had the lease, or could have had it, before one whose checks
 * do not pass takes it to write an incident: the other may only be starting again, and its node be right.
 */
const OTHERS_FIRST_LEASES = 5;

/** What a `BookingLease` is made of: two of one `owner` take it from each other. */
export interface BookingLeaseParts {
  readonly database: SqlDatabase;
  readonly log: Logger;
  readonly owner: string;
  readonly leaseMs: number;
}

/** Holds, renews and gives back the lease of the one watcher that books. */
export class BookingLease {
  readonly #parts: BookingLeaseParts;
  #lease: WatchLease | undefined;
  /** How often `worked` was called. */
  #steps = 0;

  /** Since when nothing was booked that should have been; monotonic milliseconds, as all of these. */
  #troubledSinceMs: number | undefined;
  /** Since the last block that was booked here, or by others. */
  #hasGivenWay = false;
  #takesFromMs = Number.NEGATIVE_INFINITY;
  #othersFirstAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: BookingLeaseParts) {
    this.#parts = parts;
  }

  /** The lease as far as this process knows; undefined while it stands by. */
  get lease(): WatchLease | undefined {
    return this.#lease;
  }

  /** Whether this watcher cannot book, and leaves booking to others: nobody else has taken it yet. */
  get givesWay(): boolean {
    return this.#hasGivenWay;
  }

  /** How long a silent holder keeps the lease, milliseconds. */
  get leaseMs(): number {
    return this.#parts.leaseMs;
  }

  /** Renews the lease. @returns undefined where this watcher has none */
  async renew(): Promise<WatchLease | undefined> {
    const { database, log, owner, leaseMs } = this.#parts;
    const lease = this.#lease;
    if (lease === undefined) {
      if (await isWatchLeaseOfOther(database, { owner })) this.#seeOther();
      return undefined;
    }
    if (await renewWatchLease(database, lease, { leaseMs })) return lease;
    log.warn("another watcher has taken over");
    this.forget(lease);
    return undefined;
  }

  /**
   * Takes the lease when it is free: for a watcher that could book now.
   * @returns undefined while another holds it, or is to have it
   */
  async take(): Promise<WatchLease | undefined> {
    const { log } = this.#parts;
    if (systemClock.monotonicMs() < this.#takesFromMs) return undefined;
    await this.#acquire();
    if (this.#lease !== undefined) {
      // It has a lease's time to book.
      this.#troubledSinceMs = undefined;
      const fields = { epoch: this.#lease.epoch.toString() };
      if (this.#hasGivenWay) log.debug(fields, "trying again to book blocks");
      else log.info(fields, "booking blocks");
    }
    return this.#lease;
  }

  /** Blocks were booked, or there are none that could be. */
  worked(): void {
    this.#steps += 1;
    if (this.#hasGivenWay) this.#parts.log.info("booking blocks again");
    this.#hasGivenWay = false;
    this.#troubledSinceMs = undefined;
  }

  /**
   * Blocks could not be booked, by what another watcher may do without: its node and Data API are others.
   * Once that has lasted for as long as a lease, it is given back: who holds it on keeps all from booking.
   * @param reason for the log
   * @param isChecked whether the node passed the checks: then nothing else keeps this watcher from taking the
   *   lease again, and it leaves others the time to
   */
  async stumbled(reason: string, isChecked: boolean): Promise<void> {
    const { log, leaseMs } = this.#parts;
    const nowMs = systemClock.monotonicMs();
    if (!isChecked) this.#takesFromMs = nowMs;
    if (this.#lease === undefined) return;
    this.#troubledSinceMs ??= nowMs;
    if (nowMs - this.#troubledSinceMs < leaseMs) return;
    if (!this.#hasGivenWay)
      log.warn({ reason }, "no blocks can be booked here, other watchers may");
    this.#hasGivenWay = true;
    this.#othersFirstAtMs = nowMs;
    if (isChecked) this.#takesFromMs = nowMs + STAND_BACK_LEASES * leaseMs;
    await this.giveBack();
  }

  /** Runs `work` and renews meanwhile; its signal fires when the lease is lost. */
  whileHeld<T>(
    lease: WatchLease,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { database, leaseMs } = this.#parts;
    const holding = {
      renew: () => renewWatchLease(database, lease, { leaseMs }),
      lost: () => new WatchLeaseLostError(lease),
      leaseMs,
      signal,
      // Catching up may take hours: each commit shows that the work is not hung.
      steps: () => this.#steps,
    };
    return whileHolding(holding, work);
  }

  /**
   * Writes an incident under the lease: what a watcher without it believes halts nobody. Blocks that are
   * being booked are booked before it counts, and none behind it. A lease that nobody has had for a while
   * is taken for it, and given back: after the incident books whose checks pass.
   * @returns whether this watcher had the lease
   */
  async record(incident: NewIncident): Promise<boolean> {
    const isAlone = this.#lease === undefined;
    const lease = this.#lease ?? (await this.#takeAlone());
    if (lease === undefined) return false;
    try {
      await this.#parts.database.transaction(async (tx) => {
        await proveWatchLease(tx, lease);
        await lockCursor(tx);
        await writeIncident(tx, incident);
      });
    } finally {
      if (isAlone) await this.giveBack();
    }
    return true;
  }

  /** A lease went to another. Work may find so long after: the one that was taken since is kept. */
  forget({ epoch }: WatchLease): void {
    if (this.#lease?.epoch !== epoch) return;
    this.#lease = undefined;
    this.#seeOther();
  }

  /** Gives the lease back at an orderly stop. */
  async giveBack(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease === undefined) return;
    try {
      await releaseWatchLease(this.#parts.database, lease);
    } catch (error) {
      // It runs out by itself; a database that is gone is no reason to fail a stop.
      this.#parts.log.debug({ reason: errorMessage(error) }, "the lease was not given back");
    }
  }

  async #takeAlone(): Promise<WatchLease | undefined> {
    const waitedMs = systemClock.monotonicMs() - this.#othersFirstAtMs;
    if (waitedMs >= OTHERS_FIRST_LEASES * this.#parts.leaseMs) await this.#acquire();
    return this.#lease;
  }

  async #acquire(): Promise<void> {
    const { database, owner, leaseMs } = this.#parts;
    this.#lease = await acquireWatchLease(database, { owner, leaseMs });
  }

  #seeOther(): void {
    this.#othersFirstAtMs = systemClock.monotonicMs();
    this.#hasGivenWay = false;
    this.#troubledSinceMs = undefined;
  }
}
