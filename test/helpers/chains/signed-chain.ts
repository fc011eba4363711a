/**
 * Blocks as validators would have decided them, put together field by field by the test and signed
 * with the validators' keys: for what a node must accept and what it must refuse.
 */
import { type BlockId, msToNs } from "../../../chain/consensus/block-id.js";
import {
  type Commit,
  COMMIT_FLAG,
  EMPTY_COMMIT,
  hashCommit,
} from "../../../chain/consensus/commit.js";
import {
  blockIdOf,
  type ConsensusBlock,
  encodeConsensusBlock,
  hashTransactions,
  splitIntoParts,
} from "../../../chain/consensus/consensus-block.js";
import type { ConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import {
  type DuplicateVoteEvidence,
  hashEvidenceList,
  orderVotes,
} from "../../../chain/consensus/evidence.js";
import { validatorAddress, ValidatorSet } from "../../../chain/consensus/validator-set.js";
import {
  type Proposal,
  type ProposalContent,
  proposalSignBytes,
  type Vote,
  VOTE_TYPE,
  type VoteContent,
  voteSignBytes,
} from "../../../chain/consensus/vote.js";
import type { Hash32 } from "../../../chain/hex.js";
import { hashConsensusParams } from "../../../chain/consensus/consensus-params.js";
import type { DecidedBlock } from "../../../node/consensus/consensus-ports.js";
import { type SigningKey, signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { consensusParamsOf, type Genesis } from "../../../node/settings/genesis.js";

/** SHA-256 of nothing. */
const EMPTY_RESULTS = "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** What a block is made with beside what follows from the chain. */
export interface BlockChoice {
  readonly transactions?: readonly Uint8Array[];
  readonly evidence?: readonly DuplicateVoteEvidence[];
  /** Replaces fields of the header after it was made. */
  readonly header?: Partial<ConsensusHeader>;
  readonly lastCommit?: Commit;
  readonly block?: Partial<ConsensusBlock>;
}

/** A chain of signed blocks, followed by the test. */
export class SignedChain {
  readonly keys: readonly SigningKey[];
  private readonly sets: ValidatorSet[];
  height = 0;
  timeNs: bigint;
  lastBlockId: BlockId | undefined;
  lastCommit: Commit = EMPTY_COMMIT;
  /** Set after each block: what the next header says about this one's execution. */
  appHash: Hash32;
  resultsHash: Hash32 = EMPTY_RESULTS as Hash32;
  private readonly times = new Map<number, bigint>();

  constructor(
    readonly genesis: Genesis,
    seeds: readonly Uint8Array[],
    genesisHash: Hash32,
  ) {
    this.keys = seeds.map(signingKeyOf);
    this.appHash = genesisHash;
    this.timeNs = msToNs(genesis.genesisTimeMs);
    const first = ValidatorSet.genesis(
      this.keys.map(({ publicKey }) => ({ publicKey, power: 10n })),
    );
    this.sets = [first, first, first.advance(1)];
  }

  /** Validators of a height. */
  validators(height: number): ValidatorSet {
    const set = this.sets[height];
    if (set === undefined) throw new RangeError(`no validators of height ${height}`);
    return set;
  }

  /** The next block; nothing of the chain moves. */
  makeBlock(choice: BlockChoice = {}): ConsensusBlock {
    const transactions = choice.transactions ?? [];
    const evidence = choice.evidence ?? [];
    const lastCommit = choice.lastCommit ?? this.lastCommit;
    const height = this.height + 1;
    const validators = this.validators(height);
    const block = {
      header: {
        blockVersion: 11,
        appVersion: 1,
        chainId: this.genesis.cosmosChainId,
        height,
        timeNs: this.timeNs + (this.height === 0 ? 1_000_000_000n : 1_000_000n),
        lastBlockId: this.lastBlockId,
        lastCommitHash: hashCommit(lastCommit),
        dataHash: hashTransactions(transactions),
        validatorsHash: validators.hash(),
        nextValidatorsHash: this.validators(height + 1).hash(),
        consensusHash: hashConsensusParams(consensusParamsOf(this.genesis.params)),
        appHash: this.appHash,
        lastResultsHash: this.resultsHash,
        evidenceHash: hashEvidenceList(evidence),
        proposerAddress: validators.proposer.address,
        ...choice.header,
      },
      transactions,
      evidence,
      lastCommit,
    };
    return { ...block, ...choice.block };
  }

  /** A block with the precommits of these validators (all by default) for it. */
  decide(block: ConsensusBlock, who?: readonly number[]): DecidedBlock {
    return { block, commit: this.commitFor(idOf(block), block.header, who) };
  }

  /** Precommits of some validators; the others are absent. */
  commitFor(
    blockId: BlockId,
    { height, timeNs }: { readonly height: number; readonly timeNs: bigint },
    who: readonly number[] = this.keys.map((_, index) => index),
  ): Commit {
    const set = this.validators(height);
    const signers = who.map((index) => this.keyOf(index));
    const signatures = set.validators.map(({ address }) => {
      const key = signers.find(({ publicKey }) => validatorAddress(publicKey) === address);
      if (key === undefined) return { flag: COMMIT_FLAG.absent };
      const type = VOTE_TYPE.precommit;
      const content = { type, height, round: 0, blockId, timeNs: timeNs + 1_000_000n };
      const signature = key.sign(voteSignBytes(this.genesis.cosmosChainId, content));
      const flag = COMMIT_FLAG.commit;
      return { flag, validatorAddress: address, timeNs: content.timeNs, signature };
    });
    return { height, round: 0, blockId, signatures };
  }

  /** The chain goes on with a block that the node took. */
  follow({ block, commit }: DecidedBlock, after: { appHash: Hash32; resultsHash?: Hash32 }): void {
    const { height, timeNs } = block.header;
    this.height = height;
    this.timeNs = timeNs;
    this.times.set(height, timeNs);
    this.lastBlockId = idOf(block);
    this.lastCommit = commit;
    this.appHash = after.appHash;
    this.resultsHash = after.resultsHash ?? (EMPTY_RESULTS as Hash32);
    const next = this.validators(height + 1);
    const guilty = new Set(block.evidence.map(({ voteA }) => voteA.validatorAddress));
    const updates = next.validators
      .filter(({ address }) => guilty.has(address))
      .map(({ publicKey }) => ({ publicKey, power: 0n }));
    this.sets[height + 2] = next.update(updates).advance(1);
  }

  /** A signed vote of a validator. */
  vote(who: number, content: VoteContent): Vote {
    const key = this.keyOf(who);
    const address = validatorAddress(key.publicKey);
    return {
      ...content,
      validatorAddress: address,
      validatorIndex: this.validators(content.height).indexOf(address),
      signature: key.sign(voteSignBytes(this.genesis.cosmosChainId, content)),
    };
  }

  /** A signed proposal of whoever's key is given. */
  proposal(who: number, content: ProposalContent): Proposal {
    const bytes = proposalSignBytes(this.genesis.cosmosChainId, content);
    return { ...content, signature: this.keyOf(who).sign(bytes) };
  }

  /** Evidence that a validator prevoted a block and nil, or two blocks, at a decided height. */
  doubleVote(who: number, height: number, name = "1"): DuplicateVoteEvidence {
    const hash = `0x${name.repeat(64).slice(0, 64)}` as Hash32;
    const content = { type: VOTE_TYPE.prevote, height, round: 0, timeNs: 7n } as const;
    const blockId = { hash, parts: { total: 1, hash } };
    const [voteA, voteB] = orderVotes(
      this.vote(who, { ...content, blockId }),
      this.vote(who, { ...content, blockId: undefined }),
    );
    const set = this.validators(height);
    const timeNs = this.times.get(height);
    const validatorPower = set.at(voteA.validatorIndex)?.power;
    if (timeNs === undefined || validatorPower === undefined) throw new RangeError("no height");
    return { voteA, voteB, totalPower: set.totalPower, validatorPower, timeNs };
  }

  /** Which of the keys proposes in a round of a height. */
  proposerOf(height: number, round = 0): number {
    const set = this.validators(height);
    const { address } = (round === 0 ? set : set.advance(round)).proposer;
    return this.keys.findIndex(({ publicKey }) => validatorAddress(publicKey) === address);
  }

  private keyOf(index: number): SigningKey {
    const key = this.keys[index];
    if (key === undefined) throw new RangeError("no such validator");
    return key;
  }
}

/** What votes for the block name. */
export function idOf(block: ConsensusBlock): BlockId {
  return blockIdOf(block, splitIntoParts(encodeConsensusBlock(block)));
}
