/**
 * Consensus of a node put together: what the network, block sync and the servers hold on to, over
 * one driver that starts when the node has caught up.
 */
import path from "node:path";
import type { Address } from "../../chain/address.js";
import type { DuplicateVoteEvidence } from "../../chain/consensus/evidence.js";
import { ValidatorSet } from "../../chain/consensus/validator-set.js";
import type { Vote } from "../../chain/consensus/vote.js";
import { type Commit, COMMIT_FLAG } from "../../chain/consensus/commit.js";
import {
  type ConsensusBlock,
  encodeConsensusBlock,
  partSteps,
} from "../../chain/consensus/consensus-block.js";
import { hashConsensusHeader } from "../../chain/consensus/consensus-header.js";
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Steps } from "../../chain/steps/steps.js";
import type { Clock } from "../../runtime/process/clock.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { Logger } from "../../runtime/process/logger.js";
import { Slices } from "../../runtime/process/slices.js";
import type { BlockApplication } from "../blocks/block-application.js";
import { blockInvalid } from "../blocks/block-error.js";
import { executeBlock } from "../blocks/block-validity.js";
import type { ChainTip } from "../blocks/chain-tip.js";
import { isSignedByMost, isSignedByThird, verifyCommit } from "../blocks/commit-verification.js";
import { consensusParamsOf, type Genesis } from "../settings/genesis.js";
import { UpgradeError } from "../modules/upgrade/upgrades.js";
import type { ExecutedBlock } from "../store/block-commit.js";
import type { BlockStore } from "../store/blocks/block-store.js";
import { type CommittedEvidence, ConsensusStore } from "../store/consensus-store.js";
import type { Database } from "../store/database.js";
import { decidingVotesOf } from "./machine/commit-votes.js";
import { ConsensusArchive, loadTip } from "./consensus-archive.js";
import { cannotTake, readDecided } from "./decided-refusal.js";
import { ConsensusError } from "./consensus-error.js";
import type {
  BlockSyncTarget,
  ConsensusBroadcast,
  ConsensusEnd,
  ConsensusInbox,
  ConsensusMessage,
  ConsensusMoment,
  ConsensusReport,
  ConsensusView,
  DecidedBlock,
  DecidedOutline,
  HeightProgress,
  ReceivedBlock,
  Reception,
  RoundStatus,
  RefusedBlock,
} from "./consensus-ports.js";
import { ConsensusDriver } from "./driver.js";
import { EvidencePool, isEvidenceExpired } from "./evidence-pool.js";
import type { ConsensusFailpoint } from "./height-run.js";
import { Listeners } from "./listeners.js";
import { type PrivateValidator, UNSIGNED_STATE } from "./signing/private-validator.js";
import { idleProgress } from "./machine/height-progress.js";
import { RefusedBlocks } from "./proposals/refused-blocks.js";
import { idleStatus } from "./machine/round-status.js";
import type { ConsensusTimeouts } from "./machine/schedule.js";
import { timedApplication } from "./timed-application.js";
import { Wal } from "./log/wal.js";

/**
 * Faults that say of a block that it does not fit to this node's state and rules; others, of disk
 * and memory, say nothing of it.
 */
const REFUSAL_CODES: ReadonlySet<string> = new Set([
  "BLOCK_INVALID",
  "INVALID_MESSAGE",
  "BALANCE_JOURNAL_MISMATCH",
  "SUPPLY_MISMATCH",
]);

/** So long behind its genesis time a chain without blocks is taken for one that begins. */
const BEGINNING_MS = 3_600_000;

/** What consensus is opened with. */
export interface ConsensusOptions {
  /** The node's home; the log lies in `data/cs.wal`. */
  readonly home: string;
  readonly genesis: Genesis;
  readonly database: Database;
  readonly blocks: BlockStore;
  readonly application: BlockApplication;
  /** Height of the newest published block. */
  readonly headHeight: () => Height;
  /** Undefined for a node that only follows. */
  readonly signer: PrivateValidator | undefined;
  readonly timeouts: ConsensusTimeouts;
  /** Refuse to sign when the key signed one of so many last blocks; 0 never does. */
  readonly doubleSignCheckBlocks: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onHalt: (reason: string) => void;
  /** Crash points; the runtime's own by default. */
  readonly failpoint?: (name: ConsensusFailpoint) => void;
}

/** Consensus of one node: follows decided blocks, takes part, and follows again when it is behind. */
export class Consensus implements ConsensusInbox, BlockSyncTarget, ConsensusView {
  private driver: ConsensusDriver | undefined;
  private isApplying = false;
  private hasTakenPart = false;
  private isCheckedSigner = false;
  private readonly moments: Listeners<ConsensusMoment>;
  private readonly votes: Listeners<Vote>;
  private readonly reports: Listeners<ConsensusReport>;
  private readonly application: BlockApplication;
  private readonly refused = new RefusedBlocks();

  private constructor(
    private readonly options: ConsensusOptions,
    private readonly store: ConsensusStore,
    private readonly archive: ConsensusArchive,
    private readonly evidence: EvidencePool,
    private followed: ChainTip,
  ) {
    const report = (err: unknown) => options.log.error({ err }, "consensus listener failed");
    this.moments = new Listeners(report);
    this.votes = new Listeners(report);
    this.reports = new Listeners(report);
    this.application = timedApplication(options.application, options.clock, (timing) =>
      this.reports.emit(timing),
    );
  }

  /** Opens the records of consensus, making those of the genesis. Throws STORE_WRITE_FAILED. */
  static async open(options: ConsensusOptions): Promise<Consensus> {
    const { database, blocks, genesis, headHeight } = options;
    const store = new ConsensusStore(database);
    await store.writeGenesis(genesisValidators(genesis));
    const archive = new ConsensusArchive({ store, blocks, height: headHeight });
    const { application, log } = options;
    const evidence = await EvidencePool.open(store, log, (who) => application.isPunishable(who));
    const tip = loadTip(
      { store, blocks },
      {
        chainId: genesis.cosmosChainId,
        params: consensusParamsOf(genesis.params),
        genesisTimeMs: genesis.genesisTimeMs,
        height: headHeight(),
        appVersion: options.application.appVersion(),
      },
    );
    return new Consensus(options, store, archive, evidence, tip);
  }

  /**
   * Takes part until the signal fires or consensus halts; meanwhile, and after a halt, `apply` is
   * refused. Once stopped, blocks may be followed and consensus started again.
   * @throws DOUBLE_SIGN_RISK, VALIDATOR_STATE_MISSING, SIGNER_WRITE_FAILED, WAL_WRITE_FAILED,
   * STORE_WRITE_FAILED
   */
  async start(broadcast: ConsensusBroadcast, signal: AbortSignal): Promise<ConsensusEnd> {
    if (this.isApplying) throw new RangeError("blocks are still being followed");
    if (this.driver !== undefined) throw new RangeError("consensus has started");
    const { options, store, archive, evidence, followed: tip } = this;
    // Later on the last signatures are this process' own; where no block may be made, the driver halts.
    if (!this.hasTakenPart && this.mayGoOn()) {
      this.assertMaySign();
      this.isCheckedSigner = true;
    }
    this.hasTakenPart = true;
    const logFolder = path.join(options.home, "data", "cs.wal");
    const { wal, tail, keptFile } = await Wal.open(logFolder, tip.height);
    if (keptFile !== undefined) {
      const { damagedBytes, hasGap } = tail;
      options.log.error(
        { keptFile, damagedBytes, isOfThisHeight: hasGap },
        "the log of consensus was damaged; the file is kept aside, what could be read is used",
      );
    }
    const { seenCommit, lastValidators } = tip;
    const lastCommit =
      seenCommit === undefined || lastValidators === undefined
        ? undefined
        : decidingVotesOf(seenCommit, lastValidators);
    const driver = new ConsensusDriver({
      ...options,
      application: this.application,
      refused: this.refused,
      store,
      archive,
      evidence,
      wal,
      tip,
      lastCommit,
      params: options.genesis.params,
      assertMaySign: () => this.assertMaySign(),
      broadcast,
      onMoment: (moment) => this.moments.emit(moment),
      onVote: (vote) => this.votes.emit(vote),
      onReport: (report) => this.reports.emit(report),
    });
    this.driver = driver;
    const end = await driver.start(tail, signal);
    if (end === "stopped") {
      this.followed = driver.tip;
      this.driver = undefined;
    }
    return end;
  }

  /**
   * See `HeightWitness`. Of a height with known validators two thirds have to sign: a third may sign what
   * is never decided. Else the newest known ones count; with nearly all replaced no commit is a proof.
   */
  isProof(commit: Commit): boolean {
    const { cosmosChainId } = this.options.genesis;
    const own = this.validators(commit.height);
    if (own !== undefined) return isSignedByMost(commit, cosmosChainId, own);
    const newest = this.validators(this.height() + 2);
    return newest !== undefined && isSignedByThird(commit, cosmosChainId, newest);
  }

  /** See `ConsensusInbox`. */
  async receive(...told: Parameters<ConsensusInbox["receive"]>): Promise<Reception> {
    return this.driver === undefined ? "useless" : this.driver.receive(...told);
  }

  /** See `ConsensusInbox`. */
  forget(peer: string): void {
    this.driver?.forget(peer);
  }

  /** Evidence from elsewhere than a peer; verified like a peer's. */
  addEvidence(evidence: DuplicateVoteEvidence): Promise<Reception> {
    return this.receive({ type: "evidence", evidence }, "");
  }

  /** Tells of each moment of the height in progress; returns the end of the subscription. */
  onMoment(listener: (moment: ConsensusMoment) => void): () => void {
    return this.moments.add(listener);
  }

  /** Tells of each vote that is counted; returns the end of the subscription. */
  onVote(listener: (vote: Vote) => void): () => void {
    return this.votes.add(listener);
  }

  /** Tells what metrics are made of; returns the end of the subscription. */
  onReport(listener: (report: ConsensusReport) => void): () => void {
    return this.reports.add(listener);
  }

  /** Address of this node's key; undefined for a node without one. */
  ownAddress(): Address | undefined {
    return this.options.signer?.address;
  }

  /** Height of a consensus block hash. */
  heightOfHash(hash: Hash32): Height | undefined {
    return this.archive.heightOf(hash);
  }

  /** See `ConsensusInbox`. */
  status(): RoundStatus {
    return this.driver?.status() ?? idleStatus(this.height() + 1);
  }

  /** See `ConsensusInbox`; unknown as well while consensus does not run. */
  setSizeAt(height: Height): number | undefined {
    return this.driver?.setSizeAt(height);
  }

  /** See `ConsensusInbox`. */
  repair(peer: RoundStatus): readonly ConsensusMessage[] {
    return this.driver?.repair(peer) ?? [];
  }

  /** See `BlockArchive`. */
  height(): Height {
    return this.archive.height();
  }

  /** See `BlockArchive`. */
  base(): Height {
    return this.archive.base();
  }

  /** See `BlockArchive`. */
  load(height: Height): DecidedBlock | undefined {
    return this.archive.load(height);
  }

  /** See `BlockArchive`. */
  loadSteps(height: Height): Steps<DecidedBlock | undefined> {
    return this.archive.loadSteps(height);
  }

  /** The last blocks that broke a rule, the newest first. */
  refusedBlocks(): readonly RefusedBlock[] {
    return this.refused.list();
  }

  /** See `ConsensusView`. */
  outline(height: Height): DecidedOutline | undefined {
    return this.archive.outline(height);
  }

  /** See `ConsensusView`. */
  committedEvidence(): AsyncIterable<CommittedEvidence> {
    return this.archive.committedEvidence();
  }

  /** See `BlockSyncTarget`; one call at a time. */
  async apply(received: ReceivedBlock): Promise<void> {
    const tip = this.followed;
    if (this.driver !== undefined) throw new RangeError("consensus has started");
    if (this.isApplying) throw new RangeError("a block is being applied");
    this.isApplying = true;
    try {
      const { block, blockId, commit } = await this.prove(tip, received);
      const executed = await this.executeDecided(tip, block);
      this.followed = await this.application.settle(
        tip,
        { block, blockId, commit, executed },
        {
          store: this.store,
          evidence: this.evidence,
          log: undefined,
          onDecided: (report) => this.reports.emit(report),
          failpoint: this.options.failpoint ?? failpoint,
        },
      );
    } finally {
      this.isApplying = false;
    }
  }

  /**
   * Holds a block against its commit: first of all, because it costs little and only the validators
   * can make it. Votes name the block's bytes by their parts, so that nothing of them need be
   * understood.
   * @throws BLOCK_INVALID, DECIDED_BLOCK_REFUSED
   */
  private async prove(tip: ChainTip, received: ReceivedBlock) {
    const { commit } = received;
    const { chainId, validators } = tip;
    const height = tip.height + 1;
    const isRead = "block" in received;
    const bytes = isRead ? encodeConsensusBlock(received.block) : received.blockBytes;
    const { header: parts } = await new Slices().run(partSteps(bytes));
    const hash = isRead ? hashConsensusHeader(received.block.header) : commit.blockId?.hash;
    if (hash === undefined) throw blockInvalid("the commit is for another block");
    const blockId = { hash, parts };
    verifyCommit(commit, { chainId, height, blockId, validators });
    return {
      block: isRead ? received.block : readDecided(bytes, { height, hash }),
      blockId,
      commit,
    };
  }

  /**
   * Executes a block whose very bytes two thirds have signed. What is wrong with it is wrong with
   * this node: every peer has this block and no other.
   */
  private async executeDecided(tip: ChainTip, block: ConsensusBlock): Promise<ExecutedBlock> {
    const { application, evidence } = this;
    try {
      return await executeBlock({ application, evidence }, tip, block);
    } catch (error) {
      if (!REFUSAL_CODES.has(errorCode(error))) throw error;
      this.refused.add(block, errorMessage(error));
      throw cannotTake(block.header.height, error, { tip, blocks: this.options.blocks });
    }
  }

  /** See `ConsensusView`. */
  validators(height: Height): ValidatorSet | undefined {
    return this.archive.validators(height);
  }

  /** Whether double signing at a stored height is too old to be punished. */
  isPastEvidence(height: Height): boolean {
    const tip = this.driver?.tip ?? this.followed;
    const timeNs = this.store.header(height)?.timeNs;
    return timeNs === undefined || isEvidenceExpired({ height, timeNs }, tip, tip.params);
  }

  /** See `ConsensusView`; the parameters never change. */
  params(_height: Height) {
    return this.followed.params;
  }

  /** See `ConsensusView`. */
  appVersion(height: Height): number | undefined {
    const newest = this.height();
    if (height <= newest) return this.archive.record(height)?.header.appVersion;
    const { appVersion } = this.driver?.tip ?? this.followed;
    return height === newest + 1 ? appVersion : undefined;
  }

  /** See `ConsensusView`. */
  progress(): HeightProgress {
    return this.driver?.progress() ?? idleProgress(this.followed);
  }

  /** See `ConsensusView`: while consensus does not run. */
  isCatchingUp(): boolean {
    return this.driver === undefined;
  }

  /**
   * Whether this node's key decides the height after the newest by itself. Any other validator has to
   * hear of the others before it signs: what they have decided tells what it signed, where its home
   * came back older.
   */
  decidesAlone(): boolean {
    const { power, validators } = this.ownVote();
    return validators.isQuorum(power);
  }

  /** Whether this process has taken part, behind the look for what the key may have signed elsewhere. */
  readonly hasSignedHere = (): boolean => this.isCheckedSigner;

  /** Whether this program may make or take the next block; why not is for the driver to tell. */
  mayGoOn(): boolean {
    try {
      this.application.assertMayGoOn();
      return true;
    } catch (error) {
      if (!(error instanceof UpgradeError)) throw error;
      return false;
    }
  }

  /** Newest height that the own signatures prove decided: a key signs at none before the one below it is. */
  provenHeight(): Height {
    return Math.max(0, (this.options.signer?.lastPlace.height ?? 0) - 1);
  }

  /** Power of this node's key in the height after the newest; 0 without a vote. */
  private ownVote() {
    const address = this.ownAddress();
    const { validators } = this.driver?.tip ?? this.followed;
    const own = address === undefined ? undefined : validators.at(validators.indexOf(address));
    return { power: own?.power ?? 0n, validators };
  }

  /** A key whose past is unknown, or that another process may be using, must not sign. */
  private assertMaySign(): void {
    const { signer, clock, genesis } = this.options;
    // At the very beginning nobody can have signed anything; later the blocks are lost with the file.
    const isBeginning = this.height() === 0 && clock.nowMs() - genesis.genesisTimeMs < BEGINNING_MS;
    const isPastUnknown = signer?.isStateMissing === true && !isBeginning;
    if (isPastUnknown && this.ownVote().power > 0n) {
      throw new ConsensusError(
        "VALIDATOR_STATE_MISSING",
        `${signer.stateFile} is missing, so that nobody knows what this validator's key has ` +
          `signed: restore it. Only if the key has signed nothing above height ${this.height()}, the ` +
          `newest block here, and is used nowhere else, write ${UNSIGNED_STATE} into it`,
      );
    }
    this.assertNotSignedElsewhere();
  }

  /**
   * Looks for the own key among the signatures of the last blocks, as CometBFT does: another
   * process may be signing with it.
   */
  private assertNotSignedElsewhere(): void {
    const { signer, doubleSignCheckBlocks } = this.options;
    if (signer === undefined) return;
    const next = this.height() + 1;
    const depth = Math.min(doubleSignCheckBlocks, next);
    for (let back = 1; back < depth; back++) {
      const signatures = this.archive.commitOf(next - back)?.signatures ?? [];
      const isOwn = signatures.some(
        (one) => one.flag === COMMIT_FLAG.commit && one.validatorAddress === signer.address,
      );
      if (!isOwn) continue;
      throw new ConsensusError(
        "DOUBLE_SIGN_RISK",
        `this validator's key signed block ${next - back}, one of the last ` +
          `${doubleSignCheckBlocks}: another process may be using it. Stop it and wait until so many ` +
          "have come without it; where none come, as behind an upgrade's halt, see to it that no other " +
          "process has the key, and set consensus.double_sign_check_height to 0 for this start",
        { details: { height: next - back } },
      );
    }
  }
}

function genesisValidators(genesis: Genesis): ValidatorSet {
  return ValidatorSet.genesis(
    genesis.validators.map(({ publicKey, power }) => ({
      publicKey: Uint8Array.from(Buffer.from(publicKey, "base64")),
      power: BigInt(power),
    })),
  );
}
