/**
 * Pure: what an approver signs. The digest names the chain, the withdrawal with all its terms, the
 * policy it is approved under and the decision, so that a signature is good for nothing else.
 */
import type { Address } from "../../chain/address.js";
import { verifySignature } from "../../chain/consensus/ed25519.js";
import { sha256 } from "../../chain/hashes.js";
import type { Approver, Policy } from "./policy.js";

/**
 * What an approval is signed over: on another chain, or with another amount or payee, it counts for
 * nothing.
 */
export interface ApprovedTerms {
  readonly chainId: bigint;
  readonly withdrawalId: string;
  readonly customerId: string;
  readonly asset: string;
  readonly destination: Address;
  readonly amountUnits: bigint;
}

/** What a person may say of a request that waits for approvals. */
export const APPROVAL_DECISIONS = ["approve", "reject"] as const;

/** One of `APPROVAL_DECISIONS`. */
export type ApprovalDecision = (typeof APPROVAL_DECISIONS)[number];

/** A signature as it travels: an approver of the policy and 64 bytes, both hex without prefix. */
export interface ApprovalSignature {
  readonly publicKey: string;
  readonly signature: string;
}

/** The text that is hashed: a JSON list, so that no two meanings have one text. */
export function approvalText(
  terms: ApprovedTerms,
  said: { readonly policyHash: string; readonly decision: ApprovalDecision },
): string {
  return JSON.stringify([
    "causeway-approval-v1",
    terms.chainId.toString(),
    terms.withdrawalId,
    terms.customerId,
    terms.asset,
    terms.destination,
    terms.amountUnits.toString(),
    said.policyHash,
    said.decision,
  ]);
}

/** SHA-256 of the text, 32 bytes: the message of the Ed25519 signature. */
export function approvalDigest(
  terms: ApprovedTerms,
  said: { readonly policyHash: string; readonly decision: ApprovalDecision },
): Uint8Array {
  return sha256(Buffer.from(approvalText(terms, said), "utf8"));
}

/**
 * Whose key this is by the policy; undefined for nobody's. A name is a person, who counts once with several
 * keys; a key under several names is the first one's.
 */
export function approverOf(policy: Policy, publicKey: string): Approver | undefined {
  return policy.approvers.find((approver) => approver.publicKey === publicKey);
}

/** Whether one of the policy's approvers signed this digest. */
export function isSignedByApprover(
  policy: Policy,
  digest: Uint8Array,
  { publicKey, signature }: ApprovalSignature,
): boolean {
  if (approverOf(policy, publicKey) === undefined) return false;
  if (!/^[0-9a-f]{128}$/.test(signature)) return false;
  return verifySignature(Buffer.from(publicKey, "hex"), digest, Buffer.from(signature, "hex"));
}
