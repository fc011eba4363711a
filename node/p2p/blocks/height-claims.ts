/**
 * Which of the heights that peers name keep a node catching up. A name costs nothing: it counts for
 * a while, then only if blocks of that peer were applied, or a commit proved it. Else a few liars
 * who claim one block more and give nothing keep a validator from deciding for ever. Blocks cost as
 * little where others have them: who passes each on, late, and claims one more is waited for a while in all.
 * While blocks come at the least rate no claim grows older: a large one may take as long as the line needs.
 * Liars pay for that with bytes, and of bytes that bring no block it is a while in all, too.
 */
import { LRUCache } from "lru-cache";
import type { Height } from "../../../chain/hex.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { NodeId } from "../node-key.js";
import { LARGEST_MESSAGE_MS } from "./answer-patience.js";
import { FAR_BEHIND_BLOCKS } from "./lag-watch.js";

/** What claims are judged by, while no blocks come at the least rate. */
export interface ClaimLimits {
  /** How long a claim counts after it was first made, or after the peer last gave something. */
  readonly patienceMs: number;
  /** The same for a peer that has said since that it has too much to do and gives later. */
  readonly laterMs: number;
  /**
   * How long claims of peers that never gave anything count in all while nothing else is missing:
   * liars come back under new keys.
   */
  readonly strangersMs: number;
  /**
   * The same of peers that gave blocks, while none comes and nobody proves that more are missing than
   * consensus makes up by itself.
   */
  readonly nearMs: number;
}

/** Peers whose standing is remembered: who catches up for days meets ever new keys. */
const MAX_REMEMBERED = 10_000;

interface Standing {
  /** When the peer began to claim more than is here (see `timeMs`); undefined while it does not. */
  sinceMs: number | undefined;
  /** When a block of it was last applied. */
  backedAtMs: number;
  /** Whether it has put off the node since then. */
  isDelayed: boolean;
  provedHeight: Height;
}

/** The claims of one time of catching up. */
export class HeightClaims {
  private readonly standings = new LRUCache<NodeId, Standing>({ max: MAX_REMEMBERED });
  private heldByStrangersMs = 0;
  private heldNearMs = 0;
  /** Held by what came, less what the blocks took that were applied: at most a largest message in all. */
  private heldByBytesMs = 0;
  /** Time for which no claim grew older. */
  private pausedMs = 0;
  private lookedAtMs: number;
  /** Own height when it was looked last. */
  private lookedAt: Height | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly limits: ClaimLimits,
  ) {
    this.lookedAtMs = clock.monotonicMs();
  }

  /**
   * A block that the peer gave was verified and applied.
   * @param cameMs how long it came, and at the least rate
   */
  back(nodeId: NodeId, cameMs: number): void {
    const standing = this.standingOf(nodeId);
    standing.backedAtMs = this.timeMs();
    standing.isDelayed = false;
    this.heldByBytesMs = Math.max(0, this.heldByBytesMs - cameMs);
  }

  /** The peer has too much to do now: its claim counts longer, and not for ever. */
  delay(nodeId: NodeId): void {
    this.standingOf(nodeId).isDelayed = true;
  }

  /** A commit that the peer showed proves that the network has come to a height. */
  prove(nodeId: NodeId, height: Height): void {
    const standing = this.standingOf(nodeId);
    standing.provedHeight = Math.max(standing.provedHeight, height);
  }

  /**
   * Whether the peer should be asked for a proof: half of the patience with it is used up, or as much
   * time has gone by without blocks.
   */
  isDoubtful(nodeId: NodeId, claimed: Height, own: Height): boolean {
    if (claimed <= own) return false;
    const { provedHeight, sinceMs, backedAtMs } = this.standingOf(nodeId);
    if (provedHeight > own || sinceMs === undefined) return false;
    const waitedMs = this.timeMs() - Math.max(sinceMs, backedAtMs);
    const mostMs = Math.max(waitedMs, this.heldNearMs, this.heldByBytesMs);
    return mostMs >= this.limits.patienceMs / 2;
  }

  /**
   * Whether any claim keeps the node catching up. To be called again and again: the time between
   * two calls counts as held.
   * @param isComing whether blocks come at the least rate
   */
  hold(
    claims: readonly { readonly nodeId: NodeId; readonly height: Height }[],
    own: Height,
    isComing = false,
  ): boolean {
    const nowMs = this.clock.monotonicMs();
    const passedMs = nowMs - this.lookedAtMs;
    const isIdle = own === this.lookedAt;
    [this.lookedAtMs, this.lookedAt] = [nowMs, own];
    const holding = claims
      .filter(({ nodeId, height }) => this.counts(nodeId, height, own))
      .map(({ nodeId }) => this.standingOf(nodeId));
    if (holding.some(({ provedHeight }) => provedHeight >= own + FAR_BEHIND_BLOCKS)) return true;
    if (isComing && this.heldByBytesMs < LARGEST_MESSAGE_MS) {
      this.heldByBytesMs += passedMs;
      this.pausedMs += passedMs;
      return true;
    }
    if (holding.length === 0) return false;
    if (holding.some((standing) => isKnown(standing, own))) {
      if (isIdle) this.heldNearMs += passedMs;
      return this.heldNearMs < this.limits.nearMs;
    }
    this.heldByStrangersMs += passedMs;
    return this.heldByStrangersMs < this.limits.strangersMs;
  }

  /** Nobody is there who says how far he is: claims do not grow older by the time since the last look. */
  rest(): void {
    const nowMs = this.clock.monotonicMs();
    this.pausedMs += nowMs - this.lookedAtMs;
    this.lookedAtMs = nowMs;
  }

  private counts(nodeId: NodeId, claimed: Height, own: Height): boolean {
    const standing = this.standingOf(nodeId);
    if (claimed <= own) {
      standing.sinceMs = undefined;
      return false;
    }
    const nowMs = this.timeMs();
    standing.sinceMs ??= nowMs;
    if (standing.provedHeight > own) return true;
    const { patienceMs, laterMs } = this.limits;
    const countsMs = standing.isDelayed ? laterMs : patienceMs;
    return nowMs - Math.max(standing.sinceMs, standing.backedAtMs) < countsMs;
  }

  /** The time by which claims grow older: not while blocks come at the least rate, or nobody is there. */
  private timeMs(): number {
    return this.clock.monotonicMs() - this.pausedMs;
  }

  private standingOf(nodeId: NodeId): Standing {
    const known = this.standings.get(nodeId);
    if (known !== undefined) return known;
    const fresh = {
      sinceMs: undefined,
      backedAtMs: Number.NEGATIVE_INFINITY,
      isDelayed: false,
      provedHeight: 0,
    };
    this.standings.set(nodeId, fresh);
    return fresh;
  }
}

/** Whether it gave a block, or proved that one is missing. */
function isKnown({ backedAtMs, provedHeight }: Standing, own: Height): boolean {
  return backedAtMs > Number.NEGATIVE_INFINITY || provedHeight > own;
}
