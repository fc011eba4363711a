/**
 * The nodes of the state's tries, fetched when they are first read. A node is asked for by the
 * proof of a key below it and taken by its hash alone, so that whatever is read follows from a
 * state root that the auditor believes, and no answer of the node has to be.
 */
import { setImmediate as yieldToLoop } from "node:timers/promises";
import type { BatchDBOp, DB } from "@ethereumjs/util";
import { type Address, addressToBytes, bytesToAddress } from "../../chain/address.js";
import { keccak256 } from "../../chain/hashes.js";
import {
  bytesToHash32,
  EMPTY_TRIE_ROOT,
  type Hash32,
  type Height,
  hexToBytes,
} from "../../chain/hex.js";
import { decodeRlp, type RlpItem } from "../../chain/encoding/rlp.js";
import type { AuditNode, ProofQuery, TrieProof } from "./audit-node.js";
import { AuditError } from "./errors.js";
import { decodeTriePath, stepBelow, type TrieStep } from "./trie-path.js";

/** Nodes kept between blocks; some 500 bytes each. */
const MAX_NODES = 400_000;

/** Keys whose proofs are asked for in one request, of accounts and slots. */
const MAX_KEYS = 250;

/** Requests at once: the node answers those for one block by one way through its past. */
const MAX_REQUESTS = 8;

/**
 * Keys tried to find one below a node: a deleted neighbour makes a trie read a node that no key of
 * the block leads to, and 16^6 accounts would have to crowd before this does not suffice.
 */
const MAX_KEY_SEARCH = 2 ** 26;

/** Keys tried between two looks at the other tasks. */
const SEARCH_SLICE = 2 ** 14;

const EMPTY_ROOT = EMPTY_TRIE_ROOT.slice(2);

/** Where a node stands: in the account trie, or in the storage of a contract. */
interface Place {
  readonly owner: Address | undefined;
  /** Nibbles from the root, as hex digits. */
  readonly path: string;
}

/** What is being read just now: its proof brings every node on its way. */
export interface ReadingHint {
  readonly address: Address;
  readonly slot: Hash32 | undefined;
}

/** The database below the tries: contract code and nodes, by hash. */
export class TrieNodes implements DB<string> {
  readonly #node: Pick<AuditNode, "proofs">;
  readonly #signal: AbortSignal;
  readonly #values = new Map<string, Uint8Array>();
  readonly #places = new Map<string, Place>();
  #height: Height = 0;
  #hint: ReadingHint | undefined;
  #fetchedProofs = 0;

  constructor(node: Pick<AuditNode, "proofs">, signal: AbortSignal) {
    this.#node = node;
    this.#signal = signal;
  }

  /** Proofs asked for since the start. */
  get fetchedProofs(): number {
    return this.#fetchedProofs;
  }

  /** From here on what is missing is read from the state of this height, with this root. */
  startFrom(height: Height, stateRoot: Hash32): void {
    if (this.#values.size > MAX_NODES) {
      this.#values.clear();
      this.#places.clear();
    }
    this.#height = height;
    this.#places.set(stateRoot.slice(2), { owner: undefined, path: "" });
  }

  /** The storage of a contract begins at this root. */
  knowStorageRoot(owner: Address, root: Hash32): void {
    this.#places.set(root.slice(2), { owner, path: "" });
  }

  /** Tells what is being read. */
  hint(hint: ReadingHint): void {
    this.#hint = hint;
  }

  /** Fetches what is going to be read and is not here, many proofs in a request. */
  async prefetch(queries: readonly ProofQuery[]): Promise<void> {
    const requests = requestsOf(queries);
    for (let start = 0; start < requests.length; start += MAX_REQUESTS) {
      const some = requests.slice(start, start + MAX_REQUESTS);
      await Promise.all(some.map((request) => this.#fetch(request)));
    }
  }

  /** Whether all nodes on the way of a key are here. @param root of the trie that it is in */
  knows(root: Hash32, key: Uint8Array): boolean {
    if (root === EMPTY_TRIE_ROOT) return true;
    const digits = Buffer.from(keccak256(key)).toString("hex");
    let next: TrieStep | undefined = { reference: root, depth: 0 };
    while (next !== undefined) {
      const node = this.#values.get(next.reference.slice(2));
      if (node === undefined) return false;
      next = stepBelow(node, digits, next.depth);
    }
    return true;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const known = this.#values.get(key);
    // Code has a longer key: who reads it fetches it. An empty trie has no node.
    if (known !== undefined || key.length !== 64 || key === EMPTY_ROOT) return known;
    const place = this.#places.get(key);
    if (place === undefined) throw unproven(`a node ${key} that nothing leads to`);
    await this.#fetch([await this.#queryBelow(place)]);
    const found = this.#values.get(key);
    if (found === undefined) {
      throw unproven(`node ${key} of ${place.owner ?? "the accounts"} at height ${this.#height}`);
    }
    return found;
  }

  put(key: string, value: Uint8Array): Promise<void> {
    this.#values.set(key, value);
    return Promise.resolve();
  }

  /** Nothing is forgotten: a node of an earlier root may be read again. */
  del(): Promise<void> {
    return Promise.resolve();
  }

  batch(operations: BatchDBOp<string>[]): Promise<void> {
    for (const operation of operations) {
      if (operation.type === "put") this.#values.set(operation.key, operation.value);
    }
    return Promise.resolve();
  }

  shallowCopy(): this {
    return this;
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  async #fetch(queries: readonly ProofQuery[]): Promise<void> {
    this.#fetchedProofs += queries.length;
    const proofs = await this.#node.proofs(queries, this.#height);
    for (const proof of proofs) this.#absorb(proof);
  }

  #absorb(proof: TrieProof): void {
    for (const nodes of [proof.account, ...proof.storage]) {
      for (const node of nodes) {
        const key = Buffer.from(keccak256(node)).toString("hex");
        const place = this.#places.get(key);
        // A node that no believed one points to is of no use.
        if (place === undefined) break;
        this.#values.set(key, node);
        this.#placeChildren(decodeRlp(node), place);
      }
    }
  }

  #placeChildren(item: RlpItem | undefined, place: Place): void {
    if (!Array.isArray(item)) return;
    const child = (reference: RlpItem | undefined, nibbles: string) => {
      const below = { owner: place.owner, path: place.path + nibbles };
      if (Array.isArray(reference)) this.#placeChildren(reference, below);
      else if (reference?.length === 32) {
        this.#places.set(Buffer.from(reference).toString("hex"), below);
      }
    };
    if (item.length === 17) {
      item.slice(0, 16).forEach((reference, nibble) => {
        child(reference, nibble.toString(16));
      });
      return;
    }
    const [encoded, reference] = item;
    if (!(encoded instanceof Uint8Array)) return;
    const { isLeaf, digits } = decodeTriePath(encoded);
    if (!isLeaf) child(reference, digits);
  }

  /** A key whose proof passes the place: the one that is being read, else one that is searched. */
  async #queryBelow({ owner, path }: Place): Promise<ProofQuery> {
    const hint = this.#hint;
    if (owner === undefined) {
      const isHinted = hint !== undefined && leadsTo(path, addressToBytes(hint.address));
      const address = isHinted ? hint.address : bytesToAddress(await this.#searchKey(path, 20));
      return { address, slots: [] };
    }
    const slot = hint?.address === owner ? hint.slot : undefined;
    const isHinted = slot !== undefined && leadsTo(path, hexToBytes(slot));
    const key = isHinted ? slot : bytesToHash32(await this.#searchKey(path, 32));
    return { address: owner, slots: [key] };
  }

  async #searchKey(path: string, sizeBytes: number): Promise<Uint8Array> {
    const key = new Uint8Array(sizeBytes);
    const view = new DataView(key.buffer);
    for (let count = 0; count < MAX_KEY_SEARCH; count++) {
      view.setUint32(sizeBytes - 4, count);
      if (leadsTo(path, key)) return key;
      if (count % SEARCH_SLICE === SEARCH_SLICE - 1) {
        await yieldToLoop();
        this.#signal.throwIfAborted();
      }
    }
    throw unproven(`a node ${path.length} steps below its root`);
  }
}

/** Lists of at most MAX_KEYS accounts and slots; an account with many slots is in several. */
function requestsOf(queries: readonly ProofQuery[]): ProofQuery[][] {
  const requests: ProofQuery[][] = [];
  let request: ProofQuery[] = [];
  let keys = 0;
  const add = (query: ProofQuery) => {
    const count = 1 + query.slots.length;
    if (keys + count > MAX_KEYS && keys > 0) {
      requests.push(request);
      [request, keys] = [[], 0];
    }
    request.push(query);
    keys += count;
  };
  for (const { address, slots } of queries) {
    for (let start = 0; start === 0 || start < slots.length; start += MAX_KEYS - 1) {
      add({ address, slots: slots.slice(start, start + MAX_KEYS - 1) });
    }
  }
  if (keys > 0) requests.push(request);
  return requests;
}

function leadsTo(path: string, key: Uint8Array): boolean {
  return Buffer.from(keccak256(key)).toString("hex").startsWith(path);
}

function unproven(what: string): AuditError {
  return new AuditError("STATE_UNPROVEN", `The node's proofs do not lead to ${what}.`);
}
