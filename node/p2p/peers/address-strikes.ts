/**
 * Bans that weigh the address too: a banned peer comes back under a new key at once. After the
 * second ban within `FORGET_MS` unknown peers of the same address wait, longer each time. Peers that
 * behaved well before are let in: many honest nodes may share one address.
 */
import { LRUCache } from "lru-cache";
import type { Clock } from "../../../runtime/process/clock.js";
import type { NodeId } from "../node-key.js";
import { siteOf } from "./address-group.js";

/** Bans of one address after which nobody waits: one node of many behind it may be broken. */
const FREE_STRIKES = 1;

/** First wait; doubles with each ban. */
const FIRST_WAIT_MS = 10_000;
const MAX_WAIT_MS = 600_000;

/** A strike is forgotten after so long. */
const FORGET_MS = 600_000;

/** Bans that count: the longest wait is reached long before, and a higher power is Infinity. */
const MAX_STRIKES = 16;

/** A peer that was connected for so long without being banned counts as well-behaved. */
const GOOD_LIFE_MS = 60_000;

/** Addresses and peers that are remembered. */
const MAX_REMEMBERED = 10_000;

interface Strikes {
  readonly count: number;
  readonly atMs: number;
}

/** Which addresses have to wait for their bans. */
export class AddressStrikes {
  private readonly strikes = new LRUCache<string, Strikes>({ max: MAX_REMEMBERED });
  private readonly good = new LRUCache<NodeId, true>({ max: MAX_REMEMBERED });

  constructor(private readonly clock: Clock) {}

  /** A peer at the address was banned. */
  strike(nodeId: NodeId, ip: string): void {
    this.good.delete(nodeId);
    const count = Math.min(this.countOf(ip) + 1, MAX_STRIKES);
    this.strikes.set(siteOf(ip), { count, atMs: this.clock.monotonicMs() });
  }

  /** A peer has left that was not banned. */
  left(nodeId: NodeId, connectedMs: number): void {
    if (connectedMs >= GOOD_LIFE_MS) this.good.set(nodeId, true);
  }

  /** Whether a peer is to be kept out because of where it comes from. */
  refuses(nodeId: NodeId, ip: string): boolean {
    const strikes = this.strikes.get(siteOf(ip));
    const paid = this.countOf(ip) - FREE_STRIKES;
    if (strikes === undefined || paid <= 0 || this.good.has(nodeId)) return false;
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** (paid - 1), MAX_WAIT_MS);
    return this.clock.monotonicMs() - strikes.atMs < waitMs;
  }

  /** One strike is forgotten for each time that has passed. */
  private countOf(ip: string): number {
    const strikes = this.strikes.get(siteOf(ip));
    if (strikes === undefined) return 0;
    const forgotten = Math.floor((this.clock.monotonicMs() - strikes.atMs) / FORGET_MS);
    return Math.max(0, strikes.count - forgotten);
  }
}
