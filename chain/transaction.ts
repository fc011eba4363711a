/**
 * Ethereum transactions of types 0, 1 and 2: decode, hash, recover, build and sign.
 * Sources: EIP-155, EIP-2718, EIP-2930, EIP-1559; decision D7 (types 3 and 4 refused).
 */
import { type Address, addressToBytes, bytesToAddress, publicKeyToAddress } from "./address.js";
import { keccak256, keccak256Hex, SECP256K1_ORDER, secp256k1 } from "./crypto.js";
import { ChainError } from "./errors.js";
import { bigintToBytes, bigintToWord, bytesToHash32, type Hash32, hexToBytes } from "./hex.js";
import { decodeRlp, encodeRlp, type RlpInput, type RlpItem, rlpBytes } from "./rlp.js";
import { rlpInteger, rlpList } from "./rlp.js";

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
  readonly maxFeePerGasAtoken: bigint;
  /** Types 0 and 1: equal to the price. Type 2: `maxPriorityFeePerGas`. Atoken per gas. */
  readonly maxPriorityFeePerGasAtoken: bigint;
  readonly gasLimit: bigint;
  /** Undefined creates a contract. */
  readonly to: Address | undefined;
  readonly valueAtoken: bigint;
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

/** Price that is really paid with base fee 0: the price, or min(maxFee, tip) for type 2 (D7). */
export function effectiveGasPriceAtoken(tx: SignedTransaction): bigint {
  return tx.maxFeePerGasAtoken < tx.maxPriorityFeePerGasAtoken
    ? tx.maxFeePerGasAtoken
    : tx.maxPriorityFeePerGasAtoken;
}

/** Fields of a legacy transaction before it is signed. */
export interface LegacyIntent {
  readonly chainId: bigint;
  readonly nonce: bigint;
  readonly gasPriceAtoken: bigint;
  readonly gasLimit: bigint;
  readonly to: Address | undefined;
  readonly valueAtoken: bigint;
  readonly data: Uint8Array;
}

function legacyFields(intent: LegacyIntent): RlpInput[] {
  return [
    bigintToBytes(intent.nonce),
    bigintToBytes(intent.gasPriceAtoken),
    bigintToBytes(intent.gasLimit),
    intent.to === undefined ? new Uint8Array(0) : addressToBytes(intent.to),
    bigintToBytes(intent.valueAtoken),
    intent.data,
  ];
}

/** Digest to sign for a legacy transaction: keccak256 of its EIP-155 payload. */
export function legacySigningDigest(intent: LegacyIntent): Uint8Array {
  const chain = [bigintToBytes(intent.chainId), new Uint8Array(0), new Uint8Array(0)];
  return keccak256(encodeRlp([...legacyFields(intent), ...chain]));
}

/** Puts a signature on a legacy transaction and returns the raw bytes (EIP-155 v). */
export function encodeSignedLegacy(
  intent: LegacyIntent,
  signature: { r: Uint8Array; s: Uint8Array; recoveryId: number },
): Uint8Array {
  const v = 35n + 2n * intent.chainId + BigInt(signature.recoveryId);
  const { r, s } = signature;
  const tail = [bigintToBytes(v), stripLeadingZeros(r), stripLeadingZeros(s)];
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

/**
 * Untrusted raw bytes to a transaction; the signature's ranges are checked, its signer is not.
 * @throws INVALID_TRANSACTION, INVALID_RLP, UNSUPPORTED_TRANSACTION_TYPE, UNPROTECTED_TRANSACTION
 */
export function decodeTransaction(raw: Uint8Array): SignedTransaction {
  const first = raw[0];
  if (first === undefined) throw new ChainError("INVALID_TRANSACTION", "transaction is empty");
  if (first >= 0xc0) return decodeLegacy(raw);
  if (first === 1 || first === 2) return decodeTyped(raw, first);
  throw new ChainError("UNSUPPORTED_TRANSACTION_TYPE", "transaction type not supported", {
    details: { type: first },
  });
}

function fieldsOf(bytes: Uint8Array, count: number): RlpItem[] {
  const fields = rlpList(decodeRlp(bytes));
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

function decodeLegacy(raw: Uint8Array): SignedTransaction {
  const [nonce, price, gas, to, value, data, v, r, s] = fieldsOf(raw, 9);
  const wireV = rlpInteger(v);
  if (wireV < 35n) {
    throw new ChainError(
      "UNPROTECTED_TRANSACTION",
      "only replay-protected (EIP-155) transactions allowed over RPC",
    );
  }
  const gasPriceAtoken = rlpInteger(price);
  return checkSignature({
    type: 0,
    chainId: (wireV - 35n) / 2n,
    nonce: uint64(nonce),
    maxFeePerGasAtoken: gasPriceAtoken,
    maxPriorityFeePerGasAtoken: gasPriceAtoken,
    gasLimit: uint64(gas),
    to: decodeTo(to),
    valueAtoken: rlpInteger(value),
    data: rlpBytes(data),
    accessList: [],
    v: wireV,
    r: rlpInteger(r),
    s: rlpInteger(s),
    raw,
    hash: keccak256Hex(raw),
  });
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

function decodeTyped(raw: Uint8Array, type: 1 | 2): SignedTransaction {
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
    hash: keccak256Hex(raw),
  });
}

/** Refuses r or s outside the group and the upper half of s (EIP-2). */
function checkSignature(tx: SignedTransaction): SignedTransaction {
  const inRange = tx.r > 0n && tx.s > 0n && tx.r < SECP256K1_ORDER && tx.s <= SECP256K1_ORDER / 2n;
  if (!inRange) throw new ChainError("INVALID_SIGNATURE", "invalid transaction v, r, s values");
  return tx;
}

/** 0 or 1: which of the two points the signature recovers. */
export function signatureParity(tx: SignedTransaction): number {
  return tx.type === 0 ? Number((tx.v - 35n) % 2n) : Number(tx.v);
}

/** Digest that the sender signed. */
export function signingDigest(tx: SignedTransaction): Uint8Array {
  if (tx.type === 0) {
    return legacySigningDigest({ ...tx, gasPriceAtoken: tx.maxFeePerGasAtoken });
  }
  const fields = rlpList(decodeRlp(tx.raw.subarray(1)));
  const payload = encodeRlp(fields.slice(0, fields.length - 3));
  return keccak256(Buffer.concat([Uint8Array.of(tx.type), payload]));
}

/**
 * Recovers the sender; about 45 us with the native back-end, so it is done once, at admission.
 * @throws INVALID_SIGNATURE
 */
export function recoverSender(tx: SignedTransaction, backend = secp256k1): Address {
  const compact = Buffer.concat([bigintToWord(tx.r), bigintToWord(tx.s)]);
  const publicKey = backend.recover(signingDigest(tx), compact, signatureParity(tx));
  if (publicKey === undefined) {
    throw new ChainError("INVALID_SIGNATURE", "the signature recovers no public key");
  }
  return publicKeyToAddress(publicKey);
}

/** Decodes raw hex that this kit stored or encoded itself. */
export function decodeTransactionHex(hex: string): SignedTransaction {
  return decodeTransaction(hexToBytes(hex));
}
