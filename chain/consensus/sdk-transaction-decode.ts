/**
 * Reads the SDK transaction around an EVM transaction (D20). There is one encoding of each, so
 * whatever the encoder would have written otherwise is refused.
 */
import { type Address, bytesToAddress } from "../address.js";
import { invalidMessage, ProtoReader } from "../protobuf/wire.js";
import { encodeSdkTransaction } from "./sdk-transaction.js";
import { decodeTransaction, type SignedTransaction } from "../transaction.js";

/** What an SDK transaction holds. */
export interface SdkTransaction {
  /** The signed EVM transaction's bytes. */
  readonly raw: Uint8Array;
  /** The sender as it is claimed; only the signature in `tx` proves it. */
  readonly from: Address;
  /** `raw`, decoded. */
  readonly tx: SignedTransaction;
}

/** Where the type URL of the first message begins: behind three tags with their lengths. */
const MESSAGE_MARK = Buffer.from("/cosmos.evm.vm.v1.MsgEthereumTx", "ascii");
const LONGEST_MARK_START = 16;

/** True for bytes that can only be the SDK Tx around an EVM transaction. */
export function wrapsEthereum(bytes: Uint8Array): boolean {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 64));
  const at = start.indexOf(MESSAGE_MARK);
  return at >= 0 && at <= LONGEST_MARK_START;
}

/**
 * Untrusted bytes to an SDK transaction. Fee, gas limit and every field around the message must
 * be what the EVM transaction says.
 * @throws INVALID_MESSAGE, and what `decodeTransaction` throws
 */
export function decodeSdkTransaction(bytes: Uint8Array): SdkTransaction {
  const body = new ProtoReader(new ProtoReader(bytes, [1, 2]).bytes(1), [1, 1023]);
  const message = new ProtoReader(new ProtoReader(body.bytes(1), [1, 2]).bytes(2), [5, 6]);
  const sender = message.bytes(5);
  if (sender.length !== 20) throw invalidMessage("the sender is not 20 bytes");
  // A copy: a large body is not to be kept alive by one of its transactions.
  const raw = Uint8Array.from(message.bytes(6));
  const tx = decodeTransaction(raw);
  const from = bytesToAddress(sender);
  if (Buffer.compare(encodeSdkTransaction(tx, from), bytes) !== 0) {
    throw invalidMessage("the transaction is not in its canonical encoding");
  }
  return { raw, from, tx };
}
