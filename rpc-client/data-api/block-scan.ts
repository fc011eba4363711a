/**
 * A first look at a `/block` reply: where its transactions lie and which accounts they name, found
 * in one pass over the bytes. A reader that asks for a few accounts then parses only what concerns
 * them, which is a small part of a busy block. What this pass cannot read with certainty (escaped
 * text, spaces inside) is marked to be parsed in full, so that nothing is ever passed over.
 */
import { present } from "../../chain/errors.js";
import type { Address } from "../../chain/address.js";
import { addressPrefix, type AddressPrefixes } from "../../chain/address-prefixes.js";
import { badAnswer } from "../errors.js";

/** A reply, taken apart. */
export interface ScannedReply {
  /** The whole reply as JSON text, its list of transactions replaced by `CUT_OUT`. */
  readonly frame: string;
  readonly transactionCount: number;
  /** Accounts that were seen, once for each time that they are named. */
  readonly accountCount: number;
  /**
   * Positions of the transactions that name an account for which `concerns` is true, or of which
   * this cannot be ruled out; ascending.
   * @param among accounts that begin otherwise are not asked about
   */
  concerning(concerns: (address: Address) => boolean, among?: AddressPrefixes): number[];
  /** JSON text of the transaction at a position. */
  transactionText(position: number): string;
}

/** What stands in the frame for the transactions; no list of transactions looks like this. */
export const CUT_OUT = "cut out";

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
/** `[` and `{` differ by this bit alone, and so do `]` and `}`. */
const BRACE_BIT = 0x20;
const CLOSING_BRACE = 0x7d;

const TRANSACTIONS_KEY = Buffer.from('"transactions"');
const ADDRESS_KEY = Buffer.from('address"');

/** The transactions of a block lie in the reply's object, in the block's object. */
const TRANSACTIONS_DEPTH = 2;

/** `0x` and 40 digits. */
const ADDRESS_LENGTH = 42;

/**
 * Takes a reply apart that is written without spaces, as JSON.stringify writes. Brackets and
 * quotes must fit; whether the frame and a transaction's text are JSON shows when they are parsed.
 * @throws BAD_ANSWER when there is no list of transactions, or it is not written like that
 */
export function scanBlockReply(body: Buffer): ScannedReply {
  const listStart = findTransactions(body);
  const found = new TransactionScan(body);
  const listEnd = found.readList(listStart);
  const { starts, ends, firstAccounts, accounts, prefixes, unclear } = found;
  return {
    frame: `${body.toString("utf8", 0, listStart)}["${CUT_OUT}"]` + body.toString("utf8", listEnd),
    transactionCount: starts.length,
    accountCount: accounts.length,
    concerning(concerns, among) {
      const positions: number[] = [];
      for (let position = 0; position < starts.length; position += 1) {
        const last = firstAccounts[position + 1] ?? accounts.length;
        let concerned = unclear.has(position);
        for (let at = firstAccounts[position] ?? last; at < last; at += 1) {
          if (among?.mayHave(present(prefixes[at], "beginning of an account")) === false) continue;
          if (concerns(addressAt(body, present(accounts[at], "account of a block")))) {
            concerned = true;
          }
        }
        if (concerned) positions.push(position);
      }
      return positions;
    },
    transactionText: (position) => body.toString("utf8", starts[position], ends[position]),
  };
}

/** Only compared with addresses that are known; text that is no address equals none of them. */
function addressAt(body: Buffer, start: number): Address {
  return body.toString("latin1", start, start + ADDRESS_LENGTH).toLowerCase() as Address;
}

/** Offset of the bracket that opens the block's transactions. */
function findTransactions(body: Buffer): number {
  let depth = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] ?? 0;
    if (byte === QUOTE) {
      const end = endOfString(body, at + 1);
      const isKey = depth === TRANSACTIONS_DEPTH && body[end + 1] === COLON;
      if (isKey && body.subarray(at, end + 1).equals(TRANSACTIONS_KEY)) return end + 2;
      at = end;
    } else if ((byte | BRACE_BIT) === OPENING_BRACE) {
      depth += 1;
    } else if ((byte | BRACE_BIT) === CLOSING_BRACE) {
      depth -= 1;
    }
  }
  throw badAnswer("the block has no transactions");
}

/** Offset of the quote that ends the text that begins here. */
function endOfString(body: Buffer, start: number): number {
  for (let at = start; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at += 1;
  }
  throw badAnswer("the body breaks off");
}

/** The pass over the list; plain arrays of numbers, because blocks name thousands of accounts. */
class TransactionScan {
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  /** For each transaction the place of its first account in `accounts`. */
  readonly firstAccounts: number[] = [];
  /** Offsets of texts that have an address' length, below a key "address". */
  readonly accounts: number[] = [];
  /** How each of these texts begins, read while it is at hand. */
  readonly prefixes: number[] = [];
  /** Transactions whose accounts this pass could not read with certainty. */
  readonly unclear = new Set<number>();

  constructor(private readonly body: Buffer) {}

  /** Reads from the opening bracket; returns the offset behind the closing one. */
  readList(listStart: number): number {
    const { body } = this;
    let at = listStart + 1;
    if (body[listStart] === undefined || body[at] === undefined) throw breaksOff();
    if (body[at] === CLOSING_BRACKET) return at + 1;
    for (;;) {
      if (body[at] !== OPENING_BRACE) throw badAnswer("a transaction is not an object");
      this.starts.push(at);
      this.firstAccounts.push(this.accounts.length);
      at = this.readTransaction(at + 1);
      this.ends.push(at);
      const next = body[at];
      if (next === CLOSING_BRACKET) return at + 1;
      if (next !== COMMA) throw badAnswer("the list of transactions is malformed");
      at += 1;
    }
  }

  /** Reads behind the opening brace; returns the offset behind the closing one. */
  private readTransaction(start: number): number {
    const { body } = this;
    const { length } = body;
    let depth = 1;
    let at = start;
    while (at < length) {
      const byte = body[at] ?? 0;
      at += 1;
      if (byte === QUOTE) {
        at = this.readString(at);
      } else if ((byte | BRACE_BIT) === OPENING_BRACE) {
        depth += 1;
      } else if ((byte | BRACE_BIT) === CLOSING_BRACE) {
        depth -= 1;
        if (depth === 0) return at;
      }
    }
    throw breaksOff();
  }

  /** Reads behind an opening quote; returns the offset behind the closing one, or the value's. */
  private readString(start: number): number {
    const { body } = this;
    const { length } = body;
    for (let at = start; at < length; at += 1) {
      const byte = body[at];
      if (byte === QUOTE) {
        const isAddress =
          at - start === ADDRESS_KEY.length - 1 && isEqualAt(body, start, ADDRESS_KEY);
        return isAddress ? this.readAddress(at + 1) : at + 1;
      }
      if (byte === BACKSLASH) {
        // Escapes could spell the key or an address: such a transaction is parsed in full.
        this.noteUnclear();
        at += 1;
      }
    }
    throw breaksOff();
  }

  /** Reads behind a key "address", which may also turn out to be a value. */
  private readAddress(afterKey: number): number {
    const { body } = this;
    const start = afterKey + 2;
    if (body[afterKey] !== COLON || body[afterKey + 1] !== QUOTE) {
      this.noteUnclear();
      return afterKey;
    }
    const end = endOfString(body, start);
    if (end - start === ADDRESS_LENGTH) {
      this.accounts.push(start);
      this.prefixes.push(addressPrefix(body, start));
    } else {
      this.noteUnclear();
    }
    return end + 1;
  }

  private noteUnclear(): void {
    this.unclear.add(this.starts.length - 1);
  }
}

function isEqualAt(body: Buffer, start: number, wanted: Buffer): boolean {
  for (let place = 0; place < wanted.length; place += 1) {
    if (body[start + place] !== wanted[place]) return false;
  }
  return true;
}

function breaksOff(): Error {
  return badAnswer("the body breaks off");
}
