/**
 * What persons said under a former policy counts under the present one where that asks for the same:
 * as many persons, and no signatures. They looked at the same request, whose terms never change; what a
 * review is about they know only behind its answer. A signature names its policy, so signed approvals are
 * asked for again.
 */
import { bytesToHex } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedAddress, storedAtoken } from "../stored-values.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";
import { approvalDigest } from "./approval-digest.js";
import {
  type ApprovalRule,
  approvalsFor,
  type HashedPolicy,
  type JudgedRequest,
  type Policy,
  screeningOf,
} from "./policy.js";

/**
 * Approvals that a policy asks for, by the amount and by what screening said. A review is asked of further
 * persons: who approved the amount before had not seen that there is something to look at.
 */
export function approvalsAsked(
  policy: Policy,
  request: Omit<JudgedRequest, "destination"> & { readonly verdict: string | null },
): Pick<ApprovalRule, "needed" | "signed"> {
  const { needed, signed } = approvalsFor(policy, request);
  const screening = screeningOf(policy, request);
  const isReview = screening !== undefined && request.verdict === "review";
  return { needed: isReview ? needed + screening.reviewApprovals : needed, signed };
}

interface Row {
  readonly id: string;
  readonly customer_id: string;
  readonly asset: string;
  readonly destination: string;
  readonly units: string;
  readonly needed: number;
  readonly verdict: string | null;
  /** Said before screening had answered; null where it has not. */
  readonly is_before: boolean | null;
  /** Approvals that are written down under the later policy already. */
  readonly had: number;
  readonly chain_id: string;
  readonly key_id: string;
  readonly reason: string;
}

/**
 * Writes approvals of these withdrawals, all locked by the caller, down under a policy that came later
 * and asks for the same. A repeat changes nothing.
 */
export async function keepApprovals(
  tx: Sql,
  { policy, hash, text }: HashedPolicy,
  ids: readonly WithdrawalId[],
): Promise<void> {
  const rows = await tx.query<Row>(
    `SELECT w.id, w.customer_id, w.asset, w.destination, w.amount_units::text AS units,
            w.approvals_needed AS needed, v.verdict, m.value AS chain_id, a.key_id, a.reason,
            -- Said first under whichever policy: one that was kept is no later for that.
            v.at >= (SELECT min(f.at) FROM withdrawal_approval f
                      WHERE f.withdrawal_id = w.id AND f.key_id = a.key_id
                        AND f.decision = 'approve') AS is_before,
            (SELECT count(*)::integer FROM withdrawal_approval h
              WHERE h.withdrawal_id = w.id AND h.policy_hash = $2
                AND h.decision = 'approve') AS had
       FROM withdrawal w
       JOIN withdrawal_approval a ON a.withdrawal_id = w.id AND a.policy_hash = w.approval_policy
        AND a.decision = 'approve'
       JOIN meta m ON m.key = 'chain_id'
       LEFT JOIN screening_verdict v ON v.withdrawal_id = w.id
      WHERE w.id = ANY ($1::text[]) AND w.approval_policy <> $2 AND NOT w.approvals_signed
        AND w.approvals_needed > 0
        -- With another key of his he has said something under it before.
        AND NOT EXISTS (SELECT 1 FROM withdrawal_approval o
                         WHERE o.withdrawal_id = w.id AND o.policy_hash = $2
                           AND o.key_id <> a.key_id
                           AND person_of_key(o.key_id) = person_of_key(a.key_id))
      ORDER BY a.id`,
    [ids, hash],
  );
  const early = new Map<string, number>();
  const kept = rows.flatMap((row) => {
    const { id, customer_id: customerId, asset } = row;
    const amountUnits = storedAtoken(row.units);
    const { verdict } = row;
    const request = { customerId, asset, amountUnits };
    const asked = approvalsAsked(policy, { ...request, verdict });
    if (asked.signed || asked.needed !== row.needed) return [];
    if (verdict === "review" && row.is_before === true) {
      const count = (early.get(id) ?? row.had) + 1;
      early.set(id, count);
      // Of a review they knew nothing: beyond what the amount asks for they count for nobody.
      if (count > approvalsFor(policy, request).needed) return [];
    }
    const destination = storedAddress(row.destination);
    const chainId = storedAtoken(row.chain_id);
    const terms = { chainId, withdrawalId: id, customerId, asset, destination, amountUnits };
    const digest = approvalDigest(terms, { policyHash: hash, decision: "approve" });
    return [{ ...row, digest: bytesToHex(digest).slice(2) }];
  });
  if (kept.length === 0) return;
  await tx.query(
    `WITH version AS (
       INSERT INTO policy_version (hash, body) VALUES ($1, $6) ON CONFLICT (hash) DO NOTHING)
     INSERT INTO withdrawal_approval (withdrawal_id, key_id, decision, reason, policy_hash, digest)
     SELECT id, key_id, 'approve', reason, $1, digest
       FROM unnest($2::text[], $3::text[], $4::text[], $5::text[])
            WITH ORDINALITY AS kept (id, key_id, reason, digest, place)
      ORDER BY place
     ON CONFLICT (withdrawal_id, policy_hash, key_id) DO NOTHING`,
    [
      hash,
      kept.map(({ id }) => id),
      kept.map(({ key_id }) => key_id),
      kept.map(({ reason }) => reason),
      kept.map(({ digest }) => digest),
      text,
    ],
  );
}
