/** Who misbehaved: points that fade, and bans that expire. In memory; a restart forgives. */
import { LRUCache } from "lru-cache";
import type { Clock } from "../../../runtime/process/clock.js";
import type { NodeId } from "../node-key.js";

/** What a peer can do wrong, with the points that it costs; at `BAN_POINTS` it is banned. */
const OFFENCE_POINTS = {
  /** A consensus message or transaction that no honest node would have relayed. */
  invalidMessage: 40,
  /** Bytes that are not the message they should be. */
  malformed: 60,
  /** A block that breaks a rule of the chain: nobody sends one by accident. */
  falseBlock: 100,
  /** A chunk or manifest that is not the one it offered. */
  falseSnapshot: 100,
  /** More traffic than a peer may cause. */
  flood: 100,
  /** More work than this node has time for, for a good while. */
  overload: 50,
  /** A request that was not answered in time, or answered with less than promised. */
  unanswered: 5,
} as const;

/** One of the things that a peer can do wrong. */
export type Offence = keyof typeof OFFENCE_POINTS;

/** What is only too much or too little; peers that the operator chose are not banned for it. */
const EXCESSES: ReadonlySet<Offence> = new Set(["flood", "overload", "unanswered"]);

const BAN_POINTS = 100;

/** Points that are forgiven in a second. */
const FORGIVEN_PER_SECOND = 0.1;

/** Length of a ban. Long enough to be rid of an attacker, short enough to survive a mistake. */
const BAN_MS = 600_000;

/** Peers whose points are remembered; the longest-quiet ones are forgotten first. */
const MAX_REMEMBERED = 10_000;

interface Record {
  readonly points: number;
  readonly atMs: number;
  readonly bannedUntilMs: number;
}

/** Points and bans by node id. */
export class PeerScores {
  private readonly records = new LRUCache<NodeId, Record>({ max: MAX_REMEMBERED });
  private readonly banListeners = new Set<(nodeId: NodeId, offence: Offence) => void>();

  /** @param reservedIds persistent and unconditional peers: banned for what is invalid only */
  constructor(
    private readonly clock: Clock,
    private readonly reservedIds: ReadonlySet<NodeId> = new Set(),
  ) {}

  /** Counts an offence; true when it led to a ban. */
  report(nodeId: NodeId, offence: Offence): boolean {
    const nowMs = this.clock.monotonicMs();
    if (this.isBanned(nodeId)) return true;
    if (EXCESSES.has(offence) && this.reservedIds.has(nodeId)) return false;
    const points = this.points(nodeId) + OFFENCE_POINTS[offence];
    const isBan = points >= BAN_POINTS;
    const bannedUntilMs = isBan ? nowMs + BAN_MS : Number.NEGATIVE_INFINITY;
    this.records.set(nodeId, { points: isBan ? 0 : points, atMs: nowMs, bannedUntilMs });
    if (isBan) for (const listener of this.banListeners) listener(nodeId, offence);
    return isBan;
  }

  /** Whether the peer is to be kept away now. */
  isBanned(nodeId: NodeId): boolean {
    const record = this.records.get(nodeId);
    return record !== undefined && this.clock.monotonicMs() < record.bannedUntilMs;
  }

  /** Calls the listener with every new ban. */
  onBan(listener: (nodeId: NodeId, offence: Offence) => void): void {
    this.banListeners.add(listener);
  }

  /** Points that are left after what time has forgiven. */
  private points(nodeId: NodeId): number {
    const record = this.records.get(nodeId);
    if (record === undefined) return 0;
    const forgiven = ((this.clock.monotonicMs() - record.atMs) / 1_000) * FORGIVEN_PER_SECOND;
    return Math.max(0, record.points - forgiven);
  }
}
