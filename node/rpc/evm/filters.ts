/**
 * Installed filters. Blocks are final, so block and log filters only remember the next height and
 * read the chain when they are polled: nothing queues up, and nothing can be lost in between.
 */
import type { Hash32, Hex, Height } from "../../../chain/hex.js";
import type { ClientPlaces } from "../../../runtime/turns/client-places.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { PendingTransaction } from "../../view/event-bus.js";
import { sharedPlaces } from "../shared-places.js";
import { CriteriaRoom } from "./criteria-room.js";
import { RpcFault } from "./errors.js";
import type { LogFilter } from "./log-filter.js";
import { randomId } from "./random-id.js";

/**
 * A filter as installed. `next` moves when the answer to a poll is complete: a poll that fails takes
 * nothing, and of two that overlap the later one looks again from where the other has ended.
 */
export type InstalledFilter =
  | { readonly kind: "block"; next: Height }
  | { readonly kind: "log"; readonly filter: LogFilter; next: LogPosition }
  /** `next` is a position in the shared list of pending hashes; `isFull`: whole transactions. */
  | { readonly kind: "pending"; readonly isFull: boolean; next: number };

/** Where a log filter goes on. */
export interface LogPosition {
  readonly height: Height;
  /** Matching logs of this block that were given: more than 0 where one answer cannot hold all. */
  readonly given: number;
}

interface Entry {
  readonly filter: InstalledFilter;
  usedAtMs: number;
  /** Gives back what it has of the room that all filters share. */
  readonly giveBack: () => void;
}

/**
 * Pending hashes kept for all filters together: about a minute of 1,000 transactions per second.
 * A filter that was not polled for longer ends with "filter not found", which clients answer by
 * making a new one; a silent gap would be worse.
 */
const MAX_PENDING_HASHES = 65_536;

/** All filters of the node, of HTTP and WebSocket clients alike. */
export class FilterRegistry {
  private readonly entries = new Map<Hex, Entry>();
  private readonly places: ClientPlaces;
  private readonly room = new CriteriaRoom();
  private hashes: Hash32[] = [];
  /** Position of the first kept hash; positions only grow. */
  private firstPosition = 0;

  constructor(
    private readonly clock: Clock,
    private readonly limits: { readonly filters: number; readonly filterIdleMs: number },
  ) {
    this.places = sharedPlaces(limits.filters);
  }

  /**
   * Installs a filter and returns its id.
   * @param client who installs it, as of `CallContext`
   * @throws LIMIT_EXCEEDED
   */
  install(filter: InstalledFilter, client: string): Hex {
    this.expire();
    if (!this.places.hasRoom(client)) throw this.full();
    const giveRoom =
      filter.kind === "log" ? this.room.take(filter.filter.criteria, client) : undefined;
    const leave = this.places.take(client);
    const giveBack = () => {
      giveRoom?.();
      leave();
    };
    const id = randomId();
    this.entries.set(id, { filter, usedAtMs: this.clock.monotonicMs(), giveBack });
    return id;
  }

  /** The filter, which counts as used now. Throws SERVER_ERROR "filter not found". */
  use(id: Hex): InstalledFilter {
    this.expire();
    const entry = this.entries.get(id);
    if (entry === undefined) throw new RpcFault("SERVER_ERROR", "filter not found");
    entry.usedAtMs = this.clock.monotonicMs();
    // Moved to the end: the map stays ordered by last use, so expiry looks at the front only.
    this.entries.delete(id);
    this.entries.set(id, entry);
    return entry.filter;
  }

  /** True when there was such a filter. */
  uninstall(id: Hex): boolean {
    this.entries.get(id)?.giveBack();
    return this.entries.delete(id);
  }

  /** Position behind the newest pending hash. */
  pendingPosition(): number {
    return this.firstPosition + this.hashes.length;
  }

  /** Remembers hashes for pending filters; nothing is kept while there are none. */
  addPending(transactions: readonly PendingTransaction[]): void {
    if (this.entries.size === 0) {
      this.firstPosition += this.hashes.length + transactions.length;
      this.hashes = [];
      return;
    }
    for (const { tx } of transactions) {
      if (tx.type !== "cosmos") this.hashes.push(tx.hash);
    }
    const surplus = this.hashes.length - MAX_PENDING_HASHES;
    // Cut in large steps: shifting the list for each transaction would cost its whole length.
    if (surplus > MAX_PENDING_HASHES) {
      this.hashes = this.hashes.slice(surplus);
      this.firstPosition += surplus;
    }
  }

  /** Hashes since the filter's position, which stays where it is. Throws SERVER_ERROR. */
  pendingSince(id: Hex, filter: InstalledFilter & { readonly kind: "pending" }): readonly Hash32[] {
    if (filter.next < this.firstPosition) {
      this.uninstall(id);
      throw new RpcFault("SERVER_ERROR", "filter not found");
    }
    return this.hashes.slice(filter.next - this.firstPosition);
  }

  private full(): RpcFault {
    const { filters } = this.limits;
    const text =
      this.places.size >= filters
        ? `more than ${filters} filters`
        : "too many filters of one client";
    return new RpcFault("LIMIT_EXCEEDED", text);
  }

  private expire(): void {
    const oldestMs = this.clock.monotonicMs() - this.limits.filterIdleMs;
    for (const [id, entry] of this.entries) {
      if (entry.usedAtMs > oldestMs) return;
      this.uninstall(id);
    }
  }
}
