/**
 * The writes of a block's tries: nodes as they are now, and one reverse diff that tells what each
 * changed one was, so that proofs can be made for recent heights (design point 10; ADR 78).
 *
 * A diff is in pages, by name (`diff-pages.ts`); what it tells of a node is `past-node.ts`'s.
 */
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import { decodeRlp, rlpList } from "../../../chain/encoding/rlp.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import type { Height } from "../../../chain/hex.js";
import { mapInSteps, sortInSteps, type Steps } from "../../../chain/steps/steps.js";
import { type AddWrite, type Database, storeKey, type StoreWrite } from "../database.js";
import { DiffPages } from "./diff-pages.js";
import { listChange } from "./list-change.js";
import { type ToldNode, toldItems, toldWhole } from "./past-node.js";
import { baseWrites } from "../store-base.js";
import type { TrieWrite } from "./trie-port.js";
import { compareNames, nameIn, nodeKey } from "./trie-store.js";

/** Blocks for which proofs are served, the head included, unless the node keeps an archive. */
export const PROOF_WINDOW_BLOCKS = 1_024;

/** The oldest height that can be proven with the window's reverse diffs, with that head. */
export function oldestProofAt(head: Height): Height {
  return Math.max(0, head - PROOF_WINDOW_BLOCKS + 1);
}

/** Where a block's trie changes are written. */
export interface TrieTarget {
  readonly database: Pick<Database, "get">;
  /** Whether all reverse diffs stay. */
  readonly keepsAll: boolean;
  readonly add: AddWrite;
}

/**
 * Adds the writes of a block's trie changes: the new nodes, and one reverse diff, sorted by name and in
 * pages; the diff that leaves the window is deleted. In steps.
 */
export function* addTrieWrites(
  { database, keepsAll, add }: TrieTarget,
  height: Height,
  changes: readonly TrieWrite[],
): Steps<void> {
  const former = yield* mapInSteps(changes, (write) => {
    const key = nodeKey(write.owner, write.path);
    add({ key, value: write.node });
    return formerNode(write, nameIn(key));
  });
  const sorted = yield* inNameOrder(former);
  for (const write of yield* diffWrites(height, sorted)) add(write);
  const oldest = oldestProofAt(height);
  if (keepsAll || oldest === 0) return;
  for (const write of diffDeletions(database, oldest - 1)) add(write);
  for (const write of baseWrites({ proofBase: oldest })) add(write);
}

const NO_NODE = new Uint8Array(0);

/** A changed node, and what is told of it. */
interface FormerNode extends ToldNode {
  readonly owner: string;
  readonly name: Buffer;
}

/** Most nodes of a block are of few owners, whose names begin alike. */
function compareFormer(left: FormerNode, right: FormerNode): number {
  const alike = left.owner === right.owner ? left.owner.length : 0;
  return compareNames(left.name, right.name, alike);
}

/** Whether a node lies above another one: its path is the beginning of the other's. */
function isAbove(upper: FormerNode, lower: FormerNode): boolean {
  if (upper.owner !== lower.owner || upper.name.length >= lower.name.length) return false;
  for (let index = upper.owner.length; index < upper.name.length; index++) {
    if (upper.name[index] !== lower.name[index]) return false;
  }
  return true;
}

/** Nodes of a step. */
const ORDERED_AT_ONCE = 256;

/** A node and all that lies below it, in order; `next` of each leads to the one behind it. */
interface OrderedPart {
  readonly first: LinkedNode;
  last: LinkedNode;
}

interface LinkedNode {
  readonly former: FormerNode;
  next: LinkedNode | undefined;
}

/**
 * In the order of their names. A pass over a trie tells children before their parents, each level in order:
 * putting each parent before what lies below it is all that is left to do, but for the order of the tries.
 */
function* inNameOrder(former: readonly FormerNode[]): Steps<FormerNode[]> {
  const parts: OrderedPart[] = [];
  for (const [index, node] of former.entries()) {
    if (index % ORDERED_AT_ONCE === 0) yield;
    const first: LinkedNode = { former: node, next: undefined };
    const part: OrderedPart = { first, last: first };
    for (let below = parts.at(-1); below !== undefined; below = parts.at(-1)) {
      if (!isAbove(node, below.first.former)) break;
      parts.pop();
      if (first.next === undefined) part.last = below.last;
      else below.last.next = first.next;
      first.next = below.first;
    }
    parts.push(part);
  }
  const tries = yield* sortInSteps(parts, (left, right) =>
    compareFormer(left.first.former, right.first.former),
  );
  const ordered: FormerNode[] = [];
  let isOrdered = true;
  for (const { first } of tries) {
    for (let link: LinkedNode | undefined = first; link !== undefined; link = link.next) {
      if (ordered.length % ORDERED_AT_ONCE === 0) yield;
      const before = ordered.at(-1);
      isOrdered &&= before === undefined || compareFormer(before, link.former) < 0;
      ordered.push(link.former);
    }
  }
  // It is not where a branch was dissolved.
  return isOrdered ? ordered : yield* sortInSteps(ordered, compareFormer);
}

function formerNode({ owner, previous, node }: TrieWrite, name: Buffer): FormerNode {
  const change =
    previous === undefined || node === undefined ? undefined : listChange(previous, node);
  const told =
    change === undefined ? toldWhole(name, previous ?? NO_NODE) : toldItems(name, change);
  return { ...told, owner, name };
}

function* diffWrites(height: Height, former: readonly FormerNode[]): Steps<StoreWrite[]> {
  const writes: StoreWrite[] = [];
  const pages = new DiffPages(
    (page) => diffPageKey(height, page),
    (write) => void writes.push(write),
  );
  for (const node of former) if (pages.add(node)) yield;
  const value = encodeRlp(pages.end());
  writes.push({ key: storeKey("trieDiff", heightBytes(height)), value });
  return writes;
}

function diffDeletions(database: Pick<Database, "get">, height: Height): StoreWrite[] {
  const key = storeKey("trieDiff", heightBytes(height));
  const names = database.get(key);
  if (names === undefined) return [];
  return [
    { key, value: undefined },
    ...rlpList(decodeRlp(names)).map((_, page) => ({
      key: diffPageKey(height, page),
      value: undefined,
    })),
  ];
}

/** Key of a page of a block's reverse diff. */
export function diffPageKey(height: Height, page: number): Buffer {
  const number = Buffer.allocUnsafe(4);
  number.writeUInt32BE(page);
  return storeKey("trieDiffPage", heightBytes(height), number);
}
