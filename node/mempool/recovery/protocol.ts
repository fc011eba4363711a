/**
 * What the main thread and the recovery thread pass back and forth: one buffer with a record for
 * each transaction. It goes out with packed signatures and comes back with the senders in their
 * places; a transfer moves the memory, nothing is copied.
 */
import { type Address, bytesToAddress } from "../../../chain/address.js";
import {
  PACKED_SIGNATURE_BYTES,
  packSignature,
  recoverPacked,
  type SignedTransaction,
} from "../../../chain/transaction.js";

/** First byte of an answered record: a sender's 20 bytes follow, or nobody signed. */
const FOUND = 1;
const NOT_FOUND = 0;
const ADDRESS_BYTES = 20;

/** A buffer on its way, and the number of the call that it belongs to. */
export interface RecoveryMessage {
  readonly id: number;
  readonly records: Uint8Array<ArrayBuffer>;
}

/** What the recovery thread posts. */
export type RecoveryAnswer = "ready" | RecoveryMessage;

/** The question: a packed signature for each transaction. */
export function packQuestion(transactions: readonly SignedTransaction[]): Uint8Array<ArrayBuffer> {
  const records = new Uint8Array(transactions.length * PACKED_SIGNATURE_BYTES);
  for (const [index, tx] of transactions.entries()) {
    packSignature(tx, records, index * PACKED_SIGNATURE_BYTES);
  }
  return records;
}

/** Puts the senders in the places of the signatures. */
export function answerInPlace(records: Uint8Array): void {
  for (let at = 0; at < records.length; at += PACKED_SIGNATURE_BYTES) {
    const sender = recoverPacked(records, at);
    records[at] = sender === undefined ? NOT_FOUND : FOUND;
    if (sender !== undefined) records.set(sender, at + 1);
  }
}

/** The answer: sender of each transaction, undefined where nobody signed. */
export function unpackAnswer(records: Uint8Array): (Address | undefined)[] {
  const senders: (Address | undefined)[] = [];
  for (let at = 0; at < records.length; at += PACKED_SIGNATURE_BYTES) {
    const isFound = records[at] === FOUND;
    const bytes = records.subarray(at + 1, at + 1 + ADDRESS_BYTES);
    senders.push(isFound ? bytesToAddress(bytes) : undefined);
  }
  return senders;
}
