/** How tries and their store meet: nodes by owner and path, in their latest version. */

/** Where nodes are read: the store of the committed head, a cache over it, or a past version. */
export interface TrieNodeReader {
  /**
   * RLP of the node stored at (owner, path); undefined where there is none. Synchronous. The bytes
   * must not be changed by anyone afterwards.
   * @param owner "" for the accounts, "m" for the modules, else the 0x address of a storage trie
   * @param path nibbles from the root, one per byte; the reader may keep the array
   * @param parent bytes in which the node is named, and where its keccak256 begins in them: what
   * comes from a store is held against it, so that no version but the right one is believed
   * @param likely makes what the node is by all that is known of it; a reader may give this instead
   * of reading, where the parent names it
   */
  get(
    owner: string,
    path: Uint8Array,
    parent?: Uint8Array,
    hashOffset?: number,
    likely?: () => Uint8Array,
  ): Uint8Array | undefined;
  /** The error for a store that contradicts itself; undefined where there is no store. */
  damage?(reason: string): Error;
}

/** What must be written at one place of the node store. */
export interface TrieWrite {
  readonly owner: string;
  /** Nibbles from the root, one per byte. */
  readonly path: Uint8Array;
  /** The node's RLP; undefined = nothing is stored here any more. */
  readonly node: Uint8Array | undefined;
  /** What the reader held here before: the reverse diff that proofs of older roots need. */
  readonly previous: Uint8Array | undefined;
}
