/**
 * Merkle Patricia tries with 32-byte keys, stored by path in their latest version only. One pass
 * per batch: sorted updates are split over the branches, each changed node is encoded and hashed
 * once, and whatever changed comes back as writes for the block's atomic batch. Pure: nothing is
 * kept between calls, so an abandoned block leaves no trace.
 */
import { keccak256Hex } from "../../chain/hashes.js";
import {
  bytesEqual,
  bytesToHex,
  EMPTY_TRIE_ROOT,
  type Hash32,
  hexToBytes,
} from "../../chain/hex.js";
import { allAtOnce, type Steps } from "../../chain/steps/steps.js";
import type { TrieNodeReader, TrieWrite } from "../store/tries/trie-port.js";
import { buildSteps, buildTrie, groupEnd, itemAt, type TrieEntry } from "./trie-build.js";
import {
  BRANCH_WIDTH,
  branchOffsets,
  branchWithItem,
  childPath,
  decodeShort,
  EMPTY_BRANCH,
  EMPTY_ITEM,
  encodeBranch,
  encodeExtension,
  encodeLeaf,
  encodeShort,
  HASH_ITEM,
  HASHED_NODE_BYTES,
  isBranch,
  joinNibbles,
  nibbleAt,
  nibblesOf,
  type ShortNode,
  TrieError,
} from "./trie-nodes.js";

/** One key's new value. */
export interface TrieUpdate {
  /** 32 bytes, already hashed by the caller. */
  readonly key: Uint8Array;
  /** RLP of the value, never empty; undefined deletes. */
  readonly value: Uint8Array | undefined;
  /** Whether the flat state had a value; where it is given and put, the trie must agree. */
  readonly existed?: boolean;
  /** RLP of that value, where it is known: the trie must have the same, and its leaf need not be read. */
  readonly before?: Uint8Array | undefined;
}

/** The outcome of a batch. */
export interface TrieChange {
  /** keccak256 of the root node, or EMPTY_TRIE_ROOT. */
  readonly root: Hash32;
  /** Each changed place once; children before their parents. */
  readonly writes: readonly TrieWrite[];
}

/** Bytes of every key. */
export const TRIE_KEY_BYTES = 32;

/** A reader without nodes: the trie of an account that is created (again) in this block. */
export const emptyTrieReader: TrieNodeReader = { get: () => undefined };

const ROOT_PATH = new Uint8Array(0);

/** Updates of one step: some tenths of a millisecond. */
const UPDATES_PER_STEP = 32;

/**
 * Applies all updates in one pass; without updates it tells the present root.
 * A node shorter than 32 bytes lives inside its parent and is no write of its own; the root
 * always is.
 * @param updates in any order, keys unique
 * @throws INVALID_TRIE_UPDATE, TRIE_NODE_MISSING, TRIE_VALUE_MISMATCH, INVALID_TRIE_NODE, and what
 * a store says that is damaged
 */
export function updateTrie(
  reader: TrieNodeReader,
  owner: string,
  updates: readonly TrieUpdate[],
): TrieChange {
  return allAtOnce(updateTrieSteps(reader, owner, updates));
}

/**
 * The same in steps; what the reader gives must not change between them.
 * @param root hash of the present root node, where somebody else knows it
 */
export function* updateTrieSteps(
  reader: TrieNodeReader,
  owner: string,
  updates: readonly TrieUpdate[],
  root?: Hash32,
): Steps<TrieChange> {
  const sorted = yield* sortSteps(updates);
  const named = root === undefined || root === EMPTY_TRIE_ROOT ? undefined : hexToBytes(root);
  const old = reader.get(owner, ROOT_PATH, named);
  const pass = new UpdatePass(reader, owner, sorted);
  const next = sorted.length === 0 ? old : yield* pass.steps(old, 0, sorted.length, 0);
  if (next !== old) pass.writes.push({ owner, path: ROOT_PATH, node: next, previous: old });
  return { root: next === undefined ? EMPTY_TRIE_ROOT : keccak256Hex(next), writes: pass.writes };
}

/** The node that a parent refers to by the hash at an offset. Throws TRIE_NODE_MISSING. */
export function readNode(
  reader: TrieNodeReader,
  owner: string,
  path: Uint8Array,
  parent?: Uint8Array,
  hashOffset?: number,
  likely?: () => Uint8Array,
): Uint8Array {
  const node = reader.get(owner, path, parent, hashOffset, likely);
  if (node === undefined) {
    throw new TrieError("TRIE_NODE_MISSING", "the store lacks a node of the trie", {
      details: { owner, pathNibbles: bytesToHex(path) },
    });
  }
  return node;
}

/** Sorts a batch: keys are hashes, so their first bytes divide a large one evenly. */
function* sortSteps(updates: readonly TrieUpdate[]): Steps<readonly TrieUpdate[]> {
  for (const { key, value } of updates) {
    if (key.length !== TRIE_KEY_BYTES || value?.length === 0) {
      throw new TrieError("INVALID_TRIE_UPDATE", "a key has 32 bytes and a value is never empty");
    }
  }
  const sorted: TrieUpdate[] = [];
  for (const bucket of bucketsOf(updates)) {
    bucket.sort((left, right) => compareKeys(left.key, right.key));
    for (const update of bucket) {
      const last = sorted.at(-1);
      if (last !== undefined && compareKeys(last.key, update.key) === 0) {
        throw new TrieError("INVALID_TRIE_UPDATE", "a batch names one key twice");
      }
      sorted.push(update);
    }
    yield;
  }
  return sorted;
}

/** A small batch whole, as most contracts have; a large one by the first bytes of its keys. */
function bucketsOf(updates: readonly TrieUpdate[]): TrieUpdate[][] {
  if (updates.length <= UPDATES_PER_STEP) return [[...updates]];
  const buckets: TrieUpdate[][] = Array.from({ length: 256 }, () => []);
  for (const update of updates) buckets[update.key[0] ?? 0]?.push(update);
  return buckets;
}

/** In JavaScript on purpose: keys mostly differ in their first bytes, a native call costs more. */
function compareKeys(left: Uint8Array, right: Uint8Array): number {
  for (let index = 0; index < TRIE_KEY_BYTES; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** How many nibbles of `prefix` a key follows from `depth` on. */
function matchingNibbles(key: Uint8Array, depth: number, prefix: Uint8Array): number {
  let count = 0;
  while (count < prefix.length && nibbleAt(key, depth + count) === prefix[count]) count += 1;
  return count;
}

/** A child that an extension's split puts into the new branch although no store holds it yet. */
interface PresetChild {
  readonly nibble: number;
  readonly node: Uint8Array;
}

/** What the branch step knows after its children were updated. */
interface BranchState {
  readonly old: Uint8Array;
  readonly offsets: Uint16Array;
  readonly depth: number;
  /** Any key under the branch: its first `depth` nibbles are the branch's path. */
  readonly key: Uint8Array;
  /** Bit n: child n is now `children[n]`, and the store held `previous[n]` in its place; sparse. */
  changed: number;
  readonly children: (Uint8Array | undefined)[];
  readonly previous: (Uint8Array | undefined)[];
}

function branchState(old: Uint8Array, key: Uint8Array, depth: number): BranchState {
  const offsets = branchOffsets(old);
  return { old, offsets, depth, key, changed: 0, children: [], previous: [] };
}

/** @param isPreset the child stood in no store before */
function noteChild(
  state: BranchState,
  nibble: number,
  child: Uint8Array | undefined,
  next: Uint8Array | undefined,
  isPreset = false,
): void {
  if (next === child) return;
  state.changed |= 1 << nibble;
  state.children[nibble] = next;
  if (!isPreset) state.previous[nibble] = storedForm(child);
}

/**
 * One batch on its way down and up again. Each step takes the RLP of the node at the place that
 * the updates `from` to `to` share (undefined = nothing there) and returns what shall stand there:
 * the very same object if nothing changed. The caller places it, so a node that moves up when a
 * branch collapses is neither hashed nor written at its former place.
 */
class UpdatePass {
  readonly writes: TrieWrite[] = [];
  private readonly emit = (path: Uint8Array, node: Uint8Array): void => {
    this.place(path, node, undefined);
  };

  constructor(
    private readonly reader: TrieNodeReader,
    private readonly owner: string,
    private readonly updates: readonly TrieUpdate[],
  ) {}

  /** As `update`; large parts of the batch are divided. */
  *steps(
    old: Uint8Array | undefined,
    from: number,
    to: number,
    depth: number,
  ): Steps<Uint8Array | undefined> {
    yield;
    if (to - from <= UPDATES_PER_STEP) return this.update(old, from, to, depth);
    if (old === undefined) {
      const puts = this.putsOf(from, to);
      if (puts.length === 0) return undefined;
      return yield* buildSteps(puts, 0, puts.length, depth, this.emit);
    }
    if (!isBranch(old)) return this.update(old, from, to, depth);
    const state = branchState(old, itemAt(this.updates, from).key, depth);
    for (let start = from; start < to; ) {
      const nibble = nibbleAt(itemAt(this.updates, start).key, depth);
      const end = groupEnd(this.updates, start, to, depth);
      const child = this.branchChild(state, nibble, this.onlyOne(start, end));
      noteChild(state, nibble, child, yield* this.steps(child, start, end, depth + 1));
      start = end;
    }
    return state.changed === 0 ? old : this.finishBranch(state);
  }

  private update(
    old: Uint8Array | undefined,
    from: number,
    to: number,
    depth: number,
  ): Uint8Array | undefined {
    if (old === undefined) return this.build(this.putsOf(from, to), depth);
    if (isBranch(old)) return this.updateBranch(old, from, to, depth);
    const short = decodeShort(old);
    return short.isLeaf
      ? this.updateLeaf(old, short, from, to, depth)
      : this.updateExtension(old, short, from, to, depth);
  }

  private updateLeaf(
    old: Uint8Array,
    leaf: ShortNode,
    from: number,
    to: number,
    depth: number,
  ): Uint8Array | undefined {
    const key = leafKey(itemAt(this.updates, from).key, depth, leaf.nibbles);
    let unchanged = true;
    let pending: TrieEntry | undefined = { key, value: leaf.content };
    const entries: TrieEntry[] = [];
    for (let index = from; index < to; index++) {
      const update = itemAt(this.updates, index);
      const order = compareKeys(update.key, key);
      if (order >= 0 && pending !== undefined) {
        if (order > 0) entries.push(pending);
        pending = undefined;
      }
      const { before } = update;
      const isOther = order === 0 && before !== undefined && !bytesEqual(before, leaf.content);
      if (isOther || update.existed === (order !== 0)) throw this.mismatch(update.key);
      if (order !== 0 && update.value === undefined) continue;
      unchanged &&=
        update.value !== undefined && order === 0 && bytesEqual(update.value, leaf.content);
      if (update.value !== undefined) entries.push({ key: update.key, value: update.value });
    }
    if (unchanged) return old;
    if (pending !== undefined) entries.push(pending);
    return this.build(entries, depth);
  }

  private updateExtension(
    old: Uint8Array,
    { nibbles: prefix, content }: ShortNode,
    from: number,
    to: number,
    depth: number,
  ): Uint8Array | undefined {
    // Only puts part the path; a delete beside it finds nothing, and the first nibbles that all
    // puts share with it stay as they are.
    const matching = (index: number): number =>
      matchingNibbles(itemAt(this.updates, index).key, depth, prefix);
    let shared = prefix.length;
    for (let index = from; index < to; index++) {
      if (itemAt(this.updates, index).value !== undefined) {
        shared = Math.min(shared, matching(index));
      }
    }
    let first = from;
    while (first < to && matching(first) < shared) first += 1;
    let end = first;
    while (end < to && matching(end) >= shared) end += 1;
    if (first === end) return old;
    const path = nibblesOf(itemAt(this.updates, first).key, 0, depth + shared);
    if (shared === prefix.length) {
      const child = this.childOf(content, path);
      const next = this.update(child, first, end, depth + shared);
      return next === child ? old : this.withPrefix(path, shared, next, storedForm(child));
    }
    const nibble = prefix[shared] ?? 0;
    const rest = prefix.subarray(shared + 1);
    const branch =
      rest.length === 0
        ? this.updateBranch(branchWithItem(nibble, content), first, end, depth + shared)
        : this.updateBranch(EMPTY_BRANCH, first, end, depth + shared, {
            nibble,
            node: encodeShort({ isLeaf: false, nibbles: rest, content }),
          });
    return shared === 0 ? branch : this.withPrefix(path, shared, branch, undefined);
  }

  private updateBranch(
    old: Uint8Array,
    from: number,
    to: number,
    depth: number,
    preset?: PresetChild,
  ): Uint8Array | undefined {
    const state = branchState(old, itemAt(this.updates, from).key, depth);
    if (preset !== undefined) {
      state.children[preset.nibble] = preset.node;
      state.changed = 1 << preset.nibble;
    }
    for (let start = from; start < to; ) {
      const nibble = nibbleAt(itemAt(this.updates, start).key, depth);
      const end = groupEnd(this.updates, start, to, depth);
      const isPreset = preset?.nibble === nibble;
      const child = isPreset
        ? preset.node
        : this.branchChild(state, nibble, this.onlyOne(start, end));
      noteChild(state, nibble, child, this.update(child, start, end, depth + 1), isPreset);
      start = end;
    }
    return state.changed === 0 ? old : this.finishBranch(state);
  }

  /** Places the changed children and closes the branch, or dissolves it into its last child. */
  private finishBranch(state: BranchState): Uint8Array | undefined {
    const { old, offsets, changed, children, previous, key, depth } = state;
    let count = 0;
    let last = 0;
    for (let nibble = 0; nibble < BRANCH_WIDTH; nibble++) {
      const isChanged = (changed & (1 << nibble)) !== 0;
      if (isChanged ? children[nibble] !== undefined : old[offsets[nibble] ?? 0] !== EMPTY_ITEM) {
        count += 1;
        last = nibble;
      }
    }
    for (let nibble = 0; nibble < BRANCH_WIDTH; nibble++) {
      if ((changed & (1 << nibble)) === 0 || (count === 1 && nibble === last)) continue;
      this.place(childPath(key, depth, nibble), children[nibble], previous[nibble]);
    }
    if (count === 0) return undefined;
    if (count > 1) return encodeBranch(old, offsets, changed, children);
    const isChanged = (changed & (1 << last)) !== 0;
    const child = isChanged ? children[last] : this.branchChild(state, last);
    const before = isChanged ? previous[last] : storedForm(child);
    return this.withPrefix(childPath(key, depth, last), 1, child, before);
  }

  /**
   * The node that stands `length` nibbles above `path` and leads only to `child`: short nodes are
   * drawn up into it, a branch gets an extension.
   */
  private withPrefix(
    path: Uint8Array,
    length: number,
    child: Uint8Array | undefined,
    previous: Uint8Array | undefined,
  ): Uint8Array | undefined {
    const prefix = path.subarray(path.length - length);
    if (child !== undefined && isBranch(child)) {
      this.place(path, child, previous);
      return encodeExtension(prefix, child);
    }
    this.place(path, undefined, previous);
    if (child === undefined) return undefined;
    const short = decodeShort(child);
    return encodeShort({ ...short, nibbles: joinNibbles(prefix, short.nibbles) });
  }

  /** The update of a part of the batch that has one. */
  private onlyOne(from: number, to: number): TrieUpdate | undefined {
    return to - from === 1 ? this.updates[from] : undefined;
  }

  /** @param update the one below this child, where there is but one: most children are its leaf then */
  private branchChild(
    { old, offsets, key, depth }: BranchState,
    nibble: number,
    update?: TrieUpdate,
  ): Uint8Array | undefined {
    const start = offsets[nibble] ?? 0;
    if (old[start] === EMPTY_ITEM) return undefined;
    if (old[start] !== HASH_ITEM) return old.subarray(start, offsets[nibble + 1]);
    const before = update?.before;
    const likely =
      update === undefined || before === undefined
        ? undefined
        : () => encodeLeaf(update.key, depth + 1, before);
    const path = childPath(key, depth, nibble);
    return readNode(this.reader, this.owner, path, old, start + 1, likely);
  }

  /** The child behind an extension's item. */
  private childOf(item: Uint8Array, path: Uint8Array): Uint8Array {
    return item[0] === HASH_ITEM ? readNode(this.reader, this.owner, path, item, 1) : item;
  }

  private putsOf(from: number, to: number): TrieEntry[] {
    const entries: TrieEntry[] = [];
    for (let index = from; index < to; index++) {
      const { key, value, existed } = itemAt(this.updates, index);
      if (existed === true) throw this.mismatch(key);
      if (value !== undefined) entries.push({ key, value });
    }
    return entries;
  }

  /** The trie has a value where the flat state had none, or the other way round. */
  private mismatch(key: Uint8Array): Error {
    const place = `${this.owner || "the accounts"}, key ${bytesToHex(key)}`;
    const reason = `flat state and trie differ in ${place}`;
    return this.reader.damage?.(reason) ?? new TrieError("TRIE_VALUE_MISMATCH", reason);
  }

  private build(entries: readonly TrieEntry[], depth: number): Uint8Array | undefined {
    if (entries.length === 0) return undefined;
    return buildTrie(entries, 0, entries.length, depth, this.emit);
  }

  private place(
    path: Uint8Array,
    node: Uint8Array | undefined,
    previous: Uint8Array | undefined,
  ): void {
    const stored = storedForm(node);
    if (stored === previous) return;
    this.writes.push({ owner: this.owner, path, node: stored, previous });
  }
}

/** The node if it has a place of its own in the store, undefined if its parent embeds it. */
function storedForm(node: Uint8Array | undefined): Uint8Array | undefined {
  return node !== undefined && node.length >= HASHED_NODE_BYTES ? node : undefined;
}

/** The whole key of a leaf `depth` nibbles below the root, from any key that shares its path. */
function leafKey(neighbour: Uint8Array, depth: number, nibbles: Uint8Array): Uint8Array {
  const key = new Uint8Array(TRIE_KEY_BYTES);
  for (let index = 0; index < 2 * TRIE_KEY_BYTES; index++) {
    const nibble = index < depth ? nibbleAt(neighbour, index) : (nibbles[index - depth] ?? 0);
    key[index >>> 1] = ((key[index >>> 1] ?? 0) << 4) | nibble;
  }
  return key;
}
