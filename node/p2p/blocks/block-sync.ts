/**
 * Catching up: decided blocks are asked from several peers at once, and verified and executed in
 * order. Who sends a false block is banned, who is silent is passed over, who is slow is asked last,
 * and what holds up all others is soon asked from one more.
 */
import { errorCode } from "../../../chain/errors.js";
import type { Height } from "../../../chain/hex.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { createWakeup, joinSignals, limitedSignal } from "../../../runtime/process/task.js";
import {
  type BlockSyncTarget,
  heightOfReceived,
  type ReceivedBlock,
} from "../../consensus/consensus-ports.js";
import { BlockPeer, type SyncPeer } from "./block-peer.js";
import { BlockQueue, type BlockRequest } from "./block-queue.js";
import { HeightClaims } from "./height-claims.js";
import type { NodeId } from "../node-key.js";
import type { Offence } from "../peers/peer-scores.js";
import { AnswerBytes, AnswerLimit } from "./answer-patience.js";

/** What catching up needs. */
export interface BlockSyncPorts {
  readonly target: BlockSyncTarget;
  /** Peers that are connected now; the same object for the same connection. */
  peers(): readonly SyncPeer[];
  report(nodeId: NodeId, offence: Offence): void;
  readonly clock: Clock;
  readonly log: Logger;
  /** Other time limits than the usual ones. */
  readonly limits?: Partial<BlockSyncLimits>;
}

/** Time limits of catching up, milliseconds. */
export interface BlockSyncLimits {
  /** Shortest catching up: peers that come up at the same time shall have found each other. */
  readonly settleMs: number;
  /** How long who need not waits for the first peer. */
  readonly lonelyMs: number;
  /** The same while blocks are known to be missing: who has them may be the one that dials this node. */
  readonly lackingMs: number;
  /** A peer that does not say within this how far it is does not hold up the others. */
  readonly silentMs: number;
  /** A peer from which nothing comes for so long, on none of its requests, is silent. */
  readonly stallMs: number;
  /**
   * Time for an answer of which nothing comes, and more with what comes (`answerTimeMs`); a peer that needs
   * longer is slow, which is no offence.
   */
  readonly answerMs: number;
  /** The block that holds up all others is asked from one more peer after so long, each time. */
  readonly overdueMs: number;
  /** A peer that failed is not asked again for this long. */
  readonly passedOverMs: number;
  /** How long a height counts that a peer claims and does not back. */
  readonly claimMs: number;
  /** The same where the peer has said that it has too much to do and gives later. */
  readonly laterMs: number;
  /** How long such claims of strangers count in all while nothing else is missing. */
  readonly strangersMs: number;
  /** The same of peers that gave blocks, while none comes and nobody proves that many are missing. */
  readonly nearMs: number;
}

const USUAL_LIMITS: BlockSyncLimits = {
  settleMs: 1_000,
  lonelyMs: 5_000,
  // Three times the longest pause between two dials of whoever names this node.
  lackingMs: 15_000,
  silentMs: 1_000,
  stallMs: 5_000,
  answerMs: 20_000,
  overdueMs: 2_000,
  passedOverMs: 15_000,
  claimMs: 6_000,
  laterMs: 30_000,
  strangersMs: 15_000,
  nearMs: 60_000,
};

/** How catching up ends. */
export interface CatchUpOptions {
  readonly signal: AbortSignal;
  /**
   * Whether to go on without having found anybody: only who decides blocks alone has nobody to wait
   * for. All others wait for ever.
   */
  readonly mayBeFirst: boolean;
  /** A height that is known to be decided, whoever is connected; absent: none. */
  readonly provenHeight?: Height;
}

/** A peer's range is asked for again: while there is work, and when there seems to be none left. */
const RANGE_INTERVAL_MS = 2_000;
const LAST_RANGE_INTERVAL_MS = 100;

/** Time for a peer to say how far it is. */
const RANGE_TIMEOUT_MS = 5_000;

/** How often progress is logged. */
const LOG_INTERVAL_MS = 10_000;

/** The loop looks around at least this often. */
const TICK_MS = 50;

/**
 * Only what peers said this recently shows that nothing is left. Beside the time until a peer is silent, what
 * passes until it is asked again: it is always one of both. With a gap between them a few peers that answer
 * in the last moment, in turns, would keep a node from ever ending.
 */
const freshMs = (silentMs: number) => silentMs + LAST_RANGE_INTERVAL_MS + 4 * TICK_MS;

/** Brings the node to the height of its peers. */
export class BlockSync {
  private readonly states = new Map<SyncPeer, BlockPeer>();
  private readonly wakeup = createWakeup();
  private readonly limits: BlockSyncLimits;
  private queue: BlockQueue;
  private claims: HeightClaims;
  private catchingUp = true;
  /** Whether what peers claim kept the node catching up when that was looked at last. */
  private isHeld = true;
  /** Since when the block that comes next is waited for, or since it was last asked from one more. */
  private overdueSinceMs = 0;
  /** When it may next be said that a block is nowhere to be had. */
  private warnAtMs = 0;

  constructor(private readonly ports: BlockSyncPorts) {
    this.limits = { ...USUAL_LIMITS, ...ports.limits };
    this.queue = new BlockQueue(ports.target.height() + 1);
    this.claims = this.newClaims();
  }

  /** True from the beginning until `run` has brought the node to the height of its peers. */
  isCatchingUp(): boolean {
    return this.catchingUp;
  }

  /**
   * Runs until the node is at the height of its peers; may be called again later.
   * @throws what the target throws, other than BLOCK_INVALID
   */
  async run(options: CatchUpOptions): Promise<void> {
    this.catchingUp = true;
    this.isHeld = true;
    this.queue = new BlockQueue(this.ports.target.height() + 1);
    this.claims = this.newClaims();
    const ending = new AbortController();
    const signal = AbortSignal.any([options.signal, ending.signal]);
    try {
      await this.loop({ ...options, signal });
      this.catchingUp = false;
    } finally {
      ending.abort(new Error("caught up"));
      this.states.clear();
    }
  }

  /** There is nobody to catch up with, or nothing that this node could take. */
  skip(): void {
    this.catchingUp = false;
  }

  private async loop(options: CatchUpOptions): Promise<void> {
    const { signal } = options;
    const { target, clock, log } = this.ports;
    const startMs = clock.monotonicMs();
    let [loggedAtMs, loggedHeight] = [startMs, target.height()];
    this.warnAtMs = startMs + this.limits.settleMs;
    this.overdueSinceMs = startMs;
    for (;;) {
      signal.throwIfAborted();
      this.lookAround(signal);
      this.expire();
      if (this.isDone(startMs, options)) break;
      this.ask(signal);
      if (!(await this.applyNext())) await this.wakeup.wait({ signal, timeoutMs: TICK_MS });
      this.warnOfPrunedPeers(clock.monotonicMs());
      const passedMs = clock.monotonicMs() - loggedAtMs;
      if (passedMs < LOG_INTERVAL_MS) continue;
      const height = target.height();
      const blocksPerSecond = Math.round(((height - loggedHeight) * 10_000) / passedMs) / 10;
      log.info(
        { height, peerHeight: this.peerHeight(), blocksPerSecond, peers: this.states.size },
        "catching up",
      );
      [loggedAtMs, loggedHeight] = [clock.monotonicMs(), height];
    }
    log.info({ height: target.height() }, "caught up");
  }

  /** Says what is wrong when everybody who is ahead has deleted the block that comes next here. */
  private warnOfPrunedPeers(nowMs: number): void {
    if (nowMs < this.warnAtMs) return;
    const bases = this.basesBeyond([...this.states.values()]);
    if (bases.length === 0) return;
    this.warnAtMs = nowMs + LOG_INTERVAL_MS;
    const next = this.ports.target.height() + 1;
    this.ports.log.warn(
      { next, oldestOfPeers: Math.min(...bases), peers: bases.length },
      "no peer has the next block any more: connect an archive node, or begin by state sync",
    );
  }

  /** Oldest blocks of the peers that are ahead, where all of them have deleted what comes next here. */
  private basesBeyond(states: readonly BlockPeer[]): readonly Height[] {
    const next = this.ports.target.height() + 1;
    const ranges = states.flatMap(({ range }) => range ?? []);
    const bases = ranges.filter(({ height }) => height >= next).map(({ base }) => base);
    return bases.some((base) => base <= next) ? [] : bases;
  }

  /** Follows who is connected, and asks how far they are. */
  private lookAround(signal: AbortSignal): void {
    const peers = new Set(this.ports.peers());
    for (const [peer, state] of this.states) {
      if (!peers.has(peer)) {
        this.states.delete(peer);
        state.range = undefined;
      }
    }
    const nowMs = this.ports.clock.monotonicMs();
    // With a claim that does not count nothing is left to do: asked seldom, some peer's answer would be old
    // whenever it is looked whether all are new.
    const hasWork = this.isHeld && this.ports.target.height() < this.peerHeight();
    const intervalMs = hasWork ? RANGE_INTERVAL_MS : LAST_RANGE_INTERVAL_MS;
    for (const peer of peers) {
      const state = this.states.get(peer) ?? new BlockPeer(peer, this.ports.clock);
      this.states.set(peer, state);
      const isDue = nowMs - state.rangeAtMs >= intervalMs && nowMs >= state.passedOverUntilMs;
      if (!isDue || state.isAsked) continue;
      state.isAsked = true;
      // Asked once more, it has been silent all the same since it was first asked.
      if (state.rangeAtMs >= state.askedAtMs) state.askedAtMs = nowMs;
      void this.askRange(state, signal);
    }
  }

  /** Waits no longer for answers that take too long, or of which others have given everything. */
  private expire(): void {
    const isWanted = (request: BlockRequest) => this.queue.isWanted(request);
    for (const state of this.states.values()) {
      if (state.expire(this.limits, isWanted)) this.passOver(state, new Error("silent"));
    }
  }

  private async askRange(state: BlockPeer, signal: AbortSignal): Promise<void> {
    const { peer } = state;
    const limit = limitedSignal([signal, peer.signal], RANGE_TIMEOUT_MS);
    try {
      state.range = await peer.source.range(limit);
      state.rangeAtMs = this.ports.clock.monotonicMs();
    } catch (error) {
      // An answer that this node does not read is not the peer's fault.
      if (!signal.aborted && !peer.isHeldUp()) this.passOver(state, error);
    } finally {
      state.isAsked = false;
      this.wakeup.wake();
    }
  }

  private newClaims(): HeightClaims {
    const { claimMs: patienceMs, ...others } = this.limits;
    return new HeightClaims(this.ports.clock, { patienceMs, ...others });
  }

  private isDone(startMs: number, { mayBeFirst, provenHeight = 0 }: CatchUpOptions): boolean {
    const nowMs = this.ports.clock.monotonicMs();
    const { settleMs, lonelyMs, lackingMs } = this.limits;
    const isLacking = this.ports.target.height() < provenHeight;
    if (isLacking && nowMs - startMs < lackingMs) return false;
    const ranges = [...this.states.values()].filter(({ range }) => range !== undefined);
    if (ranges.length === 0) {
      this.claims.rest();
      return mayBeFirst && nowMs - startMs >= lonelyMs;
    }
    if (nowMs - startMs < settleMs) return false;
    // Whoever is frozen has nothing to give; it gets its turn when it answers again.
    const speaking = ranges.filter((state) => !this.isSilent(state, nowMs));
    const mostMs = freshMs(this.limits.silentMs);
    const isFresh = speaking.every(({ rangeAtMs }) => nowMs - rangeAtMs < mostMs);
    const claimed = speaking.flatMap(({ peer: { nodeId }, range }) => {
      return range === undefined ? [] : [{ nodeId, height: range.height }];
    });
    const own = this.ports.target.height();
    const isComing = [...this.states.values()].some((state) => state.brings(own + 1));
    const isClaimed = this.claims.hold(claimed, own, isComing);
    // Among none but peers that are beyond it a node decides nothing either, whether they can prove how
    // far they are or not: only who decides alone has a reason not to wait for another peer.
    const beyond = this.basesBeyond(speaking).length;
    const isStranded = !mayBeFirst && beyond > 0 && beyond === speaking.length;
    this.isHeld = isClaimed || isStranded;
    return speaking.length > 0 && isFresh && !this.isHeld && this.queue.next() === undefined;
  }

  private isSilent({ isAsked, askedAtMs }: BlockPeer, nowMs: number): boolean {
    return isAsked && nowMs - askedAtMs >= this.limits.silentMs;
  }

  /** The greatest height that a peer in good standing claims. */
  peerHeight(): Height {
    const heights = [...this.states.values()].flatMap(({ range }) => range?.height ?? []);
    return heights.reduce((highest, height) => Math.max(highest, height), 0);
  }

  /** Gives work to every peer that has time for it, in turns. */
  private ask(signal: AbortSignal): void {
    const nowMs = this.ports.clock.monotonicMs();
    // Whoever failed before is asked last: it must not sit on the block that holds up the others.
    const ready = [...this.states.values()]
      .filter(({ passedOverUntilMs }) => nowMs >= passedOverUntilMs)
      .toSorted((one, other) => BlockPeer.compare(one, other));
    for (const state of ready) this.doubt(state, signal);
    this.askOverdue(ready, signal);
    const turns = Math.max(0, ...ready.map(({ mostRequests }) => mostRequests));
    for (let turn = 0; turn < turns; turn++) {
      for (const state of ready) {
        const { range, requests, mostRequests, peer } = state;
        if (range === undefined || requests > Math.min(turn, mostRequests - 1)) continue;
        const request = this.queue.take(range, peer.nodeId);
        if (request !== undefined) void this.askBlocks(state, request, signal);
      }
    }
  }

  /** Nobody can hold up all others by keeping the one block that comes next. */
  private askOverdue(ready: readonly BlockPeer[], signal: AbortSignal): void {
    const nowMs = this.ports.clock.monotonicMs();
    if (this.queue.next() !== undefined) this.overdueSinceMs = nowMs;
    if (nowMs - this.overdueSinceMs < this.limits.overdueMs) return;
    for (const state of ready) {
      const { range, requests, mostRequests, peer } = state;
      if (range === undefined || requests >= mostRequests) continue;
      const request = this.queue.takeOverdue(range, peer.nodeId);
      if (request === undefined) continue;
      this.overdueSinceMs = nowMs;
      void this.askBlocks(state, request, signal);
      return;
    }
  }

  /** Asks for the newest block that a peer claims to have, where it has backed nothing so far. */
  private doubt(state: BlockPeer, signal: AbortSignal): void {
    const { range, peer, isAskedForProof, proofDueMs } = state;
    if (range === undefined || isAskedForProof) return;
    if (this.ports.clock.monotonicMs() < proofDueMs) return;
    if (!this.claims.isDoubtful(peer.nodeId, range.height, this.ports.target.height())) return;
    void this.askProof(state, range.height, signal);
  }

  private async askProof(state: BlockPeer, height: Height, signal: AbortSignal): Promise<void> {
    const { peer } = state;
    state.isAskedForProof = true;
    // As long as for blocks: a peer with too much to do has the proof wait for its turn as well.
    const bytes = new AnswerBytes(state.line);
    const timeMs = () => bytes.timeMs(this.limits.answerMs);
    const limit = new AnswerLimit([signal, peer.signal], timeMs);
    const onBytes = (sizeBytes: number) => bytes.came(sizeBytes);
    const { target, log } = this.ports;
    let isProved = false;
    const onBlock = ({ commit }: ReceivedBlock) => {
      if (commit.height !== height || !target.isProof(commit)) return;
      isProved = true;
      this.claims.prove(peer.nodeId, height);
    };
    try {
      const options = { signal: limit.signal, onBlock, onBytes };
      await peer.source.blocks({ from: height, count: 1 }, options);
    } catch (error) {
      if (!signal.aborted) log.debug({ peer: peer.nodeId, err: error }, "a height was not proved");
    } finally {
      limit.release();
      state.askedForProof(isProved);
      this.wakeup.wake();
    }
  }

  private async askBlocks(
    state: BlockPeer,
    request: BlockRequest,
    signal: AbortSignal,
  ): Promise<void> {
    const { nodeId, signal: leaving, source } = state.peer;
    const answer = state.begin(request);
    const joined = joinSignals([signal, leaving, answer.signal]);
    try {
      const count = await source.blocks(request, {
        signal: joined.signal,
        onBlock: (received, sizeBytes) => {
          const cameMs = state.gave(answer, sizeBytes);
          this.queue.put(received, { from: nodeId, sizeBytes, cameMs });
          this.wakeup.wake();
        },
        onBytes: (sizeBytes) => state.came(answer, sizeBytes),
        onLater: () => {
          state.delays(answer);
          this.claims.delay(nodeId);
        },
      });
      // Within the range that it named itself a peer must have something to give.
      if (count === 0) this.passOver(state, new Error("an empty answer"));
    } catch (error) {
      // What this node gave up itself is judged where it did.
      if (!signal.aborted && !answer.signal.aborted) this.passOver(state, error);
    } finally {
      joined.release();
      state.end(answer);
      this.queue.release(request, nodeId);
      this.wakeup.wake();
    }
  }

  /** Verifies and executes the next block; false when it is not here yet. */
  private async applyNext(): Promise<boolean> {
    const next = this.queue.next();
    if (next === undefined) return false;
    try {
      await this.ports.target.apply(next.received);
      this.queue.advance();
      this.overdueSinceMs = this.ports.clock.monotonicMs();
      this.claims.back(next.from, next.cameMs);
    } catch (error) {
      if (errorCode(error) !== "BLOCK_INVALID") throw error;
      this.ports.log.warn(
        { peer: next.from, height: heightOfReceived(next.received), err: error },
        "a peer sent a false block",
      );
      this.queue.dropFrom(next.from);
      for (const state of this.states.values()) {
        if (state.peer.nodeId === next.from) this.setAside(state);
      }
      this.ports.report(next.from, "falseBlock");
    }
    return true;
  }

  /** What a peer fails counts once for each time that it is passed over, not for each request. */
  private passOver(state: BlockPeer, error: unknown): void {
    const { nodeId, signal } = state.peer;
    const isMalformed = errorCode(error) === "PEER_PROTOCOL";
    const isCounted = this.ports.clock.monotonicMs() < state.passedOverUntilMs;
    this.setAside(state);
    if (signal.aborted || (isCounted && !isMalformed)) return;
    state.failed();
    this.ports.log.debug({ peer: nodeId, err: error }, "peer passed over");
    this.ports.report(nodeId, isMalformed ? "malformed" : "unanswered");
  }

  /** What it said of itself does not count until it is asked again. */
  private setAside(state: BlockPeer): void {
    state.range = undefined;
    state.passedOverUntilMs = this.ports.clock.monotonicMs() + this.limits.passedOverMs;
  }
}
