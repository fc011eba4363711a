/**
 * Contracts that were verified, one file each in the home: whole or absent after a crash. What is in
 * them was proven by compiling, and can be proven again: losing the folder loses no truth.
 */
import { readdirSync, rmSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import type { Address } from "../../chain/address.js";
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { Hash32, Hex } from "../../chain/hex.js";
import { PLAIN_MODE, replaceFile } from "../../runtime/files/durable-file.js";
import { ensureFolder } from "../../runtime/files/folder.js";
import type { Logger } from "../../runtime/process/logger.js";
import { type AbiItem, readAbi } from "../decode/abi-items.js";
import type { CodeMatch } from "./code-match.js";
import { refused } from "./refusal.js";
import type { StandardInput } from "./standard-input.js";

/** How a contract came to be, as its creating transaction shows; proven by the compiled code. */
export interface ProvenCreation {
  readonly transactionHash: Hash32;
  readonly constructorArguments: Hex;
}

/** A contract whose sources are known. */
export interface VerifiedContract {
  readonly address: Address;
  /** keccak-256 of the code that was compared: another code at this address has other sources. */
  readonly codeHash: Hash32;
  readonly match: CodeMatch;
  /** The compiler's own version. */
  readonly compiler: string;
  readonly source: string;
  readonly name: string;
  /** As the compiler wrote it. */
  readonly abi: readonly unknown[];
  readonly input: StandardInput;
  /**
   * Paths of the sources that it is made of. What else was sent was compiled beside it, and nothing proves
   * what is in there. Absent where the compiler wrote no metadata, and in files of former builds.
   */
  readonly parts?: readonly string[] | undefined;
  /** Undefined where another contract created it, or the node no longer has that block's state. */
  readonly creation: ProvenCreation | undefined;
  /** Unix seconds. */
  readonly verifiedAtSeconds: number;
}

/** Bytes of the sources that a contract is not made of; none where that is not known. */
export function sentAlongBytes({
  input,
  parts,
}: Pick<VerifiedContract, "input" | "parts">): number {
  if (parts === undefined) return 0;
  const own = new Set(parts);
  const others = Object.entries(input.sources).filter(([path]) => !own.has(path));
  return others.reduce(
    (sum, [path, { content }]) => sum + Buffer.byteLength(path) + Buffer.byteLength(content),
    0,
  );
}

/** What calls and logs of a contract are read with. */
export interface ContractFace {
  readonly codeHash: Hash32;
  readonly abi: readonly AbiItem[];
}

/** What the store is made of. */
export interface VerifiedStoreOptions {
  /** Folder that nothing but the store writes to. */
  readonly folder: string;
  /** All files together. */
  readonly maxBytes: number;
  readonly log: Logger;
}

/** The form of the files; another one is not read. */
const FORM = 1;

/** Contracts whose files are kept in memory, and for how many addresses it is known that there is none. */
const MAX_KEPT_CHARACTERS = 32 * 1024 * 1024;

/**
 * Characters of an ABI with which calls and logs are read; those of the largest contracts that people wrote
 * have some 100,000. A transaction may be of many contracts, and of all of them together that much is kept.
 */
const MAX_FACE_CHARACTERS = 256 * 1024;
const MAX_FACES_CHARACTERS = 16 * 1024 * 1024;

/**
 * Characters of an ABI. Compilers write structs out wherever they stand: sources of 1 KB have made 8 MB, and
 * a contract's own pages read all of it for each reader.
 */
export const MAX_ABI_CHARACTERS = 1024 * 1024;

/** What remembering that there is none costs. */
const NONE_CHARACTERS = 100;

const FILE_NAME = /^0x[0-9a-f]{40}\.json$/;

interface Kept {
  readonly contract: VerifiedContract | undefined;
}

interface KeptFace {
  readonly face: ContractFace | undefined;
}

/** The files of one folder, and their one writer. */
export class VerifiedStore {
  private readonly kept: LRUCache<Address, Kept>;
  private readonly faces: LRUCache<Address, KeptFace>;
  private reading: Promise<unknown> = Promise.resolve();
  private readonly sizes = new Map<string, number>();
  private totalBytes = 0;
  private writes = 0;

  private constructor(private readonly options: VerifiedStoreOptions) {
    this.kept = new LRUCache({
      maxSize: MAX_KEPT_CHARACTERS,
      sizeCalculation: () => NONE_CHARACTERS,
    });
    this.faces = new LRUCache({
      maxSize: MAX_FACES_CHARACTERS,
      sizeCalculation: () => NONE_CHARACTERS,
    });
  }

  /**
   * Opens the folder, made where it is missing; what a crash left half written is removed.
   * @throws FOLDER_UNUSABLE; the system's fault
   */
  static open(options: VerifiedStoreOptions): VerifiedStore {
    ensureFolder(options.folder);
    const store = new VerifiedStore(options);
    for (const name of readdirSync(options.folder)) {
      const file = join(options.folder, name);
      if (name.startsWith(".") && name.endsWith(".tmp")) rmSync(file, { force: true });
      else if (FILE_NAME.test(name)) store.count(name, statSync(file).size);
    }
    return store;
  }

  /** Grows with every contract that is added: what was made of the store before is old. */
  get generation(): number {
    return this.writes;
  }

  /** The contract of an address, as it was when it was verified. */
  async get(address: Address): Promise<VerifiedContract | undefined> {
    const known = this.kept.get(address);
    if (known !== undefined) return known.contract;
    if (!this.sizes.has(nameOf(address))) return undefined;
    const writes = this.writes;
    const { contract, characters } = await this.load(address);
    // One that was written meanwhile is newer than what was read.
    if (writes === this.writes) this.keep(address, contract, characters);
    return contract;
  }

  /**
   * The part of it that pages of many contracts need, without the sources; undefined where its ABI is too
   * large for them, too.
   */
  async face(address: Address): Promise<ContractFace | undefined> {
    if (!this.sizes.has(nameOf(address))) return undefined;
    const known = this.faces.get(address);
    if (known !== undefined) return known.face;
    const writes = this.writes;
    const contract = this.kept.get(address)?.contract ?? (await this.load(address)).contract;
    const characters = contract === undefined ? 0 : JSON.stringify(contract.abi).length;
    const face =
      contract === undefined || characters > MAX_FACE_CHARACTERS
        ? undefined
        : { codeHash: contract.codeHash, abi: readAbi(contract.abi) };
    if (writes === this.writes) {
      const size = NONE_CHARACTERS + (face === undefined ? 0 : characters);
      this.faces.set(address, { face }, { size });
    }
    return face;
  }

  /** One at a time: a file may have some MiB, and many be asked for at once. */
  private load(
    address: Address,
  ): Promise<{ readonly contract: VerifiedContract | undefined; readonly characters: number }> {
    const loaded = this.reading.then(async () => {
      const text = await this.read(address);
      const contract = text === undefined ? undefined : this.parse(address, text);
      return { contract, characters: text?.length ?? 0 };
    });
    this.reading = loaded.catch(() => undefined);
    return loaded;
  }

  /**
   * Adds a contract, on disk when it resolves. A partial match gives way to an exact one, one of which it is
   * not known what it is made of to one of which it is, and one with more sent along to one with less: who
   * came first must not have his texts beside it for ever. To nothing else.
   * @throws ALREADY_VERIFIED, STORE_FULL; the system's fault
   */
  async put(contract: VerifiedContract): Promise<void> {
    const { address } = contract;
    const former = await this.get(address);
    if (former?.codeHash === contract.codeHash) {
      if (!isBetter(contract, former)) throw refused("ALREADY_VERIFIED", former.match.kind);
    }
    const text = JSON.stringify({ form: FORM, ...contract });
    const sizeBytes = Buffer.byteLength(text);
    const name = nameOf(address);
    if (this.totalBytes - (this.sizes.get(name) ?? 0) + sizeBytes > this.options.maxBytes) {
      throw refused("STORE_FULL", `${this.options.maxBytes / 1024 / 1024} MiB`);
    }
    await replaceFile(join(this.options.folder, name), text, PLAIN_MODE);
    this.count(name, sizeBytes);
    this.writes += 1;
    this.faces.delete(address);
    this.keep(address, contract, text.length);
  }

  private keep(address: Address, contract: VerifiedContract | undefined, characters: number): void {
    this.kept.set(address, { contract }, { size: characters + NONE_CHARACTERS });
  }

  private count(name: string, sizeBytes: number): void {
    this.totalBytes += sizeBytes - (this.sizes.get(name) ?? 0);
    this.sizes.set(name, sizeBytes);
  }

  private async read(address: Address): Promise<string | undefined> {
    try {
      return await readFile(join(this.options.folder, nameOf(address)), "utf8");
    } catch (error) {
      if (errorCode(error) !== "ENOENT") this.complain(address, errorMessage(error));
      return undefined;
    }
  }

  private parse(address: Address, text: string): VerifiedContract | undefined {
    try {
      const found = JSON.parse(text) as VerifiedContract & { readonly form: number };
      if (found.form !== FORM || found.address !== address) {
        this.complain(address, "it is of another form or address");
      } else if (JSON.stringify(found.abi).length > MAX_ABI_CHARACTERS) {
        this.complain(address, "its ABI is too large");
      } else {
        return found;
      }
    } catch (error) {
      this.complain(address, errorMessage(error));
    }
    return undefined;
  }

  private complain(address: Address, reason: string): void {
    this.options.log.warn({ address, reason }, "file of a verified contract cannot be read");
  }
}

/** Whether one takes the place of another of the same code. */
function isBetter(contract: VerifiedContract, former: VerifiedContract): boolean {
  if (contract.match.kind !== "exact") return false;
  if (former.match.kind === "partial") return true;
  if (contract.parts === undefined) return false;
  return former.parts === undefined || sentAlongBytes(contract) < sentAlongBytes(former);
}

function nameOf(address: Address): string {
  return `${address}.json`;
}
