/**
 * Headers with commits as validators would have signed them, for scenario tables of CometBFT's
 * light client; its light/helpers_test.go in short.
 */
import type { BlockId } from "../../../chain/consensus/block-id.js";
import {
  COMMIT_FLAG,
  type Commit,
  EMPTY_COMMIT,
  hashCommit,
} from "../../../chain/consensus/commit.js";
import {
  type ConsensusHeader,
  hashConsensusHeader,
} from "../../../chain/consensus/consensus-header.js";
import { type DuplicateVoteEvidence, hashEvidenceList } from "../../../chain/consensus/evidence.js";
import type { LightBlock } from "../../../chain/consensus/light.js";
import { validatorAddress, ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { VOTE_TYPE, voteSignBytes } from "../../../chain/consensus/vote.js";
import { bytesToAddress } from "../../../chain/address.js";
import { bytesToHash32, type Hash32 } from "../../../chain/hex.js";
import { type SigningKey, signingKeyOf } from "../../../chain/consensus/ed25519.js";

/** 2006-01-02T15:04:05Z, nanoseconds. */
export const START_NS = BigInt(Date.UTC(2006, 0, 2, 15, 4, 5)) * 1_000_000n;

/** Nanoseconds of an hour, a minute and a second. */
export const [HOUR_NS, MINUTE_NS, SECOND_NS] = [
  3_600_000_000_000n,
  60_000_000_000n,
  1_000_000_000n,
];

/** Name of the chain. */
export const LIGHT_CHAIN_ID = "light-chain";

/** Keys from `first` on, always the same. */
export function lightKeys(count: number, first = 1): SigningKey[] {
  return Array.from({ length: count }, (_, index) => {
    const seed = Buffer.alloc(32);
    seed.writeUInt32BE(first + index, 28);
    return signingKeyOf(seed);
  });
}

/** A set of these keys; powers grow by `step`. */
export function lightSet(keys: readonly SigningKey[], power: bigint, step: bigint): ValidatorSet {
  return ValidatorSet.genesis(
    keys.map(({ publicKey }, index) => ({ publicKey, power: power + BigInt(index) * step })),
  );
}

/** What a block is made of; the rest has a fixed value. */
export interface LightBlockPlan {
  readonly keys: readonly SigningKey[];
  readonly validators: ValidatorSet;
  readonly height: number;
  readonly timeNs: bigint;
  readonly nextValidators?: ValidatorSet;
  /** The keys that sign: from, to (exclusive), by their position in `keys`. */
  readonly signers?: readonly [from: number, to: number];
  readonly header?: Partial<ConsensusHeader>;
}

/** A header and the commit for it. */
export function lightBlock(plan: LightBlockPlan): LightBlock {
  const { keys, validators, height, timeNs } = plan;
  const header: ConsensusHeader = {
    blockVersion: 11,
    appVersion: 0,
    chainId: LIGHT_CHAIN_ID,
    height,
    timeNs,
    lastBlockId: undefined,
    lastCommitHash: hash(1),
    dataHash: hash(2),
    validatorsHash: validators.hash(),
    nextValidatorsHash: (plan.nextValidators ?? validators).hash(),
    consensusHash: hash(3),
    appHash: hash(4),
    lastResultsHash: hash(5),
    evidenceHash: hash(6),
    proposerAddress: validators.at(0)?.address ?? bytesToAddress(new Uint8Array(20)),
    ...plan.header,
  };
  const [from, to] = plan.signers ?? [0, keys.length];
  return { header, commit: commitOf(header, { ...plan, keys: keys.slice(from, to) }), validators };
}

/** The commit of these keys for a header. */
export function commitOf(
  header: ConsensusHeader,
  { keys, validators }: Pick<LightBlockPlan, "keys" | "validators">,
): Commit {
  const blockId: BlockId = {
    hash: hashConsensusHeader(header),
    parts: { total: 1, hash: hash(7) },
  };
  const { height, chainId, timeNs } = header;
  const byAddress = new Map(keys.map((key) => [validatorAddress(key.publicKey), key]));
  const signatures = validators.validators.map(({ address }) => {
    const key = byAddress.get(address);
    if (key === undefined) return { flag: COMMIT_FLAG.absent };
    const vote = { type: VOTE_TYPE.precommit, height, round: 1, blockId, timeNs };
    const signature = key.sign(voteSignBytes(chainId, vote));
    return { flag: COMMIT_FLAG.commit, validatorAddress: address, timeNs, signature };
  });
  return { height, round: 1, blockId, signatures };
}

/**
 * A chain in which `change` validators are replaced in each block, one block a minute; blocks by
 * height from 1 on, as CometBFT's genMockNode.
 */
export function lightChain(
  length: number,
  options: {
    readonly validators: number;
    readonly change: number;
    readonly firstKey?: number;
    /** By the height of the block that holds it. */
    readonly evidence?: ReadonlyMap<number, readonly DuplicateVoteEvidence[]>;
  },
): ReadonlyMap<number, LightBlock> {
  const { validators: size, change, firstKey = 1 } = options;
  const keys = lightKeys(size + change * (length + 1), firstKey);
  const keysAt = (height: number) => keys.slice(height * change, height * change + size);
  const blocks = new Map<number, LightBlock>();
  let last: LightBlock | undefined;
  let validators = lightSet(keysAt(0), 2n, 0n);
  for (let height = 1; height <= length; height++) {
    const nextValidators = validators.update(changes(keysAt(height - 1), keysAt(height)));
    const block = lightBlock({
      keys: keysAt(height - 1),
      validators,
      nextValidators,
      height,
      timeNs: START_NS + BigInt(height) * MINUTE_NS,
      header: {
        lastBlockId: last?.commit.blockId,
        lastCommitHash: hashCommit(last?.commit ?? EMPTY_COMMIT),
        evidenceHash: hashEvidenceList(options.evidence?.get(height) ?? []),
      },
    });
    blocks.set(height, block);
    last = block;
    validators = nextValidators.advance(1);
  }
  return blocks;
}

function changes(before: readonly SigningKey[], after: readonly SigningKey[]) {
  const has = (list: readonly SigningKey[], key: SigningKey) => list.includes(key);
  const gone = before.filter((key) => !has(after, key));
  const come = after.filter((key) => !has(before, key));
  return [
    ...gone.map(({ publicKey }) => ({ publicKey, power: 0n })),
    ...come.map(({ publicKey }) => ({ publicKey, power: 2n })),
  ];
}

function hash(byte: number): Hash32 {
  return bytesToHash32(Buffer.alloc(32, byte));
}
