/** The rules of payment in the withdrawal API: the policy, who has to sign what, the kill switch. */
import { bytesToHex } from "../../chain/hex.js";
import { errorCode } from "../../chain/errors.js";
import {
  APPROVAL_DECISIONS,
  approvalDigest,
  type ApprovedTerms,
  approvalText,
} from "../../ledger/policy/approval-digest.js";
import { countingApprovals } from "../../ledger/policy/approval-rows.js";
import type { Approver } from "../../ledger/policy/policy.js";
import { toWithdrawalId } from "../../ledger/requests/withdrawal-id.js";
import { findWithdrawal, type Withdrawal } from "../../ledger/withdrawals/withdrawals.js";
import { withoutAccess } from "../../runtime/config/config-toml.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest, KeyedRoute } from "../../runtime/http/http-route.js";
import { ApiError } from "../errors.js";
import type { PolicySource } from "../lane/lane-context.js";
import { raiseSwitch, showSwitch, type SwitchParts } from "./raise-switch.js";

/** What these routes need. */
export interface PolicyRouteParts extends SwitchParts {
  readonly policy: PolicySource;
  readonly chainId: bigint;
}

/** Routes of `openapi/withdrawal.yaml` about the rules of payment. */
export function createPolicyRoutes(parts: PolicyRouteParts): readonly KeyedRoute[] {
  return [
    { method: "get", path: "/v1/policy", scope: "audit:read", handler: () => getPolicy(parts) },
    {
      method: "get",
      path: "/v1/withdrawals/{id}/approvals",
      scope: "withdrawals:read",
      handler: (request) => getApprovals(parts, request),
    },
    {
      method: "get",
      path: "/v1/kill-switch",
      scope: "withdrawals:read",
      handler: async () => ({ body: await showSwitch(parts) }),
    },
    {
      method: "post",
      path: "/v1/kill-switch",
      scope: "operations:write",
      stopsOnly: true,
      handler: (request) => raiseSwitch(parts, request),
    },
  ];
}

/** All terms, but for what opens the screening service: who audits the policy does not ask it. */
async function getPolicy({ policy: source, chainId }: PolicyRouteParts): Promise<HttpReply> {
  const { hash, text, policy } = await source.current();
  const { screening } = policy;
  const terms: object = JSON.parse(text);
  const shown =
    screening === undefined
      ? terms
      : { ...terms, screening: { ...screening, url: withoutAccess(screening.url) } };
  return { body: { hash, chainId: chainId.toString(), terms: shown } };
}

/** What persons have to agree to, and what exactly is signed where signatures are asked for. */
async function getApprovals(parts: PolicyRouteParts, request: HttpRequest): Promise<HttpReply> {
  const { database, policy, chainId } = parts;
  const id = toWithdrawalId(request.params["id"] ?? "");
  const withdrawal = await findWithdrawal(database, id);
  if (withdrawal === undefined) throw new ApiError(404, "NOT_FOUND", "no withdrawal has this id");
  const { approval } = withdrawal;
  const { policyHash } = approval;
  const approvers = await approversOf(policy);
  return {
    body: {
      withdrawalId: withdrawal.id,
      status: withdrawal.status,
      needed: approval.needed,
      given: countingApprovals(approval).length,
      signed: approval.signed,
      policyHash: policyHash ?? null,
      approvers,
      messages:
        policyHash === undefined
          ? []
          : APPROVAL_DECISIONS.map((decision) => {
              const terms = termsOf(withdrawal, chainId);
              const said = { policyHash, decision };
              const sha256 = bytesToHex(approvalDigest(terms, said)).slice(2);
              return { decision, text: approvalText(terms, said), sha256 };
            }),
    },
  };
}

/** Nobody while the policy cannot be used: what waits is looked at, and rejected, all the same. */
async function approversOf(policy: PolicySource): Promise<readonly Approver[]> {
  try {
    return (await policy.current()).policy.approvers;
  } catch (error) {
    if (errorCode(error) !== "POLICY_UNREADABLE") throw error;
    return [];
  }
}

function termsOf(withdrawal: Withdrawal, chainId: bigint): ApprovedTerms {
  const { id: withdrawalId, customerId, asset, destination, amountUnits } = withdrawal;
  return { chainId, withdrawalId, customerId, asset, destination, amountUnits };
}
