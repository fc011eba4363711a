/**
 * Consensus at work: one queue of messages and timeouts, handled one after the other, height after
 * height. A fault that must never happen stops it for good; the reason is shown, and nothing more
 * is signed.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { DuplicateVoteEvidence } from "../../chain/consensus/evidence.js";
import type { Vote } from "../../chain/consensus/vote.js";
import { AppError, errorMessage } from "../../chain/errors.js";
import type { Clock } from "../../runtime/clock.js";
import { failpoint } from "../../runtime/failpoint.js";
import type { Logger } from "../../runtime/logger.js";
import { sleep } from "../../runtime/task.js";
import { type ConsensusArchive, decisionWrites, resultsHashOf } from "./consensus-archive.js";
import { type ChainTip, nextTip } from "./chain-tip.js";
import { makeCommit } from "./commit-votes.js";
import { Congestion } from "./congestion.js";
import { ConsensusError } from "./consensus-error.js";
import type {
  ConsensusBroadcast,
  ConsensusEnd,
  ConsensusInbox,
  ConsensusMessage,
  ConsensusMoment,
  ConsensusReport,
  Reception,
  RoundStatus,
} from "./consensus-ports.js";
import { type DecidingVotes, STEP, type TimeoutStep } from "./consensus-state.js";
import { type ConsensusFailpoint, type Decision, HeightRun } from "./height-run.js";
import { InputQueue } from "./input-queue.js";
import type { RoundMessage } from "./message-codec.js";
import type { PrivateValidator } from "./private-validator.js";
import type { BlockMakerParts } from "./proposal-block.js";
import { repairDecided, repairSameHeight, roundStatus } from "./round-status.js";
import { type ConsensusTimeouts, nextStartMs, timeoutMs } from "./schedule.js";
import type { ConsensusStore } from "../store/consensus-store.js";
import type { Wal, WalTail } from "./wal.js";

/** What a message of a peer counts for while it waits; a part is 64 KiB. */
const WEIGHT = { proposal: 8, vote: 8, evidence: 8, part: 64 } as const;
/** Bound of what waits: 8,192 votes (seconds of a large network's), or 1,024 parts (64 MiB). */
const MAX_WAITING_WEIGHT = 65_536;
/** Messages for the next round or height that are kept until it begins. */
const MAX_EARLY = 512;
/** Longest stretch of messages before other work gets its turn. */
const YIELD_AFTER_MS = 8;
/** Heights that a peer may be behind and still be helped by single messages. */
const MAX_REPAIR_BLOCKS = 10_000;

/** Codes of faults after which the process ends, because it cannot write. */
const FATAL_CODES: ReadonlySet<string> = new Set([
  "SIGNER_WRITE_FAILED",
  "WAL_WRITE_FAILED",
  "STORE_WRITE_FAILED",
]);

/** What consensus works with. */
export interface DriverParts extends BlockMakerParts {
  readonly store: ConsensusStore;
  readonly archive: ConsensusArchive;
  readonly wal: Wal;
  readonly signer: PrivateValidator | undefined;
  readonly tip: ChainTip;
  /** The precommits that decided the tip; undefined at height 0. */
  readonly lastCommit: DecidingVotes | undefined;
  readonly timeouts: ConsensusTimeouts;
  readonly blockIntervalMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly broadcast: ConsensusBroadcast;
  readonly onMoment: (moment: ConsensusMoment) => void;
  readonly onVote: (vote: Vote) => void;
  readonly onReport: (report: ConsensusReport) => void;
  /** Told once when consensus stops because an invariant broke; the process stays up for reading. */
  readonly onHalt: (reason: string) => void;
  /** Dies at named places; the runtime's own by default. */
  readonly failpoint?: (name: ConsensusFailpoint) => void;
}

type QueueItem =
  | {
      readonly type: "message";
      readonly message: ConsensusMessage;
      readonly peer: string;
      readonly resolve: (reception: Reception | Promise<Reception>) => void;
    }
  | {
      readonly type: "timeout";
      readonly height: number;
      readonly step: TimeoutStep;
      readonly round: number;
    };

/** The running consensus of a node. */
export class ConsensusDriver implements ConsensusInbox {
  private readonly queue = new InputQueue<QueueItem>(MAX_WAITING_WEIGHT);
  private readonly congestion = new Congestion();
  private run: HeightRun;
  /** Ends the timers of the height in progress. */
  private timers = new AbortController();
  private early: { readonly message: ConsensusMessage; readonly peer: string }[] = [];
  private lastStartMs: number | undefined;
  private lastYieldMs = 0;
  private isRunning = false;

  constructor(private readonly parts: DriverParts) {
    this.run = this.createRun(parts.tip, parts.lastCommit);
  }

  /** What the last decided height left. */
  get tip(): ChainTip {
    return this.run.tip;
  }

  /** The proposer of the round in progress. */
  get proposer() {
    return this.run.state.validators.proposer.address;
  }

  /**
   * Reads the log back, then decides heights until the signal fires; resolves then, or after a
   * halt. What is under way is finished first; afterwards nothing is signed, and the log is closed.
   * @param tail what the log held when it was opened
   * @throws SIGNER_WRITE_FAILED, WAL_WRITE_FAILED, STORE_WRITE_FAILED
   */
  async start(tail: WalTail, signal: AbortSignal): Promise<ConsensusEnd> {
    this.isRunning = true;
    try {
      await this.replay(tail);
      for (;;) {
        await this.handle(await this.queue.next(signal));
        await this.yieldIfDue();
      }
    } catch (error) {
      if (signal.aborted && error === signal.reason) return "stopped";
      if (error instanceof AppError && FATAL_CODES.has(error.code)) throw error;
      this.parts.log.error({ err: error }, "block production halted");
      this.parts.onHalt(errorMessage(error));
      return "halted";
    } finally {
      this.isRunning = false;
      this.timers.abort();
      for (const item of this.queue.drain()) this.dismiss(item);
      await this.parts.wal.close();
    }
  }

  /** See `ConsensusInbox`. "useless" as well when consensus does not run or has too much to do. */
  receive(message: ConsensusMessage, peer: string): Promise<Reception> {
    if (!this.isRunning || message.type === "status") return Promise.resolve("useless");
    return new Promise((resolve) => {
      const item: QueueItem = { type: "message", message, peer, resolve };
      if (!this.queue.offer(item, WEIGHT[message.type])) resolve("useless");
    });
  }

  /** See `ConsensusInbox`. */
  status(): RoundStatus {
    return roundStatus(this.run.state, this.run.blocks);
  }

  /** See `ConsensusInbox`; at most some hundred votes and 1 MiB of parts. */
  repair(peer: RoundStatus): readonly ConsensusMessage[] {
    const { state, blocks } = this.run;
    if (peer.height === state.height) return repairSameHeight(state, blocks, peer);
    const { archive } = this.parts;
    const isHelpable = peer.height < state.height && peer.height >= archive.base();
    if (!isHelpable || state.height - peer.height > MAX_REPAIR_BLOCKS) return [];
    const commit = archive.commitOf(peer.height);
    const header = commit?.blockId?.parts;
    if (commit === undefined || header === undefined) return [];
    // A peer that collects other parts has to hear of the votes first.
    const isWanted = peer.parts === undefined || peer.parts.header.hash === header.hash;
    const parts = isWanted ? (archive.partsOf(peer.height)?.parts ?? []) : [];
    return repairDecided(commit, { header, parts }, peer);
  }

  private createRun(tip: ChainTip, lastCommit: DecidingVotes | undefined): HeightRun {
    const { parts } = this;
    const context = {
      ...parts,
      congestion: this.congestion,
      failpoint: parts.failpoint ?? failpoint,
      schedule: (step: Exclude<TimeoutStep, typeof STEP.newHeight>, round: number) =>
        this.schedule(step, round, timeoutMs(parts.timeouts, step, round)),
    };
    return new HeightRun(context, tip, lastCommit);
  }

  /** Queues a timeout of the height in progress when its time has come. */
  private schedule(step: TimeoutStep, round: number, delayMs: number): void {
    const { height } = this.run;
    sleep(Math.max(0, delayMs), { signal: this.timers.signal }).then(
      () => this.queue.push({ type: "timeout", height, step, round }),
      () => undefined, // The height is over, or the node stops.
    );
  }

  private scheduleHeight(): void {
    const { clock, blockIntervalMs } = this.parts;
    const nowMs = clock.nowMs();
    this.lastStartMs = nextStartMs(this.lastStartMs, nowMs, blockIntervalMs);
    this.schedule(STEP.newHeight, 0, this.lastStartMs - nowMs);
  }

  /** Brings the height in progress to where it was before the process ended. */
  private async replay(tail: WalTail): Promise<void> {
    const { wal, log } = this.parts;
    const { height } = this.tip;
    if (tail.cutBytes > 0) log.warn({ bytes: tail.cutBytes }, "the log's torn tail was cut off");
    if (tail.endHeight !== undefined && tail.endHeight > height) {
      throw new ConsensusError(
        "WAL_AHEAD_OF_STORE",
        `the log of consensus has height ${tail.endHeight}, the store only ${height}: restore the ` +
          "store, or move the log away if the store was replaced on purpose",
      );
    }
    this.scheduleHeight();
    // Without the mark of the tip, what follows is of a height that is stored already.
    const isOfThisHeight = (tail.endHeight ?? 0) === height;
    if (!isOfThisHeight) return wal.endHeight(height);
    this.run.startReplay();
    const { run } = this;
    for (const record of tail.records) {
      if (record.type === "timeout" && record.height === run.height) {
        await run.onTimeout(record.step, record.round);
      } else if (record.type === "message") {
        if (record.isOwn) await run.onOwnMessage(record.message);
        else await run.onMessage(record.message);
      }
      if (run.decision !== undefined) break;
    }
    await run.endReplay();
    log.debug({ records: tail.records.length }, "log of consensus read back");
    await this.decideIfDue();
  }

  private async handle(item: QueueItem): Promise<void> {
    const { run } = this;
    const before = { round: run.state.round, collecting: run.blocks.collecting };
    if (item.type === "message") {
      // The sender gets its answer, even where handling fails: then consensus is over.
      const received = this.receiveNow(item.message, item.peer);
      item.resolve(received.catch(() => "useless"));
      await received;
    } else if (item.height === run.height) {
      await run.onTimeout(item.step, item.round);
    }
    const isMoved = run.state.round !== before.round || run.blocks.collecting !== before.collecting;
    if (isMoved) this.offerEarly();
    await this.decideIfDue();
  }

  private async receiveNow(message: ConsensusMessage, peer: string): Promise<Reception> {
    if (message.type === "status") return "useless";
    if (message.type === "evidence") {
      return this.parts.evidence.receive(message.evidence, this.tip);
    }
    if (message.type === "vote") this.noteIfLate(message.vote);
    const reception = await this.run.onMessage(message);
    if (reception === "useless" && this.isEarly(message)) this.keepEarly({ message, peer });
    if (reception === "invalid") this.parts.log.debug({ peer, type: message.type }, "invalid");
    return reception;
  }

  private noteIfLate({ height, round, type }: Vote): void {
    const { state } = this.run;
    const isLate = height < state.height || (height === state.height && round < state.round);
    if (isLate) this.parts.onReport({ type: "late vote", voteType: type });
  }

  /** Whether a message is about the next height, a later round, or parts not yet asked for. */
  private isEarly(message: RoundMessage): boolean {
    const { height, round } = this.run.state;
    const place = placeOf(message);
    if (place.height !== height) return place.height === height + 1;
    const isUnannounced = message.type === "part" && this.run.blocks.collecting === undefined;
    return place.round > round || (place.round === round && isUnannounced);
  }

  private keepEarly(item: { message: ConsensusMessage; peer: string }): void {
    if (this.early.length < MAX_EARLY) this.early.push(item);
  }

  /** Messages that came early are looked at again. */
  private offerEarly(): void {
    const { early } = this;
    this.early = [];
    for (const { message, peer } of early) {
      this.queue.push({ type: "message", message, peer, resolve: () => undefined });
    }
  }

  private async decideIfDue(): Promise<void> {
    const { decision } = this.run;
    if (decision === undefined) return;
    await this.commit(decision);
  }

  /** A flood of messages must not hold up the rest of the process. */
  private async yieldIfDue(): Promise<void> {
    const { clock } = this.parts;
    if (clock.monotonicMs() - this.lastYieldMs < YIELD_AFTER_MS) return;
    await nextTurn();
    this.lastYieldMs = clock.monotonicMs();
  }

  /** Makes the decided block durable and begins the next height. */
  private async commit({ candidate, votes }: Decision): Promise<void> {
    const { parts, tip } = this;
    const startedMs = parts.clock.monotonicMs();
    const { block, executed, id } = candidate;
    if (block === undefined || executed === undefined) {
      throw new ConsensusError("CONSENSUS_FAILURE", "the decided block was not executed");
    }
    const seenCommit = makeCommit(this.run.height, votes, tip.validators);
    const next = nextTip(tip, {
      block,
      blockId: id,
      commit: seenCommit,
      appHash: executed.committed.block.hash,
      resultsHash: resultsHashOf(executed.committed),
    });
    const pass = parts.failpoint ?? failpoint;
    pass("consensus.before-commit");
    await parts.application.commit(executed, decisionWrites(parts, { tip, next, block }));
    pass("consensus.after-block-write");
    await parts.wal.endHeight(next.height);
    this.congestion.onDecided(votes.round);
    pass("consensus.after-end-height");
    parts.onReport({
      type: "decided",
      block,
      sizeBytes: candidate.parts.reduce((sum, { bytes }) => sum + bytes.length, 0),
      lastTimeNs: tip.timeNs,
      validators: tip.validators,
      lastValidators: tip.lastValidators,
    });
    await this.begin(next, votes, block.evidence);
    parts.log.info(
      {
        height: next.height,
        hash: executed.committed.block.hash,
        round: votes.round,
        transactions: block.transactions.length,
        durationMs: Math.round(parts.clock.monotonicMs() - startedMs),
      },
      "block committed",
    );
  }

  private async begin(
    tip: ChainTip,
    lastCommit: DecidingVotes,
    committed: readonly DuplicateVoteEvidence[],
  ): Promise<void> {
    const { evidence, broadcast } = this.parts;
    this.timers.abort();
    this.timers = new AbortController();
    this.run = this.createRun(tip, lastCommit);
    this.scheduleHeight();
    await evidence.afterBlock(tip, committed);
    // Sent again with each height until a block takes it: a peer may have been away.
    for (const one of evidence.forBlock(tip)) {
      broadcast.broadcast({ type: "evidence", evidence: one });
    }
    this.offerEarly();
  }

  private dismiss(item: QueueItem): void {
    if (item.type === "message") item.resolve("useless");
  }
}

function placeOf(message: RoundMessage): { readonly height: number; readonly round: number } {
  if (message.type === "part") return message;
  return message.type === "vote" ? message.vote : message.proposal;
}
