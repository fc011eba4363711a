/** State for @ethereumjs/vm, read through proofs, that remembers which balances a step changed. */
import type { Common } from "@ethereumjs/common";
import { MerklePatriciaTrie } from "@ethereumjs/mpt";
import { MerkleStateManager } from "@ethereumjs/statemanager";
import { Account, type Address as LibraryAddress } from "@ethereumjs/util";
import { type Address, addressToBytes, bytesToAddress } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import {
  bytesToHash32,
  EMPTY_TRIE_ROOT,
  type Hash32,
  type Height,
  hexToBytes,
} from "../../chain/hex.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";
import type { Atoken } from "../../chain/units.js";
import type { AuditNode, ProofQuery } from "./audit-node.js";
import { toLibraryAddress } from "./chain-rules.js";
import { AuditError } from "./errors.js";
import { TrieNodes } from "./trie-nodes.js";

/** Prefix of code among the trie's nodes, as the library writes it. */
const CODE_PREFIX = Buffer.from("c", "ascii");

/** The library's state manager over nodes that are fetched and proven when they are read. */
export class ProvenState extends MerkleStateManager {
  readonly nodes: TrieNodes;
  readonly #node: Pick<AuditNode, "code">;
  readonly #before = new Map<Address, bigint>();
  #height: Height = 0;
  #stateRoot: Hash32 = EMPTY_TRIE_ROOT;

  constructor(
    node: Pick<AuditNode, "proofs" | "code">,
    options: { readonly common: Common; readonly signal: AbortSignal },
  ) {
    const { common, signal } = options;
    const nodes = new TrieNodes(node, signal);
    super({ common, trie: new MerklePatriciaTrie({ useKeyHashing: true, common, db: nodes }) });
    this.nodes = nodes;
    this.#node = node;
  }

  /** The state after the block of this height, which has this root. */
  async startFrom(height: Height, stateRoot: Hash32): Promise<void> {
    this.#height = height;
    this.#stateRoot = stateRoot;
    this.nodes.startFrom(height, stateRoot);
    await this.setStateRoot(Buffer.from(stateRoot.slice(2), "hex"), true);
    this.#before.clear();
  }

  /** Fetches what a block is going to read, as far as it is not here, in few requests. */
  async prefetch(queries: readonly ProofQuery[]): Promise<void> {
    const root = this.#stateRoot;
    const missing = queries.filter(
      ({ address }) => !this.nodes.knows(root, addressToBytes(address)),
    );
    await this.nodes.prefetch(missing.map(({ address }) => ({ address, slots: [] })));
    const ofStorage: ProofQuery[] = [];
    for (const { address, slots } of queries) {
      if (slots.length === 0) continue;
      // Tells the nodes where its storage begins.
      const account = await this.getAccount(toLibraryAddress(address));
      if (account === undefined) continue;
      const storageRoot = bytesToHash32(account.storageRoot);
      const unknown = slots.filter((slot) => !this.nodes.knows(storageRoot, hexToBytes(slot)));
      if (unknown.length > 0) ofStorage.push({ address, slots: unknown });
    }
    await this.nodes.prefetch(ofStorage);
  }

  override async getAccount(address: LibraryAddress): Promise<Account | undefined> {
    const owner = this.#hint(address);
    const account = await super.getAccount(address);
    const root = account === undefined ? EMPTY_TRIE_ROOT : bytesToHash32(account.storageRoot);
    if (root !== EMPTY_TRIE_ROOT) this.nodes.knowStorageRoot(owner, root);
    return account;
  }

  override async putAccount(address: LibraryAddress, account?: Account): Promise<void> {
    await this.#remember(address);
    this.#hint(address);
    await super.putAccount(address, account);
  }

  override async deleteAccount(address: LibraryAddress): Promise<void> {
    await this.#remember(address);
    this.#hint(address);
    await super.deleteAccount(address);
  }

  override async getStorage(address: LibraryAddress, key: Uint8Array): Promise<Uint8Array> {
    await this.getAccount(address);
    this.#hint(address, bytesToHash32(key));
    return super.getStorage(address, key);
  }

  override async putStorage(
    address: LibraryAddress,
    key: Uint8Array,
    value: Uint8Array,
  ): Promise<void> {
    await this.getAccount(address);
    this.#hint(address, bytesToHash32(key));
    await super.putStorage(address, key, value);
  }

  /** The library's own waits for ever when a node of the trie cannot be read. */
  override async _writeContractStorage(
    address: LibraryAddress,
    account: Account,
    key: Uint8Array,
    value: Uint8Array,
  ): Promise<void> {
    const trie = this["_getStorageTrie"](address, account);
    if (value.length > 0) await trie.put(key, encodeRlp(value));
    else await trie.del(key);
    account.storageRoot = trie.root();
    await this.putAccount(address, account);
  }

  /** Code comes from the node and is taken by its hash. */
  override async getCode(address: LibraryAddress): Promise<Uint8Array> {
    const code = await super.getCode(address);
    const account = code.length > 0 ? undefined : await this.getAccount(address);
    if (account?.isContract() !== true) return code;
    const owner = bytesToAddress(address.bytes);
    const fetched = await this.#node.code(owner, this.#height);
    if (keccak256Hex(fetched) !== bytesToHash32(account.codeHash)) {
      const message = `The node's code of ${owner} is not that of its account.`;
      throw new AuditError("STATE_UNPROVEN", message);
    }
    await this["_trie"].database().put(Buffer.concat([CODE_PREFIX, account.codeHash]), fetched);
    return fetched;
  }

  override async getCodeSize(address: LibraryAddress): Promise<number> {
    return (await this.getCode(address)).length;
  }

  /**
   * Adds to a balance (or takes from it); an account that is left empty ceases to be.
   * @returns what the account would owe, atoken: where that is more than 0, nothing was moved
   */
  async move(address: LibraryAddress, deltaAtoken: Atoken): Promise<Atoken> {
    if (deltaAtoken === 0n) return 0n;
    const account = (await this.getAccount(address)) ?? new Account();
    const balanceAtoken = account.balance + deltaAtoken;
    if (balanceAtoken < 0n) return -balanceAtoken;
    account.balance = balanceAtoken;
    if (account.isEmpty()) await this.deleteAccount(address);
    else await this.putAccount(address, account);
    return 0n;
  }

  /** Balances that changed since the last call, by how much; the rest is forgotten. */
  async takeChanges(
    toLibrary: (address: Address) => LibraryAddress,
  ): Promise<Map<Address, bigint>> {
    const changes = new Map<Address, bigint>();
    for (const [address, beforeAtoken] of this.#before) {
      const afterAtoken = (await this.getAccount(toLibrary(address)))?.balance ?? 0n;
      if (afterAtoken !== beforeAtoken) changes.set(address, afterAtoken - beforeAtoken);
    }
    this.#before.clear();
    return changes;
  }

  async #remember(address: LibraryAddress): Promise<void> {
    const key = bytesToAddress(address.bytes);
    if (this.#before.has(key)) return;
    this.#before.set(key, (await this.getAccount(address))?.balance ?? 0n);
  }

  #hint(address: LibraryAddress, slot?: Hash32): Address {
    const owner = bytesToAddress(address.bytes);
    this.nodes.hint({ address: owner, slot });
    return owner;
  }
}
