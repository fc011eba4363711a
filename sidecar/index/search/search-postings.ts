/**
 * Pure: which properties a block's transactions have, as writes of the search index. A term is a
 * property (an account, a type, a status, a currency, or being a transaction at all); its newest
 * chunk, the head, grows in place, and is put beside the older ones when it is full. So one block
 * costs one small record per term, however many of its transactions have it.
 */
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import type { Height } from "../../../chain/hex.js";
import type { LevelWrite } from "../../../runtime/files/level-store.js";
import type { Currency } from "../../rosetta/identifiers.js";
import type { RosettaBlock, RosettaTransaction } from "../../rosetta/operations.js";
import type { AccountIdentifier } from "../../rosetta/sub-accounts.js";
import { indexKey } from "../key-spaces.js";
import {
  decodeChunk,
  encodeChunk,
  extendChunk,
  type PostingChunk,
  pushIndex,
  startChunk,
} from "./posting-codec.js";

/** A property of transactions as bytes: field, length of the value, value. */
export type SearchTerm = Buffer & { readonly __brand: "SearchTerm" };

/**
 * Bytes of entries at which a head is full: about 25 blocks of a plain account, so that a page
 * reads few chunks, while rewriting a head in every block stays cheap.
 */
const FULL_HEAD_BYTES = 128;

/** Every transaction. */
export const ANY_TRANSACTION: SearchTerm = termOf(0x00, Buffer.alloc(0));

/** Transactions with an operation on the address or on any of its sub-accounts. */
export function addressTerm(address: string): SearchTerm {
  return termOf(0x01, Buffer.from(address.slice(2), "hex"));
}

/** Transactions with an operation on a sub-account. */
export function subAccountTerm(account: AccountIdentifier): SearchTerm {
  const { address, sub_account: sub } = account;
  const name = Buffer.from(`${sub?.address ?? ""}/${sub?.metadata?.validator ?? ""}`, "utf8");
  return termOf(0x05, Buffer.concat([Buffer.from(address.slice(2), "hex"), name]));
}

/** Transactions that name the address with sub-accounts only. */
export function subAccountsOnlyTerm(address: string): SearchTerm {
  return termOf(0x06, Buffer.from(address.slice(2), "hex"));
}

/** Transactions with an operation of the type. */
export function typeTerm(type: string): SearchTerm {
  return termOf(0x02, Buffer.from(type, "utf8"));
}

/** Transactions with an operation of the status. */
export function statusTerm(status: string): SearchTerm {
  return termOf(0x03, Buffer.from(status, "utf8"));
}

/** Transactions with an operation in the currency. */
export function currencyTerm(currency: Currency): SearchTerm {
  return currencyTermOf(currencyName(currency));
}

/** A token's contract, the validator of shares, the symbol of claims, or nothing for TOKEN. */
function currencyName({ symbol, metadata }: Currency): string {
  const named = metadata?.contractAddress ?? metadata?.validator;
  return named ?? (metadata === undefined ? "" : symbol);
}

function currencyTermOf(name: string): SearchTerm {
  const isContract = name.startsWith("0x");
  return termOf(0x04, isContract ? Buffer.from(name.slice(2), "hex") : Buffer.from(name, "utf8"));
}

/** Key of a term's newest chunk. */
export function headKey(term: SearchTerm): Buffer {
  return indexKey("postingHead", term);
}

/** Key of the older chunk whose oldest entry has the height: newest first. */
export function chunkKey(term: SearchTerm, first: Height): Buffer {
  const newestFirst = heightBytes(Number.MAX_SAFE_INTEGER - first);
  return indexKey("postingChunk", term, newestFirst);
}

/**
 * The search index' writes for blocks that go into one atomic batch, in order.
 * @param read a key's value before the batch
 */
export function postingWrites(
  blocks: readonly RosettaBlock[],
  read: (key: Buffer) => Buffer | undefined,
): LevelWrite[] {
  const heads = new Map<string, { readonly key: Buffer; chunk: PostingChunk | undefined }>();
  const full: LevelWrite[] = [];
  for (const { block_identifier, transactions } of blocks) {
    const height = block_identifier.index;
    for (const { term, runs } of postingsOf(transactions)) {
      const name = term.toString("latin1");
      let head = heads.get(name);
      if (head === undefined) {
        const key = headKey(term);
        const bytes = read(key);
        head = { key, chunk: bytes === undefined ? undefined : decodeChunk(bytes) };
        heads.set(name, head);
      }
      const { chunk } = head;
      if (chunk === undefined) {
        head.chunk = startChunk(0, { height, runs });
      } else if (chunk.entries.length < FULL_HEAD_BYTES) {
        head.chunk = extendChunk(chunk, { height, runs });
      } else {
        full.push({ key: chunkKey(term, chunk.first), value: encodeChunk(chunk) });
        head.chunk = startChunk(chunk.before + chunk.count, { height, runs });
      }
    }
  }
  for (const { key, chunk } of heads.values()) {
    if (chunk !== undefined) full.push({ key, value: encodeChunk(chunk) });
  }
  return full;
}

interface TermRuns {
  readonly term: SearchTerm;
  readonly runs: number[];
}

/** The runs of one field's values, in the order of their first appearance. */
class FieldRuns<T> {
  private readonly found = new Map<T, TermRuns>();

  constructor(private readonly toTerm: (value: T) => SearchTerm) {}

  note(value: T, index: number): void {
    let posting = this.found.get(value);
    if (posting === undefined) {
      posting = { term: this.toTerm(value), runs: [] };
      this.found.set(value, posting);
    }
    const { runs } = posting;
    if (runs[runs.length - 1] !== index + 1) pushIndex(runs, index);
  }

  all(): Iterable<TermRuns> {
    return this.found.values();
  }
}

/** Indexes of one block's transactions by term. */
function postingsOf(transactions: RosettaBlock["transactions"]): TermRuns[] {
  const any = new FieldRuns(() => ANY_TRANSACTION);
  const addresses = new FieldRuns(addressTerm);
  const types = new FieldRuns(typeTerm);
  const statuses = new FieldRuns(statusTerm);
  const currencies = new FieldRuns(currencyTermOf);
  const subs = new SubAccountRuns();
  transactions.forEach((transaction, index) => {
    any.note(undefined, index);
    for (const { account, type, status, amount } of transaction.operations) {
      addresses.note(account.address, index);
      types.note(type, index);
      statuses.note(status, index);
      currencies.note(currencyName(amount.currency), index);
    }
    subs.note(transaction, index);
  });
  const fields = [any, addresses, types, statuses, currencies, ...subs.fields()];
  return fields.flatMap((field) => [...field.all()]);
}

/** Sub-accounts of a block's transactions, and the addresses that appear with them alone. */
class SubAccountRuns {
  private readonly accounts = new FieldRuns((name: string) => {
    const account: AccountIdentifier = JSON.parse(name);
    return subAccountTerm(account);
  });
  private readonly only = new FieldRuns(subAccountsOnlyTerm);

  note({ operations }: RosettaTransaction, index: number): void {
    const subs = operations.filter(({ account }) => account.sub_account !== undefined);
    if (subs.length === 0) return;
    const plain = new Set<string>();
    for (const { account } of operations) {
      if (account.sub_account === undefined) plain.add(account.address);
    }
    for (const { account } of subs) {
      this.accounts.note(JSON.stringify(account), index);
      if (!plain.has(account.address)) this.only.note(account.address, index);
    }
  }

  fields(): readonly FieldRuns<string>[] {
    return [this.accounts, this.only];
  }
}

function termOf(field: number, value: Buffer): SearchTerm {
  return Buffer.concat([Buffer.of(field, value.length), value]) as SearchTerm;
}
