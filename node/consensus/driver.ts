/**
 * Consensus at work: one queue of messages and timeouts, handled one after the other, height after
 * height. A fault that must never happen stops it for good; the reason is shown, and nothing more
 * is signed.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { formatTime, nsToMs } from "../../chain/consensus/block-id.js";
import type { Vote } from "../../chain/consensus/vote.js";
import { AppError, errorMessage } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Clock } from "../../runtime/process/clock.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { Logger } from "../../runtime/process/logger.js";
import { sleep } from "../../runtime/process/task.js";
import { startWatch } from "../../runtime/process/thread-time.js";
import type { ChainTip } from "../blocks/chain-tip.js";
import type { ChainParams } from "../settings/genesis.js";
import type { ConsensusArchive } from "./consensus-archive.js";
import { makeCommit } from "./machine/commit-votes.js";
import { Congestion, leastShareOf } from "./proposals/congestion.js";
import { ConsensusError } from "./consensus-error.js";
import { timedApplication } from "./timed-application.js";
import type {
  ConsensusBroadcast,
  ConsensusEnd,
  ConsensusInbox,
  ConsensusMessage,
  ConsensusMoment,
  ConsensusReport,
  HeightProgress,
  Reception,
  RoundStatus,
} from "./consensus-ports.js";
import { type DecidingVotes, STEP, type TimeoutStep } from "./machine/consensus-state.js";
import { type ConsensusFailpoint, type Decision, HeightRun } from "./height-run.js";
import { InputQueue } from "./input-queue.js";
import type { RoundMessage } from "./log/message-codec.js";
import { type PrivateValidator, UNSIGNED_STATE } from "./signing/private-validator.js";
import type { BlockMakerParts } from "./proposals/proposal-block.js";
import { heightProgress } from "./machine/height-progress.js";
import { repairDecided, repairSameHeight, roundStatus } from "./machine/round-status.js";
import { type ConsensusTimeouts, nextStartMs, timeoutMs } from "./machine/schedule.js";
import { tellStandstill } from "./standstill.js";
import type { ConsensusStore } from "../store/consensus-store.js";
import type { WalTail } from "./log/tail.js";
import type { Wal } from "./log/wal.js";

/**
 * What a message counts for while it waits, beside the bytes of a part: a signature is verified,
 * which takes as long as hashing so many bytes and more.
 */
const MESSAGE_BYTES = 16_384;
/** Bounds of what waits: parts of the largest block or 1,900 votes from one peer, twice from all. */
const WAITING_LIMITS = { maxPeerBytes: 30 * 1024 * 1024, maxBytes: 60 * 1024 * 1024 };
/** Messages for the next round or height that are kept until it begins: one block's of 3 MiB. */
const EARLY_LIMITS = { maxPeerBytes: 4 * 1024 * 1024, maxBytes: 12 * 1024 * 1024 };
/** Peers that said something new are remembered; more than a node has. */
const MAX_USEFUL_PEERS = 256;
/** Longest stretch of messages before other work gets its turn. */
const YIELD_AFTER_MS = 8;
/** How long nobody looks at the clock while the genesis time is to come: half of the usual block interval. */
const GENESIS_LOOK_MS = 1_000;
/** Heights that a peer may be behind and still be helped by single messages. */
const MAX_REPAIR_BLOCKS = 10_000;

/** Codes of faults after which the process ends, because it can neither write nor read for now. */
const FATAL_CODES: ReadonlySet<string> = new Set([
  "SIGNER_WRITE_FAILED",
  "WAL_WRITE_FAILED",
  "STORE_WRITE_FAILED",
  "STORE_READ_FAILED",
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
  readonly params: ChainParams;
  readonly clock: Clock;
  readonly log: Logger;
  readonly broadcast: ConsensusBroadcast;
  readonly onMoment: (moment: ConsensusMoment) => void;
  readonly onVote: (vote: Vote) => void;
  readonly onReport: (report: ConsensusReport) => void;
  /** Told once when consensus stops because an invariant broke; the process stays up for reading. */
  readonly onHalt: (reason: string) => void;
  /** Throws where this node's key must not sign; asked once more where the clock was set since the start. */
  readonly assertMaySign?: () => void;
  /** Dies at named places; the runtime's own by default. */
  readonly failpoint?: (name: ConsensusFailpoint) => void;
}

interface MessageItem {
  readonly type: "message";
  readonly message: ConsensusMessage;
  readonly peer: string;
  readonly resolve: (reception: Reception | Promise<Reception>) => void;
  readonly onInvalid: (spentMs: number) => void;
}

type QueueItem =
  | MessageItem
  | {
      readonly type: "timeout";
      readonly height: number;
      readonly step: TimeoutStep;
      readonly round: number;
    };

/** The running consensus of a node. */
export class ConsensusDriver implements ConsensusInbox {
  private readonly useful = new LRUCache<string, true>({ max: MAX_USEFUL_PEERS });
  private readonly queuePorts = {
    isUseful: (peer: string) => this.useful.has(peer),
    onDropped: (item: QueueItem) => dismiss(item),
  };
  private readonly queue = new InputQueue<QueueItem>(WAITING_LIMITS, this.queuePorts);
  private readonly congestion: Congestion;
  private run: HeightRun;
  /** Ends the timers of the height in progress. */
  private timers = new AbortController();
  private readonly early = new InputQueue<MessageItem>(EARLY_LIMITS, this.queuePorts);
  private lastStartMs: number | undefined;
  private commitTimeMs: number | undefined;
  private lastYieldMs = 0;
  private isRunning = false;
  private readonly parts: DriverParts;
  /** Time that calls of the application took since the last decision. */
  private workMs = 0;

  constructor(parts: DriverParts) {
    const { application, clock } = parts;
    const watched = timedApplication(application, clock, ({ durationMs }) => {
      this.workMs += durationMs;
    });
    this.parts = { ...parts, application: watched };
    this.congestion = new Congestion(leastShareOf(parts.params));
    this.run = this.createRun(parts.tip, parts.lastCommit);
  }

  /** What the last decided height left. */
  get tip(): ChainTip {
    return this.run.tip;
  }

  /** See `ConsensusView`. */
  progress(): HeightProgress {
    const { state, blocks, tip } = this.run;
    const startTimeMs = this.lastStartMs ?? this.parts.clock.nowMs();
    const times = { startTimeMs, commitTimeMs: this.commitTimeMs };
    return heightProgress(state, blocks, tip, times);
  }

  /**
   * Reads the log back, then decides heights until the signal fires; resolves then, or after a
   * halt. What is under way is finished first; afterwards nothing is signed, and the log is closed.
   * @param tail what the log held when it was opened
   * @throws SIGNER_WRITE_FAILED, WAL_WRITE_FAILED, STORE_WRITE_FAILED, STORE_READ_FAILED
   */
  async start(tail: WalTail, signal: AbortSignal): Promise<ConsensusEnd> {
    this.isRunning = true;
    try {
      this.parts.application.assertMayGoOn();
      await this.awaitGenesis(signal);
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
      for (const item of this.queue.drain()) dismiss(item);
      await this.parts.wal.close();
    }
  }

  /** See `ConsensusInbox`. "useless" as well when consensus does not run or has too much to do. */
  receive(
    message: ConsensusMessage,
    peer: string,
    onInvalid: (spentMs: number) => void = () => undefined,
  ): Promise<Reception> {
    if (!this.isRunning || message.type === "status") return Promise.resolve("useless");
    return new Promise((resolve) => {
      const item: QueueItem = { type: "message", message, peer, resolve, onInvalid };
      if (!this.queue.offer(item, { peer, sizeBytes: sizeOf(message) })) resolve("useless");
    });
  }

  /** See `ConsensusInbox`. */
  forget(peer: string): void {
    for (const item of [...this.queue.remove(peer), ...this.early.remove(peer)]) dismiss(item);
  }

  /** See `ConsensusInbox`. */
  status(): RoundStatus {
    return roundStatus(this.run.state, this.run.blocks);
  }

  /** See `ConsensusInbox`; of the heights that peers are helped with. */
  setSizeAt(height: Height): number | undefined {
    const { validators, lastValidators, nextValidators } = this.tip;
    const back = this.run.height - height;
    if (back === 0) return validators.size;
    if (back === 1) return lastValidators?.size;
    if (back === -1) return nextValidators.size;
    return back < 0 || back > MAX_REPAIR_BLOCKS ? undefined : this.parts.archive.setSize(height);
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
    const { clock, params } = this.parts;
    const nowMs = clock.nowMs();
    this.lastStartMs = nextStartMs(this.lastStartMs, nowMs, params.blockIntervalMs);
    const delayMs = this.lastStartMs - nowMs;
    this.schedule(STEP.newHeight, 0, delayMs);
    const { run } = this;
    const ports = { state: () => run.state, log: this.parts.log };
    tellStandstill(ports, delayMs, this.timers.signal).catch(() => undefined); // As above.
  }

  /**
   * A chain whose genesis time is to come begins then, as in CometBFT: its blocks would all be of the future,
   * and minted for before the chain was meant to be.
   */
  private async awaitGenesis(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.parts;
    const { height, timeNs } = this.tip;
    const waitMs = () => (height > 0 ? 0 : nsToMs(timeNs) - clock.nowMs());
    if (waitMs() <= 0) return;
    log.info({ genesisTime: formatTime(timeNs) }, "the genesis time is to come");
    // In short turns, because a clock that is wrong is set right, and others begin by theirs.
    while (waitMs() > 0) await sleep(Math.min(waitMs(), GENESIS_LOOK_MS), { signal });
    this.parts.assertMaySign?.();
  }

  /**
   * A height is marked as ended behind its durable write: no crash and no power cut alone leaves this.
   * Without its log the key would still sign nothing up to where its state file says that it has.
   */
  private storeBehindLog(endHeight: Height): ConsensusError {
    const { height } = this.tip;
    const stateFile = this.parts.signer?.stateFile ?? "priv_validator_state.json";
    return new ConsensusError(
      "WAL_AHEAD_OF_STORE",
      `the log of consensus has height ${endHeight}, the store only ${height}: an older copy of it ` +
        "was put back, or its disk lost what was written. Where another node has the blocks, name it in " +
        "p2p.persistent_peers and start again; else put data/chain, data/cs.wal and " +
        `${stateFile} back as they were together, the newest that there is. Only where no node has ` +
        `the blocks from ${height + 1} to ${endHeight} and they are given up for lost: move ` +
        `data/cs.wal away and write ${UNSIGNED_STATE} into ${stateFile}`,
    );
  }

  /** Brings the height in progress to where it was before the process ended. */
  private async replay(tail: WalTail): Promise<void> {
    const { wal, log } = this.parts;
    const { height } = this.tip;
    if (tail.cutBytes > 0) log.warn({ bytes: tail.cutBytes }, "the log's torn tail was cut off");
    if (tail.endHeight !== undefined && tail.endHeight > height) {
      throw this.storeBehindLog(tail.endHeight);
    }
    this.scheduleHeight();
    // Without the mark of the tip, what follows is of a height that is stored already.
    const isOfThisHeight = (tail.endHeight ?? 0) === height;
    const records = isOfThisHeight ? tail.records : [];
    // Where something was signed at a height that has no records, the log was lost or moved away.
    const isSigned = this.parts.signer?.lastPlace.height === height + 1;
    const hasGap = (isOfThisHeight && tail.hasGap) || (isSigned && records.length === 0);
    if (!isOfThisHeight) await wal.endHeight(height);
    if (hasGap && !tail.hasGap) await wal.append({ type: "gap", height: height + 1 });
    this.run.startReplay(!hasGap);
    const { run } = this;
    for (const record of records) {
      if (record.type === "timeout" && record.height === run.height) {
        await run.onTimeout(record.step, record.round);
      } else if (record.type === "message") {
        if (record.isOwn) await run.onOwnMessage(record.message);
        else await run.onMessage(record.message);
      }
      if (run.decision !== undefined) break;
    }
    const isShort = await run.endReplay();
    if (isShort) await wal.append({ type: "gap", height: height + 1 });
    log.debug({ records: records.length }, "log of consensus read back");
    await this.decideIfDue();
  }

  private async handle(item: QueueItem): Promise<void> {
    const { run } = this;
    const before = { round: run.state.round, collecting: run.blocks.collecting };
    if (item.type === "message") {
      // The sender gets its answer, even where handling fails: then consensus is over.
      const received = this.receiveNow(item);
      item.resolve(received.catch(() => "useless"));
      await received;
    } else if (item.height === run.height) {
      await run.onTimeout(item.step, item.round);
    }
    const isMoved = run.state.round !== before.round || run.blocks.collecting !== before.collecting;
    if (isMoved) this.offerEarly();
    await this.decideIfDue();
  }

  private async receiveNow(item: MessageItem): Promise<Reception> {
    const { message, peer } = item;
    if (message.type === "status") return "useless";
    if (message.type === "vote") this.noteIfLate(message.vote);
    const isEvidence = message.type === "evidence";
    const spentMs = startWatch();
    const receiving = isEvidence
      ? this.parts.evidence.receive(message.evidence, this.tip)
      : this.run.onMessage(message);
    // What is invalid is found out before anything is waited for.
    const judgedMs = spentMs();
    const reception = await receiving;
    if (reception === "useless" && this.isEarly(message)) this.keepEarly(item);
    if (reception === "new" && !isEvidence) this.useful.set(peer, true);
    if (reception !== "invalid") return reception;
    item.onInvalid(judgedMs);
    this.parts.log.debug({ peer, type: message.type }, "invalid");
    return reception;
  }

  private noteIfLate({ height, round, type }: Vote): void {
    const { state } = this.run;
    const isLate = height < state.height || (height === state.height && round < state.round);
    if (isLate) this.parts.onReport({ type: "late vote", voteType: type });
  }

  /**
   * Whether a message is about the next height, a later round, or parts not yet asked for. Evidence is
   * told by who has decided its height, a moment before others have: routers bring them the same bytes
   * only once in a minute.
   */
  private isEarly(message: Exclude<ConsensusMessage, { type: "status" }>): boolean {
    const { height, round } = this.run.state;
    if (message.type === "evidence") return message.evidence.voteA.height === height;
    const place = placeOf(message);
    if (place.height !== height) return place.height === height + 1;
    const isUnannounced = message.type === "part" && this.run.blocks.collecting === undefined;
    return place.round > round || (place.round === round && isUnannounced);
  }

  private keepEarly(item: MessageItem): void {
    const { peer, message } = item;
    const kept = { ...item, resolve: () => undefined };
    this.early.offer(kept, { peer, sizeBytes: sizeOf(message) });
  }

  /** Messages that came early are looked at again. */
  private offerEarly(): void {
    for (const item of this.early.drain()) {
      this.queue.offer(item, { peer: item.peer, sizeBytes: sizeOf(item.message) });
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

  /** Settles the decision and begins the next height. */
  private async commit({ candidate, votes }: Decision): Promise<void> {
    const { parts, tip } = this;
    const startedMs = parts.clock.monotonicMs();
    this.commitTimeMs = parts.clock.nowMs();
    const { block, executed, id } = candidate;
    if (block === undefined || executed === undefined) {
      throw new ConsensusError("CONSENSUS_FAILURE", "the decided block was not executed");
    }
    const seenCommit = makeCommit(this.run.height, votes, tip.validators);
    const next = await parts.application.settle(
      tip,
      { block, blockId: id, commit: seenCommit, executed },
      {
        ...parts,
        log: parts.wal,
        onDecided: parts.onReport,
        failpoint: parts.failpoint ?? failpoint,
      },
    );
    const { workMs } = this;
    const { blockIntervalMs, maxComputeNs } = parts.params;
    this.workMs = 0;
    const { gasUsed } = executed.committed.block.header;
    const filling = Math.max(
      Number(gasUsed) / Number(tip.params.blockMaxGas),
      executed.computeNs / maxComputeNs,
    );
    this.congestion.onDecided(votes.round, { workMs, blockIntervalMs, filling });
    this.begin(next, votes);
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
    // Before anybody proposes: a round that only some can begin would leave the others waiting.
    parts.application.assertMayGoOn();
  }

  private begin(tip: ChainTip, lastCommit: DecidingVotes): void {
    const { evidence, broadcast } = this.parts;
    this.timers.abort();
    this.timers = new AbortController();
    this.run = this.createRun(tip, lastCommit);
    this.scheduleHeight();
    // Sent again with each height until a block takes it: a peer may have been away.
    for (const one of evidence.forBlock(tip)) {
      broadcast.broadcast({ type: "evidence", evidence: one });
    }
    this.offerEarly();
  }
}

/** What was not looked at any more is of no use to anybody. */
function dismiss(item: QueueItem): void {
  if (item.type === "message") item.resolve("useless");
}

function sizeOf(message: ConsensusMessage): number {
  return MESSAGE_BYTES + (message.type === "part" ? message.part.bytes.length : 0);
}

function placeOf(message: RoundMessage): { readonly height: number; readonly round: number } {
  if (message.type === "part") return message;
  return message.type === "vote" ? message.vote : message.proposal;
}
