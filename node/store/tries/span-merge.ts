/**
 * Tells the diffs of blocks that follow each other as one, name by name: of each diff one page is in
 * memory at a time.
 */
import { RlpReader } from "../../../chain/encoding/rlp-reader.js";
import { sortInSteps, type Steps } from "../../../chain/steps/steps.js";
import type { AddWrite } from "../database.js";
import { DiffPages } from "./diff-pages.js";
import { damagedDiff, PastNode } from "./past-node.js";
import { compareNames } from "./trie-store.js";
import type { StoredDiff } from "./trie-spans.js";

/** Nodes of a step. */
const NODES_AT_ONCE = 128;

/** What a merged diff is made of, and where its pages go. */
export interface SpanMerge {
  /** Oldest first. */
  readonly diffs: readonly StoredDiff[];
  readonly keyOf: (page: number) => Buffer;
  readonly write: AddWrite;
}

/**
 * Writes the pages of one diff in the place of all the given ones. The same diffs give the same bytes.
 * @returns the names that the pages begin with
 * @throws STORE_CORRUPT
 */
export function* mergeDiffs({ diffs, keyOf, write }: SpanMerge): Steps<readonly Uint8Array[]> {
  const pages = new DiffPages(keyOf, write);
  const sources = diffs.map((diff) => new Source(diff));
  for (;;) {
    for (const source of sources) if (source.load()) yield;
    // All that is told of names below this one is in memory.
    const bound = lowest(sources);
    const nodes = new Map<string, PastNode>();
    let learned = 0;
    for (const source of sources) {
      for (let told = source.nextBelow(bound); told; told = source.nextBelow(bound)) {
        learnNode(nodes, told);
        learned += 1;
        if (learned % NODES_AT_ONCE === 0) yield;
      }
    }
    const sorted = yield* sortInSteps([...nodes], ([left], [right]) => (left < right ? -1 : 1));
    for (const [index, [name, node]] of sorted.entries()) {
      const told = undamaged(() => node.toldAs(Buffer.from(name, "latin1")));
      const isWritten = pages.add(told);
      if (isWritten || index % NODES_AT_ONCE === 0) yield;
    }
    if (bound === undefined) return pages.end();
  }
}

/** What a diff tells of a node; the reader stands behind its name. */
interface Told {
  readonly name: Uint8Array;
  readonly reader: RlpReader;
}

function learnNode(nodes: Map<string, PastNode>, { name, reader }: Told): void {
  const text = Buffer.from(name.buffer, name.byteOffset, name.length).toString("latin1");
  const node = nodes.get(text) ?? new PastNode();
  nodes.set(text, node);
  undamaged(() => {
    node.learn(reader);
    reader.finish();
  });
}

/** The lowest name that no source has in memory yet; undefined where all have all of them. */
function lowest(sources: readonly Source[]): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  for (const { bound } of sources) {
    if (bound === undefined || (found !== undefined && compareNames(found, bound) <= 0)) continue;
    found = bound;
  }
  return found;
}

/** A diff that is read page by page, and each page node by node. */
class Source {
  /** The name that the next page begins with; undefined where none follows. */
  bound: Uint8Array | undefined;
  private readonly names: RlpReader;
  private pages = 0;
  private nodes: RlpReader | undefined;
  private told: Told | undefined;

  constructor(private readonly diff: StoredDiff) {
    this.names = entered(diff.names);
    this.bound = this.readBound();
  }

  /** Reads the next page where nothing is left of the last one. @returns whether it did */
  load(): boolean {
    if (this.told !== undefined || this.bound === undefined) return false;
    this.nodes = entered(this.diff.page(this.pages));
    this.pages += 1;
    this.bound = this.readBound();
    this.advance();
    return true;
  }

  /** The next of what was read, where its name is below the given one. */
  nextBelow(bound: Uint8Array | undefined): Told | undefined {
    const { told } = this;
    if (told === undefined) return undefined;
    if (bound !== undefined && compareNames(told.name, bound) >= 0) return undefined;
    this.advance();
    return told;
  }

  private advance(): void {
    const { nodes } = this;
    this.told = nodes?.hasMore === true ? readTold(undamaged(() => nodes.encoded())) : undefined;
  }

  private readBound(): Uint8Array | undefined {
    return this.names.hasMore ? undamaged(() => this.names.bytes()) : undefined;
  }
}

/** Inside a list that fills these bytes. */
function entered(bytes: Uint8Array): RlpReader {
  const reader = new RlpReader(bytes);
  undamaged(() => reader.enter());
  return reader;
}

function readTold(node: Uint8Array): Told {
  const reader = entered(node);
  return { name: undamaged(() => reader.bytes()), reader };
}

function undamaged<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    throw damagedDiff(cause);
  }
}
