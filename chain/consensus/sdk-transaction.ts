/**
 * The SDK transaction that wraps an EVM transaction in a consensus block (D20), encoded as
 * cosmos/evm does: Tx{body{messages:[MsgEthereumTx{from=5, raw=6}], extension_options:
 * [ExtensionOptionsEthereumTx]}, auth_info{fee{amount, gas_limit}}}, without signatures.
 */
import { type Address, addressToBytes } from "../address.js";
import { ProtoWriter } from "./protobuf.js";
import { sha256Hex } from "../hashes.js";
import type { Hash32 } from "../hex.js";
import { effectiveGasPriceAtoken, type SignedTransaction } from "../transaction.js";
import { BASE_DENOM } from "../units.js";

const MESSAGE_TYPE_URL = "/cosmos.evm.vm.v1.MsgEthereumTx";
const EXTENSION_TYPE_URL = "/cosmos.evm.vm.v1.ExtensionOptionsEthereumTx";

const EXTENSION_OPTIONS_FIELD = 1023;

/** Fields that are the same in every transaction. */
const MESSAGE_TYPE = new ProtoWriter().bytes(1, MESSAGE_TYPE_URL).finish();
const EXTENSION = new ProtoWriter()
  .message(EXTENSION_OPTIONS_FIELD, new ProtoWriter().bytes(1, EXTENSION_TYPE_URL))
  .finish();
const DENOM = new ProtoWriter().bytes(1, BASE_DENOM).finish();

/** Deterministic protobuf bytes of the SDK Tx around one EVM transaction. */
export function encodeSdkTransaction(tx: SignedTransaction, from: Address): Buffer {
  const feeAtoken = effectiveGasPriceAtoken(tx) * tx.gasLimit;
  const message = new ProtoWriter().bytes(5, addressToBytes(from)).bytes(6, tx.raw);
  const any = new ProtoWriter().encoded(MESSAGE_TYPE).message(2, message);
  const body = new ProtoWriter().message(1, any).encoded(EXTENSION);
  const fee = new ProtoWriter();
  if (feeAtoken > 0n) {
    fee.message(1, new ProtoWriter().encoded(DENOM).bytes(2, feeAtoken.toString()));
  }
  fee.integer(2, tx.gasLimit);
  const writer = new ProtoWriter().message(1, body);
  // Without a fee and without gas there is nothing to say of them.
  if (feeAtoken > 0n || tx.gasLimit > 0n) writer.message(2, new ProtoWriter().message(2, fee));
  return writer.finish();
}

/** Consensus hash of the transaction: SHA-256 of its SDK Tx. */
export function sdkTransactionHash(tx: SignedTransaction, from: Address): Hash32 {
  return sha256Hex(encodeSdkTransaction(tx, from));
}
