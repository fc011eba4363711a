/**
 * What consensus decided, by height: header, evidence, last commit and block id of each block, the
 * commit that this node saw for the newest one, and the validators of every height. Transactions
 * are not stored again: they follow from the block.
 */
import { LRUCache } from "lru-cache";
import { bytesToAddress, addressToBytes } from "../../chain/address.js";
import { type BlockId, decodeBlockId, encodeBlockId } from "../../chain/consensus/block-id.js";
import { type Commit, decodeCommit, encodeCommit } from "../../chain/consensus/commit.js";
import {
  type ConsensusHeader,
  decodeConsensusHeader,
  encodeConsensusHeader,
} from "../../chain/consensus/consensus-header.js";
import {
  decodeDuplicateVote,
  type DuplicateVoteEvidence,
  encodeDuplicateVote,
} from "../../chain/consensus/evidence.js";
import { ProtoReader, ProtoWriter } from "../../chain/protobuf/wire.js";
import { validatorAddress, ValidatorSet } from "../../chain/consensus/validator-set.js";
import { heightBytes, readHeight } from "../../chain/encoding/height-bytes.js";
import { bytesToHash32, type Hash32, type Height } from "../../chain/hex.js";
import { type Database, storeKey, type StoreWrite } from "./database.js";

/** A decided block without its transactions. */
export interface ConsensusRecord {
  readonly header: ConsensusHeader;
  readonly evidence: readonly DuplicateVoteEvidence[];
  readonly lastCommit: Commit;
  readonly blockId: BlockId;
}

/** What a decided height writes. */
export interface DecidedRecord extends ConsensusRecord {
  /** The precommits that decided it. */
  readonly seenCommit: Commit;
  /** Validators of the next height but one. */
  readonly nextValidators: ValidatorSet;
  /** Whether the evidence changed that set, beyond the turn of proposers. */
  readonly isSetChanged: boolean;
}

/** Evidence that a block has. */
export interface CommittedEvidence {
  /** See `hashEvidence`. */
  readonly hash: Hash32;
  /** Height of its votes, below that of the block. */
  readonly voteHeight: Height;
}

/** More than a block has: see the decoder of blocks. */
const MAX_EVIDENCE = 10_000;
const MAX_VALIDATORS = 10_000;

/**
 * A whole set is stored at least this often, so that finding one advances another by less than
 * this many turns: some milliseconds for a hundred validators.
 */
const SET_INTERVAL_BLOCKS = 128;
/** Sets kept decoded: those that requests and evidence ask for again and again. */
const CACHED_SETS = 256;

/** Reads and encodes the records of consensus. */
export class ConsensusStore {
  private readonly sets = new LRUCache<Height, ValidatorSet>({ max: CACHED_SETS });
  private readonly storedSets = new LRUCache<Height, ValidatorSet>({ max: CACHED_SETS });

  constructor(private readonly database: Database) {}

  /** Record of a height from 1 on; undefined where none is stored. */
  record(height: Height): ConsensusRecord | undefined {
    const bytes = this.database.get(storeKey("consensusBlock", heightBytes(height)));
    return bytes === undefined ? undefined : decodeRecord(bytes);
  }

  /** Header of a decided height, or one that was fetched for evidence from before state sync. */
  header(height: Height): ConsensusHeader | undefined {
    const record = this.record(height);
    if (record !== undefined) return record.header;
    const bytes = this.database.get(storeKey("backfilledHeader", heightBytes(height)));
    return bytes === undefined ? undefined : decodeConsensusHeader(bytes);
  }

  /** Height of a consensus block hash. */
  heightOf(hash: Hash32): Height | undefined {
    const bytes = this.database.get(storeKey("consensusHash", hash));
    return bytes === undefined ? undefined : readHeight(bytes, 0);
  }

  /** The commit that this node saw for the newest block. */
  seenCommit(): Commit | undefined {
    const bytes = this.database.get(storeKey("seenCommit"));
    return bytes === undefined ? undefined : decodeCommit(bytes);
  }

  /** Validators of a height, with the priorities of its round 0. */
  validators(height: Height): ValidatorSet | undefined {
    const cached = this.sets.get(height);
    if (cached !== undefined) return cached;
    const base = this.setBase(height);
    if (base === undefined) return undefined;
    let set = this.storedSet(base);
    // One turn at a time, as consensus did: several at once may round otherwise.
    for (let at = base; at < height; at++) set = set.advance(1);
    this.sets.set(height, set);
    return set;
  }

  /**
   * The same with the priorities of an earlier height. Who signs, in which place and with what power, has
   * been the same since that one; turning the set takes milliseconds, and peers ask for any height at no
   * cost.
   */
  signers(height: Height): ValidatorSet | undefined {
    const base = this.setBase(height);
    return base === undefined ? undefined : this.storedSet(base);
  }

  private storedSet(base: Height): ValidatorSet {
    const cached = this.storedSets.get(base);
    if (cached !== undefined) return cached;
    const bytes = this.database.get(storeKey("validatorSet", heightBytes(base)));
    if (bytes === undefined)
      throw this.database.damage(`the validators of height ${base} are gone`);
    const set = decodeSet(bytes);
    this.storedSets.set(base, set);
    return set;
  }

  /** Whether evidence is in a block already. */
  isCommitted(evidenceHash: Hash32): boolean {
    return this.database.get(storeKey("committedEvidence", evidenceHash)) !== undefined;
  }

  /** All that blocks of this node have had, in no order; it stays known when they are pruned. */
  async *committedEvidence(): AsyncIterable<CommittedEvidence> {
    const range = {
      from: storeKey("committedEvidence"),
      to: storeKey("committedEvidence", Buffer.alloc(33, 0xff)),
    };
    for await (const [key, value] of this.database.entries(range)) {
      yield { hash: bytesToHash32(key.subarray(1)), voteHeight: readHeight(value, 0) };
    }
  }

  /** Evidence that waits for a block, oldest first. */
  async pendingEvidence(): Promise<DuplicateVoteEvidence[]> {
    const range = {
      from: storeKey("pendingEvidence"),
      to: storeKey("pendingEvidence", Buffer.alloc(41, 0xff)),
    };
    const found: DuplicateVoteEvidence[] = [];
    for await (const [, bytes] of this.database.entries(range)) {
      found.push(decodeDuplicateVote(bytes));
    }
    return found;
  }

  /** Keeps evidence over restarts. Throws STORE_WRITE_FAILED. */
  async keepEvidence(evidence: DuplicateVoteEvidence, hash: Hash32): Promise<void> {
    const value = encodeDuplicateVote(evidence);
    await this.database.write([{ key: pendingKey(evidence, hash), value }], { durable: true });
  }

  /** Writes for evidence that a block holds, or that is too old for one. */
  evidenceWrites(
    committed: readonly { evidence: DuplicateVoteEvidence; hash: Hash32 }[],
    expired: readonly { evidence: DuplicateVoteEvidence; hash: Hash32 }[],
  ): StoreWrite[] {
    const gone = [...committed, ...expired];
    return [
      ...gone.map(({ evidence, hash }) => ({ key: pendingKey(evidence, hash), value: undefined })),
      ...committed.map(({ evidence, hash }) => ({
        key: storeKey("committedEvidence", hash),
        value: heightBytes(evidence.voteA.height),
      })),
    ];
  }

  /** Writes the validators of heights 1 and 2 where they are missing. Throws STORE_WRITE_FAILED. */
  async writeGenesis(validators: ValidatorSet): Promise<void> {
    if (this.validators(1) !== undefined) return;
    const writes = [...this.setWrites(1, validators, 1), ...this.setWrites(2, validators, 1)];
    await this.database.write(writes, { durable: true });
  }

  /** The writes of a decided height; part of the block's one atomic write. */
  writesOf(decided: DecidedRecord): StoreWrite[] {
    const { header, blockId, seenCommit, nextValidators, isSetChanged } = decided;
    const at = heightBytes(header.height);
    const setHeight = header.height + 2;
    const isWhole = isSetChanged || setHeight % SET_INTERVAL_BLOCKS === 0;
    const base = isWhole ? setHeight : this.setBase(setHeight - 1);
    if (base === undefined) throw new RangeError("the validators before are not stored");
    return [
      { key: storeKey("consensusBlock", at), value: encodeRecord(decided) },
      { key: storeKey("consensusHash", blockId.hash), value: at },
      { key: storeKey("seenCommit"), value: encodeCommit(seenCommit) },
      ...this.setWrites(setHeight, nextValidators, base),
    ];
  }

  /**
   * Writes for heights whose blocks this node does not have: headers, and the validators that
   * signed them. Evidence is judged by them; priorities of the past are nobody's concern.
   * @param backfill headers descending without a gap, sets where they differ from the height above
   */
  *backfillWrites(backfill: {
    readonly headers: readonly ConsensusHeader[];
    readonly sets: readonly { readonly height: Height; readonly validators: ValidatorSet }[];
  }): Iterable<StoreWrite[]> {
    const { headers, sets } = backfill;
    const lowest = headers.at(-1)?.height;
    if (lowest === undefined) return;
    const spans = sets.map(({ validators }, index) => {
      return { validators, first: (sets[index + 1]?.height ?? lowest - 1) + 1 };
    });
    let span = spans.shift();
    for (const header of headers) {
      const { height } = header;
      while (span !== undefined && height < span.first) span = spans.shift();
      if (span === undefined) throw new RangeError("validators are missing");
      const { validators, first } = span;
      const base = Math.max(first, height - (height % SET_INTERVAL_BLOCKS));
      const value = encodeConsensusHeader(header);
      const key = storeKey("backfilledHeader", heightBytes(height));
      yield [{ key, value }, ...this.setWrites(height, validators, base)];
    }
  }

  /** Writes of the validators of a height that does not follow from the one before. */
  wholeSetWrites(height: Height, set: ValidatorSet): StoreWrite[] {
    return this.setWrites(height, set, height);
  }

  /** Height of the stored set that the validators of a height follow from. */
  private setBase(height: Height): Height | undefined {
    const pointer = this.database.get(storeKey("validatorsAt", heightBytes(height)));
    return pointer === undefined ? undefined : readHeight(pointer, 0);
  }

  private setWrites(height: Height, set: ValidatorSet, base: Height): StoreWrite[] {
    const pointer = {
      key: storeKey("validatorsAt", heightBytes(height)),
      value: heightBytes(base),
    };
    if (base !== height) return [pointer];
    return [pointer, { key: storeKey("validatorSet", heightBytes(height)), value: encodeSet(set) }];
  }
}

function pendingKey({ voteA }: DuplicateVoteEvidence, hash: Hash32): Buffer {
  return storeKey("pendingEvidence", heightBytes(voteA.height), hash);
}

function encodeRecord({ header, evidence, lastCommit, blockId }: ConsensusRecord): Buffer {
  const writer = new ProtoWriter()
    .message(1, encodeConsensusHeader(header))
    .message(2, encodeBlockId(blockId))
    .message(3, encodeCommit(lastCommit));
  for (const one of evidence) writer.message(4, encodeDuplicateVote(one));
  return writer.finish();
}

function decodeRecord(bytes: Uint8Array): ConsensusRecord {
  const reader = new ProtoReader(bytes, [1, 2, 3], { 4: MAX_EVIDENCE });
  const blockId = decodeBlockId(reader.bytes(2));
  if (blockId === undefined) throw new RangeError("a stored block has no id");
  return {
    header: decodeConsensusHeader(reader.bytes(1)),
    blockId,
    lastCommit: decodeCommit(reader.bytes(3)),
    evidence: reader.repeated(4).map(decodeDuplicateVote),
  };
}

function encodeSet(set: ValidatorSet): Buffer {
  const writer = new ProtoWriter().bytes(1, addressToBytes(set.proposer.address));
  for (const { publicKey, power, priority } of set.validators) {
    const one = new ProtoWriter().bytes(1, publicKey).integer(2, power).integer(3, priority);
    writer.message(2, one.finish());
  }
  return writer.finish();
}

function decodeSet(bytes: Uint8Array): ValidatorSet {
  const reader = new ProtoReader(bytes, [1], { 2: MAX_VALIDATORS });
  const validators = reader.repeated(2).map((one) => {
    const fields = new ProtoReader(one, [1, 2, 3]);
    const publicKey = Uint8Array.from(fields.bytes(1));
    const [power, priority] = [fields.int64(2), fields.int64(3)];
    return { address: validatorAddress(publicKey), publicKey, power, priority };
  });
  return ValidatorSet.restore(validators, bytesToAddress(reader.bytes(1)));
}
