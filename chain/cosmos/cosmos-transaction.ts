/**
 * Cosmos transactions: `cosmos.tx.v1beta1.TxRaw` with one signer. Every transaction has one
 * encoding, so that nobody but its signer can make the same transaction under another hash: what
 * the encoder would have written otherwise is refused.
 */
import { type Address, parseBech32, publicKeyToAddress, VALIDATOR_PREFIX } from "../address.js";
import { ChainError } from "../errors.js";
import { invalidMessage, ProtoReader, ProtoWriter } from "../protobuf/wire.js";
import { parsePublicKey } from "../crypto.js";
import { keccak256Hex, sha256Hex } from "../hashes.js";
import type { Hash32 } from "../hex.js";
import type { SignedTransaction } from "../transaction.js";
import { BASE_DENOM, type Atoken } from "../units.js";
import {
  type AnyMessage,
  decodeAny,
  encodeAny,
  MessageRoom,
  type MessageSchema,
  type ProtoMessage,
  type ProtoValue,
  takeRoomOfAny,
} from "./field-schema.js";
import { schemaOf } from "./message-schemas.js";

/** Ways of signing that are accepted (`cosmos.tx.signing.v1beta1.SignMode`). */
export const SIGN_MODES = { direct: 1, aminoJson: 127 } as const;

/** Type URLs of ethsecp256k1 keys: all three name the same 33 bytes. */
export const PUBLIC_KEY_TYPE_URLS: readonly string[] = [
  "/cosmos.evm.crypto.v1.ethsecp256k1.PubKey",
  "/ethermint.crypto.v1.ethsecp256k1.PubKey",
  "/injective.crypto.v1beta1.ethsecp256k1.PubKey",
];

/** Messages of one transaction, at most. */
const MAX_MESSAGES = 100;

/** All that lie in each other: sends to 1,170 accounts, all that gas allows, have 2,400. */
const MAX_MESSAGES_INSIDE = 2_560;

/** The same with body, signers and fee around them: what is shown to whoever sends it, and not more. */
export const MAX_SHOWN_MESSAGES = MAX_MESSAGES_INSIDE + 100;

/** Coins of a fee, and extension options, that are read before they are refused. */
const MAX_LIST = 8;

const EXTENSION_OPTIONS = 1023;
const NON_CRITICAL_OPTIONS = 2047;

/** One coin as transactions name it. */
export interface Coin {
  readonly denom: string;
  /** Decimal text as it was sent. */
  readonly amount: string;
}

/** A decoded transaction; its signature is not verified yet. */
export interface CosmosTransaction {
  /** What tells it from an EVM transaction. */
  readonly type: "cosmos";
  /** The signed `TxRaw` exactly as received. */
  readonly raw: Uint8Array;
  /** SHA-256 of `raw`: its only hash. */
  readonly hash: Hash32;
  readonly bodyBytes: Uint8Array;
  readonly authInfoBytes: Uint8Array;
  readonly messages: readonly AnyMessage[];
  /** All messages, those that lie in others included. */
  readonly messageCount: number;
  readonly memo: string;
  /** 0 where there is none. */
  readonly timeoutHeight: bigint;
  /** `google.protobuf.Timestamp` as it came; undefined where there is none. */
  readonly timeoutTimestamp: Uint8Array | undefined;
  /** Sequence of the signer: the nonce that EVM transactions count, too. */
  readonly nonce: bigint;
  readonly gasLimit: bigint;
  readonly fee: readonly Coin[];
  /** Fee in atoken: it is paid in full, whatever gas is used. */
  readonly feeAtoken: Atoken;
  /** Account named to pay the fee, "" where the signer does. */
  readonly feePayer: string;
  readonly feeGranter: string;
  /** Type URLs of extension options, critical ones first. */
  readonly extensionOptions: readonly string[];
  readonly isUnordered: boolean;
  readonly signMode: number;
  /** Type URL of the signer's key; undefined where no key is given. */
  readonly publicKeyTypeUrl: string | undefined;
  /** 33 bytes. */
  readonly publicKey: Uint8Array;
  /** As it came: 64 bytes, r then s, or something else that is refused later. */
  readonly signature: Uint8Array;
  /** Accounts that the messages want to sign, each once. */
  readonly signers: readonly Address[];
}

/** A transaction of either kind. */
export type AnyTransaction = SignedTransaction | CosmosTransaction;

/** True for bytes that can only be a Cosmos transaction: EVM ones begin otherwise. */
export function isCosmosBytes(bytes: Uint8Array): boolean {
  return bytes[0] === 0x0a;
}

/** The hash by which a transaction of either kind is named, of its raw bytes. */
export function hashOfRaw(raw: Uint8Array): Hash32 {
  return isCosmosBytes(raw) ? sha256Hex(raw) : keccak256Hex(raw);
}

/**
 * Untrusted bytes to a transaction; size and signature are for the caller to check.
 * @param options.isSimulated nobody signs what is simulated, so its encoding may be any
 * @param options.isTaken of a block or a pool's journal: it is read whatever the bounds are now
 * @throws INVALID_MESSAGE with what is wrong
 */
export function decodeCosmosTransaction(
  raw: Uint8Array,
  options: { readonly isSimulated?: boolean; readonly isTaken?: boolean } = {},
): CosmosTransaction {
  // A copy: a large body is not to be kept alive by one of its transactions.
  const bytes = Uint8Array.from(raw);
  const reader = new ProtoReader(bytes, [1, 2], { 3: MAX_LIST });
  const [bodyBytes, authInfoBytes] = [reader.bytes(1), reader.bytes(2)];
  const signatures = reader.repeated(3);
  const room = new MessageRoom(options.isTaken === true ? Infinity : MAX_MESSAGES_INSIDE);
  const body = decodeBody(bodyBytes, room);
  const auth = decodeAuthInfo(authInfoBytes);
  const [signature, ...otherSignatures] = signatures;
  if (otherSignatures.length > 0 || auth.signerCount > 1) {
    throw invalidMessage("more than one signature: transactions have one signer on this chain");
  }
  const transaction: CosmosTransaction = {
    type: "cosmos",
    raw: bytes,
    hash: sha256Hex(bytes),
    bodyBytes,
    authInfoBytes,
    messages: body.messages,
    messageCount: room.taken,
    memo: body.memo,
    timeoutHeight: body.timeoutHeight,
    timeoutTimestamp: body.timeoutTimestamp,
    extensionOptions: body.extensionOptions,
    isUnordered: body.isUnordered,
    nonce: auth.nonce,
    gasLimit: auth.gasLimit,
    fee: auth.fee,
    feeAtoken: auth.feeAtoken,
    feePayer: auth.feePayer,
    feeGranter: auth.feeGranter,
    signMode: auth.signMode,
    publicKeyTypeUrl: auth.publicKeyTypeUrl,
    publicKey: auth.publicKey,
    signature: signature ?? new Uint8Array(0),
    signers: signersOf(body.messages),
  };
  if (options.isSimulated === true) return transaction;
  const canonical = encodeRaw(body, auth, signatures);
  if (Buffer.compare(canonical, bytes) !== 0) {
    throw invalidMessage("the transaction is not in its canonical encoding");
  }
  return transaction;
}

/**
 * The gas limit of a transaction, without a look at what it asks for: its body alone may take long.
 * @param raw untrusted
 * @throws INVALID_MESSAGE where what stands around the body cannot be read
 */
export function gasLimitOfRaw(raw: Uint8Array): bigint {
  return authInfoOfRaw(raw).gasLimit;
}

/**
 * Whose key a transaction names, and its sequence, without a look at its body either.
 * @param raw untrusted; whether the key has signed it is not looked at
 * @returns undefined where it names no key of this chain's
 * @throws INVALID_MESSAGE where what stands around the body cannot be read
 */
export function keyedSequenceOfRaw(
  raw: Uint8Array,
): { readonly address: Address; readonly nonce: bigint } | undefined {
  const auth = authInfoOfRaw(raw);
  const signer = signerOf(auth);
  return signer === undefined ? undefined : { address: signer.address, nonce: auth.nonce };
}

function authInfoOfRaw(raw: Uint8Array): AuthInfo {
  return decodeAuthInfo(new ProtoReader(raw, [1, 2], { 3: MAX_LIST }).bytes(2));
}

/**
 * Whether a transaction has more messages in each other than any pool takes, without decoding it: what lies
 * behind the first one too many is not looked at.
 * @param raw untrusted; of what cannot be read counts what comes before that
 */
export function hasTooManyMessages(raw: Uint8Array): boolean {
  // A message is two bytes on the wire at least: most transactions need no look.
  if (raw.length <= 2 * MAX_MESSAGES_INSIDE) return false;
  const room = new MessageRoom(MAX_MESSAGES_INSIDE);
  try {
    const body = bodyReader(new ProtoReader(raw, [1, 2], { 3: MAX_LIST }).bytes(1));
    for (const item of body.repeated(1)) takeRoomOfAny(item, schemaOf, { depth: 0, room });
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
  }
  return room.isExceeded;
}

type Body = Pick<
  CosmosTransaction,
  "messages" | "memo" | "timeoutHeight" | "timeoutTimestamp" | "extensionOptions" | "isUnordered"
> & { readonly options: BodyOptions };

interface BodyOptions {
  readonly critical: readonly Uint8Array[];
  readonly nonCritical: readonly Uint8Array[];
}

function bodyReader(bytes: Uint8Array): ProtoReader {
  return new ProtoReader(bytes, [2, 3, 4, 5], {
    1: MAX_MESSAGES,
    [EXTENSION_OPTIONS]: MAX_LIST,
    [NON_CRITICAL_OPTIONS]: MAX_LIST,
  });
}

function decodeBody(bytes: Uint8Array, room: MessageRoom): Body {
  const reader = bodyReader(bytes);
  const critical = reader.repeated(EXTENSION_OPTIONS);
  const nonCritical = reader.repeated(NON_CRITICAL_OPTIONS);
  const typeUrlOf = (option: Uint8Array) => new ProtoReader(option, [1, 2]).text(1);
  return {
    messages: reader.repeated(1).map((item) => decodeAny(item, schemaOf, { depth: 0, room })),
    memo: reader.text(2),
    timeoutHeight: BigInt.asUintN(64, reader.int64(3)),
    isUnordered: reader.int64(4) !== 0n,
    timeoutTimestamp: reader.has(5) ? Uint8Array.from(reader.bytes(5)) : undefined,
    extensionOptions: [...critical, ...nonCritical].map(typeUrlOf),
    options: { critical, nonCritical },
  };
}

type AuthInfo = Pick<
  CosmosTransaction,
  | "nonce"
  | "gasLimit"
  | "fee"
  | "feeAtoken"
  | "feePayer"
  | "feeGranter"
  | "signMode"
  | "publicKeyTypeUrl"
  | "publicKey"
> & { readonly signerCount: number; readonly hasFee: boolean };

/** Fields of `ModeInfo`: how one key has signed, or several behind one address. */
const [SINGLE, MULTI] = [1, 2];

/** Type URL of the SDK's key of several signers, whose address is that of no key here. */
const MULTI_SIGNATURE_KEY = "/cosmos.crypto.multisig.LegacyAminoPubKey";

/** What its owners are told: nothing else says why coins at that address do not move. */
const MULTI_SIGNATURE_TEXT =
  "multi-signature keys are not supported, and nobody can sign for their addresses: a transaction " +
  "has one signer with one key, and an account of several people is a contract";

function decodeAuthInfo(bytes: Uint8Array): AuthInfo {
  const reader = new ProtoReader(bytes, [2], { 1: MAX_LIST });
  const infos = reader.repeated(1);
  const info = new ProtoReader(infos[0] ?? new Uint8Array(0), [1, 2, 3]);
  const key = info.has(1) ? new ProtoReader(info.bytes(1), [1, 2]) : undefined;
  const mode = new ProtoReader(info.bytes(2), [SINGLE, MULTI]);
  if (key?.text(1) === MULTI_SIGNATURE_KEY || mode.has(MULTI)) {
    throw new ChainError("INVALID_MESSAGE", MULTI_SIGNATURE_TEXT);
  }
  const single = new ProtoReader(mode.bytes(SINGLE), [1]);
  const fee = new ProtoReader(reader.bytes(2), [2, 3, 4], { 1: MAX_LIST });
  const coins = fee.repeated(1).map((item) => {
    const coin = new ProtoReader(item, [1, 2]);
    return { denom: coin.text(1), amount: coin.text(2) };
  });
  return {
    signerCount: infos.length,
    publicKeyTypeUrl: key?.text(1),
    publicKey: key === undefined ? new Uint8Array(0) : new ProtoReader(key.bytes(2), [1]).bytes(1),
    signMode: single.count(1),
    nonce: BigInt.asUintN(64, info.int64(3)),
    hasFee: reader.has(2),
    fee: coins,
    feeAtoken: coins.length === 1 && coins[0] !== undefined ? (amountOf(coins[0]) ?? 0n) : 0n,
    gasLimit: BigInt.asUintN(64, fee.int64(2)),
    feePayer: fee.text(3),
    feeGranter: fee.text(4),
  };
}

/** The one encoding of what was read. */
function encodeRaw(body: Body, auth: AuthInfo, signatures: readonly Uint8Array[]): Buffer {
  const bodyWriter = new ProtoWriter();
  for (const one of body.messages) bodyWriter.message(1, encodeAny(one));
  bodyWriter
    .bytes(2, body.memo)
    .integer(3, body.timeoutHeight)
    .integer(4, body.isUnordered ? 1 : 0);
  if (body.timeoutTimestamp !== undefined) bodyWriter.message(5, body.timeoutTimestamp);
  for (const option of body.options.critical) bodyWriter.message(EXTENSION_OPTIONS, option);
  for (const option of body.options.nonCritical) bodyWriter.message(NON_CRITICAL_OPTIONS, option);
  const authWriter = new ProtoWriter();
  if (auth.signerCount > 0) {
    const info = new ProtoWriter();
    if (auth.publicKeyTypeUrl !== undefined) {
      const key = new ProtoWriter().bytes(1, auth.publicKey).finish();
      info.message(1, new ProtoWriter().bytes(1, auth.publicKeyTypeUrl).bytes(2, key));
    }
    const single = new ProtoWriter().integer(1, auth.signMode);
    info.message(2, new ProtoWriter().message(1, single)).integer(3, auth.nonce);
    authWriter.message(1, info);
  }
  if (auth.hasFee) {
    const fee = new ProtoWriter();
    for (const { denom, amount } of auth.fee) {
      fee.message(1, new ProtoWriter().bytes(1, denom).bytes(2, amount));
    }
    fee.integer(2, auth.gasLimit).bytes(3, auth.feePayer).bytes(4, auth.feeGranter);
    authWriter.message(2, fee);
  }
  const writer = new ProtoWriter().bytes(1, bodyWriter.finish()).bytes(2, authWriter.finish());
  for (const signature of signatures) writer.message(3, signature);
  return writer.finish();
}

/** Amount of a coin of this chain's denomination; undefined for any other text or denomination. */
export function amountOf({ denom, amount }: Coin): bigint | undefined {
  if (denom !== BASE_DENOM || !/^(0|[1-9][0-9]{0,77})$/.test(amount)) return undefined;
  const atoken = BigInt(amount);
  return atoken < 1n << 256n ? atoken : undefined;
}

/** A field that holds a text; "" where it holds something else. */
export function textOf(message: ProtoMessage, field: string): string {
  const value = message[field];
  return typeof value === "string" ? value : "";
}

/** A field that holds a list of messages. */
export function listOf(value: ProtoValue): readonly ProtoMessage[] {
  return Array.isArray(value) ? (value as readonly ProtoMessage[]) : [];
}

/** A field that holds coins. */
export function coinsOf(value: ProtoValue): readonly Coin[] {
  const list = value === undefined || Array.isArray(value) ? listOf(value) : [value];
  return (list as readonly ProtoMessage[]).map((one) => ({
    denom: textOf(one, "denom"),
    amount: textOf(one, "amount"),
  }));
}

/**
 * Accounts whose signatures the messages ask for, each once, in order.
 * @throws INVALID_MESSAGE for a signer that is no address
 */
function signersOf(messages: readonly AnyMessage[]): Address[] {
  const signers = new Set<Address>();
  for (const { schema, message } of messages) {
    for (const text of signerTexts(schema, message)) signers.add(parseSigner(text));
  }
  return [...signers];
}

function signerTexts(schema: MessageSchema, message: ProtoMessage): readonly string[] {
  const { signer } = schema;
  if (signer === undefined) throw invalidMessage(`${schema.name} is no message of a transaction`);
  const value = message[signer];
  if (typeof value === "string") return [value];
  return listOf(value).map((input) => textOf(input, "address"));
}

function parseSigner(text: string): Address {
  try {
    return text.startsWith(`${VALIDATOR_PREFIX}1`)
      ? parseBech32(text, VALIDATOR_PREFIX)
      : parseBech32(text);
  } catch {
    throw invalidMessage(`the signer ${JSON.stringify(text.slice(0, 120))} is no address`);
  }
}

/** Who a key belongs to, and the key as a point (64 bytes). */
interface Signer {
  readonly address: Address;
  readonly point: Uint8Array;
}

/** A compressed key takes a tenth of a millisecond to expand, and every rule asks for it. */
const signersOfTransactions = new WeakMap<object, Signer | undefined>();

/** Address of the key that the transaction names; undefined where it names no usable one. */
export function signerOf(
  tx: Pick<CosmosTransaction, "publicKey" | "publicKeyTypeUrl">,
): Signer | undefined {
  if (signersOfTransactions.has(tx)) return signersOfTransactions.get(tx);
  const signer = expandSigner(tx);
  signersOfTransactions.set(tx, signer);
  return signer;
}

function expandSigner(
  tx: Pick<CosmosTransaction, "publicKey" | "publicKeyTypeUrl">,
): Signer | undefined {
  const { publicKey, publicKeyTypeUrl } = tx;
  if (publicKeyTypeUrl === undefined || !PUBLIC_KEY_TYPE_URLS.includes(publicKeyTypeUrl)) {
    return undefined;
  }
  if (publicKey.length !== 33) return undefined;
  try {
    const point = parsePublicKey(publicKey);
    return { address: publicKeyToAddress(point), point };
  } catch {
    return undefined;
  }
}
