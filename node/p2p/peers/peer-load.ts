/**
 * What each peer costs this node in time of its one thread, and who has to wait for it. Bytes say
 * little about that: forty of them can ask for a block that takes a tenth of a second to encode.
 * What a peer makes this node hear (its own idea) and what this node gives on request are counted
 * apart: too much of the first is held against a stranger in the end, of the second nobody is.
 */
import { LRUCache } from "lru-cache";
import type { Steps } from "../../../chain/steps/steps.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { Slices } from "../../../runtime/process/slices.js";
import { startWatch } from "../../../runtime/process/thread-time.js";
import type { NodeId } from "../node-key.js";
import { MAX_BURSTS, TokenBucket } from "./traffic-meter.js";

/** What the thread has for peers. Times in milliseconds of it, rates per second. */
export interface LoadLimits {
  /**
   * For hearing one peer: several times what a relay of full blocks and a full pool costs, and
   * little enough that blocks keep their time. The burst is a greeting of a peer that was away.
   */
  readonly heardMsPerSecond: number;
  readonly heardBurstMs: number;
  /** For hearing all strangers together, however many identities one of them has. */
  readonly strangersMsPerSecond: number;
  readonly strangersBurstMs: number;
  /** For answering one peer, and all of them: what a node that catches up shall get. */
  readonly servedMsPerSecond: number;
  readonly servedBurstMs: number;
  readonly allServedMsPerSecond: number;
  readonly allServedBurstMs: number;
  /** Share of its time that a stranger may be held up without paying for it, and the burst. */
  readonly heldUpShare: number;
  readonly heldUpBurstMs: number;
}

const USUAL_LIMITS: LoadLimits = {
  heardMsPerSecond: 150,
  heardBurstMs: 1_500,
  strangersMsPerSecond: 350,
  strangersBurstMs: 2_000,
  servedMsPerSecond: 150,
  servedBurstMs: 300,
  allServedMsPerSecond: 300,
  allServedBurstMs: 600,
  heldUpShare: 0.2,
  heldUpBurstMs: 10_000,
};

/**
 * Peers that the operator chose may cost so many times what a stranger may: a validator hears the
 * others through them, also when the machine is short of time.
 */
const RESERVED_FACTOR = 3;

/** What is needed to keep the account. */
export interface PeerLoadOptions {
  readonly clock: Clock;
  /** Persistent and unconditional peers: held up like others, but it is not held against them. */
  readonly reservedIds: ReadonlySet<NodeId>;
  /** The peer is to be held up for so long: nothing more is read from it. */
  readonly onHoldUp: (nodeId: NodeId, durationMs: number) => void;
  /** The peer has been held up most of the time. */
  readonly onOverload: (nodeId: NodeId) => void;
  readonly limits?: Partial<LoadLimits>;
}

/**
 * What a byte of traffic costs in the libraries beyond what is measured, milliseconds: it is
 * encrypted, copied and hashed.
 */
export const MS_PER_BYTE = 5e-6;

/** What a byte costs with what is measured: so much is given back for one that was asked for. */
export const MS_PER_ASKED_BYTE = 2e-5;

/** Longest debt: a peer is held up for some seconds, less than what makes it seem dead. */
const MAX_DEBT_MS = 750;

/** Shortest hold-up; below that the timer costs as much. */
const MIN_HOLD_UP_MS = 20;

/** So much is given between two looks at everything else that waits for the thread. */
const MOST_SERVED_AT_ONCE_MS = 10;

/** Weight of the newest answer in the moving average of what an answer costs. */
const LATELY = 0.1;

/** Pause between two looks at who waits for an answer. */
const TURN_INTERVAL_MS = 10;

/** Peers whose account is remembered, also while they are away. */
const MAX_ACCOUNTS = 10_000;

/** When all strangers together are too much, each has its share of so long a time. */
const SHARE_WINDOW_MS = 1_000;

interface Account {
  readonly heard: TokenBucket;
  readonly served: TokenBucket;
  /** Time in which the peer may be held up. */
  readonly patience: TokenBucket;
}

/** One account for each peer of a host. */
export class PeerLoad {
  private readonly limits: LoadLimits;
  private readonly accounts = new LRUCache<NodeId, Account>({ max: MAX_ACCOUNTS });
  private readonly strangers: TokenBucket;
  private readonly allServed: TokenBucket;
  /** What peers wait with for their turn; no peer without any. */
  private readonly waiting = new Map<NodeId, (() => void)[]>();
  private turns: NodeJS.Timeout | undefined;
  /** What strangers cost in the window that began then. */
  private shares = new Map<NodeId, number>();
  private windowAtMs: number;
  private spentMs = 0;
  private servedAtOnceMs = 0;
  /** Answers in steps that are under way. */
  private slicedCount = 0;
  private slicing: Promise<unknown> = Promise.resolve();
  /** What an answer has cost lately: those that have their turn and have not begun count so much. */
  private usualAnswerMs = 1;

  constructor(private readonly options: PeerLoadOptions) {
    this.limits = { ...USUAL_LIMITS, ...options.limits };
    const { limits } = this;
    this.windowAtMs = options.clock.monotonicMs();
    this.strangers = this.bucket(limits.strangersMsPerSecond, limits.strangersBurstMs);
    this.allServed = this.bucket(limits.allServedMsPerSecond, limits.allServedBurstMs);
  }

  /** Milliseconds that peers have cost since the start. */
  get totalMs(): number {
    return this.spentMs;
  }

  /** Does something that a peer caused and counts its time; what it throws is passed on. */
  hear<T>(nodeId: NodeId, work: () => T): T {
    const spentMs = startWatch();
    try {
      return work();
    } finally {
      this.heard(nodeId, spentMs());
    }
  }

  /** Counts time that a peer's traffic took. */
  heard(nodeId: NodeId, spentMs: number): void {
    const { heard } = this.accountOf(nodeId);
    this.spentMs += spentMs;
    heard.take(spentMs, MAX_DEBT_MS);
    const isStranger = !this.options.reservedIds.has(nodeId);
    if (isStranger) this.countStranger(nodeId, spentMs);
    const waitMs = this.debtMs(nodeId);
    if (waitMs > 0) this.options.onHoldUp(nodeId, Math.max(waitMs, MIN_HOLD_UP_MS));
  }

  /** Gives time back: what took it was worth it, or was asked for. */
  forgive(nodeId: NodeId, spentMs: number): void {
    this.accountOf(nodeId).heard.give(spentMs);
    if (!this.options.reservedIds.has(nodeId)) this.strangers.give(spentMs);
  }

  /** How much longer the peer is to be held up; 0 when it may go on. */
  debtMs(nodeId: NodeId): number {
    const ownMs = this.accountOf(nodeId).heard.waitMs();
    if (ownMs > 0 || this.options.reservedIds.has(nodeId)) return ownMs;
    const commonMs = this.strangers.waitMs();
    if (commonMs === 0) return 0;
    const shareMs = this.limits.strangersMsPerSecond / Math.max(1, this.shares.size);
    const windowMs = this.options.clock.monotonicMs() - this.windowAtMs;
    const usedMs = windowMs < SHARE_WINDOW_MS ? (this.shares.get(nodeId) ?? 0) : 0;
    return usedMs < shareMs ? 0 : Math.min(commonMs, SHARE_WINDOW_MS - windowMs);
  }

  /** A peer was held up for so long. */
  heldUp(nodeId: NodeId, durationMs: number): void {
    if (this.options.reservedIds.has(nodeId)) return;
    const { patience } = this.accountOf(nodeId);
    if (patience.take(durationMs)) return;
    patience.give(this.limits.heldUpBurstMs / 2);
    this.options.onOverload(nodeId);
  }

  /**
   * Whether the peer may be given something now; the caller does not wait, and so it has no place in the
   * queue. Of a peer that the operator chose its own time alone counts: strangers who ask for blocks
   * could else keep a validator from what it lacks.
   */
  mayServe(nodeId: NodeId): boolean {
    return this.options.reservedIds.has(nodeId) ? this.hasOwnTime(nodeId) : this.hasTime(nodeId);
  }

  private hasTime(nodeId: NodeId): boolean {
    return this.allServed.level() > 0 && this.hasOwnTime(nodeId);
  }

  private hasOwnTime(nodeId: NodeId): boolean {
    if (this.servedAtOnceMs >= MOST_SERVED_AT_ONCE_MS) return false;
    return this.accountOf(nodeId).served.level() > 0;
  }

  /**
   * Waits until it is the peer's turn to be given something; of those that wait the one goes first
   * that has had least. Rejects with the signal's reason.
   */
  turn(nodeId: NodeId, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.waiting.size === 0 && this.slicedCount === 0 && this.hasTime(nodeId)) {
      this.countAtOnce();
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const waiters = this.waiting.get(nodeId) ?? [];
      this.waiting.set(nodeId, waiters);
      const onAbort = () => {
        waiters.splice(waiters.indexOf(grant), 1);
        if (waiters.length === 0) this.waiting.delete(nodeId);
        reject(signal.reason);
      };
      const grant = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      waiters.push(grant);
      signal.addEventListener("abort", onAbort, { once: true });
      this.turns ??= setInterval(() => this.giveTurns(), TURN_INTERVAL_MS);
    });
  }

  /** Does a piece of an answer and counts its time. */
  serve<T>(nodeId: NodeId, work: () => T): T {
    const spentMs = startWatch();
    try {
      return work();
    } finally {
      this.served(nodeId, spentMs());
    }
  }

  /**
   * The same of an answer in steps, between which others have their turns. One at a time, and nobody
   * gets a turn meanwhile: many at once would be a stretch again.
   */
  async serveSteps<T>(nodeId: NodeId, steps: Steps<T>): Promise<T> {
    this.slicedCount++;
    const made = this.slicing.then(() => new Slices().run(this.countedSteps(nodeId, steps)));
    this.slicing = made.catch(() => undefined);
    try {
      return await made;
    } finally {
      this.slicedCount--;
    }
  }

  private *countedSteps<T>(nodeId: NodeId, steps: Steps<T>): Steps<T> {
    let spentMs = 0;
    try {
      for (;;) {
        const watch = startWatch();
        const step = steps.next();
        spentMs += watch();
        if (step.done === true) return step.value;
        yield;
      }
    } finally {
      this.served(nodeId, spentMs);
    }
  }

  /** Counts time that an answer took. */
  served(nodeId: NodeId, spentMs: number): void {
    this.spentMs += spentMs;
    this.countAtOnce(spentMs);
    this.usualAnswerMs += (spentMs - this.usualAnswerMs) * LATELY;
    this.accountOf(nodeId).served.take(spentMs, MAX_DEBT_MS);
    this.allServed.take(spentMs, MAX_DEBT_MS);
  }

  private countStranger(nodeId: NodeId, spentMs: number): void {
    this.strangers.take(spentMs, MAX_DEBT_MS);
    const nowMs = this.options.clock.monotonicMs();
    if (nowMs - this.windowAtMs >= SHARE_WINDOW_MS) {
      this.windowAtMs = nowMs;
      this.shares = new Map();
    }
    this.shares.set(nodeId, (this.shares.get(nodeId) ?? 0) + spentMs);
  }

  private countAtOnce(spentMs = this.usualAnswerMs): void {
    if (this.servedAtOnceMs === 0) setImmediate(() => (this.servedAtOnceMs = 0));
    this.servedAtOnceMs += spentMs;
  }

  /** One after the other as long as there is time; one timer for all, however many wait. */
  private giveTurns(): void {
    for (;;) {
      const nodeId = this.nextToServe();
      const waiters = nodeId === undefined ? undefined : this.waiting.get(nodeId);
      const grant = waiters?.shift();
      if (nodeId === undefined || grant === undefined) break;
      if (waiters?.length === 0) this.waiting.delete(nodeId);
      this.countAtOnce();
      grant();
    }
    if (this.waiting.size > 0) return;
    clearInterval(this.turns);
    this.turns = undefined;
  }

  /** Of those that wait and may be given something, the one that has had least. */
  private nextToServe(): NodeId | undefined {
    if (this.slicedCount > 0) return undefined;
    let best: { readonly nodeId: NodeId; readonly levelMs: number } | undefined;
    for (const nodeId of this.waiting.keys()) {
      if (!this.hasTime(nodeId)) continue;
      const levelMs = this.accountOf(nodeId).served.level();
      if (best === undefined || levelMs > best.levelMs) best = { nodeId, levelMs };
    }
    return best?.nodeId;
  }

  private accountOf(nodeId: NodeId): Account {
    const known = this.accounts.get(nodeId);
    if (known !== undefined) return known;
    const { limits } = this;
    const factor = this.options.reservedIds.has(nodeId) ? RESERVED_FACTOR : 1;
    const account = {
      heard: this.bucket(limits.heardMsPerSecond * factor, limits.heardBurstMs * factor),
      served: this.bucket(limits.servedMsPerSecond, limits.servedBurstMs),
      patience: this.bucket(limits.heldUpShare * 1_000, limits.heldUpBurstMs),
    };
    this.accounts.set(nodeId, account);
    return account;
  }

  private bucket(perSecond: number, burst: number): TokenBucket {
    const { clock } = this.options;
    return new TokenBucket({ perSecond, burst, most: burst * MAX_BURSTS, clock });
  }
}
