/**
 * Which accounts each transaction of a block names: what `/call block_accounts` tells, for readers who
 * look for a few accounts in many blocks. It is a twentieth of the block's reply, and made with it.
 */
import assert from "node:assert/strict";
import type { EncodedBlock } from "./encoded-block.js";
import type { RosettaBlock } from "./operations.js";

/** A block as far as its accounts are named by it; sub-accounts count as the account itself. */
export interface BlockAccounts
  extends Pick<RosettaBlock, "block_identifier" | "parent_block_identifier" | "timestamp"> {
  /** Base64 of the accounts, 20 bytes each, in the order in which the block first names them. */
  readonly accounts: string;
  /**
   * Base64 of numbers of 4 bytes, big-endian: for each transaction in order how many accounts it
   * names, then each one's position in `accounts`.
   */
  readonly transactions: string;
}

const ADDRESS_BYTES = 20;
const NUMBER_BYTES = 4;

/** The record of a block, as JSON text. */
export function encodeBlockAccounts(block: RosettaBlock): Buffer {
  const positions = new Map<string, number>();
  const numbers: number[] = [];
  for (const { operations } of block.transactions) {
    const named = new Set<number>();
    for (const { account } of operations) {
      let position = positions.get(account.address);
      if (position === undefined) {
        position = positions.size;
        positions.set(account.address, position);
      }
      named.add(position);
    }
    numbers.push(named.size);
    // One by one: a genesis names more accounts than a call may have arguments.
    for (const position of named) numbers.push(position);
  }
  const transactions = Buffer.allocUnsafe(numbers.length * NUMBER_BYTES);
  numbers.forEach((number, index) => transactions.writeUInt32BE(number, index * NUMBER_BYTES));
  const accounts = Buffer.from(
    [...positions.keys()].map((address) => address.slice(2)).join(""),
    "hex",
  );
  // A text that is no address would move all that come after it: nobody's account would be found.
  assert(accounts.length === positions.size * ADDRESS_BYTES, "an account is not an address");
  const { block_identifier, parent_block_identifier, timestamp } = block;
  const record: BlockAccounts = {
    block_identifier,
    parent_block_identifier,
    timestamp,
    accounts: accounts.toString("base64"),
    transactions: transactions.toString("base64"),
  };
  return Buffer.from(JSON.stringify(record));
}

/** The record of a block of which only the reply is kept. */
export function blockAccountsOf({ body }: EncodedBlock): Buffer {
  const reply = JSON.parse(body.toString("utf8")) as { readonly block: RosettaBlock };
  return encodeBlockAccounts(reply.block);
}
