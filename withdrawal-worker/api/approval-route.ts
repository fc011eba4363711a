/** `POST /v1/withdrawals/{id}/approvals`, and approvals as withdrawals show them. */
import type { KnownNonces } from "../../ledger/requests/signing-freeze.js";
import { errorCode, present } from "../../chain/errors.js";
import type { LedgerGuard } from "../../ledger/guard/ledger-guard.js";
import type { ApprovalDecision } from "../../ledger/policy/approval-digest.js";
import { countingApprovals } from "../../ledger/policy/approval-rows.js";
import { type ApprovalOutcome, decideWithdrawal } from "../../ledger/policy/approvals.js";
import type { HashedPolicy } from "../../ledger/policy/policy.js";
import { readActivePolicy } from "../../ledger/policy/policy-store.js";
import { toWithdrawalId } from "../../ledger/requests/withdrawal-id.js";
import type { Withdrawal } from "../../ledger/withdrawals/withdrawals.js";
import type { HttpRequest } from "../../runtime/http/http-route.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { ApiError, type ApiErrorCode } from "../errors.js";
import type { ChainLook } from "../lane/chain-look.js";
import type { PolicySource } from "../lane/lane-context.js";
import { invalidField, readReason } from "./fields.js";

/** What approving takes. */
export interface ApprovalParts {
  readonly database: SqlDatabase;
  readonly policy: PolicySource;
  readonly chainId: bigint;
  /** Next nonces that lanes of this process were shown: behind them nothing is rejected at once. */
  readonly shownNonces?: KnownNonces;
  /** Asks the chain before something is rejected; absent where no chain is known. */
  readonly look?: Pick<ChainLook, "beforeEnding">;
  readonly guard?: Pick<LedgerGuard, "assertStands">;
}

const REFUSALS: Readonly<
  Record<Exclude<ApprovalOutcome, "done">, readonly [404 | 409 | 422, ApiErrorCode, string]>
> = {
  unknown: [404, "NOT_FOUND", "no withdrawal has this id"],
  "not-pending": [409, "NOT_PENDING", "the withdrawal does not wait for approvals"],
  "own-request": [422, "OWN_REQUEST", "the key that asked for a withdrawal cannot approve it"],
  "said-otherwise": [409, "SAID_OTHERWISE", "this key or person has decided about it already"],
  "signature-needed": [422, "SIGNATURE_NEEDED", "the policy wants signed approvals"],
  "bad-signature": [
    422,
    "BAD_SIGNATURE",
    "the signature is not one of the policy's approvers over this withdrawal, policy and decision",
  ],
  "policy-changed": [
    409,
    "POLICY_CHANGED",
    "the policy, or what it asks for, has changed: look at the withdrawal again",
  ],
};

/**
 * Writes the decision of the caller down.
 * @returns it
 * @throws ApiError for what cannot be decided; POLICY_UNREADABLE for an approval; database faults
 */
export async function decide(
  parts: ApprovalParts,
  request: HttpRequest,
): Promise<ApprovalDecision> {
  const read = (name: string): unknown => Reflect.get(Object(request.body), name);
  const decision = read("decision");
  if (decision !== "approve" && decision !== "reject") {
    throw invalidField("decision", 'expected "approve" or "reject"');
  }
  const [publicKey, signature] = [read("publicKey"), read("signature")];
  const [policyHash, needed] = [read("policyHash"), read("needed")];
  const isSigned = typeof publicKey === "string" && typeof signature === "string";
  if (!isSigned && (publicKey !== undefined || signature !== undefined)) {
    throw invalidField("signature", "publicKey and signature come together");
  }
  const { guard, look } = parts;
  if (decision === "reject") await look?.beforeEnding();
  const outcome = await decideWithdrawal(
    parts.database,
    {
      id: toWithdrawalId(request.params["id"] ?? ""),
      keyId: present(request.caller, "caller of a gated route").keyId,
      decision,
      reason: readReason(request.body),
      signature: isSigned ? { publicKey, signature } : undefined,
      seen: {
        policyHash: typeof policyHash === "string" ? policyHash : undefined,
        needed: typeof needed === "number" ? needed : undefined,
      },
    },
    {
      policy: await policyFor(decision, parts),
      chainId: parts.chainId,
      shown: parts.shownNonces,
      assertStands: async (tx) => guard?.assertStands(tx),
    },
  );
  if (outcome === "done") return decision;
  const [status, code, message] = REFUSALS[outcome];
  throw new ApiError(status, code, message);
}

/**
 * Who rejects pays nothing: while the home's file cannot be used, what the ledger has in force will do, as at
 * the command line.
 */
async function policyFor(
  decision: ApprovalDecision,
  { policy, database }: ApprovalParts,
): Promise<HashedPolicy> {
  try {
    return await policy.current();
  } catch (error) {
    if (decision !== "reject" || errorCode(error) !== "POLICY_UNREADABLE") throw error;
    const active = await readActivePolicy(database);
    if (active === undefined) throw error;
    return active;
  }
}

/** Fee and approvals as the API shows them. */
export function encodeApproval({ feeUnits, approval }: Withdrawal) {
  const counting = new Set(countingApprovals(approval));
  return {
    feeUnits: feeUnits.toString(),
    approvalsNeeded: approval.needed,
    approvalsGiven: counting.size,
    policyHash: approval.policyHash ?? null,
    approvals: approval.approvals.map((said) => ({
      keyId: said.keyId,
      decision: said.decision,
      reason: said.reason,
      policyHash: said.policyHash,
      signed: said.signature !== undefined,
      counts: counting.has(said),
      at: said.at,
    })),
  };
}
