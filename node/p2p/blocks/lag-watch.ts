/**
 * Notices that the network has gone on without this node. What peers say of their height is only a
 * reason to ask for proof, while consensus goes on: a liar costs a request now and then, and no
 * more.
 */
import { errorCode } from "../../../chain/errors.js";
import type { Commit } from "../../../chain/consensus/commit.js";
import type { Height } from "../../../chain/hex.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { limitedSignal, sleep } from "../../../runtime/process/task.js";
import type { HeightWitness } from "../../consensus/consensus-ports.js";
import type { BlockSource } from "./block-protocol.js";
import type { NodeId } from "../node-key.js";
import type { Offence } from "../peers/peer-scores.js";

/** A connected peer and the height that it says it is deciding. */
export interface HeightClaim {
  readonly nodeId: NodeId;
  readonly height: Height;
  readonly source: BlockSource;
}

/** What the watch needs. */
export interface LagWatchPorts {
  /** The newest height of this node. */
  height(): Height;
  claims(): readonly HeightClaim[];
  report(nodeId: NodeId, offence: Offence): void;
  readonly clock: Clock;
  readonly log: Logger;
  /** Other time limits than the usual ones. */
  readonly limits?: Partial<LagLimits>;
}

/** Time limits of the watch, milliseconds. */
export interface LagLimits {
  readonly lookMs: number;
  /** A peer must be far ahead for so long: repair by single messages may be faster. */
  readonly patienceMs: number;
  /** Without a new height for so long single messages do not help, whatever the reason: see `missing`. */
  readonly standstillMs: number;
  /** Time for a peer to give its proof. */
  readonly proofMs: number;
  /** A peer without proof is not asked again for this long; doubles each time. */
  readonly doubtMs: number;
  readonly maxDoubtMs: number;
  /** After block sync that brought nothing; doubles each time. */
  readonly restMs: number;
  readonly maxRestMs: number;
}

const USUAL_LIMITS: LagLimits = {
  lookMs: 250,
  patienceMs: 1_000,
  standstillMs: 30_000,
  proofMs: 5_000,
  doubtMs: 30_000,
  maxDoubtMs: 600_000,
  restMs: 10_000,
  maxRestMs: 300_000,
};

/**
 * Decided heights that a node must lack to go back to block sync. Fewer are repaired by messages of
 * consensus, some a second, sooner than block sync has settled.
 */
export const FAR_BEHIND_BLOCKS = 16;

/** The same of a node that has stood still: those who decided the one may wait for it at the next. */
const STANDSTILL_BLOCKS = 1;

/** Peers asked at once; each may answer with the largest block there is. */
const MAX_ASKED_AT_ONCE = 4;

/** A peer that says that its proof comes later has so many times as long. */
const LATER_FACTOR = 3;

/** Doublings that count: the longest wait is reached long before, and a higher power is Infinity. */
const MAX_DOUBLINGS = 20;

interface Standing {
  /** Since when the peer claims to be far ahead; undefined while it does not. */
  sinceMs: number | undefined;
  /** Claims without proof. */
  doubts: number;
  doubtedUntilMs: number;
}

/** Decides when a node that takes part should follow again. */
export class LagWatch {
  /** By connected peer. */
  private readonly standings = new Map<NodeId, Standing>();
  private readonly limits: LagLimits;
  /** The height that the last proof was of. */
  private provedHeight: Height | undefined;
  private fruitless = 0;
  /** Own height when it was looked last, and since when it has been that. */
  private standstill: { readonly height: Height; readonly sinceMs: number } | undefined;

  constructor(private readonly ports: LagWatchPorts) {
    this.limits = { ...USUAL_LIMITS, ...ports.limits };
  }

  /**
   * Resolves when a peer has proved that the network has decided `FAR_BEHIND_BLOCKS` heights more
   * than this node has, or where all of them were deleted since, still more; of a node that stands still
   * one more is enough. Rejects with the signal's reason.
   */
  async proved(witness: HeightWitness, signal: AbortSignal): Promise<void> {
    await this.rest(signal);
    this.standings.clear();
    this.standstill = undefined;
    for (;;) {
      await sleep(this.limits.lookMs, { signal });
      const wanted = this.ports.height() + this.missing();
      const claims = this.dueClaims(wanted);
      const isProved = claims.length > 0 && (await this.isProved(claims, wanted, witness, signal));
      const height = this.ports.height();
      // It may have been helped on while it waited for the proof.
      if (!isProved || height >= wanted) continue;
      this.provedHeight = wanted;
      const peerHeight = Math.max(...claims.map((claim) => claim.height));
      this.ports.log.info({ height, peerHeight }, "fell behind the network");
      return;
    }
  }

  /** Asks some at once: one that is silent must not hide one that speaks. */
  private async isProved(
    claims: readonly HeightClaim[],
    height: Height,
    witness: HeightWitness,
    signal: AbortSignal,
  ): Promise<boolean> {
    const ending = new AbortController();
    const inner = AbortSignal.any([signal, ending.signal]);
    const proofs = claims.map(async (claim) => {
      const commit = await this.ask(claim, height, inner);
      if (commit !== undefined && witness.isProof(commit)) return;
      this.doubt(claim);
      throw new Error("no proof");
    });
    try {
      await Promise.any(proofs);
      return true;
    } catch {
      signal.throwIfAborted();
      return false;
    } finally {
      ending.abort(new Error("the proof is here"));
    }
  }

  /** A node that nobody can serve must not hurry from consensus to block sync and back. */
  private async rest(signal: AbortSignal): Promise<void> {
    if (this.provedHeight === undefined) return;
    const isFruitless = this.ports.height() < this.provedHeight;
    this.fruitless = isFruitless ? this.fruitless + 1 : 0;
    if (!isFruitless) return;
    const { restMs, maxRestMs } = this.limits;
    await sleep(doubled(restMs, this.fruitless, maxRestMs), { signal });
  }

  /**
   * Heights that must be missing. A node that stands still has a decision that messages of consensus do not
   * bring it: it was kept from too many of them, and those who decided keep no others. They may be too
   * few to decide as many more without it.
   */
  private missing(): number {
    const nowMs = this.ports.clock.monotonicMs();
    const height = this.ports.height();
    if (this.standstill?.height !== height) this.standstill = { height, sinceMs: nowMs };
    const isStanding = nowMs - this.standstill.sinceMs >= this.limits.standstillMs;
    return isStanding ? STANDSTILL_BLOCKS : FAR_BEHIND_BLOCKS;
  }

  /** Of those who have been beyond a height for a while, the ones whose last doubt is the oldest. */
  private dueClaims(wanted: Height): readonly HeightClaim[] {
    const nowMs = this.ports.clock.monotonicMs();
    const claims = this.ports.claims();
    const connected = new Set(claims.map(({ nodeId }) => nodeId));
    for (const nodeId of this.standings.keys()) {
      if (!connected.has(nodeId)) this.standings.delete(nodeId);
    }
    const due: { readonly claim: HeightClaim; readonly doubtedUntilMs: number }[] = [];
    for (const claim of claims) {
      const standing = this.standingOf(claim.nodeId);
      // The height in progress is decided nowhere yet.
      if (claim.height <= wanted) {
        standing.sinceMs = undefined;
        continue;
      }
      standing.sinceMs ??= nowMs;
      const { sinceMs, doubtedUntilMs } = standing;
      const isDue = nowMs - sinceMs >= this.limits.patienceMs && nowMs >= doubtedUntilMs;
      if (isDue) due.push({ claim, doubtedUntilMs });
    }
    const sorted = due.toSorted((one, other) => one.doubtedUntilMs - other.doubtedUntilMs);
    return sorted.slice(0, MAX_ASKED_AT_ONCE).map(({ claim }) => claim);
  }

  /** The commit of a height, or of the oldest that the peer has not deleted, where that is a later one. */
  private async ask(
    { nodeId, source }: HeightClaim,
    height: Height,
    signal: AbortSignal,
  ): Promise<Commit | undefined> {
    const { proofMs } = this.limits;
    const ending = new AbortController();
    let isLater = false;
    const timer = setTimeout(() => {
      if (!isLater) ending.abort(new DOMException("no proof in time", "TimeoutError"));
    }, proofMs);
    const limit = limitedSignal([signal, ending.signal], proofMs * LATER_FACTOR);
    let commit: Commit | undefined;
    const askFor = (from: Height) =>
      source.blocks(
        { from, count: 1 },
        {
          signal: limit,
          onBlock: (received) => {
            if (received.commit.height === from) ({ commit } = received);
          },
          onLater: () => (isLater = true),
        },
      );
    try {
      const count = await askFor(height);
      const oldest = count > 0 ? height : (await source.range(limit)).base;
      if (oldest > height) await askFor(oldest);
    } catch (error) {
      signal.throwIfAborted();
      this.ports.log.debug({ peer: nodeId, err: error }, "no proof of a peer's height");
      if (errorCode(error) === "PEER_PROTOCOL") this.ports.report(nodeId, "malformed");
    } finally {
      clearTimeout(timer);
    }
    return commit;
  }

  private doubt({ nodeId }: HeightClaim): void {
    const standing = this.standingOf(nodeId);
    standing.doubts++;
    const { doubtMs, maxDoubtMs } = this.limits;
    const pauseMs = doubled(doubtMs, standing.doubts, maxDoubtMs);
    standing.doubtedUntilMs = this.ports.clock.monotonicMs() + pauseMs;
  }

  private standingOf(nodeId: NodeId): Standing {
    const known = this.standings.get(nodeId);
    if (known !== undefined) return known;
    const fresh = { sinceMs: undefined, doubts: 0, doubtedUntilMs: Number.NEGATIVE_INFINITY };
    this.standings.set(nodeId, fresh);
    return fresh;
  }
}

/** The pause after the `count`th time, from 1. */
function doubled(firstMs: number, count: number, maxMs: number): number {
  return Math.min(firstMs * 2 ** Math.min(count - 1, MAX_DOUBLINGS), maxMs);
}
