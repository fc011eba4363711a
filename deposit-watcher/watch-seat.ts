/**
 * The right of one watcher among several to book blocks. The others stand by and take it over when
 * its lease runs out; each commit proves it again, so that a watcher which was stopped meanwhile
 * writes nothing.
 */
import { errorMessage } from "../chain/errors.js";
import {
  acquireWatchLease,
  proveWatchLease,
  releaseWatchLease,
  renewWatchLease,
  type WatchLease,
  WatchLeaseLostError,
} from "../ledger/watch/watch-lease.js";
import { lockCursor } from "../ledger/watch/watch-cursor.js";
import { type NewIncident, writeIncident } from "../ledger/incidents.js";
import { whileHolding } from "../runtime/process/lease-keeper.js";
import type { Logger } from "../runtime/process/logger.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";

/** What a seat needs. */
export interface WatchSeatParts {
  readonly database: SqlDatabase;
  readonly log: Logger;
  readonly owner: string;
  readonly leaseMs: number;
}

/** Holds, renews and gives back the lease of the one watcher that books. */
export class WatchSeat {
  readonly #parts: WatchSeatParts;
  #lease: WatchLease | undefined;

  constructor(parts: WatchSeatParts) {
    this.#parts = parts;
  }

  /** The lease as far as this process knows; undefined while it stands by. */
  get lease(): WatchLease | undefined {
    return this.#lease;
  }

  /** How long a silent holder keeps the lease, milliseconds. */
  get leaseMs(): number {
    return this.#parts.leaseMs;
  }

  /** Renews the lease, or takes it when it is free. @returns undefined while another holds it */
  async hold(): Promise<WatchLease | undefined> {
    const { database, log, owner, leaseMs } = this.#parts;
    if (this.#lease !== undefined) {
      if (await renewWatchLease(database, this.#lease, { leaseMs })) return this.#lease;
      log.warn("another watcher has taken over");
    }
    this.#lease = await acquireWatchLease(database, { owner, leaseMs });
    if (this.#lease !== undefined) {
      log.info({ epoch: this.#lease.epoch.toString() }, "booking blocks");
    }
    return this.#lease;
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
      lost: () => new WatchLeaseLostError("WATCH_LEASE_LOST", "another watcher books blocks now"),
      leaseMs,
      signal,
    };
    return whileHolding(holding, work);
  }

  /**
   * Writes an incident under the lease: what a watcher without it believes halts nobody. Blocks that are
   * being booked are booked before it counts, and none behind it.
   * @returns whether this watcher has the lease
   */
  async record(incident: NewIncident): Promise<boolean> {
    const lease = this.#lease;
    if (lease === undefined) return false;
    await this.#parts.database.transaction(async (tx) => {
      await proveWatchLease(tx, lease);
      await lockCursor(tx);
      await writeIncident(tx, incident);
    });
    return true;
  }

  /** The lease went to another. */
  forget(): void {
    this.#lease = undefined;
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
}
