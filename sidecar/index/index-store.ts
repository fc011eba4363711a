/**
 * The index on disk: opening, refusing what is not ours, starting over, and every read of it.
 * All records of a height are written in one batch and never change, so reads need no snapshot.
 */
import { existsSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Address, addressToBytes, bytesToAddress } from "../../chain/address.js";
import { AppError, errorMessage } from "../../chain/errors.js";
import { heightBytes, readHeight } from "../../chain/encoding/height-bytes.js";
import {
  bytesToBigint,
  bytesToHash32,
  type Hash32,
  type Height,
  hexToBytes,
} from "../../chain/hex.js";
import { ensureFolder } from "../../runtime/files/folder.js";
import {
  type LevelRange,
  type LevelStore,
  LevelStoreError,
  type LevelWrite,
  openLevelStore,
} from "../../runtime/files/level-store.js";
import { SidecarError } from "../rosetta/errors.js";
import type { BlockIdentifier } from "../rosetta/identifiers.js";
import type { Quarantine, TransactionPlace } from "./index-reader.js";
import { describeIndexKey, INDEX_FORMAT_VERSION, indexKey, type IndexSpace } from "./key-spaces.js";
import {
  type HolderRecord,
  parseHolder,
  parseHoldings,
  parseQuarantine,
} from "./tokens/token-records.js";

/** Codes of an index that cannot be used. */
export type IndexErrorCode =
  | "INDEX_LOCKED"
  | "INDEX_UNUSABLE"
  | "INDEX_CORRUPT"
  | "INDEX_NEWER"
  | "INDEX_WRONG_NETWORK"
  | "INDEX_FOREIGN"
  | "INDEX_CONTRADICTED"
  | "INDEX_NODE_PRUNED"
  | "INDEX_NODE_UNFIT";

/** An index that cannot be used, with the remedy in its message. */
export class IndexError extends AppError<IndexErrorCode> {}

/** Memory for level's cache; the newest blocks are kept finished elsewhere. */
const CACHE_BYTES = 32 * 1024 * 1024;
const WRITE_BUFFER_BYTES = 32 * 1024 * 1024;

/** Written bare, because a program of any format must be able to read it. */
const FORMAT_KEY = indexKey("meta", Buffer.from("formatVersion"));

/** Bytes written to learn whether the disk has space again: more than level needs to open. */
const PROBE_BYTES = 4 * 1024 * 1024;

/** Names of the texts in the space `meta`. */
export type MetaName = "formatVersion" | "genesisHash" | "registry" | "signedFrom";

/** Height from which on replies tell the hash that validators signed. */
const SIGNED_FROM_KEY = indexKey("meta", Buffer.from("signedFrom"));

/** What is stored of finished replies and their accounts: the bound drops the oldest. */
export interface StoredBlocks {
  readonly oldest: Height;
  readonly bytes: number;
}

/** The index on disk; `open` comes first. */
export class IndexStore {
  private level: LevelStore | undefined;
  private tipBlock: BlockIdentifier | undefined;
  private olderFormat: number | undefined;
  private found: IndexError | undefined;

  constructor(readonly folder: string) {}

  /**
   * Opens the index, a new one where there is none. One of an older format has no tip and is not read: see
   * `outdated`.
   * @throws INDEX_LOCKED, INDEX_UNUSABLE, INDEX_CORRUPT, INDEX_NEWER
   */
  async open(): Promise<void> {
    await rm(this.discarded, { recursive: true, force: true });
    await this.openLevel();
    try {
      await this.checkFormat();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /**
   * An older format, of which nothing but `meta` may be read; undefined where it is this program's. Such an
   * index is still what the older program has: `startOver` once another one can be made.
   */
  outdated(): number | undefined {
    return this.olderFormat;
  }

  /** Throws the index away and begins an empty one; what is read meanwhile fails. */
  async startOver(): Promise<void> {
    await this.close();
    await rm(this.discarded, { recursive: true, force: true });
    // The rename is the one step that counts: a crash leaves either the whole index or none.
    if (existsSync(this.folder)) await rename(this.folder, this.discarded);
    this.found = undefined;
    this.olderFormat = undefined;
    await this.openLevel();
    await this.writeFormat();
    await rm(this.discarded, { recursive: true, force: true });
  }

  /**
   * Writes one batch; with a new tip it is what readers see from then on. After a write that failed
   * nothing is written until `recover` has opened level anew.
   * @throws LevelStoreError WRITE_FAILED
   */
  async commit(writes: readonly LevelWrite[], tip?: BlockIdentifier): Promise<void> {
    // The chain has it all: after a loss of power the index goes on from an earlier block.
    await this.handle.write(writes, { durable: false });
    if (tip !== undefined) this.tipBlock = tip;
  }

  /**
   * Opens level anew, as it never writes again after some faults; only once there is space.
   * @throws INDEX_LOCKED, INDEX_UNUSABLE, INDEX_CORRUPT, INDEX_NEWER, the system's fault while there is
   *   no space
   */
  async recover(): Promise<void> {
    const probe = join(dirname(this.folder), "sidecar.probe");
    try {
      await writeFile(probe, Buffer.alloc(PROBE_BYTES));
    } finally {
      await rm(probe, { force: true });
    }
    const { level } = this;
    this.level = undefined;
    await level?.close();
    await this.openLevel();
    try {
      await this.checkFormat();
    } catch (error) {
      // Not to be written to as long as it does not say what it is.
      await this.close();
      throw error;
    }
  }

  /** False after a step failed that closes the index for a moment: only `recover` helps. */
  isOpen(): boolean {
    return this.level !== undefined;
  }

  /** Damage that a read came upon: nothing of this index is to be served any more. */
  damage(): IndexError | undefined {
    return this.found;
  }

  async close(): Promise<void> {
    const { level } = this;
    this.level = undefined;
    this.tipBlock = undefined;
    await level?.close();
  }

  tip(): BlockIdentifier | undefined {
    return this.tipBlock;
  }

  /** @throws INDEX_CORRUPT where the file is damaged, INDEX_BEHIND while it cannot be read */
  get(key: Buffer): Buffer | undefined {
    const { handle } = this;
    try {
      return handle.get(key);
    } catch (cause) {
      throw this.unreadable(handle, cause);
    }
  }

  /** @throws INDEX_CORRUPT where the file is damaged, INDEX_BEHIND while it cannot be read */
  async *entries(range: LevelRange): AsyncGenerator<[Buffer, Buffer], void> {
    const { handle } = this;
    try {
      yield* handle.entries(range);
    } catch (cause) {
      throw this.unreadable(handle, cause);
    }
  }

  meta(name: MetaName): string | undefined {
    return this.get(indexKey("meta", Buffer.from(name)))?.toString("utf8");
  }

  /** Whether the reply of a block tells the hash that validators signed: it never changes. */
  tellsSigned(height: Height): boolean {
    const isOlder = height < Number(this.meta("signedFrom") ?? 0);
    return !isOlder && this.get(indexKey("unsigned", heightBytes(height))) === undefined;
  }

  hashAt(height: Height): Hash32 | undefined {
    const bytes = this.get(indexKey("heightHash", heightBytes(height)));
    return bytes === undefined ? undefined : bytesToHash32(bytes);
  }

  heightOf(hash: Hash32): Height | undefined {
    const bytes = this.get(indexKey("blockHash", hexToBytes(hash)));
    return bytes === undefined ? undefined : readHeight(bytes, 0);
  }

  placeOf(transactionHash: Hash32): TransactionPlace | undefined {
    const bytes = this.get(indexKey("transaction", hexToBytes(transactionHash)));
    if (bytes === undefined) return undefined;
    return { height: readHeight(bytes, 0), position: bytes.readUInt32BE(8) };
  }

  /** The finished reply with its table; undefined where it was dropped or never was. */
  record(height: Height): Buffer | undefined {
    return this.get(indexKey("block", heightBytes(height)));
  }

  /** Accounts of a block's transactions; undefined where a reply is, or was, and they were not kept. */
  accountsRecord(height: Height): Buffer | undefined {
    return this.get(indexKey("blockAccounts", heightBytes(height)));
  }

  storedBlocks(): StoredBlocks {
    const bytes = this.get(indexKey("storedBlocks"));
    if (bytes === undefined) return { oldest: 0, bytes: 0 };
    return { oldest: readHeight(bytes, 0), bytes: readHeight(bytes, 8) };
  }

  holder(contract: Address, account: Address): HolderRecord | undefined {
    const bytes = this.get(indexKey("holder", addressToBytes(contract), addressToBytes(account)));
    return bytes === undefined ? undefined : parseHolder(bytes);
  }

  /** Known holders after an account in the order of addresses; from the first without one. */
  async holdersAfter(
    contract: Address,
    after: Address | undefined,
    limit: number,
  ): Promise<Address[]> {
    const prefix = addressToBytes(contract);
    const from = after === undefined ? Buffer.alloc(20) : addressToBytes(after);
    const found: Address[] = [];
    const range = {
      from: indexKey("holder", prefix, from),
      to: indexKey("holder", prefix, Buffer.alloc(20, 0xff)),
      limit: limit + 1,
    };
    for await (const [key] of this.entries(range)) {
      const account = bytesToAddress(key.subarray(21));
      if (account !== after && found.length < limit) found.push(account);
    }
    return found;
  }

  /** Account after which the next check of a part of a token's holders begins. */
  holderCursor(contract: Address): Address | undefined {
    const bytes = this.get(indexKey("holderCursor", addressToBytes(contract)));
    return bytes === undefined ? undefined : bytesToAddress(bytes);
  }

  /** Contracts that name the account, with the height of the first operation. */
  holdings(account: Address): ReadonlyMap<Address, Height> {
    return parseHoldings(this.get(indexKey("holding", addressToBytes(account))));
  }

  /** Balance after a height, by the newest change up to it. */
  async balanceAt(contract: Address, account: Address, height: Height): Promise<bigint> {
    const parts = [addressToBytes(contract), addressToBytes(account)];
    const range = {
      from: indexKey("tokenBalance", ...parts, heightBytes(0)),
      to: indexKey("tokenBalance", ...parts, heightBytes(height)),
      reverse: true,
      limit: 1,
    };
    for await (const [, value] of this.entries(range)) return bytesToBigint(value);
    return 0n;
  }

  /** All quarantines by contract. */
  quarantines(): Promise<Map<Address, Quarantine>> {
    return this.byContract("quarantine", parseQuarantine);
  }

  /** Heights from which on Deposits and Withdrawals of a contract count beside equal Transfers. */
  unaccompanied(): Promise<Map<Address, Height>> {
    return this.byContract("unaccompanied", (bytes) => readHeight(bytes, 0));
  }

  /** A whole key space of one value for each contract. */
  private async byContract<Value>(
    space: IndexSpace,
    parse: (bytes: Buffer) => Value,
  ): Promise<Map<Address, Value>> {
    const found = new Map<Address, Value>();
    const range = {
      from: indexKey(space, Buffer.alloc(20)),
      to: indexKey(space, Buffer.alloc(20, 0xff)),
    };
    for await (const [key, value] of this.entries(range)) {
      found.set(bytesToAddress(key.subarray(1)), parse(value));
    }
    return found;
  }

  private async checkFormat(): Promise<void> {
    const text = this.meta("formatVersion");
    const version = text === undefined ? undefined : Number(text);
    if (Number.isNaN(version)) throw this.damaged(`its format is ${text}`);
    if (version !== undefined && version > INDEX_FORMAT_VERSION) {
      throw new IndexError(
        "INDEX_NEWER",
        `the index in ${this.folder} has format ${version}, this program knows up to ` +
          `${INDEX_FORMAT_VERSION}: start the newer program, or delete the folder`,
      );
    }
    const isOlder = version !== undefined && version < INDEX_FORMAT_VERSION;
    this.olderFormat = isOlder ? version : undefined;
    if (version === undefined) await this.writeFormat();
    this.tipBlock = isOlder ? undefined : this.readTip();
    if (isOlder || this.meta("signedFrom") !== undefined) return;
    // Made before blocks told it: replies that were given stay as they are, also those that are made again.
    await this.commit([signedFrom((this.tipBlock?.index ?? -1) + 1)]);
  }

  private get discarded(): string {
    return `${this.folder}.discarded`;
  }

  private get handle(): LevelStore {
    if (this.level === undefined) throw new SidecarError("INDEX_BEHIND", { reason: "opening" });
    return this.level;
  }

  private readTip(): BlockIdentifier | undefined {
    const bytes = this.get(indexKey("tip"));
    if (bytes === undefined) return undefined;
    const index = readHeight(bytes, 0);
    const hash = this.hashAt(index);
    if (hash === undefined) throw this.damaged("its newest block is missing");
    return { index, hash };
  }

  private unreadable(handle: LevelStore, cause: unknown): Error {
    // Closed under a reader, to be opened again or to stop.
    if (this.level !== handle) return new SidecarError("INDEX_BEHIND", { reason: "opening" });
    if (cause instanceof IndexError) return cause;
    // Too many open files, for example: nothing that deleting the index would mend.
    return new SidecarError("INDEX_BEHIND", { reason: errorMessage(cause) }, cause);
  }

  private damaged(reason: string, cause?: unknown): IndexError {
    return new IndexError(
      "INDEX_CORRUPT",
      `the index in ${this.folder} is damaged (${reason}): delete it and it is built anew`,
      { details: { folder: this.folder }, cause },
    );
  }

  private inOwnTerms(fault: LevelStoreError): Error {
    if (fault.code !== "CORRUPT" || this.level === undefined) return fault;
    const { key, reason } = fault.details;
    const record = key instanceof Uint8Array ? `a record of ${describeIndexKey(key)}: ` : "";
    this.found = this.damaged(`${record}${String(reason)}`, fault);
    return this.found;
  }

  private async openLevel(): Promise<void> {
    try {
      // Deposits are read out of it: whatever the process' mask is, only its owner may change it.
      ensureFolder(this.folder);
      this.level = await openLevelStore(this.folder, {
        cacheBytes: CACHE_BYTES,
        writeBufferBytes: WRITE_BUFFER_BYTES,
        formatKey: FORMAT_KEY,
        inOwnTerms: (fault) => this.inOwnTerms(fault),
      });
    } catch (cause) {
      throw this.notOpened(cause);
    }
  }

  private notOpened(cause: unknown): IndexError {
    const code = cause instanceof LevelStoreError ? cause.code : "UNUSABLE";
    const rest = { details: { folder: this.folder }, cause };
    if (code === "LOCKED") {
      const message = `the index in ${this.folder} is in use by another process`;
      return new IndexError("INDEX_LOCKED", message, rest);
    }
    const told = `the index in ${this.folder} cannot be opened (${errorMessage(cause)})`;
    if (code !== "CORRUPT") return new IndexError("INDEX_UNUSABLE", told, rest);
    return new IndexError("INDEX_CORRUPT", `${told}: delete it and it is built anew`, rest);
  }

  private writeFormat(): Promise<void> {
    const format = { key: FORMAT_KEY, value: Buffer.from(String(INDEX_FORMAT_VERSION)) };
    return this.commit([format, signedFrom(0)]);
  }
}

function signedFrom(height: Height): LevelWrite {
  return { key: SIGNED_FROM_KEY, value: Buffer.from(String(height)) };
}
