/**
 * What the main thread and the recovery thread pass back and forth: one buffer with a record for
 * each transaction. It goes out with packed signatures and comes back with the answers in their
 * places; a transfer moves the memory, nothing is copied.
 */
import type { SignatureCheck } from "../../../chain/cosmos/ante.js";
import { secp256k1 } from "../../../chain/crypto.js";
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

/** Bytes of a check: digest, signature and public key. */
const CHECK_BYTES = 160;
const SIGNATURE_AT = 32;
const PUBLIC_KEY_AT = 96;

/** First byte of an answered check. */
const RIGHT = 1;
const WRONG = 0;

/** Who signed an EVM transaction, or whether a named key signed a Cosmos transaction. */
export type RecoveryKind = "senders" | "checks";

/** A buffer on its way, and the number of the call that it belongs to. */
export interface RecoveryMessage {
  readonly id: number;
  readonly kind: RecoveryKind;
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

/** The other question: a check for each transaction. */
export function packChecks(checks: readonly SignatureCheck[]): Uint8Array<ArrayBuffer> {
  const records = new Uint8Array(checks.length * CHECK_BYTES);
  for (const [index, { digest, signature, publicKey }] of checks.entries()) {
    records.set(digest, index * CHECK_BYTES);
    records.set(signature, index * CHECK_BYTES + SIGNATURE_AT);
    records.set(publicKey, index * CHECK_BYTES + PUBLIC_KEY_AT);
  }
  return records;
}

/** Puts the answers in the places of the questions. */
export function answerInPlace(kind: RecoveryKind, records: Uint8Array): void {
  if (kind === "senders") recoverInPlace(records);
  else verifyInPlace(records);
}

function verifyInPlace(records: Uint8Array): void {
  for (let at = 0; at < records.length; at += CHECK_BYTES) {
    const digest = records.subarray(at, at + SIGNATURE_AT);
    const signature = records.subarray(at + SIGNATURE_AT, at + PUBLIC_KEY_AT);
    const publicKey = records.subarray(at + PUBLIC_KEY_AT, at + CHECK_BYTES);
    records[at] = secp256k1.verify(digest, signature, publicKey) ? RIGHT : WRONG;
  }
}

function recoverInPlace(records: Uint8Array): void {
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

/** The answer to checks: whether each signature is right. */
export function unpackChecks(records: Uint8Array): boolean[] {
  const found: boolean[] = [];
  for (let at = 0; at < records.length; at += CHECK_BYTES) found.push(records[at] === RIGHT);
  return found;
}
