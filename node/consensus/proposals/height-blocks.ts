/** Blocks of the height in progress: parts that come in, and blocks that are complete. */
import {
  type BlockId,
  isSameBlockId,
  type PartSetHeader,
  isSameParts,
} from "../../../chain/consensus/block-id.js";
import {
  type BlockPart,
  type ConsensusBlock,
  isPartOf,
} from "../../../chain/consensus/consensus-block.js";
import type { ExecutedBlock } from "../../store/block-commit.js";

/** A block whose parts are all here. */
export interface Candidate {
  readonly id: BlockId;
  readonly parts: readonly BlockPart[];
  /** Undefined when the bytes are not a block. */
  readonly block: ConsensusBlock | undefined;
  /** Undefined when the block breaks a rule: it gets no vote. */
  readonly executed: ExecutedBlock | undefined;
}

/** A block whose parts are all here, before it is read. */
export interface WholeParts {
  readonly header: PartSetHeader;
  readonly parts: readonly BlockPart[];
  readonly bytes: Uint8Array;
}

/** Blocks of one height. */
export class HeightBlocks {
  private wanted: PartCollector | undefined;
  /** Parts of proposals of this node, as the log gives them back after a restart. */
  private readonly own = new Map<number, PartCollector>();
  private readonly ownByRound = new Map<number, Candidate>();
  private candidates: Candidate[] = [];

  /** Parts of this header are collected from now on; those of another no longer. */
  want(header: PartSetHeader): void {
    if (!isSameParts(this.wanted?.header, header)) this.wanted = new PartCollector(header);
  }

  /** No parts are expected. */
  wantNone(): void {
    this.wanted = undefined;
  }

  /** The header whose parts are collected, and those that are here. */
  get collecting(): PartCollector | undefined {
    return this.wanted;
  }

  /** The block that is collected, once it is complete and until it is judged. */
  get unjudged(): PartCollector | undefined {
    const { wanted } = this;
    return wanted?.isComplete === true && wanted.isJudged !== true ? wanted : undefined;
  }

  /** Takes a part of the wanted header; undefined when it belongs to another. */
  add(header: PartSetHeader, part: BlockPart): PartOutcome | undefined {
    if (this.wanted === undefined || !isSameParts(this.wanted.header, header)) return undefined;
    return this.wanted.add(part);
  }

  /**
   * Takes a part of an own proposal out of the log; the collector once it is complete. What a crash
   * left of a block that was never offered gives way to the one that was made in its place.
   */
  addOwn(round: number, header: PartSetHeader, part: BlockPart): PartCollector | undefined {
    const begun = this.own.get(round);
    const isBegun = begun !== undefined && isSameParts(begun.header, header);
    const collector = isBegun ? begun : new PartCollector(header);
    this.own.set(round, collector);
    collector.add(part);
    if (!collector.isComplete) return undefined;
    this.own.delete(round);
    return collector;
  }

  /** Keeps a complete block. */
  keep(candidate: Candidate): void {
    if (this.byParts(candidate.id.parts) === undefined) this.candidates.push(candidate);
  }

  /** Keeps the block that this node offers in a round. */
  keepOwn(round: number, candidate: Candidate): void {
    this.keep(candidate);
    this.ownByRound.set(round, candidate);
  }

  /** What this node offered in a round. */
  ownOf(round: number): Candidate | undefined {
    return this.ownByRound.get(round);
  }

  /** A complete block by its id. */
  byId(id: BlockId | undefined): Candidate | undefined {
    if (id === undefined) return undefined;
    return this.candidates.find((one) => isSameBlockId(one.id, id));
  }

  /** A complete block by its part set. */
  byParts(header: PartSetHeader): Candidate | undefined {
    return this.candidates.find((one) => isSameParts(one.id.parts, header));
  }

  /** Forgets all complete blocks but these: called when a round ends, so few are ever kept. */
  retain(ids: readonly (BlockId | undefined)[]): void {
    this.candidates = this.candidates.filter((one) => ids.some((id) => isSameBlockId(one.id, id)));
    this.ownByRound.clear();
  }
}

/** What became of a part. */
export type PartOutcome = "new" | "known" | "invalid";

/** Collects the parts of one header. */
export class PartCollector {
  private readonly parts: (BlockPart | undefined)[];
  private count = 0;
  /** False where the complete block was put off while it is only proposed, see `judgeProposed`. */
  isJudged: boolean | undefined;

  constructor(readonly header: PartSetHeader) {
    this.parts = Array.from({ length: header.total }, () => undefined);
  }

  /** Takes a part if its proof leads to the header. */
  add(part: BlockPart): PartOutcome {
    if (this.parts[part.index] !== undefined) return "known";
    if (!isPartOf(part, this.header)) return "invalid";
    this.parts[part.index] = part;
    this.count += 1;
    return "new";
  }

  get isComplete(): boolean {
    return this.count === this.header.total;
  }

  /** Which parts are here. */
  have(): boolean[] {
    return this.parts.map((part) => part !== undefined);
  }

  /** The part at a position, once it is here. */
  at(index: number): BlockPart | undefined {
    return this.parts[index];
  }

  /** The parts that are here, in order. */
  all(): BlockPart[] {
    return this.parts.filter((part) => part !== undefined);
  }

  /** What is judged once all parts are here. */
  whole(): WholeParts {
    const parts = this.all();
    return { header: this.header, parts, bytes: Buffer.concat(parts.map(({ bytes }) => bytes)) };
  }
}
