/** What the lane sees of a signer: typed intents in, checked bytes or a reason out. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Hex } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { ApprovalSignature } from "../../ledger/policy/approval-digest.js";

/** A legacy transaction, field by field. */
export interface TransactionIntent {
  readonly chainId: bigint;
  readonly nonce: bigint;
  readonly to: Address;
  readonly valueAtoken: Atoken;
  readonly data: Uint8Array;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: Atoken;
}

/** What a payment is for: rules are about this, and the transaction has to mean it. */
export interface PaymentTerms {
  readonly withdrawalId: string;
  readonly customerId: string;
  /** TOKEN, or a symbol of the registry. */
  readonly asset: string;
  /** In the asset's smallest unit. */
  readonly amountUnits: bigint;
  /** Who is paid; a token's contract is only the transaction's `to`. */
  readonly destination: Address;
  /** Index of the deposit address that gets gas from the treasury; undefined for all others. */
  readonly addressIndex?: number | undefined;
  /** Signed approvals, where persons signed any. */
  readonly approvals: readonly ApprovalSignature[];
}

/** A payment, or the transfer of nothing to the wallet itself that takes its nonce. */
export interface SigningIntent extends TransactionIntent, PaymentTerms {
  readonly kind: "payment" | "cancel";
  /** The dearest transaction that was signed for the nonce before, where one was: a proof, if it is one. */
  readonly signedBefore?: Hex | undefined;
}

/** Why a signer does not sign by its own rules. */
export type SigningRefusalCode =
  | "STOPPED"
  | "POLICY_UNREADABLE"
  | "POLICY_CHANGED"
  | "UNKNOWN_ASSET"
  | "FORBIDDEN_DESTINATION"
  | "BELOW_MINIMUM"
  | "ABOVE_MAXIMUM"
  | "DESTINATION_NOT_LISTED"
  | "APPROVALS_MISSING"
  | "APPROVALS_USED"
  | "FEE_ABOVE_MAXIMUM"
  | "DAY_TOTAL";

/** Why nothing is signed for a token that the list of this process does not name. */
export function unlisted(asset: string): string {
  return `${asset} is in no list that this process was started with: start it anew`;
}

/** The signer's own rules forbid it: nothing was signed. */
export interface SigningRefusal {
  readonly kind: "refused";
  readonly code: SigningRefusalCode;
  /** One sentence for people. */
  readonly reason: string;
  /** Waiting does not help: only another policy would allow it. */
  readonly isLasting: boolean;
}

/** Signed bytes that say exactly what was intended. */
export interface SignedPayment {
  readonly kind: "signed";
  readonly raw: Hex;
  /** keccak256 of the bytes: known before anything is sent. */
  readonly hash: Hash32;
}

/**
 * What became of one intent: signed; refused by rules; postponed, as there was no time left to ask;
 * unanswered, so that it is asked again; or answered wrongly, so that this signer must not be used until
 * a person has looked.
 */
export type SigningOutcome =
  | SignedPayment
  | SigningRefusal
  | { readonly kind: "postponed" }
  | { readonly kind: "unanswered" | "wrong"; readonly reason: string };

/** A payment that is to be signed. */
export interface ReviewedPayment extends PaymentTerms {
  /** Of one that has it: it may be counted already. */
  readonly nonce?: bigint;
  /** Of one that has none: no lower one will be its. */
  readonly fromNonce?: bigint;
  /** As of `SigningIntent`. */
  readonly signedBefore?: Hex | undefined;
}

/** Signs for one wallet, within rules of its own. */
export interface Signer {
  readonly address: Address;
  /** See `KeyHolder.holdsKey`. */
  readonly holdsKey?: boolean;
  /**
   * Outcomes in the order of the intents. Nothing behind an unanswered or wrong one is asked for.
   * @param options.withinMs once so long has passed nothing more is asked for, and the rest is `postponed`;
   *   the first ones (`KeyHolder.parallel`) always are; default no bound
   * @throws the signal's reason
   */
  sign(
    intents: readonly SigningIntent[],
    options: { readonly signal: AbortSignal; readonly withinMs?: number },
  ): Promise<readonly SigningOutcome[]>;
  /** What `sign` would refuse by rules now; undefined for each that it would not. */
  review(payments: readonly ReviewedPayment[]): readonly (SigningRefusal | undefined)[];
  /** Why nothing is signed at present; undefined after a signature. */
  trouble(): string | undefined;
  /**
   * Whether whoever holds the key signs a text by EIP-191, which is no transaction and pays nobody. A list of
   * keys would prove nothing: it names those whose hardware is gone. False while signing is stopped here, and
   * for every other answer; absent where nobody is asked.
   * @throws the signal's reason
   */
  provesKey?(text: string, options: { readonly signal: AbortSignal }): Promise<boolean>;
}

/** Holds a key, or asks who does. What it gives is believed by nobody before it is checked. */
export interface KeyHolder {
  readonly address: Address;
  /** The key lies in this process' memory; without it somebody is asked who may have lost it. */
  readonly holdsKey?: true;
  /**
   * Signed bytes.
   * @throws SIGNER_UNREACHABLE when asking again may help; SIGNED_DIFFERENTLY for an answer that is
   * no transaction; the signal's reason
   */
  signTransaction(
    intent: TransactionIntent,
    options: { readonly signal: AbortSignal },
  ): Promise<Uint8Array>;
  /**
   * A text's signature by EIP-191 as `readPersonalSignature` takes it; absent where nobody is asked for any.
   * @throws SIGNER_UNREACHABLE; the signal's reason
   */
  signText?(text: string, options: { readonly signal: AbortSignal }): Promise<string>;
  /** Intents that it takes at once; 1 without it. */
  readonly parallel?: number;
  /** Ends connections and processes. */
  close(): Promise<void>;
}
