/**
 * What a signature may cost the wallet in network fees, whatever a ledger asks for: a payment no more than
 * the home's settings allow of one, or than was signed for its nonce before; a transfer of nothing, which has
 * to find its way at the chain's price, no gas that it does not need.
 */
import type { Address } from "../../chain/address.js";
import type { Atoken } from "../../chain/units.js";
import { feeOf } from "../../ledger/withdrawals/slot-choice.js";
import { CANCEL_GAS_MAX, isTooDear } from "../gas.js";
import type { SigningLimits } from "./check-signed.js";
import { readSignedBefore } from "./signed-before.js";
import type { SigningIntent } from "./signer-port.js";

/** Limits of the transactions of hot wallets. */
export interface PaymentLimits extends SigningLimits {
  /** Most that the fee of one payment may come to. */
  readonly feePerPayoutAtoken: Atoken;
}

/** Why a wallet does not pay so much for a transaction, in words; undefined where it does. */
export function feeRefusal(
  intent: Omit<SigningIntent, "approvals">,
  limits: PaymentLimits & { readonly signer: Address },
): string | undefined {
  const { kind, gasLimit, signedBefore } = intent;
  if (kind === "cancel") {
    if (gasLimit <= CANCEL_GAS_MAX) return undefined;
    return `a transfer of nothing gets no more than ${CANCEL_GAS_MAX} gas`;
  }
  if (!isTooDear(intent, limits)) return undefined;
  const { chainId, nonce } = intent;
  const former = readSignedBefore(signedBefore, { chainId, nonce, signer: limits.signer });
  const signedAtoken =
    former === undefined
      ? 0n
      : feeOf({ gasLimit: former.gasLimit, gasPriceAtoken: former.maxFeePerGasAtoken });
  if (!isTooDear(intent, limits, signedAtoken)) return undefined;
  return `its fee (${feeOf(intent)}) is above that of one payment (${limits.feePerPayoutAtoken})`;
}
