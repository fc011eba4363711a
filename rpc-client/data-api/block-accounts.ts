/**
 * What `/call block_accounts` of the sidecar tells: which accounts each transaction of a block names.
 * The transactions of a reader's own accounts are asked for by their positions (transaction-fetch.ts).
 */
import { type Address, bytesToAddress } from "../../chain/address.js";
import { type AddressPrefixes, addressPrefixOfBytes } from "../../chain/address-prefixes.js";
import type { Height } from "../../chain/hex.js";
import { type AnswerObject, readList, readObject, readString } from "../answer-fields.js";
import { badAnswer } from "../errors.js";
import { type DataBlock, type DataTransaction, parseBlockHead, parseJson } from "./data-block.js";
import type { TransactionFetch } from "./transaction-fetch.js";

const ADDRESS_BYTES = 20;
const NUMBER_BYTES = 4;

/**
 * The blocks of an answer: from the first height on, without gaps.
 * @param range heights that were asked for
 * @throws BAD_ANSWER
 */
export function parseAccountBlocks(
  body: Buffer,
  range: { readonly from: Height; readonly to: Height },
  fetch: TransactionFetch,
): readonly DataBlock[] {
  const answer = readObject(parseJson(body.toString("utf8")), "answer");
  const result = readObject(answer["result"], "result");
  const blocks = readList(result["blocks"], "blocks").map((value) =>
    parseBlock(readObject(value, "block"), fetch),
  );
  const isInOrder = blocks.every(({ height }, index) => height === range.from + index);
  if (blocks.length === 0 || blocks.length > range.to - range.from + 1 || !isInOrder) {
    throw badAnswer("other blocks than were asked for");
  }
  return blocks;
}

function parseBlock(block: AnswerObject, fetch: TransactionFetch): DataBlock {
  const head = parseBlockHead(block);
  const named = new NamedAccounts(
    readBase64(block["accounts"], "accounts"),
    readBase64(block["transactions"], "transactions"),
  );
  return {
    ...head,
    transactionCount: named.transactionCount,
    accountCount: named.accountCount,
    sizeBytes: named.sizeBytes,
    async transactions(concerns, { among, signal }) {
      const positions = named.concerning(concerns, among);
      if (positions.length === 0) return [];
      const transactions = await fetch.transactions(head, positions, signal);
      for (const transaction of transactions) assertAccounts(transaction, named);
      return transactions;
    },
    addresses: () => named.addresses(),
  };
}

/** A transaction names the accounts that the block's record says: two answers, one truth. */
function assertAccounts({ index, operations }: DataTransaction, named: NamedAccounts): void {
  const wanted = new Set(named.accountsOf(index));
  const found = new Set(operations.map(({ address }) => address));
  if (wanted.size === found.size && [...found].every((address) => wanted.has(address))) return;
  throw badAnswer(`transaction ${index} names other accounts than its block's record`);
}

/** Bytes of base64 in its one spelling. */
function readBase64(value: unknown, name: string): Buffer {
  const text = readString(value, name);
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") !== text) throw badAnswer(`${name} is not base64`);
  return bytes;
}

/** Accounts of a block and the transactions that name them, as numbers. */
class NamedAccounts {
  readonly accountCount: number;
  /** Where each transaction's numbers begin. */
  readonly #starts: number[] = [];
  /** For each transaction its count, then positions of accounts. */
  readonly #numbers: Uint32Array;
  readonly #size: number;

  /** @throws BAD_ANSWER where the numbers do not fit each other */
  constructor(
    private readonly accounts: Buffer,
    bytes: Buffer,
  ) {
    this.#size = accounts.length / ADDRESS_BYTES;
    if (!Number.isInteger(this.#size) || bytes.length % NUMBER_BYTES !== 0) {
      throw badAnswer("accounts or numbers are cut off");
    }
    const numbers = new Uint32Array(bytes.length / NUMBER_BYTES);
    for (let at = 0; at < numbers.length; at += 1) {
      numbers[at] = bytes.readUInt32BE(at * NUMBER_BYTES);
    }
    this.#numbers = numbers;
    for (let at = 0, next = 0; at < numbers.length; at = next) {
      this.#starts.push(at);
      next = this.#behind(at);
      if (next > numbers.length) throw badAnswer("the numbers break off");
      for (let place = at + 1; place < next; place += 1) {
        if ((numbers[place] ?? 0) >= this.#size) throw badAnswer("an account that is not there");
      }
    }
    this.accountCount = numbers.length - this.#starts.length;
  }

  get transactionCount(): number {
    return this.#starts.length;
  }

  get sizeBytes(): number {
    return this.accounts.length + this.#numbers.byteLength;
  }

  /** Positions of the transactions that name an account for which `concerns` is true; ascending. */
  concerning(concerns: (address: Address) => boolean, among?: AddressPrefixes): number[] {
    const wanted = new Set<number>();
    for (let position = 0; position < this.#size; position += 1) {
      const prefix = addressPrefixOfBytes(this.accounts, position * ADDRESS_BYTES);
      if (among?.mayHave(prefix) === false) continue;
      if (concerns(this.#accountAt(position))) wanted.add(position);
    }
    if (wanted.size === 0) return [];
    return this.#starts.flatMap((start, index) =>
      this.#namedAt(start).some((position) => wanted.has(position)) ? [index] : [],
    );
  }

  /** Accounts that a transaction names; none for a position that the block has not. */
  accountsOf(index: number): readonly Address[] {
    const start = this.#starts[index];
    if (start === undefined) return [];
    return Array.from(this.#namedAt(start), (position) => this.#accountAt(position));
  }

  /** All accounts. */
  addresses(): ReadonlySet<Address> {
    return new Set(Array.from({ length: this.#size }, (_, position) => this.#accountAt(position)));
  }

  #accountAt(position: number): Address {
    const start = position * ADDRESS_BYTES;
    return bytesToAddress(this.accounts.subarray(start, start + ADDRESS_BYTES));
  }

  /** Positions of the accounts of the transaction whose numbers begin here. */
  #namedAt(start: number): Uint32Array {
    return this.#numbers.subarray(start + 1, this.#behind(start));
  }

  /** Where the transaction's numbers end that begin here. */
  #behind(at: number): number {
    return at + 1 + (this.#numbers[at] ?? 0);
  }
}
