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
function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Uint8Array.from(bytes);
}

/** Parts of an encoding that are put together once, at the end, with their size. */
class Parts {
  readonly parts: Uint8Array[] = [];
  sizeBytes = 0;

  add(...parts: readonly Uint8Array[]): this {
    for (const part of parts) {
      this.parts.push(part);
      this.sizeBytes += part.length;
    }
    return this;
  }

  /** A field of wire type 2 around parts; an empty one is left out, as proto3 does. */
  field(field: number, content: Parts): this {
    if (content.sizeBytes === 0) return this;
    return this.add(varint((field << 3) | 2), varint(content.sizeBytes), ...content.parts);
  }

  bytes(field: number, value: Uint8Array): this {
    return this.field(field, new Parts().add(value));
  }

  text(field: number, value: string): this {
    return this.bytes(field, Buffer.from(value, "utf8"));
  }

  /** A field of wire type 0; zero is left out. */
  uint64(field: number, value: bigint): this {
    return value === 0n ? this : this.add(varint(field << 3), varint(Number(value)));
  }
}

const MESSAGE_TYPE = Buffer.concat(new Parts().text(1, MESSAGE_TYPE_URL).parts);
const EXTENSION = Buffer.concat(
  new Parts().field(1023, new Parts().text(1, EXTENSION_TYPE_URL)).parts,
);
const DENOM = Buffer.concat(new Parts().text(1, BASE_DENOM).parts);

/** Deterministic protobuf bytes of the SDK Tx around one EVM transaction. */
export function encodeSdkTransaction(tx: SignedTransaction, from: Address): Buffer {
  const message = new Parts().bytes(5, addressToBytes(from)).bytes(6, tx.raw);
  const anyMessage = new Parts().add(MESSAGE_TYPE).field(2, message);
  const body = new Parts().field(1, anyMessage).add(EXTENSION);
  const feeAtoken = effectiveGasPriceAtoken(tx) * tx.gasLimit;
  const coin = new Parts();
  if (feeAtoken > 0n) coin.add(DENOM).text(2, feeAtoken.toString());
  const fee = new Parts().field(1, coin).uint64(2, tx.gasLimit);
  const authInfo = new Parts().field(2, fee);
  const all = new Parts().field(1, body).field(2, authInfo);
  return Buffer.concat(all.parts, all.sizeBytes);
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
