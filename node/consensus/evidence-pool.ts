/**
 * Proofs of double signing: made of conflicting votes, verified, kept over restarts, offered to
 * blocks, and never accepted twice (CometBFT's evidence/pool.go and verify.go).
 */
import type { Address } from "../../chain/address.js";
import { isSameBlockId } from "../../chain/consensus/block-id.js";
import type { ConsensusParams } from "../../chain/consensus/consensus-params.js";
import {
  type DuplicateVoteEvidence,
  encodeDuplicateVote,
  hashEvidence,
  orderVotes,
} from "../../chain/consensus/evidence.js";
import { type Vote, voteSignBytes } from "../../chain/consensus/vote.js";
import { verifySignature } from "../../chain/consensus/ed25519.js";
import type { Hash32 } from "../../chain/hex.js";
import { allAtOnce, type Steps } from "../../chain/steps/steps.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { ConsensusStore } from "../store/consensus-store.js";
import type { StoreWrite } from "../store/database.js";
import { blockInvalid } from "../blocks/block-error.js";
import type { BlockEvidence } from "../blocks/block-evidence.js";
import type { ChainTip } from "../blocks/chain-tip.js";
import type { Reception } from "./consensus-ports.js";

/**
 * Pieces of one validator that wait for a block. It can sign any number of pairs, and the first that a
 * block takes removes it: its others must not take the places of what is true of somebody else.
 */
const MAX_PENDING_PER_VALIDATOR = 3;
/** Pieces that wait for a block: those of the largest set with stake, all of it lying. */
const MAX_PENDING = 1_500;
/** Pairs of votes that wait for their height to be decided. */
const MAX_REPORTED = 1_000;

/** Evidence that waits for a block. */
export class EvidencePool implements BlockEvidence {
  private readonly pending = new Map<Hash32, DuplicateVoteEvidence>();
  private reported: (readonly [Vote, Vote])[] = [];

  private constructor(
    private readonly store: ConsensusStore,
    private readonly log: Logger,
    private readonly isPunishable: (address: Address) => boolean | undefined,
  ) {}

  /**
   * Loads what was kept.
   * @param isPunishable whether evidence against a validator has an effect; undefined: as long as
   * it is in the set
   */
  static async open(
    store: ConsensusStore,
    log: Logger,
    isPunishable: (address: Address) => boolean | undefined = () => undefined,
  ): Promise<EvidencePool> {
    const pool = new EvidencePool(store, log, isPunishable);
    for (const one of await store.pendingEvidence()) pool.pending.set(hashEvidence(one), one);
    return pool;
  }

  /** Takes two votes that contradict each other; they become evidence once the height is decided. */
  report(first: Vote, second: Vote): void {
    if (this.reported.length < MAX_REPORTED) this.reported.push(orderVotes(first, second));
  }

  /** Evidence from a peer. */
  async receive(evidence: DuplicateVoteEvidence, tip: ChainTip): Promise<Reception> {
    const hash = hashEvidence(evidence);
    if (this.pending.has(hash) || this.store.isCommitted(hash)) return "known";
    // Not the sender's fault: this node is behind, or the sender was.
    if (evidence.voteA.height > tip.height) return "useless";
    if (this.isExpired(evidence, tip) || this.isPunished(evidence, tip)) return "useless";
    if (!this.hasRoomFor(evidence)) return "useless";
    if (this.faultOf(evidence, tip) !== undefined) return "invalid";
    await this.keep(evidence, hash);
    return "new";
  }

  /** What the next block may take: one piece for each validator that is to be removed. */
  forBlock(tip: ChainTip): DuplicateVoteEvidence[] {
    const taken = new Map<Address, DuplicateVoteEvidence>();
    let leftBytes = tip.params.evidenceMaxBytes;
    for (const evidence of this.pending.values()) {
      const { validatorAddress } = evidence.voteA;
      if (taken.has(validatorAddress)) continue;
      if (this.isPunished(evidence, tip) || this.isExpired(evidence, tip)) continue;
      leftBytes -= encodeDuplicateVote(evidence).length;
      if (leftBytes < 0) break;
      taken.set(validatorAddress, evidence);
    }
    return [...taken.values()];
  }

  /** Evidence that waits, oldest first: for peers that lack it. */
  waiting(): DuplicateVoteEvidence[] {
    return [...this.pending.values()];
  }

  /**
   * Whether one validator has more pieces in a list than any pool keeps of it: no honest proposer's
   * block. It breaks no rule of blocks: what two thirds have voted for is not asked for this.
   */
  isOverfull(list: readonly DuplicateVoteEvidence[]): boolean {
    const counts = new Map<Address, number>();
    return list.some(({ voteA: { validatorAddress } }) => {
      const count = (counts.get(validatorAddress) ?? 0) + 1;
      counts.set(validatorAddress, count);
      return count > MAX_PENDING_PER_VALIDATOR;
    });
  }

  /** See `BlockEvidence`: signatures last, because one may take longer than all that is compared. */
  *checkSteps(list: readonly DuplicateVoteEvidence[], tip: ChainTip): Steps<void> {
    const seen = new Set<Hash32>();
    const unverified: (readonly [DuplicateVoteEvidence, publicKey: Uint8Array])[] = [];
    for (const evidence of list) {
      const hash = hashEvidence(evidence);
      if (seen.has(hash)) throw blockInvalid("evidence is there twice");
      seen.add(hash);
      if (this.store.isCommitted(hash)) throw blockInvalid("evidence is in a block already");
      if (!this.pending.has(hash)) {
        const signer = this.signerOf(evidence);
        if ("fault" in signer) throw evidenceInvalid(signer.fault);
        unverified.push([evidence, signer.publicKey]);
      }
      if (this.isExpired(evidence, tip)) throw blockInvalid("evidence is too old");
      yield;
    }
    for (const [evidence, publicKey] of unverified) {
      const fault = yield* signatureFaultSteps(evidence, publicKey, tip.chainId);
      if (fault !== undefined) throw evidenceInvalid(fault);
    }
  }

  /** See `BlockEvidence`. */
  writesOf(committed: readonly DuplicateVoteEvidence[], tip: ChainTip): StoreWrite[] {
    const expired = this.waiting().filter((one) => this.isOver(one, tip));
    return this.store.evidenceWrites(committed.map(withHash), expired.map(withHash));
  }

  /** See `BlockEvidence`; makes evidence of the votes that were reported for decided heights. */
  async afterBlock(
    tip: ChainTip,
    committed: readonly DuplicateVoteEvidence[],
  ): Promise<DuplicateVoteEvidence[]> {
    for (const one of committed) this.pending.delete(hashEvidence(one));
    for (const [hash, one] of this.pending) {
      if (this.isOver(one, tip)) this.pending.delete(hash);
    }
    const due = this.reported.filter(([{ height }]) => height <= tip.height);
    this.reported = this.reported.filter(([{ height }]) => height > tip.height);
    const fresh: DuplicateVoteEvidence[] = [];
    for (const [voteA, voteB] of due) {
      const evidence = this.evidenceOf(voteA, voteB);
      const hash = evidence === undefined ? undefined : hashEvidence(evidence);
      if (evidence === undefined || hash === undefined) continue;
      if (this.pending.has(hash) || this.store.isCommitted(hash)) continue;
      if (!this.hasRoomFor(evidence) || this.isOver(evidence, tip)) continue;
      if (this.faultOf(evidence, tip) !== undefined) continue;
      await this.keep(evidence, hash);
      fresh.push(evidence);
    }
    return fresh;
  }

  private hasRoomFor({ voteA: { validatorAddress } }: DuplicateVoteEvidence): boolean {
    if (this.pending.size >= MAX_PENDING) return false;
    const own = this.waiting().filter(({ voteA }) => voteA.validatorAddress === validatorAddress);
    return own.length < MAX_PENDING_PER_VALIDATOR;
  }

  private async keep(evidence: DuplicateVoteEvidence, hash: Hash32): Promise<void> {
    await this.store.keepEvidence(evidence, hash);
    this.pending.set(hash, evidence);
    const { height, round, validatorAddress } = evidence.voteA;
    this.log.warn({ height, round, validatorAddress }, "a validator signed twice");
  }

  private evidenceOf(voteA: Vote, voteB: Vote): DuplicateVoteEvidence | undefined {
    const validators = this.store.signers(voteA.height);
    const timeNs = this.store.header(voteA.height)?.timeNs;
    const validator = validators?.at(voteA.validatorIndex);
    if (validators === undefined || validator === undefined || timeNs === undefined) {
      return undefined;
    }
    const { totalPower } = validators;
    return { voteA, voteB, totalPower, validatorPower: validator.power, timeNs };
  }

  /** Nothing follows from it any more. */
  private isOver(evidence: DuplicateVoteEvidence, tip: ChainTip): boolean {
    return this.isExpired(evidence, tip) || this.isPunished(evidence, tip);
  }

  /**
   * Whether more pieces would only fill blocks. With stake a validator that left the set can still be
   * slashed: who signs twice and leaves must not get away.
   */
  private isPunished({ voteA }: DuplicateVoteEvidence, tip: ChainTip): boolean {
    const isPunishable = this.isPunishable(voteA.validatorAddress);
    if (isPunishable !== undefined) return !isPunishable;
    return tip.nextValidators.indexOf(voteA.validatorAddress) < 0;
  }

  /** Too old only by blocks and by time. */
  private isExpired({ voteA, timeNs }: DuplicateVoteEvidence, tip: ChainTip): boolean {
    return isEvidenceExpired({ height: voteA.height, timeNs }, tip, tip.params);
  }

  private faultOf(evidence: DuplicateVoteEvidence, tip: ChainTip): string | undefined {
    const signer = this.signerOf(evidence);
    if ("fault" in signer) return signer.fault;
    return allAtOnce(signatureFaultSteps(evidence, signer.publicKey, tip.chainId));
  }

  /** Compares everything but the signatures; the key that they must be of, or what is wrong. */
  private signerOf(
    evidence: DuplicateVoteEvidence,
  ): { readonly publicKey: Uint8Array } | { readonly fault: string } {
    const { voteA, voteB } = evidence;
    const validators = this.store.signers(voteA.height);
    const timeNs = this.store.header(voteA.height)?.timeNs;
    if (validators === undefined || timeNs === undefined) return { fault: "of an unknown height" };
    if (evidence.timeNs !== timeNs) return { fault: "not of the block's time" };
    if (evidence.totalPower !== validators.totalPower) return { fault: "another total power" };
    const index = validators.indexOf(voteA.validatorAddress);
    const validator = validators.at(index);
    if (validator === undefined) return { fault: "not of a validator" };
    if (evidence.validatorPower !== validator.power) return { fault: "another power" };
    // The index is not signed; a second copy with another one must not count as new.
    if (voteA.validatorIndex !== index) return { fault: "another place in the set" };
    const fault = pairFaultOf(voteA, voteB);
    return fault === undefined ? { publicKey: validator.publicKey } : { fault };
  }
}

/** Whether evidence is older than both limits, seen from the last decided block. */
export function isEvidenceExpired(
  evidence: { readonly height: number; readonly timeNs: bigint },
  now: { readonly height: number; readonly timeNs: bigint },
  params: Pick<ConsensusParams, "evidenceMaxAgeBlocks" | "evidenceMaxAgeNs">,
): boolean {
  const isOldByBlocks = now.height - evidence.height > params.evidenceMaxAgeBlocks;
  return isOldByBlocks && now.timeNs - evidence.timeNs > params.evidenceMaxAgeNs;
}

function pairFaultOf(voteA: Vote, voteB: Vote): string | undefined {
  for (const name of ["height", "round", "type", "validatorAddress", "validatorIndex"] as const) {
    if (voteA[name] !== voteB[name]) return `the votes differ in ${name}`;
  }
  return isSameBlockId(voteA.blockId, voteB.blockId) ? "the votes agree" : undefined;
}

function* signatureFaultSteps(
  { voteA, voteB }: DuplicateVoteEvidence,
  publicKey: Uint8Array,
  chainId: string,
): Steps<string | undefined> {
  for (const vote of [voteA, voteB]) {
    const isSigned = verifySignature(publicKey, voteSignBytes(chainId, vote), vote.signature);
    if (!isSigned) return "a signature is false";
    yield;
  }
  return undefined;
}

function evidenceInvalid(fault: string) {
  return blockInvalid(`evidence: ${fault}`);
}

function withHash(evidence: DuplicateVoteEvidence): {
  evidence: DuplicateVoteEvidence;
  hash: Hash32;
} {
  return { evidence, hash: hashEvidence(evidence) };
}
