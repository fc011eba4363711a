/**
 * One peer while a node catches up: how far it is, what it was asked for, and whether it answers.
 * Who says "later" has too much to do and is slow; who says nothing on any of its requests is
 * silent, and that counts once however many there are.
 */
import type { Height } from "../../../chain/hex.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { NodeId } from "../node-key.js";
import { AnswerBytes, answerTimeMs, type Line } from "./answer-patience.js";
import type { ArchiveRange, BlockSource } from "./block-protocol.js";
import type { BlockRequest } from "./block-queue.js";

/** A peer that may have blocks. */
export interface SyncPeer {
  readonly nodeId: NodeId;
  readonly source: BlockSource;
  /** Fires when the peer is gone. */
  readonly signal: AbortSignal;
  /** Whether this node reads nothing from the peer now: then its silence is not its own. */
  isHeldUp(): boolean;
}

/** Time limits of answers, milliseconds. */
export interface AnswerLimits {
  /** A peer from which nothing comes for so long, on none of its requests, is silent. */
  readonly stallMs: number;
  /** Time for an answer of which nothing comes, and more with what comes (`answerTimeMs`). */
  readonly answerMs: number;
}

/** Answers under way from one peer; from one that says "later", one. */
const MAX_REQUESTS = 4;

/** Pause before a peer is asked for a proof again; doubles each time that it had none. A proof is a block. */
const PROOF_PAUSE_MS = 500;
const MAX_PROOF_PAUSE_MS = 60_000;

/** An answer that is under way. */
export interface OpenAnswer {
  readonly request: BlockRequest;
  /** Fires when nobody waits for it any more. */
  readonly signal: AbortSignal;
}

interface Answer extends OpenAnswer {
  readonly ending: AbortController;
  readonly startMs: number;
  isDelayed: boolean;
  readonly bytes: AnswerBytes;
  /** When the block began to come that is under way. */
  comesSinceMs: number | undefined;
}

/** What is known of a peer; the state of one time of catching up. */
export class BlockPeer {
  range: ArchiveRange | undefined;
  rangeAtMs = Number.NEGATIVE_INFINITY;
  isAsked = false;
  /** When it was first asked for its range since it last gave one. */
  askedAtMs = Number.NEGATIVE_INFINITY;
  /** All its answers share it, proofs among them. */
  readonly line: Line = { cameBytes: 0 };
  isAskedForProof = false;
  /** It is not asked for a proof again before. */
  proofDueMs = Number.NEGATIVE_INFINITY;
  private proofPauseMs = PROOF_PAUSE_MS;
  /** The peer failed and is not asked again before. */
  passedOverUntilMs = Number.NEGATIVE_INFINITY;
  private readonly open = new Set<Answer>();
  private spokeAtMs = Number.NEGATIVE_INFINITY;
  /** Answers that it failed, or was too slow for, since it last gave a block. */
  private failures = 0;
  private isDelayed = false;
  /** What it had brought when a block became the next one, and when the first byte came after that. */
  private awaited = { height: 0, fromBytes: 0, sinceMs: 0 };

  constructor(
    readonly peer: SyncPeer,
    private readonly clock: Clock,
  ) {}

  /** Answers under way. */
  get requests(): number {
    return this.open.size;
  }

  /** Most answers that should be under way. */
  get mostRequests(): number {
    return this.isDelayed ? 1 : MAX_REQUESTS;
  }

  /** Who comes first: negative for the one that is likelier to give what it is asked for. */
  static compare(one: BlockPeer, other: BlockPeer): number {
    return one.failures - other.failures || Number(one.isDelayed) - Number(other.isDelayed);
  }

  /** The peer is asked for blocks. */
  begin(request: BlockRequest): OpenAnswer {
    const ending = new AbortController();
    const startMs = this.clock.monotonicMs();
    const answer: Answer = {
      request,
      ending,
      signal: ending.signal,
      startMs,
      isDelayed: false,
      bytes: new AnswerBytes(this.line),
      comesSinceMs: undefined,
    };
    // With other answers under way it is not excused by being asked for more.
    if (this.open.size === 0) this.spokeAtMs = startMs;
    this.open.add(answer);
    return answer;
  }

  /** So many bytes of an answer came, if only of a part of a block. */
  came(open: OpenAnswer, sizeBytes: number): void {
    this.spoke();
    const answer = this.find(open);
    if (answer === undefined) return;
    answer.bytes.came(sizeBytes);
    answer.comesSinceMs ??= this.clock.monotonicMs();
  }

  /**
   * Whether blocks come from it at the least rate, since the first byte that came after this height became
   * the one that is waited for. The server gives in its own order, so bytes of any block count.
   */
  brings(next: Height): boolean {
    const nowMs = this.clock.monotonicMs();
    const { awaited } = this;
    const { cameBytes } = this.line;
    if (awaited.height !== next || cameBytes <= awaited.fromBytes) {
      this.awaited = { height: next, fromBytes: cameBytes, sinceMs: nowMs };
      return false;
    }
    const sizeBytes = cameBytes - awaited.fromBytes;
    return this.open.size > 0 && nowMs - awaited.sinceMs <= answerTimeMs(0, sizeBytes);
  }

  /**
   * A whole block of an answer came.
   * @param sizeBytes of its message
   * @returns how long it came, and at the least rate: milliseconds
   */
  gave(open: OpenAnswer, sizeBytes: number): number {
    this.spoke();
    this.failures = 0;
    const answer = this.find(open);
    const nowMs = this.clock.monotonicMs();
    const cameMs = nowMs - (answer?.comesSinceMs ?? nowMs);
    if (answer !== undefined) answer.comesSinceMs = undefined;
    return Math.min(cameMs, answerTimeMs(0, sizeBytes));
  }

  /** The peer has too much to do now: an answer comes later. */
  delays(open: OpenAnswer): void {
    this.spoke();
    this.isDelayed = true;
    const answer = this.find(open);
    if (answer === undefined) return;
    answer.isDelayed = true;
    answer.comesSinceMs = undefined;
  }

  /** The answer is over, however it went. */
  end(open: OpenAnswer): void {
    const answer = this.find(open);
    if (answer === undefined) return;
    this.open.delete(answer);
    if (!answer.isDelayed && !answer.signal.aborted) this.isDelayed = false;
  }

  /** A request failed, or took too long. */
  failed(): void {
    this.failures++;
  }

  /** It was asked for a proof of its height: who has none is asked ever more seldom. */
  askedForProof(isProved: boolean): void {
    this.isAskedForProof = false;
    const pauseMs = isProved ? PROOF_PAUSE_MS : this.proofPauseMs;
    this.proofPauseMs = Math.min(pauseMs * 2, MAX_PROOF_PAUSE_MS);
    this.proofDueMs = this.clock.monotonicMs() + pauseMs;
  }

  /**
   * Ends what has taken too long, and answers of which nothing is wanted any more.
   * @returns whether the peer is silent: all its answers are ended
   */
  expire({ stallMs, answerMs }: AnswerLimits, isWanted: (one: BlockRequest) => boolean): boolean {
    const nowMs = this.clock.monotonicMs();
    for (const { request, ending, startMs, bytes } of this.open) {
      if (!isWanted(request)) ending.abort(new Error("others have given it"));
      else if (nowMs - startMs >= bytes.timeMs(answerMs) && !ending.signal.aborted) {
        this.failed();
        ending.abort(new Error("slow"));
      }
    }
    if (this.peer.isHeldUp()) this.spokeAtMs = nowMs;
    if (this.open.size === 0 || nowMs - this.spokeAtMs < stallMs) return false;
    for (const { ending } of this.open) ending.abort(new Error("silent"));
    return true;
  }

  private find(open: OpenAnswer): Answer | undefined {
    return [...this.open].find((answer) => answer === open);
  }

  private spoke(): void {
    this.spokeAtMs = this.clock.monotonicMs();
  }
}
