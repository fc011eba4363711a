/**
 * Nodes of one state's trie, each kept once, and the way of an account through them. A node is found by its
 * hash alone: what is read follows from a root that somebody believes.
 */
import { type Address, addressToBytes } from "../../../chain/address.js";
import { keccak256, keccak256Hex } from "../../../chain/hashes.js";
import type { Hash32 } from "../../../chain/hex.js";
import { stepBelow, type TrieStep } from "../trie-path.js";

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
    let next: TrieStep | undefined = { reference: root, depth: 0 };
    while (next !== undefined) {
      const node = this.#nodes.get(next.reference);
      if (node === undefined) break;
      way.push(node);
      next = stepBelow(node, digits, next.depth);
    }
    return way;
  }
}
