/** Decided blocks and validators by height, put together from the stores: for peers and servers. */
import { LRUCache } from "lru-cache";
import type { BlockTransaction } from "../../chain/block.js";
import { msToNs } from "../../chain/consensus/block-id.js";
import { hashConsensusHeader } from "../../chain/consensus/consensus-header.js";
import {
  type ConsensusBlock,
  encodeConsensusBlock,
  type PartSet,
  splitIntoParts,
} from "../../chain/consensus/consensus-block.js";
import type { ConsensusParams } from "../../chain/consensus/consensus-params.js";
import type { ValidatorSet } from "../../chain/consensus/validator-set.js";
import { present } from "../../chain/errors.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { allAtOnce, mapInSteps, type Steps } from "../../chain/steps/steps.js";
import type { BlockStore } from "../store/blocks/block-store.js";
import type {
  CommittedEvidence,
  ConsensusRecord,
  ConsensusStore,
} from "../store/consensus-store.js";
import { encodeTransactionSteps } from "../blocks/block-transactions.js";
import { type ChainTip, resultsHashOf } from "../blocks/chain-tip.js";
import type { BlockArchive, DecidedBlock, DecidedOutline } from "./consensus-ports.js";

/** Blocks kept in parts for peers that are some heights behind. */
const CACHED_PART_SETS = 2;

/** Heights whose number of validators is remembered: a peer that catches up asks of each often. */
const CACHED_SET_SIZES = 1_024;

/** What the archive reads. */
export interface ArchiveParts {
  readonly store: ConsensusStore;
  readonly blocks: BlockStore;
  /** The newest published height. */
  readonly height: () => Height;
}

/** Decided blocks over the stores. */
export class ConsensusArchive implements BlockArchive {
  private readonly partSets = new LRUCache<Height, PartSet>({ max: CACHED_PART_SETS });
  private readonly setSizes = new LRUCache<Height, number>({ max: CACHED_SET_SIZES });

  constructor(private readonly parts: ArchiveParts) {}

  height(): Height {
    return this.parts.height();
  }

  /** The oldest block that is kept; 0 only where there is none yet. */
  base(): Height {
    return Math.min(Math.max(1, this.parts.blocks.oldest()), this.height());
  }

  load(height: Height): DecidedBlock | undefined {
    return allAtOnce(this.loadSteps(height));
  }

  /** The same in steps. */
  *loadSteps(height: Height): Steps<DecidedBlock | undefined> {
    const record = this.record(height);
    const commit = this.commitOf(height);
    if (record === undefined || commit === undefined) return undefined;
    return { block: yield* this.blockSteps(record), commit };
  }

  /** A block without its transactions, which are not read for it. */
  outline(height: Height): DecidedOutline | undefined {
    const record = this.record(height);
    const commit = this.commitOf(height);
    if (record === undefined || commit === undefined) return undefined;
    const { header, blockId, evidence, lastCommit } = record;
    return { header, blockId, evidence, lastCommit, commit };
  }

  /** Evidence of all blocks that this node has had, in no order. */
  committedEvidence(): AsyncIterable<CommittedEvidence> {
    return this.parts.store.committedEvidence();
  }

  /** The commit of a block: the one in the next block, or what this node saw for the newest. */
  commitOf(height: Height): DecidedBlock["commit"] | undefined {
    const next = this.parts.store.record(height + 1);
    if (next !== undefined) return next.lastCommit;
    const seen = this.parts.store.seenCommit();
    return seen?.height === height ? seen : undefined;
  }

  /** Header, block id, last commit and evidence of a published height that is kept. */
  record(height: Height): ConsensusRecord | undefined {
    const isKept = height >= Math.max(1, this.parts.blocks.oldest()) && height <= this.height();
    return isKept ? this.parts.store.record(height) : undefined;
  }

  /** Height of a published block by its consensus hash. */
  heightOf(hash: Hash32): Height | undefined {
    const height = this.parts.store.heightOf(hash);
    return height !== undefined && height <= this.height() ? height : undefined;
  }

  /** A block in parts, as it was proposed. */
  partsOf(height: Height): PartSet | undefined {
    const cached = this.partSets.get(height);
    if (cached !== undefined) return cached;
    const record = this.record(height);
    if (record === undefined) return undefined;
    const parts = splitIntoParts(encodeConsensusBlock(allAtOnce(this.blockSteps(record))));
    this.partSets.set(height, parts);
    return parts;
  }

  /** Validators of a height up to the newest + 2. */
  validators(height: Height): ValidatorSet | undefined {
    return height <= this.height() + 2 ? this.parts.store.validators(height) : undefined;
  }

  /** How many validators a published height that is kept has. */
  setSize(height: Height): number | undefined {
    if (height < this.base() || height > this.height()) return undefined;
    const size = this.setSizes.get(height) ?? this.parts.store.signers(height)?.size;
    if (size !== undefined) this.setSizes.set(height, size);
    return size;
  }

  /** Of Cosmos transactions nothing is decoded: reading one may take longer than all others together. */
  private *blockSteps({ header, evidence, lastCommit }: ConsensusRecord): Steps<ConsensusBlock> {
    const { blocks } = this.parts;
    const { height } = header;
    const transactions: BlockTransaction[] = [];
    for (const page of blocks.pages(height)) {
      transactions.push(...page.transactions());
      yield;
    }
    const places = blocks.outline(height).cosmosPlaces.entries();
    const cosmos = yield* mapInSteps(places, ([item, index]) => {
      const raw = present(blocks.cosmosBytes(height, item), "Cosmos transaction of a stored block");
      return { index, tx: { raw } };
    });
    const sent = yield* encodeTransactionSteps({ transactions, cosmos });
    return { header, evidence, lastCommit, transactions: sent };
  }
}

/**
 * The tip as the stores have it.
 * @throws RangeError when a record is missing that the one atomic write made
 */
export function loadTip(
  parts: Omit<ArchiveParts, "height">,
  chain: {
    readonly chainId: string;
    readonly params: ConsensusParams;
    readonly genesisTimeMs: number;
    readonly height: Height;
    readonly appVersion: number;
  },
): ChainTip {
  const { chainId, params, height, appVersion } = chain;
  const { store, blocks } = parts;
  const committed = blocks.block(height);
  const record = store.record(height);
  const validators = store.validators(height + 1);
  const nextValidators = store.validators(height + 2);
  const isWhole = record !== undefined || height === 0;
  if (!isWhole || validators === undefined || nextValidators === undefined) {
    throw new RangeError(`the records of consensus at height ${height} are missing`);
  }
  const blockId = record?.blockId;
  if (record !== undefined && hashConsensusHeader(record.header) !== blockId?.hash) {
    throw new RangeError(`the stored header of height ${height} is damaged`);
  }
  return {
    chainId,
    params,
    appVersion,
    height,
    lastBlockId: blockId,
    timeNs: record?.header.timeNs ?? msToNs(chain.genesisTimeMs),
    appHash: committed.block.hash,
    lastResultsHash: resultsHashOf(committed),
    lastValidators: height === 0 ? undefined : store.validators(height),
    validators,
    nextValidators,
    seenCommit: height === 0 ? undefined : store.seenCommit(),
  };
}
