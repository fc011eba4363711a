/** The way of an SDK transaction's bytes into the pool, for every interface that takes them. */
import {
  decodeSdkTransaction,
  wrapsEthereum,
} from "../../../chain/consensus/sdk-transaction-decode.js";
import {
  decodeCosmosTransaction,
  gasLimitOfRaw,
  isCosmosBytes,
  keyedSequenceOfRaw,
} from "../../../chain/cosmos/cosmos-transaction.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { ChainError } from "../../../chain/errors.js";
import { sha256Hex } from "../../../chain/hashes.js";
import type { Hash32 } from "../../../chain/hex.js";
import { MAX_TRANSACTION_BYTES } from "../../../chain/transaction-rules.js";
import { recoverSender } from "../../../chain/transaction.js";
import { type AccountSequence, untakenUntil } from "./account-sequence.js";
import {
  alreadyKnown,
  NOTHING_ASKED,
  type Refusal,
  refusalOf,
  undecodable,
  WRONG_SENDER,
} from "./check-codes.js";
import type { ChainView } from "../../view/chain-view.js";
import type { CometChain } from "./ports.js";

/** A transaction as the pool takes it. */
export interface ReadTransaction {
  readonly raw: Uint8Array;
  readonly gasLimit: bigint;
}

/** More than stands around an EVM transaction, whose own bytes are bounded. */
const MAX_WRAPPING_BYTES = 1_024;

/** Whether bytes are more than any pool takes: then nothing of them is decoded. */
export function isOversized(bytes: Uint8Array): boolean {
  const wrappingBytes = wrapsEthereum(bytes) ? MAX_WRAPPING_BYTES : 0;
  return bytes.length > MAX_TRANSACTION_BYTES + wrappingBytes;
}

/**
 * Around an EVM transaction the claimed sender has to be the signer: the block will name it.
 * Signatures of Cosmos transactions are for the pool to verify.
 */
export function readTransaction(bytes: Uint8Array): ReadTransaction | Refusal {
  // The pool says that they are too large.
  if (isOversized(bytes)) return { raw: bytes, gasLimit: 0n };
  try {
    if (!wrapsEthereum(bytes)) {
      const { gasLimit } = decodeCosmosTransaction(bytes);
      // Without its body, which is left out where nothing is in it, the pool takes it for Ethereum's.
      return isCosmosBytes(bytes) || bytes.length === 0 ? { raw: bytes, gasLimit } : NOTHING_ASKED;
    }
    const { raw, tx, from } = decodeSdkTransaction(bytes);
    return recoverSender(tx) === from ? { raw, gasLimit: tx.gasLimit } : WRONG_SENDER;
  } catch (error) {
    return undecodable(error);
  }
}

/**
 * Gas limit of untrusted bytes; 0 where they cannot be read. The body of a Cosmos transaction is not: that
 * may take long, and who has read it in its turn says whether it could be.
 * @param refusal what the pool says of them
 */
export function gasWantedOf(bytes: Uint8Array, refusal: Refusal | undefined): bigint {
  if (isOversized(bytes)) return 0n;
  if (wrapsEthereum(bytes) || !isCosmosBytes(bytes)) {
    const transaction = readTransaction(bytes);
    return "code" in transaction ? 0n : transaction.gasLimit;
  }
  if (refusal?.code === SDK_CODE.txDecode && refusal.codespace === "sdk") return 0n;
  try {
    return gasLimitOfRaw(bytes);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    return 0n;
  }
}

/** What became of bytes that were handed in. */
export interface Submission {
  /** SHA-256 of the bytes. */
  readonly hash: Hash32;
  /** Undefined when the pool has the transaction on disk. */
  readonly refusal: Refusal | undefined;
}

/**
 * Hands a transaction to the pool, and answers when that has it on disk or has refused it.
 * Bytes that a block has are known, as they are to CometBFT's cache, also where it took them while they
 * were on their way into the pool: told of a wrong sequence instead (code 32), who lost the first answer
 * signs for the next one and pays twice. Where the block may be one that this node has not, the refusal
 * says so.
 * @throws MempoolFault for bytes that are known or have no place, CometFault for what is wrong with
 *   the pool, not with the transaction
 */
export async function submitTransaction(
  { submit, view }: Pick<CometChain, "submit" | "view">,
  bytes: Uint8Array,
): Promise<Submission> {
  const hash = sha256Hex(bytes);
  const isMined = () => view.locateBySdkHash(hash) !== undefined;
  if (isMined()) throw alreadyKnown();
  // A Cosmos transaction is read by the pool, in its turn, and nowhere else before.
  const isRead = wrapsEthereum(bytes) || !isCosmosBytes(bytes);
  const transaction = isRead ? readTransaction(bytes) : { raw: bytes };
  if ("code" in transaction) return { hash, refusal: transaction };
  const answer = await submit(transaction.raw);
  if (typeof answer === "string") return { hash, refusal: undefined };
  if (isMined()) throw alreadyKnown();
  return { hash, refusal: await withUntoldPast(view, bytes, refusalOf(answer)) };
}

/** Codes of a sequence that is not the account's next one, of Cosmos transactions and of the EVM's. */
const SEQUENCE_CODES: readonly number[] = [SDK_CODE.wrongSequence, SDK_CODE.invalidSequence];

/**
 * A refusal for the sequence, with a warning behind its own words where bytes of a block that this node never
 * had, or has deleted, would be refused in the same way: clients sign anew for it.
 */
async function withUntoldPast(
  view: ChainView,
  bytes: Uint8Array,
  refusal: Refusal,
): Promise<Refusal> {
  const { block } = view.oldest();
  const isOfSequence = refusal.codespace === "sdk" && SEQUENCE_CODES.includes(refusal.code);
  if (!isOfSequence || block <= 1) return refusal;
  const signed = signedSequenceOf(bytes);
  if (signed === undefined || (await untakenUntil(view, signed, block)) !== undefined) {
    return refusal;
  }
  const warning =
    `it may have been mined before block ${block}, the oldest that this node has: ` +
    "ask a node that has all blocks before anything is paid anew";
  return { ...refusal, log: `${refusal.log}; ${warning}` };
}

/** Who signed bytes that the pool has read, and for which sequence. */
function signedSequenceOf(bytes: Uint8Array): AccountSequence | undefined {
  if (wrapsEthereum(bytes)) {
    const { tx, from } = decodeSdkTransaction(bytes);
    return { account: from, sequence: tx.nonce };
  }
  const signer = keyedSequenceOfRaw(bytes);
  return signer && { account: signer.address, sequence: signer.nonce };
}
