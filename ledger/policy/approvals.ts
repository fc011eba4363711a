/**
 * Persons' approvals: each key once, and each person with all keys that took each other's places; signed ones
 * once for each name of the policy; never by who asked; each bound to what was approved.
 */
import type { KnownNonces } from "../requests/signing-freeze.js";
import { bytesToHex } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { appendEvents, type NewEvent } from "../events.js";
import { storedAddress, storedAtoken } from "../stored-values.js";
import { endBeforeSlotInside, keepWish, type KnownLedger } from "../requests/endings.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";
import { stepWithdrawals } from "../requests/withdrawal-steps.js";
import {
  type ApprovalDecision,
  approvalDigest,
  type ApprovalSignature,
  type ApprovedTerms,
  approverOf,
  isSignedByApprover,
} from "./approval-digest.js";
import type { ApprovalRow } from "./approval-rows.js";
import type { HashedPolicy } from "./policy.js";

/** What a person says about a withdrawal. */
export interface NewApproval {
  readonly id: WithdrawalId;
  /** The API key, or the operator of a command. */
  readonly keyId: string;
  readonly decision: ApprovalDecision;
  /** 1-500 characters. */
  readonly reason: string;
  readonly signature?: ApprovalSignature | undefined;
  /** What the person saw that the withdrawal waits for; an approval of anything else is none. */
  readonly seen?: SeenNeeds | undefined;
}

/** What a withdrawal was seen to wait for; what is left out is not held against it. */
export interface SeenNeeds {
  readonly policyHash?: string | undefined;
  /** How many approvals. */
  readonly needed?: number | undefined;
}

/** What became of it; `done` also where the same was said before, with a signature of the same key. */
export type ApprovalOutcome =
  | "done"
  | "unknown"
  /** It does not wait for approvals. */
  | "not-pending"
  /** Who asked cannot approve, with whichever key of his. */
  | "own-request"
  /** The key, the signature's, or another one of its person has said something about it. */
  | "said-otherwise"
  /** Only signed approvals count. */
  | "signature-needed"
  /** Not by an approver of the policy, or not of this digest. */
  | "bad-signature"
  /** The policy, or what it asks for, changed meanwhile: what was looked at does not count any more. */
  | "policy-changed";

interface Row {
  readonly customer_id: string;
  readonly asset: string;
  readonly destination: string;
  readonly units: string;
  readonly status: string;
  readonly is_own: boolean | null;
  readonly signed: boolean;
  readonly needed: number;
  readonly policy_hash: string | null;
}

/**
 * Writes down what a person says. The last approval that is needed lets the withdrawal be paid; one
 * rejection ends it, and the hold goes back, in the same commit, or once a person has found that it was not
 * paid.
 * @throws RECOVERY
 */
export function decideWithdrawal(
  database: SqlDatabase,
  said: NewApproval,
  by: {
    readonly policy: HashedPolicy;
    readonly chainId: bigint;
  } & KnownLedger,
): Promise<ApprovalOutcome> {
  return database.transaction(async (tx) => {
    // Held: what changes the withdrawal at this moment is seen, or sees this.
    const [row] = await tx.query<Row>(
      `SELECT customer_id, asset, destination, amount_units::text AS units, status,
              person_of_key(requested_by) = person_of_key($2) AS is_own,
              approvals_signed AS signed, approvals_needed AS needed,
              approval_policy AS policy_hash
         FROM withdrawal WHERE id = $1 FOR UPDATE`,
      [said.id, said.keyId],
    );
    if (row === undefined) return "unknown";
    await by.assertStands?.(tx);
    const refusal = await refusalOf(tx, row, said, by);
    if (refusal !== undefined) return refusal;
    const outcome = await insert(tx, row, said, by);
    if (outcome === "done") await appendEvents(tx, await advance(tx, said, by.shown));
    return outcome === "repeated" ? "done" : outcome;
  });
}

async function refusalOf(
  tx: Sql,
  row: Row,
  said: NewApproval,
  { policy, chainId }: { readonly policy: HashedPolicy; readonly chainId: bigint },
): Promise<ApprovalOutcome | undefined> {
  const { decision, signature } = said;
  if (row.status !== "pending_approval") {
    return (await saidBefore(tx, said)) ? "done" : "not-pending";
  }
  if (row.policy_hash !== policy.hash) return "policy-changed";
  if (decision === "approve" && row.is_own === true) return "own-request";
  if (signature === undefined) {
    return row.signed && decision === "approve" ? "signature-needed" : undefined;
  }
  const digest = approvalDigest(termsOf(row, said, { chainId }), {
    policyHash: policy.hash,
    decision,
  });
  return isSignedByApprover(policy.policy, digest, signature) ? undefined : "bad-signature";
}

function termsOf(
  row: Row,
  { id }: NewApproval,
  { chainId }: { readonly chainId: bigint },
): ApprovedTerms {
  return {
    chainId,
    withdrawalId: id,
    customerId: row.customer_id,
    asset: row.asset,
    destination: storedAddress(row.destination),
    amountUnits: storedAtoken(row.units),
  };
}

/** Whether this key has said the same, under whichever policy. */
async function saidBefore(tx: Sql, { id, keyId, decision }: NewApproval): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM withdrawal_approval
      WHERE withdrawal_id = $1 AND key_id = $2 AND decision = $3 LIMIT 1`,
    [id, keyId, decision],
  );
  return rows.length > 0;
}

/** Whether somebody approves what was asked for before: of a review, for one, he knows nothing. */
function isOutdated(row: Row, { decision, seen = {} }: NewApproval): boolean {
  const { policyHash = row.policy_hash, needed = row.needed } = seen;
  return decision === "approve" && (policyHash !== row.policy_hash || needed !== row.needed);
}

async function insert(
  tx: Sql,
  row: Row,
  said: NewApproval,
  { policy, chainId }: { readonly policy: HashedPolicy; readonly chainId: bigint },
): Promise<"done" | "repeated" | "said-otherwise" | "policy-changed"> {
  const { id, keyId, decision, reason, signature } = said;
  const publicKey = signature?.publicKey ?? null;
  const ownKeys = decision === "approve" ? keysOfPerson(policy, publicKey) : [];
  // Asked first and not left to the keys: the withdrawal is held, and a row has a number as well.
  const before = await tx.query<Pick<ApprovalRow, "key_id" | "decision" | "public_key">>(
    `SELECT key_id, decision, public_key FROM withdrawal_approval
      WHERE withdrawal_id = $1 AND policy_hash = $2
        AND (key_id = $3 OR public_key = $4 OR public_key = ANY ($5::text[])
             OR $6 AND person_of_key(key_id) = person_of_key($3))`,
    // Whoever has approved may still say no, with another key of his.
    [id, policy.hash, keyId, publicKey, ownKeys, decision === "approve"],
  );
  if (before.length > 0) {
    // "repeated" says that it counts already; that of another key must not be told so.
    const isSame = before.some(
      (one) => one.key_id === keyId && one.decision === decision && one.public_key === publicKey,
    );
    return isSame ? "repeated" : "said-otherwise";
  }
  if (isOutdated(row, said)) return "policy-changed";
  const terms = termsOf(row, said, { chainId });
  const digest = bytesToHex(approvalDigest(terms, { policyHash: policy.hash, decision })).slice(2);
  await tx.query(
    `INSERT INTO withdrawal_approval (withdrawal_id, key_id, decision, reason, policy_hash, digest,
       public_key, signature)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [id, keyId, decision, reason, policy.hash, digest, publicKey, signature?.signature ?? null],
  );
  return "done";
}

/** All keys that the policy lists for the person with this one. */
function keysOfPerson({ policy }: HashedPolicy, publicKey: string | null): readonly string[] {
  const name = publicKey === null ? undefined : approverOf(policy, publicKey)?.name;
  if (name === undefined) return [];
  const keys = policy.approvers.map((each) => each.publicKey);
  return keys.filter((key) => approverOf(policy, key)?.name === name);
}

async function advance(
  tx: Sql,
  { id, keyId, decision, reason }: NewApproval,
  shown: KnownNonces | undefined,
): Promise<readonly NewEvent[]> {
  if (decision === "reject") {
    const words = `rule approvals: ${keyId} rejected it: ${reason}`;
    const step = { id, reason: words, data: { rule: "approvals" } };
    const { moved, events } = await endBeforeSlotInside(tx, "rejected", [step], shown);
    // It froze, since it may be paid already: where it was not, others' approvals do not let it go on.
    if (!moved.has(id)) await keepWish(tx, { id, cause: "policy", reason: words });
    return events;
  }
  const [answer] = await tx.query<{ met: boolean }>(`SELECT has_approvals($1) AS met`, [id]);
  if (answer?.met !== true) return [];
  return (await stepWithdrawals(tx, "accepted", [{ id }], ["pending_approval"])).events;
}
