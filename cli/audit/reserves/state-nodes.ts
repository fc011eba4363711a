/**
 * Nodes of one state's trie, each kept once, and the way of an account through them. A node is found by its
 * hash alone: what is read follows from a root that somebody believes.
 */
import { type Address, addressToBytes } from "../../../chain/address.js";
import { decodeRlp, type RlpItem } from "../../../chain/encoding/rlp.js";
import { keccak256, keccak256Hex } from "../../../chain/hashes.js";
import { bytesToHash32, type Hash32 } from "../../../chain/hex.js";
import { decodeTriePath } from "../trie-path.js";

/** A set of nodes. Proofs of many accounts share most of theirs. */
export class StateNodes {
  readonly #nodes = new Map<Hash32, Uint8Array>();

  /** How many there are. */
  get size(): number {
    return this.#nodes.size;
  }

  add(node: Uint8Array): void {
    this.#nodes.set(keccak256Hex(node), node);
  }

  /** All, in the order in which they came. */
  values(): IterableIterator<Uint8Array> {
    return this.#nodes.values();
  }

  /**
   * Nodes on the way to an account, root first, as far as they are here: the proof of what the account is,
   * or that it is not there, for whoever verifies proofs.
   */
  wayTo(address: Address, root: Hash32): Uint8Array[] {
    const digits = Buffer.from(keccak256(addressToBytes(address))).toString("hex");
    const way: Uint8Array[] = [];
    let next: Step | undefined = { reference: root, depth: 0 };
    while (next !== undefined) {
      const node = this.#nodes.get(next.reference);
      if (node === undefined) break;
      way.push(node);
      next = stepBelow(node, digits, next.depth);
    }
    return way;
  }
}

/** A node that is named by its hash, and how many digits of the key stand above it. */
interface Step {
  readonly reference: Hash32;
  readonly depth: number;
}

/** Undefined where the way ends: at a value, at nothing, or at what is no node. */
function stepBelow(node: Uint8Array, digits: string, depth: number): Step | undefined {
  const item = listOf(node);
  if (item?.length === 17) {
    return stepTo(item[Number.parseInt(digits.charAt(depth), 16)], depth + 1);
  }
  const [encoded, child] = item ?? [];
  if (item?.length !== 2 || !(encoded instanceof Uint8Array)) return undefined;
  const path = decodeTriePath(encoded);
  if (path.isLeaf || !digits.startsWith(path.digits, depth)) return undefined;
  return stepTo(child, depth + path.digits.length);
}

/** A node of fewer than 32 bytes stands in its parent, and comes with it. */
function stepTo(child: RlpItem | undefined, depth: number): Step | undefined {
  if (!(child instanceof Uint8Array) || child.length !== 32) return undefined;
  return { reference: bytesToHash32(child), depth };
}

function listOf(node: Uint8Array): RlpItem[] | undefined {
  try {
    const item = decodeRlp(node);
    return Array.isArray(item) ? item : undefined;
  } catch {
    return undefined; // Whoever verifies the way says what is wrong with it.
  }
}
