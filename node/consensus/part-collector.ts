/** Parts of one block as they come in, each checked against the part set's root. */
import type { PartSetHeader } from "../../chain/consensus/block-id.js";
import { type BlockPart, isPartOf } from "../../chain/consensus/consensus-block.js";

/** What became of a part. */
export type PartOutcome = "new" | "known" | "invalid";

/** Collects the parts of one header. */
export class PartCollector {
  private readonly parts: (BlockPart | undefined)[];
  private count = 0;

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

  /** The block's bytes, once all parts are here. */
  bytes(): Uint8Array {
    return Buffer.concat(this.all().map(({ bytes }) => bytes));
  }
}
