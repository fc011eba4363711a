/**
 * The SDK transaction that wraps an EVM transaction in a consensus block (D20), encoded as
 * cosmos/evm does: Tx{body{messages:[MsgEthereumTx{from=5, raw=6}], extension_options:
 * [ExtensionOptionsEthereumTx]}, auth_info{fee{amount, gas_limit}}}, without signatures.
 */
import { type Address, addressToBytes } from "./address.js";
import { sha256 } from "./crypto.js";
import { bytesToHash32, type Hash32 } from "./hex.js";
import { effectiveGasPriceAtoken, type SignedTransaction } from "./transaction.js";
import { BASE_DENOM } from "./units.js";

const MESSAGE_TYPE_URL = "/cosmos.evm.vm.v1.MsgEthereumTx";
const EXTENSION_TYPE_URL = "/cosmos.evm.vm.v1.ExtensionOptionsEthereumTx";

/** Base-128 varint of a length, a tag or a gas limit: all far below 2^53. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** Protobuf field of wire type 2; empty values are left out, as proto3 does. */
function bytesField(field: number, value: Uint8Array): Buffer {
  if (value.length === 0) return Buffer.alloc(0);
  return Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);
}

function stringField(field: number, value: string): Buffer {
  return bytesField(field, Buffer.from(value, "utf8"));
}

function uint64Field(field: number, value: bigint): Buffer {
  if (value === 0n) return Buffer.alloc(0);
  return Buffer.concat([varint(field << 3), varint(Number(value))]);
}

const EXTENSION = bytesField(1023, stringField(1, EXTENSION_TYPE_URL));

/** Deterministic protobuf bytes of the SDK Tx around one EVM transaction. */
export function encodeSdkTransaction(tx: SignedTransaction, from: Address): Buffer {
  const message = Buffer.concat([bytesField(5, addressToBytes(from)), bytesField(6, tx.raw)]);
  const anyMessage = Buffer.concat([stringField(1, MESSAGE_TYPE_URL), bytesField(2, message)]);
  const body = Buffer.concat([bytesField(1, anyMessage), EXTENSION]);
  const feeAtoken = effectiveGasPriceAtoken(tx) * tx.gasLimit;
  const coin =
    feeAtoken === 0n
      ? Buffer.alloc(0)
      : Buffer.concat([stringField(1, BASE_DENOM), stringField(2, feeAtoken.toString())]);
  const fee = Buffer.concat([bytesField(1, coin), uint64Field(2, tx.gasLimit)]);
  return Buffer.concat([bytesField(1, body), bytesField(2, bytesField(2, fee))]);
}

/** Consensus hash of the transaction: SHA-256 of its SDK Tx. */
export function sdkTransactionHash(tx: SignedTransaction, from: Address): Hash32 {
  return bytesToHash32(sha256(encodeSdkTransaction(tx, from)));
}

/**
 * RFC 6962 Merkle root over leaves, as CometBFT computes `data_hash` over transaction hashes.
 * No leaves give SHA-256 of nothing.
 */
export function merkleRoot(leaves: readonly Uint8Array[]): Uint8Array {
  let level = leaves.map((leaf) => sha256(Buffer.concat([Uint8Array.of(0), leaf])));
  // Pairing left to right and carrying an odd last node up equals RFC 6962's split at the largest
  // power of two below the count.
  while (level.length > 1) {
    const next: Uint8Array[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const pair = level.slice(index, index + 2);
      next.push(
        ...(pair.length === 2 ? [sha256(Buffer.concat([Uint8Array.of(1), ...pair]))] : pair),
      );
    }
    level = next;
  }
  return level[0] ?? sha256(new Uint8Array(0));
}
