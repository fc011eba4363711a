/**
 * The SDK transaction that wraps an EVM transaction in a consensus block (D20), encoded as
 * cosmos/evm does: Tx{body{messages:[MsgEthereumTx{from=5, raw=6}], extension_options:
 * [ExtensionOptionsEthereumTx]}, auth_info{fee{amount, gas_limit}}}, without signatures.
 */
import type { Address } from "./address.js";
import { sha256 } from "./crypto.js";
import { bytesToHash32, type Hash32 } from "./hex.js";
import { effectiveGasPriceAtoken, type SignedTransaction } from "./transaction.js";
import { BASE_DENOM } from "./units.js";

const MESSAGE_TYPE_URL = "/cosmos.evm.vm.v1.MsgEthereumTx";
const EXTENSION_TYPE_URL = "/cosmos.evm.vm.v1.ExtensionOptionsEthereumTx";

/** Size of a base-128 varint of a length, a tag or a gas limit: all far below 2^53. */
function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

/** Size of a field of wire type 2 with a number below 16; an empty one is left out (proto3). */
function fieldSize(contentBytes: number): number {
  return contentBytes === 0 ? 0 : 1 + varintSize(contentBytes) + contentBytes;
}

/** Writes protobuf fields one after the other into a buffer of the right size. */
class FieldWriter {
  private at = 0;

  constructor(private readonly target: Buffer) {}

  /** A tag and what follows a tag: the length of a wire type 2, the value of a wire type 0. */
  head(tag: number, value: number): this {
    return this.varint(tag).varint(value);
  }

  copy(bytes: Uint8Array): this {
    this.target.set(bytes, this.at);
    this.at += bytes.length;
    return this;
  }

  /** Hex digits without prefix, or plain ASCII. */
  text(text: string, encoding: "hex" | "latin1"): this {
    this.at += this.target.write(text, this.at, encoding);
    return this;
  }

  private varint(value: number): this {
    let rest = value;
    while (rest >= 0x80) {
      this.target[this.at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.target[this.at++] = rest;
    return this;
  }
}

/** Tag of a field of wire type 2 (length and bytes). */
function tagOf(field: number): number {
  return field * 8 + 2;
}

/** A constant text as field 1. */
function textField(text: string): Buffer {
  const bytes = Buffer.alloc(fieldSize(text.length));
  new FieldWriter(bytes).head(tagOf(1), text.length).text(text, "latin1");
  return bytes;
}

function extensionField(typeUrl: string): Buffer {
  const any = textField(typeUrl);
  const tag = tagOf(1023);
  const bytes = Buffer.alloc(varintSize(tag) + varintSize(any.length) + any.length);
  new FieldWriter(bytes).head(tag, any.length).copy(any);
  return bytes;
}

const MESSAGE_TYPE = textField(MESSAGE_TYPE_URL);
const EXTENSION = extensionField(EXTENSION_TYPE_URL);
const DENOM = textField(BASE_DENOM);
const ADDRESS_BYTES = 20;

/** Deterministic protobuf bytes of the SDK Tx around one EVM transaction. */
export function encodeSdkTransaction(tx: SignedTransaction, from: Address): Buffer {
  const gasLimit = Number(tx.gasLimit);
  const feeAtoken = effectiveGasPriceAtoken(tx) * tx.gasLimit;
  const amount = feeAtoken > 0n ? feeAtoken.toString() : "";
  // Sizes from the inside out, then everything is written once.
  const message = fieldSize(ADDRESS_BYTES) + fieldSize(tx.raw.length);
  const anyMessage = MESSAGE_TYPE.length + fieldSize(message);
  const body = fieldSize(anyMessage) + EXTENSION.length;
  const coin = amount === "" ? 0 : DENOM.length + fieldSize(amount.length);
  const fee = fieldSize(coin) + (gasLimit === 0 ? 0 : 1 + varintSize(gasLimit));
  const authInfo = fieldSize(fee);
  const bytes = Buffer.allocUnsafe(fieldSize(body) + fieldSize(authInfo));
  const writer = new FieldWriter(bytes);
  writer.head(tagOf(1), body).head(tagOf(1), anyMessage).copy(MESSAGE_TYPE);
  writer.head(tagOf(2), message);
  writer.head(tagOf(5), ADDRESS_BYTES).text(from.slice(2), "hex");
  if (tx.raw.length > 0) writer.head(tagOf(6), tx.raw.length).copy(tx.raw);
  writer.copy(EXTENSION);
  if (authInfo > 0) writer.head(tagOf(2), authInfo).head(tagOf(2), fee);
  if (coin > 0) {
    writer.head(tagOf(1), coin).copy(DENOM);
    writer.head(tagOf(2), amount.length).text(amount, "latin1");
  }
  if (gasLimit > 0) writer.head(2 * 8, gasLimit);
  return bytes;
}

/** Consensus hash of the transaction: SHA-256 of its SDK Tx. */
export function sdkTransactionHash(tx: SignedTransaction, from: Address): Hash32 {
  return bytesToHash32(sha256(encodeSdkTransaction(tx, from)));
}

/** Prefixes of RFC 6962: a leaf's hash can never be taken for an inner node's. */
const LEAF_PREFIX = 0;
const INNER_PREFIX = 1;
const HASH_BYTES = 32;

/**
 * RFC 6962 Merkle root over leaves, as CometBFT computes `data_hash` over transaction hashes.
 * No leaves give SHA-256 of nothing.
 */
export function merkleRoot(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return sha256(new Uint8Array(0));
  let level = leaves.map(leafHash);
  const inner = new Uint8Array(1 + 2 * HASH_BYTES);
  inner[0] = INNER_PREFIX;
  // Pairing left to right and carrying an odd last node up equals RFC 6962's split at the largest
  // power of two below the count.
  while (level.length > 1) {
    level = pairUp(level, inner);
  }
  return level[0] ?? sha256(new Uint8Array(0));
}

function leafHash(leaf: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(1 + leaf.length);
  bytes[0] = LEAF_PREFIX;
  bytes.set(leaf, 1);
  return sha256(bytes);
}

/** One level up; `inner` is room for a node's prefix and its two children. */
function pairUp(level: readonly Uint8Array[], inner: Uint8Array): Uint8Array[] {
  const next: Uint8Array[] = [];
  for (let index = 0; index < level.length; index += 2) {
    const left = level[index];
    const right = level[index + 1];
    if (left === undefined) continue;
    if (right === undefined) {
      next.push(left);
      continue;
    }
    inner.set(left, 1);
    inner.set(right, 1 + HASH_BYTES);
    next.push(sha256(inner));
  }
  return next;
}
