/**
 * Ethereum transactions of types 0, 1 and 2: decode, hash, recover, build and sign.
 * Sources: EIP-155, EIP-2718, EIP-2930, EIP-1559; decision D7 (types 3 and 4 refused).
 */
import { present, ChainError } from "./errors.js";
import { type Address, bytesToAddress } from "./address.js";
import { SECP256K1_ORDER, secp256k1 } from "./crypto.js";
import { keccak256, keccak256Hex } from "./hashes.js";
import { bytesToHash32, type Hash32, writeWord } from "./hex.js";
import {
  decodeRlp,
  FlatList,
  type RlpItem,
  rlpBytes,
  rlpInteger,
  rlpList,
} from "./encoding/rlp.js";
import { encodeRlp, encodeRlpListOfEncoded, type RlpInput } from "./encoding/rlp-writer.js";
import type { Atoken } from "./units.js";

/** Transaction types that the chain executes. */
export type TransactionType = 0 | 1 | 2;

/** One EIP-2930 entry: an address and the storage slots declared for it. */
export interface AccessListEntry {
  readonly address: Address;
  readonly storageKeys: readonly Hash32[];
}

/** A decoded, signed transaction. Prices, gas and nonce are bigint; `data` is the raw calldata. */
export interface SignedTransaction {
  readonly type: TransactionType;
  readonly chainId: bigint;
  readonly nonce: bigint;
  /** Types 0 and 1: the price. Type 2: `maxFeePerGas`. Atoken per gas. */
  readonly maxFeePerGasAtoken: Atoken;
  /** Types 0 and 1: equal to the price. Type 2: `maxPriorityFeePerGas`. Atoken per gas. */
  readonly maxPriorityFeePerGasAtoken: Atoken;
  readonly gasLimit: bigint;
  /** Undefined creates a contract. */
  readonly to: Address | undefined;
  readonly valueAtoken: Atoken;
  readonly data: Uint8Array;
  readonly accessList: readonly AccessListEntry[];
  /** Wire value: 35 + 2 x chainId + parity for type 0, the parity for types 1 and 2. */
  readonly v: bigint;
  readonly r: bigint;
  readonly s: bigint;
  /** The signed bytes exactly as received (typed envelopes included). */
  readonly raw: Uint8Array;
  /** keccak256(raw). */
  readonly hash: Hash32;
}

/** What a transaction is willing to pay for its gas. */
export type GasFees = Pick<SignedTransaction, "maxFeePerGasAtoken" | "maxPriorityFeePerGasAtoken">;

/**
 * Price that is really paid: the price, or min(maxFee, base fee + tip) for type 2 (EIP-1559).
 * @param baseFeeAtoken 0 in every block of this chain (D7); simulations may name another
 */
export function effectiveGasPriceAtoken(fees: GasFees, baseFeeAtoken = 0n): Atoken {
  const wantedAtoken = baseFeeAtoken + fees.maxPriorityFeePerGasAtoken;
  return fees.maxFeePerGasAtoken < wantedAtoken ? fees.maxFeePerGasAtoken : wantedAtoken;
}

/** Fields of a legacy transaction before it is signed. */
export interface LegacyIntent {
  readonly chainId: bigint;
  readonly nonce: bigint;
  readonly gasPriceAtoken: Atoken;
  readonly gasLimit: bigint;
  readonly to: Address | undefined;
  readonly valueAtoken: Atoken;
  readonly data: Uint8Array;
}

/** What stands for the recipient of a creation. */
const NOBODY = new Uint8Array(0);

function legacyFields(intent: LegacyIntent): RlpInput[] {
  return [
    intent.nonce,
    intent.gasPriceAtoken,
    intent.gasLimit,
    intent.to ?? NOBODY,
    intent.valueAtoken,
    intent.data,
  ];
}

/** Digest to sign for a legacy transaction: keccak256 of its EIP-155 payload. */
export function legacySigningDigest(intent: LegacyIntent): Uint8Array {
  return keccak256(encodeRlp([...legacyFields(intent), intent.chainId, 0, 0]));
}

/** Puts a signature on a legacy transaction and returns the raw bytes (EIP-155 v). */
export function encodeSignedLegacy(
  intent: LegacyIntent,
  signature: { r: Uint8Array; s: Uint8Array; recoveryId: number },
): Uint8Array {
  const v = 35n + 2n * intent.chainId + BigInt(signature.recoveryId);
  const { r, s } = signature;
  const tail = [v, stripLeadingZeros(r), stripLeadingZeros(s)];
  return encodeRlp([...legacyFields(intent), ...tail]);
}

/** Signs a legacy transaction with a 32-byte private key and returns the raw bytes. */
export function signLegacy(intent: LegacyIntent, privateKey: Uint8Array): Uint8Array {
  return encodeSignedLegacy(intent, secp256k1.sign(legacySigningDigest(intent), privateKey));
}

function stripLeadingZeros(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < bytes.length && bytes[start] === 0) start++;
  return bytes.subarray(start);
}

/** What is known of a transaction before it is signed. */
export type UnsignedTransaction = Omit<SignedTransaction, "v" | "r" | "s" | "raw" | "hash">;

/** `v`, `r` and `s` of a transaction without a signature. */
const NO_SIGNATURE: readonly RlpInput[] = [0, 0, 0];

/**
 * The transaction with zeros for its signature, as go-ethereum encodes an unsigned one. Nothing
 * accepts these bytes; they are what a signer starts from, and their hash names a simulated one.
 */
export function withoutSignature(fields: UnsignedTransaction): SignedTransaction {
  const raw = encodeUnsigned(fields);
  return { ...fields, v: 0n, r: 0n, s: 0n, raw, hash: keccak256Hex(raw) };
}

function encodeUnsigned(tx: UnsignedTransaction): Uint8Array {
  const { chainId, nonce, maxFeePerGasAtoken: maxFee } = tx;
  const message: RlpInput[] = [tx.gasLimit, tx.to ?? NOBODY, tx.valueAtoken, tx.data];
  if (tx.type === 0) return encodeRlp([nonce, maxFee, ...message, ...NO_SIGNATURE]);
  const fees = tx.type === 1 ? [maxFee] : [tx.maxPriorityFeePerGasAtoken, maxFee];
  const accessList = tx.accessList.map(({ address, storageKeys }) => [address, storageKeys]);
  const payload = [chainId, nonce, ...fees, ...message, accessList, ...NO_SIGNATURE];
  return Buffer.concat([Uint8Array.of(tx.type), encodeRlp(payload)]);
}

/**
 * Untrusted raw bytes to a transaction; the signature's ranges are checked, its signer is not.
 * @param hash of bytes that were hashed before, where somebody has kept it beside them
 * @throws INVALID_TRANSACTION, INVALID_RLP, UNSUPPORTED_TRANSACTION_TYPE, UNPROTECTED_TRANSACTION
 */
export function decodeTransaction(raw: Uint8Array, hash?: Hash32): SignedTransaction {
  const first = raw[0];
  if (first === undefined) throw new ChainError("INVALID_TRANSACTION", "transaction is empty");
  if (first >= 0xc0) return decodeLegacy(raw, hash);
  if (first === 1 || first === 2) return decodeTyped(raw, first, hash);
  throw typeNotSupported(first);
}

/** UNSUPPORTED_TRANSACTION_TYPE for bytes of Ethereum's types 3 and 4, known by their first (D7). */
export function refusedType(raw: Uint8Array): ChainError | undefined {
  const [first] = raw;
  return first === 3 || first === 4 ? typeNotSupported(first) : undefined;
}

function typeNotSupported(type: number): ChainError {
  return new ChainError("UNSUPPORTED_TRANSACTION_TYPE", "transaction type not supported", {
    details: { type },
  });
}

/** The transaction itself and its fields, with some to spare for one that has too many. */
const FIELDS_AND_MORE = 32;

/** Three items of an entry of an access list have 23 bytes at least, a key of it has 33. */
const LEAST_BYTES_PER_ITEM = 7;

function fieldsOf(bytes: Uint8Array, count: number): RlpItem[] {
  const mostItems = FIELDS_AND_MORE + Math.floor(bytes.length / LEAST_BYTES_PER_ITEM);
  const fields = rlpList(decodeRlp(bytes, mostItems));
  if (fields.length !== count) {
    throw new ChainError("INVALID_TRANSACTION", `expected ${count} fields, got ${fields.length}`);
  }
  return fields;
}

function decodeTo(item: RlpItem | undefined): Address | undefined {
  const bytes = rlpBytes(item);
  if (bytes.length === 0) return undefined;
  if (bytes.length !== 20) throw new ChainError("INVALID_TRANSACTION", "recipient is not 20 bytes");
  return bytesToAddress(bytes);
}

/** Gas limits and nonces are uint64 (EIP-2681 for the nonce); larger ones are not transactions. */
function uint64(item: RlpItem | undefined): bigint {
  return rlpInteger(item, 8);
}

/** Shared by all that have none. */
const NO_ACCESS_LIST: readonly AccessListEntry[] = [];

/** Items of a signed legacy transaction: nonce, price, gas, to, value, data, v, r, s. */
const legacyItems = new FlatList(9);
const LEGACY_V = 6;

/**
 * The usual transaction is read in place; whatever is not in order there goes the general way,
 * which also says what is wrong.
 */
function decodeLegacy(raw: Uint8Array, hash?: Hash32): SignedTransaction {
  return legacyOf(raw, flatLegacyItems(raw, legacyItems) ?? generalLegacyItems(raw), hash);
}

/** Undefined for everything that is not in order, and for very long calldata. */
function flatLegacyItems(raw: Uint8Array, items: FlatList): LegacyItems | undefined {
  const isInOrder =
    items.read(raw) &&
    items.isInteger(0, 8) &&
    items.isInteger(1) &&
    items.isInteger(2, 8) &&
    (items.size(3) === 20 || items.size(3) === 0) &&
    items.isInteger(4) &&
    items.isInteger(LEGACY_V) &&
    items.isInteger(7) &&
    items.isInteger(8);
  if (!isInOrder) return undefined;
  return {
    nonce: items.integer(0),
    gasPriceAtoken: items.integer(1),
    gasLimit: items.integer(2),
    to: items.size(3) === 0 ? undefined : (`0x${items.hex(3)}` as Address),
    valueAtoken: items.integer(4),
    data: items.item(5),
    v: items.integer(LEGACY_V),
    r: items.integer(7),
    s: items.integer(8),
  };
}

function generalLegacyItems(raw: Uint8Array): LegacyItems {
  const [nonce, price, gas, to, value, data, v, r, s] = fieldsOf(raw, 9);
  const wireV = rlpInteger(v);
  assertProtected(wireV);
  return {
    nonce: uint64(nonce),
    gasPriceAtoken: rlpInteger(price),
    gasLimit: uint64(gas),
    to: decodeTo(to),
    valueAtoken: rlpInteger(value),
    data: rlpBytes(data),
    v: wireV,
    r: rlpInteger(r),
    s: rlpInteger(s),
  };
}

type LegacyItems = Omit<LegacyIntent, "chainId"> & Pick<SignedTransaction, "v" | "r" | "s">;

function legacyOf(raw: Uint8Array, items: LegacyItems, hash?: Hash32): SignedTransaction {
  const { gasPriceAtoken, v } = items;
  assertProtected(v);
  return checkSignature({
    type: 0,
    chainId: (v - 35n) / 2n,
    nonce: items.nonce,
    maxFeePerGasAtoken: gasPriceAtoken,
    maxPriorityFeePerGasAtoken: gasPriceAtoken,
    gasLimit: items.gasLimit,
    to: items.to,
    valueAtoken: items.valueAtoken,
    data: items.data,
    accessList: NO_ACCESS_LIST,
    v,
    r: items.r,
    s: items.s,
    raw,
    hash: hash ?? keccak256Hex(raw),
  });
}

function assertProtected(v: bigint): void {
  if (v >= 35n) return;
  throw new ChainError(
    "UNPROTECTED_TRANSACTION",
    "only replay-protected (EIP-155) transactions allowed over RPC",
  );
}

function decodeAccessList(item: RlpItem | undefined): AccessListEntry[] {
  return rlpList(item).map((entry) => {
    const [address, keys, ...rest] = rlpList(entry);
    if (rest.length > 0) throw new ChainError("INVALID_TRANSACTION", "access list entry is long");
    return {
      address: bytesToAddress(rlpBytes(address)),
      storageKeys: rlpList(keys).map((key) => bytesToHash32(rlpBytes(key))),
    };
  });
}

function decodeTyped(raw: Uint8Array, type: 1 | 2, hash?: Hash32): SignedTransaction {
  const fields = fieldsOf(raw.subarray(1), type === 1 ? 11 : 12);
  const [chainId, nonce, price] = fields;
  const [maxFee, gas, to, value, data, accessList, v, r, s] = fields.slice(type === 1 ? 2 : 3);
  const parity = rlpInteger(v);
  if (parity > 1n) throw new ChainError("INVALID_TRANSACTION", "signature parity is not 0 or 1");
  return checkSignature({
    type,
    chainId: rlpInteger(chainId),
    nonce: uint64(nonce),
    maxFeePerGasAtoken: rlpInteger(maxFee),
    maxPriorityFeePerGasAtoken: rlpInteger(price),
    gasLimit: uint64(gas),
    to: decodeTo(to),
    valueAtoken: rlpInteger(value),
    data: rlpBytes(data),
    accessList: decodeAccessList(accessList),
    v: parity,
    r: rlpInteger(r),
    s: rlpInteger(s),
    raw,
    hash: hash ?? keccak256Hex(raw),
  });
}

/** Refuses r or s outside the group and the upper half of s (EIP-2). */
function checkSignature(tx: SignedTransaction): SignedTransaction {
  const inRange = tx.r > 0n && tx.s > 0n && tx.r < SECP256K1_ORDER && tx.s <= SECP256K1_ORDER / 2n;
  if (!inRange) throw new ChainError("INVALID_SIGNATURE", "invalid transaction v, r, s values");
  return tx;
}

/** 0 or 1: which of the two points the signature recovers. */
function signatureParity(tx: SignedTransaction): number {
  return tx.type === 0 ? Number((tx.v - 35n) % 2n) : Number(tx.v);
}

/** EIP-155's tail of the last chain id: a node sees one. */
let chainTail = { chainId: 0n, encoded: encodeChainTail(0n) };

function encodeChainTail(chainId: bigint): Uint8Array {
  return Buffer.concat([encodeRlp(chainId), Uint8Array.of(0x80, 0x80)]);
}

/** Digest that the sender signed, over the fields as they came. */
function signingDigest(tx: SignedTransaction): Uint8Array {
  if (tx.type === 0) {
    if (!legacyItems.read(tx.raw)) {
      return legacySigningDigest({ ...tx, gasPriceAtoken: tx.maxFeePerGasAtoken });
    }
    const { chainId } = tx;
    if (chainTail.chainId !== chainId) chainTail = { chainId, encoded: encodeChainTail(chainId) };
    const fields = legacyItems.encodedFirst(LEGACY_V);
    return keccak256(encodeRlpListOfEncoded([fields, chainTail.encoded]));
  }
  const fields = rlpList(decodeRlp(tx.raw.subarray(1)));
  const payload = encodeRlp(fields.slice(0, fields.length - 3));
  return keccak256(Buffer.concat([Uint8Array.of(tx.type), payload]));
}

/** Length of a packed signature: digest (32), r (32), s (32), parity (1). */
export const PACKED_SIGNATURE_BYTES = 97;

/**
 * Writes what recovery needs of a decoded transaction, as a packed signature, so that another
 * thread can do it.
 */
export function packSignature(tx: SignedTransaction, target: Uint8Array, at: number): void {
  target.set(signingDigest(tx), at);
  writeWord(target, at + 32, tx.r);
  writeWord(target, at + 64, tx.s);
  target[at + 96] = signatureParity(tx);
}

/** Address bytes (20) of the signer of a packed signature; undefined where there is none. */
export function recoverPacked(
  packed: Uint8Array,
  at: number,
  backend = secp256k1,
): Uint8Array | undefined {
  const digest = packed.subarray(at, at + 32);
  const compact = packed.subarray(at + 32, at + 96);
  const publicKey = backend.recover(
    digest,
    compact,
    present(packed[at + 96], "recovery id of a packed signature"),
  );
  return publicKey === undefined ? undefined : keccak256(publicKey).subarray(12);
}

/** The fault of a signature that no key can have made: INVALID_SIGNATURE. */
export function signerMissing(): ChainError {
  return new ChainError("INVALID_SIGNATURE", "the signature recovers no public key");
}

/**
 * Recovers the sender; about 45 us with the native back-end, so it is done once, at admission.
 * @throws INVALID_SIGNATURE
 */
export function recoverSender(tx: SignedTransaction, backend = secp256k1): Address {
  const packed = new Uint8Array(PACKED_SIGNATURE_BYTES);
  packSignature(tx, packed, 0);
  const address = recoverPacked(packed, 0, backend);
  if (address === undefined) throw signerMissing();
  return bytesToAddress(address);
}
