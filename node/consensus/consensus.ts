/**
 * Consensus of a node put together: what the network, block sync and the servers hold on to, over
 * one driver that starts when the node has caught up.
 */
import path from "node:path";
import type { DuplicateVoteEvidence } from "../../chain/consensus/evidence.js";
import { ValidatorSet } from "../../chain/consensus/validator-set.js";
import type { Vote } from "../../chain/consensus/vote.js";
import { COMMIT_FLAG } from "../../chain/consensus/commit.js";
import {
  blockIdOf,
  encodeConsensusBlock,
  splitIntoParts,
} from "../../chain/consensus/consensus-block.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import type { Genesis } from "../genesis.js";
import type { BlockStore } from "../store/block-store.js";
import { ConsensusStore } from "../store/consensus-store.js";
import type { Database } from "../store/database.js";
import type { BlockApplication } from "./application.js";
import { type ChainTip, nextTip } from "./chain-tip.js";
import { decidingVotesOf, verifyCommit } from "./commit-votes.js";
import { ConsensusArchive, decisionWrites, loadTip, resultsHashOf } from "./consensus-archive.js";
import { ConsensusError } from "./consensus-error.js";
import { consensusParamsOf } from "./consensus-params.js";
import type {
  BlockSyncTarget,
  ConsensusBroadcast,
  ConsensusInbox,
  ConsensusMessage,
  ConsensusMoment,
  ConsensusView,
  DecidedBlock,
  Reception,
  RoundStatus,
} from "./consensus-ports.js";
import { ConsensusDriver } from "./driver.js";
import { EvidencePool } from "./evidence-pool.js";
import type { ConsensusFailpoint } from "./height-run.js";
import { Listeners } from "./listeners.js";
import type { PrivateValidator } from "./private-validator.js";
import { executeBlock } from "./proposal-block.js";
import { idleStatus } from "./round-status.js";
import type { ConsensusTimeouts } from "./schedule.js";
import { Wal } from "./wal.js";

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

/** Consensus of one node: follows decided blocks until it is started, then takes part. */
export class Consensus implements ConsensusInbox, BlockSyncTarget, ConsensusView {
  private driver: ConsensusDriver | undefined;
  private isApplying = false;
  private readonly moments: Listeners<ConsensusMoment>;
  private readonly votes: Listeners<Vote>;

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
  }

  /** Opens the records of consensus, making those of the genesis. Throws STORE_WRITE_FAILED. */
  static async open(options: ConsensusOptions): Promise<Consensus> {
    const { database, blocks, genesis, headHeight } = options;
    const store = new ConsensusStore(database);
    await store.writeGenesis(genesisValidators(genesis));
    const archive = new ConsensusArchive({ store, blocks, height: headHeight });
    const evidence = await EvidencePool.open(store, options.log);
    const tip = loadTip(
      { store, blocks },
      {
        chainId: genesis.cosmosChainId,
        params: consensusParamsOf(genesis.params),
        genesisTimeMs: genesis.genesisTimeMs,
        height: headHeight(),
      },
    );
    return new Consensus(options, store, archive, evidence, tip);
  }

  /**
   * Takes part until the signal fires or consensus halts. From here on `apply` is refused.
   * @throws DOUBLE_SIGN_RISK, SIGNER_WRITE_FAILED, WAL_WRITE_FAILED, STORE_WRITE_FAILED
   */
  async start(broadcast: ConsensusBroadcast, signal: AbortSignal): Promise<void> {
    if (this.isApplying) throw new RangeError("blocks are still being followed");
    const { options, store, archive, evidence } = this;
    const tip = this.followed;
    this.assertNotSignedElsewhere();
    const { wal, tail } = await Wal.open(path.join(options.home, "data", "cs.wal"));
    const { seenCommit, lastValidators } = tip;
    const lastCommit =
      seenCommit === undefined || lastValidators === undefined
        ? undefined
        : decidingVotesOf(seenCommit, lastValidators);
    this.driver = new ConsensusDriver({
      ...options,
      store,
      archive,
      evidence,
      wal,
      tip,
      lastCommit,
      blockIntervalMs: options.genesis.params.blockIntervalMs,
      broadcast,
      onMoment: (moment) => this.moments.emit(moment),
      onVote: (vote) => this.votes.emit(vote),
    });
    await this.driver.start(tail, signal);
  }

  /** See `ConsensusInbox`. */
  async receive(message: ConsensusMessage, peer: string): Promise<Reception> {
    return this.driver === undefined ? "useless" : this.driver.receive(message, peer);
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

  /** Height of a consensus block hash. */
  heightOfHash(hash: Hash32): Height | undefined {
    return this.archive.heightOf(hash);
  }

  /** See `ConsensusInbox`. */
  status(): RoundStatus {
    return this.driver?.status() ?? idleStatus(this.height() + 1);
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

  /** See `BlockSyncTarget`; one call at a time. */
  async apply({ block, commit }: DecidedBlock): Promise<void> {
    const tip = this.followed;
    if (this.driver !== undefined) throw new RangeError("consensus has started");
    if (this.isApplying) throw new RangeError("a block is being applied");
    this.isApplying = true;
    try {
      const blockId = blockIdOf(block, splitIntoParts(encodeConsensusBlock(block)));
      const { chainId, validators } = tip;
      // First what costs little and only the validators can make.
      verifyCommit(commit, { chainId, height: tip.height + 1, blockId, validators });
      const parts = { ...this.options, evidence: this.evidence };
      const executed = await executeBlock(parts, tip, block);
      const appHash = executed.committed.block.hash;
      const resultsHash = resultsHashOf(executed.committed);
      const next = nextTip(tip, { block, blockId, commit, appHash, resultsHash });
      const writes = decisionWrites(
        { store: this.store, evidence: this.evidence },
        { tip, next, block },
      );
      await this.options.application.commit(executed, writes);
      this.followed = next;
      await this.evidence.afterBlock(next, block.evidence);
    } finally {
      this.isApplying = false;
    }
  }

  /** See `ConsensusView`. */
  validators(height: Height): ValidatorSet | undefined {
    return this.archive.validators(height);
  }

  /** See `ConsensusView`; the parameters never change. */
  params(_height: Height) {
    return this.followed.params;
  }

  /** See `ConsensusView`. */
  progress() {
    return { status: this.status(), proposer: this.driver?.proposer };
  }

  /** See `ConsensusView`: until consensus has started. */
  isCatchingUp(): boolean {
    return this.driver === undefined;
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
          `${doubleSignCheckBlocks}: another process may be using it. Stop it and wait, or set ` +
          "consensus.double_sign_check_height to 0",
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
