/** Pure: one block by the asserter's rules, and what it says each balance changed by. */
import {
  type AnswerObject,
  readCount,
  readDecimal,
  readList,
  readObject,
  readOptional,
  readString,
} from "../../rpc-client/answer-fields.js";
import type { FaultList, MeshFault, MeshFaultCode } from "./faults.js";
import {
  type CurrencyIdentity,
  type Identity,
  parseAccountIdentity,
  parseCurrencyIdentity,
} from "./identity.js";
import type { Allowed } from "./options-check.js";

/** A block's place and name. */
export interface BlockId {
  readonly index: number;
  readonly hash: string;
}

/** One account's change of one currency in a block; zero where only its name appears. */
export interface BlockDelta {
  readonly account: Identity;
  readonly currency: CurrencyIdentity;
  readonly delta: bigint;
}

/** A block that was held against the rules. */
export interface CheckedBlock {
  readonly id: BlockId;
  readonly parent: BlockId;
  readonly timestampMs: number;
  /** Hashes of mined transactions in order; the block-level one, named by the block, left out. */
  readonly transactionHashes: readonly string[];
  /** Key of account and currency -> its change. */
  readonly deltas: ReadonlyMap<string, BlockDelta>;
  readonly operationCount: number;
  /** "TYPE STATUS" -> number of operations. */
  readonly operationKinds: ReadonlyMap<string, number>;
  /** Contracts of tokens whose operations the block says it leaves out. */
  readonly leftOut: readonly string[];
  /** True when the block's metadata told what was minted and burned, so that it could be held. */
  readonly hasSupply: boolean;
}

/** Earliest and latest timestamps that the asserter takes, ms. */
const EARLIEST_MS = 946_713_600_000;
const LATEST_MS = 2_209_017_600_000;

/** Separates account and currency in a key; JSON never holds it bare. */
const KEY_SEPARATOR = "\n";

/** Key of an account's balance in one currency. */
export function balanceKey(account: Identity, currency: Identity): string {
  return `${account.key}${KEY_SEPARATOR}${currency.key}`;
}

/** Untrusted `BlockIdentifier`. Throws BAD_ANSWER. */
export function parseBlockId(value: unknown, name: string): BlockId {
  const id = readObject(value, name);
  return {
    index: readCount(id["index"], `${name}.index`),
    hash: readString(id["hash"], `${name}.hash`),
  };
}

/**
 * Untrusted `Block`, its further transactions already put behind the others. Rules that are broken
 * become faults of `index`, the block that was asked for; a shape that cannot be read throws
 * BAD_ANSWER.
 */
export function checkBlock(
  value: unknown,
  context: { readonly index: number; readonly allowed: Allowed; readonly faults: FaultList },
): CheckedBlock {
  return new BlockCheck(context.index, context.allowed, context.faults).run(value);
}

class BlockCheck {
  readonly #deltas = new Map<string, Mutable<BlockDelta>>();
  readonly #kinds = new Map<string, number>();
  #operationCount = 0;

  constructor(
    private readonly index: number,
    private readonly allowed: Allowed,
    private readonly faults: FaultList,
  ) {}

  run(value: unknown): CheckedBlock {
    const block = readObject(value, "block");
    const id = parseBlockId(block["block_identifier"], "block_identifier");
    const parent = parseBlockId(block["parent_block_identifier"], "parent_block_identifier");
    const timestampMs = readCount(block["timestamp"], "timestamp");
    this.checkIdentifiers(id, parent);
    this.checkTimestamp(timestampMs);
    const hashes = readList(block["transactions"], "transactions").map((entry) =>
      this.transaction(readObject(entry, "transaction")),
    );
    const seen = new Set<string>();
    for (const transaction of hashes) {
      if (seen.has(transaction)) {
        const message = `transaction ${transaction} appears twice`;
        this.fault("DUPLICATE_TRANSACTION", message, { transaction });
      }
      seen.add(transaction);
    }
    return {
      id,
      parent,
      timestampMs,
      transactionHashes: hashes.filter((hash) => hash !== id.hash),
      deltas: this.#deltas,
      operationCount: this.#operationCount,
      operationKinds: this.#kinds,
      leftOut: leftOutOf(block),
      hasSupply: this.checkSupply(block),
    };
  }

  private checkIdentifiers(id: BlockId, parent: BlockId): void {
    if (id.index !== this.index) {
      this.fault("BLOCK_IDENTIFIER", `block ${id.index} was answered for ${this.index}`);
    }
    if (id.hash === "") this.fault("BLOCK_IDENTIFIER", "the hash is empty");
    this.checkCase(id.hash, "block hash", this.allowed.blockHashCase);
    this.checkCase(parent.hash, "parent hash", this.allowed.blockHashCase);
    if (id.index === 0) {
      if (parent.index !== 0 || parent.hash !== id.hash) {
        this.fault("PARENT_BLOCK", "block 0 is not its own parent");
      }
      return;
    }
    if (parent.index !== id.index - 1) {
      this.fault("PARENT_BLOCK", `its parent has index ${parent.index}`);
    }
    if (parent.hash === id.hash) this.fault("PARENT_BLOCK", "it is its own parent");
  }

  private checkTimestamp(timestampMs: number): void {
    if (this.index < this.allowed.timestampStartIndex) return;
    if (timestampMs >= EARLIEST_MS && timestampMs <= LATEST_MS) return;
    this.fault("TIMESTAMP", `timestamp ${timestampMs} is not between 2000 and 2040`);
  }

  private checkCase(text: string, what: string, expected: string | undefined): void {
    const isLower = expected !== "lower_case" || text === text.toLowerCase();
    const isUpper = expected !== "upper_case" || text === text.toUpperCase();
    if (!isLower || !isUpper) this.fault("HASH_CASE", `${what} ${text} is not ${expected}`);
  }

  private transaction(transaction: AnswerObject): string {
    const id = readObject(transaction["transaction_identifier"], "transaction_identifier");
    const hash = readString(id["hash"], "transaction hash");
    const place = { transaction: hash };
    if (hash === "") this.fault("BLOCK_MALFORMED", "a transaction has no hash");
    this.checkCase(hash, "transaction hash", this.allowed.transactionHashCase);
    readList(transaction["operations"], "operations").forEach((entry, position) => {
      this.operation(readObject(entry, "operation"), position, place);
    });
    return hash;
  }

  private operation(operation: AnswerObject, position: number, place: Place): void {
    this.#operationCount += 1;
    const identifier = readObject(operation["operation_identifier"], "operation_identifier");
    const index = readCount(identifier["index"], "operation index");
    if (index !== position) {
      const message = `the operation at position ${position} has index ${index}`;
      this.fault("OPERATION_INDEX", message, place);
    }
    this.checkRelated(operation["related_operations"], index, place);
    const type = readString(operation["type"], "operation type");
    if (!this.allowed.types.has(type)) {
      this.fault("OPERATION_TYPE", `type ${type} is not in /network/options`, place);
    }
    const status = readOptional(operation["status"], "operation status", readString) ?? "";
    const isSuccessful = this.allowed.statuses.get(status);
    if (isSuccessful === undefined) {
      this.fault("OPERATION_STATUS", `status "${status}" is not in /network/options`, place);
    }
    const kind = `${type} ${status}`;
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + 1);
    const amount = readOptional(operation["amount"], "amount", readObject);
    if (amount === undefined) return;
    if (operation["account"] === undefined) {
      this.fault("OPERATION_AMOUNT", `operation ${index} has an amount and no account`, place);
      return;
    }
    const value = readDecimal(amount["value"], "amount value");
    this.add({
      account: parseAccountIdentity(operation["account"]),
      currency: parseCurrencyIdentity(amount["currency"]),
      delta: isSuccessful === true ? value : 0n,
    });
  }

  private checkRelated(value: unknown, index: number, place: Place): void {
    const related = (readOptional(value, "related_operations", readList) ?? []).map((entry) =>
      readCount(readObject(entry, "related operation")["index"], "related index"),
    );
    if (related.some((other) => other >= index) || new Set(related).size < related.length) {
      const message = `operation ${index} is related to ${related.join(", ")}`;
      this.fault("RELATED_OPERATION", message, place);
    }
  }

  private add({ account, currency, delta }: BlockDelta): void {
    const key = balanceKey(account, currency);
    const known = this.#deltas.get(key);
    if (known === undefined) this.#deltas.set(key, { account, currency, delta });
    else known.delta += delta;
  }

  /** The native operations of a block must add up to what it minted less what it burned. */
  private checkSupply(block: AnswerObject): boolean {
    const metadata = readOptional(block["metadata"], "metadata", readObject);
    const minted = readOptional(metadata?.["minted"], "minted", readDecimal);
    const burned = readOptional(metadata?.["burned"], "burned", readDecimal);
    if (minted === undefined || burned === undefined) {
      if (minted !== burned) this.fault("SUPPLY", "of minted and burned only one is told");
      return false;
    }
    let sum = 0n;
    for (const { currency, delta } of this.#deltas.values()) if (currency.isNative) sum += delta;
    if (sum !== minted - burned) {
      const supply = `minted ${minted} - burned ${burned} = ${minted - burned}`;
      this.fault("SUPPLY", `the operations add up to ${sum}, but ${supply}`);
    }
    return true;
  }

  private fault(code: MeshFaultCode, message: string, place: Place = {}): void {
    this.faults.add({ code, blockIndex: this.index, message, ...place });
  }
}

/** The sidecar's own field; other servers have none. */
function leftOutOf(block: AnswerObject): string[] {
  const metadata = readOptional(block["metadata"], "metadata", readObject);
  const contracts = readOptional(metadata?.["quarantined"], "quarantined", readList) ?? [];
  return contracts.map((contract) => readString(contract, "quarantined"));
}

type Place = Pick<MeshFault, "transaction">;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
