/** Sending a signed transaction: the same bytes may come as often as they like. */
import { bytesToHex, type Hash32 } from "../../chain/hex.js";
import type { SignedTransaction } from "../../chain/transaction.js";
import { isBusyCode } from "../../chain/evm/rpc-codes.js";
import type { RpcError } from "../../rpc-client/errors.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { type SubmitRefusal, submitRefusalOf } from "../../rpc-client/submit-refusal.js";
import type { IndexReader } from "../index/index-reader.js";
import { SidecarError, type SidecarErrorCode } from "../rosetta/errors.js";

/** What tells that a transaction is mined: the index has all places, a node those of blocks that it keeps. */
export interface MinedSource {
  readonly client: EvmClient;
  readonly placeOf: IndexReader["placeOf"];
}

/**
 * Hands a checked transaction to the node; bytes that its pool or a block has already are no
 * refusal.
 * @throws one code per reason; NODE_FAULT for an answer that cannot be believed
 */
export async function submitTransaction(
  source: MinedSource,
  tx: SignedTransaction,
  rpc: RpcOptions,
): Promise<void> {
  const { client } = source;
  const [sent] = await client.sendRawTransactions([bytesToHex(tx.raw)], rpc);
  if (sent === undefined) throw new SidecarError("NODE_FAULT", { reason: "no answer" });
  if (sent.outcome === "accepted") {
    if (sent.hash !== tx.hash) throw new SidecarError("NODE_FAULT", { reason: "another hash" });
  } else if (!(await isKnown(source, tx.hash, sent.error, rpc))) {
    throw submitError(sent.error);
  }
}

/**
 * True when these very bytes were taken before. Once mined they may be refused for any reason (a
 * used nonce, a spent balance, a full pool): only their place or receipt tells that from a real refusal.
 */
async function isKnown(
  { client, placeOf }: MinedSource,
  hash: Hash32,
  error: RpcError,
  rpc: RpcOptions,
): Promise<boolean> {
  if (submitRefusalOf(error) === "ALREADY_KNOWN") return true;
  if (placeOf(hash) !== undefined) return true;
  return (await client.getTransactionReceipt(hash, rpc)) !== undefined;
}

const SUBMIT_ERRORS: Readonly<Record<SubmitRefusal, SidecarErrorCode>> = {
  ALREADY_KNOWN: "INTERNAL",
  NONCE_TOO_LOW: "NONCE_TOO_LOW",
  NONCE_TOO_HIGH: "NONCE_TOO_HIGH",
  REPLACEMENT_UNDERPRICED: "REPLACEMENT_UNDERPRICED",
  GAS_PRICE_TOO_LOW: "GAS_PRICE_TOO_LOW",
  INTRINSIC_GAS_TOO_LOW: "INTRINSIC_GAS_TOO_LOW",
  GAS_LIMIT_EXCEEDED: "GAS_LIMIT_EXCEEDED",
  INSUFFICIENT_FUNDS: "INSUFFICIENT_FUNDS",
  // The configured chain id was checked before: a node that refuses it is another chain's.
  WRONG_CHAIN_ID: "NODE_WRONG_CHAIN",
  TYPE_NOT_SUPPORTED: "TRANSACTION_TYPE_NOT_SUPPORTED",
  POOL_FULL: "MEMPOOL_FULL",
  ACCOUNT_LIMIT: "ACCOUNT_LIMIT_EXCEEDED",
  TRANSACTION_TOO_LARGE: "TRANSACTION_TOO_LARGE",
  NODE_HALTED: "NODE_HALTED",
  OTHER: "TRANSACTION_REFUSED",
};

function submitError(error: RpcError): SidecarError {
  // A limit that was hit says nothing about the transaction.
  const code = isBusyCode(error.rpc.rpcCode) ? "NODE_BUSY" : SUBMIT_ERRORS[submitRefusalOf(error)];
  return new SidecarError(code, { reason: error.nodeMessage }, error);
}
