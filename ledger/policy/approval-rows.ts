/** Approvals as the ledger keeps them. */
import type { Sql } from "../../runtime/sql/sql.js";
import { storedTime } from "../stored-values.js";
import type { ApprovalDecision, ApprovalSignature } from "./approval-digest.js";

/** What one person said about a withdrawal. */
export interface Approval {
  /** The API key, or the operator of a command. */
  readonly keyId: string;
  readonly decision: ApprovalDecision;
  readonly reason: string;
  /** The policy it was said under: under another one it does not count. */
  readonly policyHash: string;
  readonly signature: ApprovalSignature | undefined;
  /** RFC 3339, UTC. */
  readonly at: string;
}

/** Who has to agree to a withdrawal, and who did. */
export interface ApprovalState {
  /** Approvals that are needed; 0 for none. */
  readonly needed: number;
  /** Whether only signed ones count. */
  readonly signed: boolean;
  /** The policy that asks for them; undefined where none does. */
  readonly policyHash: string | undefined;
  /** Oldest first, those under former policies too. */
  readonly approvals: readonly Approval[];
}

/** A row of `withdrawal_approval` as JSON. */
export interface ApprovalRow {
  readonly key_id: string;
  readonly decision: ApprovalDecision;
  readonly reason: string;
  readonly policy_hash: string;
  readonly public_key: string | null;
  readonly signature: string | null;
  readonly at: string;
}

/** Row to approval. */
export function toApproval(row: ApprovalRow): Approval {
  const { public_key: publicKey, signature } = row;
  return {
    keyId: row.key_id,
    decision: row.decision,
    reason: row.reason,
    policyHash: row.policy_hash,
    signature: publicKey === null || signature === null ? undefined : { publicKey, signature },
    at: storedTime(row.at),
  };
}

/** Approvals that count towards what is needed. */
export function countingApprovals(state: ApprovalState): readonly Approval[] {
  return state.approvals.filter(
    ({ decision, policyHash, signature }) =>
      decision === "approve" &&
      policyHash === state.policyHash &&
      (signature !== undefined || !state.signed),
  );
}

/** Signed approvals of withdrawals, by their ids, under whichever policy: the signature says which. */
export async function readSignedApprovals(
  sql: Sql,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly ApprovalSignature[]>> {
  const rows = await sql.query<{ id: string; public_key: string; signature: string }>(
    `SELECT withdrawal_id AS id, public_key, signature FROM withdrawal_approval
      WHERE withdrawal_id = ANY ($1::text[]) AND decision = 'approve' AND signature IS NOT NULL
      ORDER BY withdrawal_approval.id`,
    [ids],
  );
  const byId = new Map<string, ApprovalSignature[]>();
  for (const { id, public_key: publicKey, signature } of rows) {
    byId.set(id, [...(byId.get(id) ?? []), { publicKey, signature }]);
  }
  return byId;
}
