/** Receipts, logs and the logs bloom, with their consensus encodings. */
import type { Address } from "./address.js";
import { keccak256 } from "./hashes.js";
import { type Hash32, hexToBytes, writeHex } from "./hex.js";
import {
  encodeRlp,
  RLP_LIST,
  RLP_STRING,
  RlpEncoded,
  rlpSizeBytes,
  rlpStringSizeBytes,
  writeRlpHeader,
  writeRlpString,
} from "./encoding/rlp-writer.js";
import { Slab } from "./encoding/slab.js";
import { allAtOnce, type Steps } from "./steps/steps.js";
import type { TransactionType } from "./transaction.js";
import type { Atoken } from "./units.js";

/** Most topics of a log: LOG0 to LOG4. */
export const MAX_TOPICS = 4;

/** One EVM log (spec: EVM log). */
export interface Log {
  readonly address: Address;
  /** 0 to 4 words; topic 0 is the event signature's hash. */
  readonly topics: readonly Hash32[];
  readonly data: Uint8Array;
}

/** What execution says about one transaction. Gas is cumulative within the block. */
export interface Receipt {
  readonly type: TransactionType;
  /** 1 success, 0 failed (still mined, fee paid). */
  readonly status: 0 | 1;
  readonly gasUsed: bigint;
  readonly cumulativeGasUsed: bigint;
  readonly effectiveGasPriceAtoken: Atoken;
  readonly logs: readonly Log[];
  /** 256 bytes. */
  readonly logsBloom: Uint8Array;
  /** Set when the transaction created a contract successfully or tried to. */
  readonly contractAddress: Address | undefined;
}

/** A receipt in its place: the block's gas up to it, its own included, is known. */
export function receiptBehind(
  cumulativeGasUsed: bigint,
  receipt: Omit<Receipt, "cumulativeGasUsed">,
): Receipt {
  const { type, status, gasUsed, effectiveGasPriceAtoken, logs, logsBloom, contractAddress } =
    receipt;
  // Named one by one: a spread costs ten times as much, for every transaction of a chain.
  return {
    type,
    status,
    gasUsed,
    cumulativeGasUsed,
    effectiveGasPriceAtoken,
    logs,
    logsBloom,
    contractAddress,
  };
}

/** Length of a logs bloom. */
export const BLOOM_BYTES = 256;

/** An empty bloom; do not write to it. */
export const EMPTY_BLOOM: Uint8Array = new Uint8Array(BLOOM_BYTES);

/** The three bit positions of a value, 0 to 2047. */
export type BloomBits = readonly [number, number, number];

/**
 * False only when no log of a block with this bloom has one of the alternatives at each place.
 * @param places of an address or a topic: the bits of its alternatives
 */
export function mayHaveLog(bloom: Uint8Array, places: readonly (readonly BloomBits[])[]): boolean {
  const isSet = (bit: number) =>
    ((bloom[BLOOM_BYTES - 1 - (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0;
  return places.every((alternatives) =>
    alternatives.some(([a, b, c]) => isSet(a) && isSet(b) && isSet(c)),
  );
}

/** The three bit positions of a value (Yellow Paper, M3:2048). */
export function bloomBits(value: Uint8Array): BloomBits {
  const hash = keccak256(value);
  const bit = (at: number) => (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 0x7ff;
  return [bit(0), bit(2), bit(4)];
}

/**
 * Addresses and topics whose bits are kept, since most logs are of few tokens and few events: each has
 * one place, by its last digits, and whoever comes there last stays.
 */
const KEPT_BITS = 4_096;
const keptValues: string[] = Array.from({ length: KEPT_BITS }, () => "");
const keptBits: BloomBits[] = Array.from({ length: KEPT_BITS }, () => [0, 0, 0]);

function bitsOf(value: Address | Hash32): BloomBits {
  const place = placeOf(value);
  const kept = keptBits[place];
  if (kept !== undefined && keptValues[place] === value) return kept;
  const bits = bloomBits(hexToBytes(value));
  keptValues[place] = value;
  keptBits[place] = bits;
  return bits;
}

function placeOf(value: string): number {
  let place = 0;
  for (let at = value.length - 6; at < value.length; at++)
    place = place * 31 + value.charCodeAt(at);
  return place % KEPT_BITS;
}

/** Adds one value to a bloom in place. */
function addToBloom(bloom: Uint8Array, value: Address | Hash32): void {
  for (const bit of bitsOf(value)) {
    const index = BLOOM_BYTES - 1 - (bit >> 3);
    bloom[index] = (bloom[index] ?? 0) | (1 << (bit & 7));
  }
}

/** Bloom of a list of logs; the shared empty one where there are none. */
export function logsToBloom(logs: readonly Log[]): Uint8Array {
  if (logs.length === 0) return EMPTY_BLOOM;
  const bloom = new Uint8Array(BLOOM_BYTES);
  for (const log of logs) {
    addToBloom(bloom, log.address);
    for (const topic of log.topics) addToBloom(bloom, topic);
  }
  return bloom;
}

/** Bitwise or of blooms: the block's bloom from its receipts'. */
export function mergeBlooms(blooms: readonly Uint8Array[]): Uint8Array {
  return allAtOnce(mergeBloomSteps(blooms));
}

/** The same in steps. */
export function* mergeBloomSteps(blooms: readonly Uint8Array[]): Steps<Uint8Array> {
  const merged = new Uint8Array(BLOOM_BYTES);
  for (const bloom of blooms) {
    if (bloom === EMPTY_BLOOM) continue;
    for (let index = 0; index < BLOOM_BYTES; index++) {
      merged[index] = (merged[index] ?? 0) | (bloom[index] ?? 0);
    }
    yield;
  }
  return merged;
}

/** Encodings of a block's receipts, of which its root and its records are made: nobody keeps them. */
const ENCODED = new Slab();

const ADDRESS_BYTES = 20;
const TOPIC_BYTES = 32;
const NO_LOGS = new RlpEncoded(encodeRlp([]));

/**
 * Logs as every encoding of a receipt has them: [address, [topic, ...], data] each. Written at once
 * from their texts, since a block may have 200,000 of them.
 */
export function encodeLogs(logs: readonly Log[]): RlpEncoded {
  if (logs.length === 0) return NO_LOGS;
  let payload = 0;
  for (const log of logs) payload += rlpSizeBytes(logContentBytes(log));
  const target = ENCODED.take(rlpSizeBytes(payload));
  let at = writeRlpHeader(target, 0, payload, RLP_LIST);
  for (const log of logs) at = writeLog(target, at, log);
  return new RlpEncoded(target);
}

function topicsBytes({ topics }: Log): number {
  return topics.length * rlpSizeBytes(TOPIC_BYTES);
}

function logContentBytes(log: Log): number {
  const topics = rlpSizeBytes(topicsBytes(log));
  return rlpSizeBytes(ADDRESS_BYTES) + topics + rlpStringSizeBytes(log.data);
}

function writeLog(target: Uint8Array, start: number, log: Log): number {
  let at = writeRlpHeader(target, start, logContentBytes(log), RLP_LIST);
  at = writeRlpHeader(target, at, ADDRESS_BYTES, RLP_STRING);
  at = writeHex(target, at, log.address);
  at = writeRlpHeader(target, at, topicsBytes(log), RLP_LIST);
  for (const topic of log.topics) {
    at = writeRlpHeader(target, at, TOPIC_BYTES, RLP_STRING);
    at = writeHex(target, at, topic);
  }
  return writeRlpString(target, at, log.data);
}

/** Consensus encoding: type byte for typed ones, then rlp([status, cumulativeGas, bloom, logs]). */
export function encodeReceipt(receipt: Receipt): Uint8Array {
  const body = encodeRlp(
    [receipt.status, receipt.cumulativeGasUsed, receipt.logsBloom, encodeLogs(receipt.logs)],
    ENCODED,
  );
  if (receipt.type === 0) return body;
  const typed = new Uint8Array(1 + body.length);
  typed[0] = receipt.type;
  typed.set(body, 1);
  return typed;
}
