/** Whoever signs: the bytes are decoded and held against the intent before anybody stores them. */
import type { Address } from "../../chain/address.js";
import { AppError, errorCode } from "../../chain/errors.js";
import { bytesEqual, bytesToHex } from "../../chain/hex.js";
import { decodeTransaction, recoverSender } from "../../chain/transaction.js";
import type { Atoken } from "../../chain/units.js";
import { WorkerError } from "../errors.js";
import { cancelPriceCap } from "../gas.js";
import type { SignedPayment, SigningIntent } from "./signer-port.js";

/** Limits that no signed transaction may break, whatever asked for it. */
export interface SigningLimits {
  readonly gasPriceCapAtoken: Atoken;
  readonly gasLimitMax: bigint;
}

/**
 * Holds signed bytes against the intent: chain, nonce, recipient, value, data, gas and price
 * within the limits, `s` in its lower half, signed by the wallet.
 * @throws SIGNED_DIFFERENTLY naming what is wrong
 */
export function checkSigned(
  raw: Uint8Array,
  intent: Omit<SigningIntent, "approvals">,
  limits: SigningLimits & { readonly signer: Address },
): SignedPayment {
  try {
    return check(raw, intent, limits);
  } catch (cause) {
    if (cause instanceof WorkerError || !(cause instanceof AppError)) throw cause;
    throw differs([errorCode(cause)], intent.nonce, cause);
  }
}

/** The fault of an answer that is not what was asked for. */
export function differs(wrong: readonly string[], nonce: bigint, cause?: unknown): WorkerError {
  const message = `signed bytes do not say what was intended (${wrong.join(", ")})`;
  return new WorkerError("SIGNED_DIFFERENTLY", message, {
    details: { wrong, nonce: nonce.toString() },
    cause,
  });
}

function check(
  raw: Uint8Array,
  intent: Omit<SigningIntent, "approvals">,
  limits: SigningLimits & { readonly signer: Address },
): SignedPayment {
  // Refuses r and s outside their ranges, also the upper half of s (EIP-2).
  const tx = decodeTransaction(raw);
  const { gasPriceCapAtoken } = limits;
  const cap = intent.kind === "cancel" ? cancelPriceCap(gasPriceCapAtoken) : gasPriceCapAtoken;
  const wrong: string[] = [];
  if (tx.type !== 0) wrong.push("type");
  if (tx.chainId !== intent.chainId) wrong.push("chainId");
  if (tx.nonce !== intent.nonce) wrong.push("nonce");
  if (tx.to !== intent.to) wrong.push("to");
  if (tx.valueAtoken !== intent.valueAtoken) wrong.push("value");
  if (!bytesEqual(tx.data, intent.data)) wrong.push("data");
  if (tx.gasLimit !== intent.gasLimit || tx.gasLimit > limits.gasLimitMax) wrong.push("gasLimit");
  if (tx.maxFeePerGasAtoken !== intent.gasPriceAtoken) wrong.push("gasPrice");
  if (tx.maxFeePerGasAtoken > cap) wrong.push("gasPriceCap");
  if (recoverSender(tx) !== limits.signer) wrong.push("sender");
  if (wrong.length > 0) throw differs(wrong, intent.nonce);
  return { kind: "signed", raw: bytesToHex(tx.raw), hash: tx.hash };
}
