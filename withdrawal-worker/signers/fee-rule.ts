/**
 * What a signature may cost the wallet in network fees, whatever a ledger asks for: a payment no more than
 * the home's settings allow of one, or than was signed for its nonce before; a transfer of nothing, which has
 * to find its way at the chain's price, no gas that it does not need.
 */
import type { Address } from "../../chain/address.js";
import { AppError } from "../../chain/errors.js";
import { type Hex, hexToBytes } from "../../chain/hex.js";
import { decodeTransaction, recoverSender } from "../../chain/transaction.js";
import type { Atoken } from "../../chain/units.js";
import { feeOf } from "../../ledger/withdrawals/slot-choice.js";
import { CANCEL_GAS_MAX, isTooDear } from "../gas.js";
import type { SigningLimits } from "./check-signed.js";
import type { SigningIntent } from "./signer-port.js";

/** Limits of the transactions of hot wallets. */
export interface PaymentLimits extends SigningLimits {
  /** Most that the fee of one payment may come to. */
  readonly feePerPayoutAtoken: Atoken;
}

/** Why a wallet does not pay so much for a transaction, in words; undefined where it does. */
export function feeRefusal(
  intent: Omit<SigningIntent, "approvals">,
  { signer, ...limits }: PaymentLimits & { readonly signer: Address },
): string | undefined {
  const { kind, gasLimit, signedBefore } = intent;
  if (kind === "cancel") {
    if (gasLimit <= CANCEL_GAS_MAX) return undefined;
    return `a transfer of nothing gets no more than ${CANCEL_GAS_MAX} gas`;
  }
  if (!isTooDear(intent, limits)) return undefined;
  const signedAtoken =
    signedBefore === undefined ? 0n : signedFeeAtoken(signedBefore, intent, signer);
  if (!isTooDear(intent, limits, signedAtoken)) return undefined;
  return `its fee (${feeOf(intent)}) is above that of one payment (${limits.feePerPayoutAtoken})`;
}

/** The most that a transaction costs which a wallet has signed for the nonce; 0 for all others. */
function signedFeeAtoken(
  raw: Hex,
  { chainId, nonce }: Pick<SigningIntent, "chainId" | "nonce">,
  signer: Address,
): Atoken {
  try {
    const tx = decodeTransaction(hexToBytes(raw));
    const isIts = tx.chainId === chainId && tx.nonce === nonce && recoverSender(tx) === signer;
    if (!isIts) return 0n;
    return feeOf({ gasLimit: tx.gasLimit, gasPriceAtoken: tx.maxFeePerGasAtoken });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return 0n;
  }
}
