/**
 * Signs payments. @ethereumjs/tx builds and signs, our own code has to agree byte for byte; and
 * whoever signs, the bytes are decoded again and held against the intent.
 */
import { type Address } from "../chain/address.js";
import { privateKeyToAddress } from "../chain/signing/account-key.js";
import type { TokenTransfer } from "../chain/erc20.js";
import { bytesToHex, type Hash32, type Hex, hexToBytes } from "../chain/hex.js";
import { calldataOf, isCalldataOf } from "../ledger/withdrawals/payment-terms.js";
import { buildAndSign } from "../chain/signing/legacy-transaction.js";
import { decodeTransaction, recoverSender, type SignedTransaction } from "../chain/transaction.js";
import { WorkerError } from "./errors.js";
import { cancelPriceCap } from "./lane/gas.js";

/**
 * A payment in a legacy transaction: coins without data, or a token's transfer, which is a call of its
 * contract without value. Nothing to the wallet itself is a cancelling transfer: no request ever names
 * the wallet as its destination.
 */
export interface PaymentIntent {
  readonly chainId: bigint;
  readonly nonce: bigint;
  readonly to: Address;
  readonly valueAtoken: bigint;
  /** The one call that may be signed; undefined for coins. */
  readonly transfer?: TokenTransfer | undefined;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: bigint;
}

/** Signed bytes that say exactly what was intended. */
export interface SignedPayment {
  readonly raw: Hex;
  /** keccak256 of the bytes: known before anything is sent. */
  readonly hash: Hash32;
}

/** Limits that no signed payment may break, whatever asked for it. */
export interface SigningLimits {
  readonly gasPriceCapAtoken: bigint;
  readonly gasLimitMax: bigint;
}

/** Holds a key, or asks one that does. */
export interface Signer {
  readonly address: Address;
  /** @throws SIGNED_DIFFERENTLY, IMPLEMENTATIONS_DISAGREE */
  sign(intent: PaymentIntent): SignedPayment;
}

/** A signer with the key in memory. */
export function createKeySigner(
  options: SigningLimits & { readonly privateKey: Uint8Array },
): Signer {
  const address = privateKeyToAddress(options.privateKey);
  return {
    address,
    sign(intent) {
      const data = hexToBytes(calldataOf({ transfer: intent.transfer }));
      const tx = buildAndSign({ ...intent, data }, options.privateKey);
      return checkTransaction(tx, intent, { ...options, signer: address });
    },
  };
}

/**
 * Holds signed bytes against the intent: chain, nonce, recipient, value, data, gas and price
 * within the limits, signed by the wallet.
 * @throws SIGNED_DIFFERENTLY, and the decoder's errors
 */
export function checkSigned(
  raw: Uint8Array,
  intent: PaymentIntent,
  limits: SigningLimits & { readonly signer: Address },
): SignedPayment {
  return checkTransaction(decodeTransaction(raw), intent, limits);
}

function capOf(
  { to, valueAtoken }: PaymentIntent,
  { signer, gasPriceCapAtoken }: SigningLimits & { readonly signer: Address },
): bigint {
  const isCancel = to === signer && valueAtoken === 0n;
  return isCancel ? cancelPriceCap(gasPriceCapAtoken) : gasPriceCapAtoken;
}

function checkTransaction(
  tx: SignedTransaction,
  intent: PaymentIntent,
  limits: SigningLimits & { readonly signer: Address },
): SignedPayment {
  const checks: readonly (readonly [string, boolean])[] = [
    ["type", tx.type === 0],
    ["chainId", tx.chainId === intent.chainId],
    ["nonce", tx.nonce === intent.nonce],
    ["to", tx.to === intent.to],
    ["value", tx.valueAtoken === intent.valueAtoken],
    ["data", isCalldataOf({ transfer: intent.transfer }, bytesToHex(tx.data))],
    ["valueOfCall", intent.transfer === undefined || tx.valueAtoken === 0n],
    ["gasLimit", tx.gasLimit === intent.gasLimit && tx.gasLimit <= limits.gasLimitMax],
    ["gasPrice", tx.maxFeePerGasAtoken === intent.gasPriceAtoken],
    ["gasPriceCap", tx.maxFeePerGasAtoken <= capOf(intent, limits)],
    ["sender", recoverSender(tx) === limits.signer],
  ];
  const wrong = checks.filter(([, isRight]) => !isRight).map(([name]) => name);
  if (wrong.length > 0) {
    throw new WorkerError("SIGNED_DIFFERENTLY", "signed bytes do not say what was intended", {
      details: { wrong, nonce: intent.nonce.toString() },
    });
  }
  return { raw: bytesToHex(tx.raw), hash: tx.hash };
}
