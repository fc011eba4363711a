/**
 * The SDK transaction that wraps an EVM transaction in a consensus block (D20), encoded as
 * cosmos/evm does: Tx{body{messages:[MsgEthereumTx{from=5, raw=6}], extension_options:
 * [ExtensionOptionsEthereumTx]}, auth_info{fee{amount, gas_limit}}}, without signatures.
 */
import type { Address } from "../address.js";
import { ProtoWriter, varintBytes, writeVarint } from "../protobuf/wire.js";
import { sha256Hex } from "../hashes.js";
import { type Hash32, writeHex } from "../hex.js";
import { effectiveGasPriceAtoken, type SignedTransaction } from "../transaction.js";
import { type Atoken, BASE_DENOM } from "../units.js";

const MESSAGE_TYPE_URL = "/cosmos.evm.vm.v1.MsgEthereumTx";
const EXTENSION_TYPE_URL = "/cosmos.evm.vm.v1.ExtensionOptionsEthereumTx";

const EXTENSION_OPTIONS_FIELD = 1023;

/** Fields that are the same in every transaction. */
const MESSAGE_TYPE = new ProtoWriter().bytes(1, MESSAGE_TYPE_URL).finish();
const EXTENSION = new ProtoWriter()
  .message(EXTENSION_OPTIONS_FIELD, new ProtoWriter().bytes(1, EXTENSION_TYPE_URL))
  .finish();
const DENOM = new ProtoWriter().bytes(1, BASE_DENOM).finish();

/** Tags of fields of bytes with a number below 16. */
const tagOf = (field: number): number => (field << 3) | 2;

const ADDRESS_BYTES = 20;

/**
 * Deterministic protobuf bytes of the SDK Tx around one EVM transaction. Written in place, because it is
 * asked for each transaction several times on its way into a block.
 */
export function encodeSdkTransaction(tx: SignedTransaction, from: Address): Buffer {
  const { raw } = tx;
  const authInfo = authInfoOf(tx);
  const messageBytes = fieldBytes(ADDRESS_BYTES) + fieldBytes(raw.length);
  const anyBytes = MESSAGE_TYPE.length + fieldBytes(messageBytes);
  const bodyBytes = fieldBytes(anyBytes) + EXTENSION.length;
  const target = Buffer.allocUnsafe(fieldBytes(bodyBytes) + authInfo.length);
  let at = writeFieldHeader(target, 0, 1, bodyBytes);
  at = writeFieldHeader(target, at, 1, anyBytes);
  target.set(MESSAGE_TYPE, at);
  at = writeFieldHeader(target, at + MESSAGE_TYPE.length, 2, messageBytes);
  at = writeFieldHeader(target, at, 5, ADDRESS_BYTES);
  at = writeHex(target, at, from);
  at = writeFieldHeader(target, at, 6, raw.length);
  target.set(raw, at);
  target.set(EXTENSION, at + raw.length);
  target.set(authInfo, at + raw.length + EXTENSION.length);
  return target;
}

/** Size of a field of so many bytes with its tag and length. */
function fieldBytes(length: number): number {
  return 1 + varintBytes(length) + length;
}

/** @returns where the field's content goes */
function writeFieldHeader(target: Buffer, at: number, field: number, length: number): number {
  target[at] = tagOf(field);
  return writeVarint(target, at + 1, length);
}

/** The last fee and gas limit that were asked for, encoded: most transactions of a block have the same. */
let lastAuthInfo: { feeAtoken: Atoken; gasLimit: bigint; bytes: Uint8Array } = {
  feeAtoken: 0n,
  gasLimit: 0n,
  bytes: Buffer.alloc(0),
};

/** The field auth_info; nothing where there is neither fee nor gas to tell of. */
function authInfoOf(tx: SignedTransaction): Uint8Array {
  const { gasLimit } = tx;
  const feeAtoken = effectiveGasPriceAtoken(tx) * gasLimit;
  if (feeAtoken === lastAuthInfo.feeAtoken && gasLimit === lastAuthInfo.gasLimit) {
    return lastAuthInfo.bytes;
  }
  const fee = new ProtoWriter();
  if (feeAtoken > 0n) {
    fee.message(1, new ProtoWriter().encoded(DENOM).bytes(2, feeAtoken.toString()));
  }
  fee.integer(2, gasLimit);
  const bytes = new ProtoWriter().message(2, new ProtoWriter().message(2, fee)).finish();
  lastAuthInfo = { feeAtoken, gasLimit, bytes };
  return bytes;
}

/** Consensus hash of the transaction, the SHA-256 of its SDK Tx, and the length of that. */
export function measureSdkTransaction(
  tx: SignedTransaction,
  from: Address,
): { readonly hash: Hash32; readonly sizeBytes: number } {
  const bytes = encodeSdkTransaction(tx, from);
  return { hash: sha256Hex(bytes), sizeBytes: bytes.length };
}

/** Consensus hash of the transaction alone. */
export function sdkTransactionHash(tx: SignedTransaction, from: Address): Hash32 {
  return measureSdkTransaction(tx, from).hash;
}
