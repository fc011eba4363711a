/** Pages of a diff: what is told of nodes in the order of their names, some 32 KiB together. */
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { readRlp } from "../../../chain/encoding/rlp-reader.js";
import type { AddWrite } from "../database.js";
import { damagedDiff, type ToldNode } from "./past-node.js";

/** Bytes of a page; a proof reads a page or two of each diff. */
const DIFF_PAGE_BYTES = 32 * 1024;

/** Puts nodes into pages, in the order in which they are told. */
export class DiffPages {
  private readonly firsts: Uint8Array[] = [];
  private page: ToldNode[] = [];
  private sizeBytes = 0;

  constructor(
    private readonly keyOf: (page: number) => Buffer,
    private readonly write: AddWrite,
  ) {}

  /** Adds the next node. @returns whether a page was written */
  add(node: ToldNode): boolean {
    this.page.push(node);
    this.sizeBytes += node.sizeBytes;
    if (this.sizeBytes < DIFF_PAGE_BYTES) return false;
    this.close();
    return true;
  }

  /** Writes the last page. @returns the names that the pages begin with */
  end(): readonly Uint8Array[] {
    this.close();
    return this.firsts;
  }

  private close(): void {
    const [first] = this.page;
    if (first === undefined) return;
    const value = encodeRlp(this.page.map(({ told }) => told));
    this.write({ key: this.keyOf(this.firsts.length), value });
    this.firsts.push(first.name);
    [this.page, this.sizeBytes] = [[], 0];
  }
}

/** The names that the pages of a diff begin with. @throws STORE_CORRUPT */
export function readFirsts(value: Uint8Array): readonly Uint8Array[] {
  try {
    return readRlp(value, (reader) => reader.items((name) => name.bytes()));
  } catch (cause) {
    throw damagedDiff(cause);
  }
}

/** The last page that begins with a name not above the given one; -1 where there is none. */
export function pageOf(firsts: readonly Uint8Array[], name: Uint8Array): number {
  let [low, high] = [0, firsts.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const first = firsts[middle];
    if (first !== undefined && Buffer.compare(first, name) <= 0) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
