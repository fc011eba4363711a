/** What a wallet is said to have signed before: whoever says so has it from a ledger, which may lie. */
import type { Address } from "../../chain/address.js";
import { AppError } from "../../chain/errors.js";
import { type Hex, hexToBytes } from "../../chain/hex.js";
import {
  decodeTransaction,
  recoverSender,
  type SignedTransaction,
} from "../../chain/transaction.js";

/** The transaction, where the wallet has signed it for this nonce of this chain; undefined for all others. */
export function readSignedBefore(
  raw: Hex | undefined,
  place: { readonly chainId: bigint; readonly nonce: bigint; readonly signer: Address },
): SignedTransaction | undefined {
  if (raw === undefined) return undefined;
  const { chainId, nonce, signer } = place;
  try {
    const tx = decodeTransaction(hexToBytes(raw));
    const isIts = tx.chainId === chainId && tx.nonce === nonce && recoverSender(tx) === signer;
    return isIts ? tx : undefined;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return undefined;
  }
}
