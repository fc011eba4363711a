/** The policy about withdrawals that are stored: again when it changed, and when a nonce is taken. */
import type { Address } from "../../chain/address.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { ageSecondsSql } from "../database-clock.js";
import { appendEvents, type NewEvent } from "../events.js";
import type { KnownNonces } from "../requests/signing-freeze.js";
import { storedAddress, storedAtoken, storedInteger } from "../stored-values.js";
import { endBeforeSlotInside } from "../requests/endings.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";
import { stepWithdrawals } from "../requests/withdrawal-steps.js";
import { approvalsAsked, keepApprovals } from "./kept-approvals.js";
import { exceededBefore, limitsRequests, mostBefore, walletLimits } from "./limit-counts.js";
import { brokenRule, type HashedPolicy, type JudgedRequest, screeningOf } from "./policy.js";
import {
  type DecisionOutcome,
  type DecisionStage,
  isReplaced,
  recordDecisions,
  tooNewPairs,
} from "./policy-store.js";
import { WalletRoom } from "./wallet-room.js";

/** A withdrawal as judging needs it. */
interface Stored extends JudgedRequest {
  readonly id: WithdrawalId;
  readonly status: string;
  /** It was judged by this very policy before, when all by the former ones had been written down. */
  readonly isJudged: boolean;
  /** All that was decided about it is that it may be paid, when it was accepted and by this policy. */
  readonly isAcceptedAlone: boolean;
  readonly verdict: string | null;
  /** The screening service's name for it. */
  readonly reference: string | null;
  /** What the database holds its nonce against. */
  readonly needs: string;
  /** Approvals under this policy: all, and signed ones. */
  readonly approvals: number;
  readonly signedApprovals: number;
}

interface Judgement {
  readonly stored: Stored;
  readonly outcome: DecisionOutcome;
  /** Rule and words of a rejection or a wait; words also where persons are asked for a review. */
  readonly rule?: string;
  readonly reason?: string;
  readonly isOfWallet?: boolean;
  readonly needed: number;
  readonly signed: boolean;
}

/**
 * How long after a policy came into force requests may still be written down that a former one was judging:
 * its limits took other locks, or none, so that whoever counted meanwhile may have missed them. What was
 * accepted in that time is counted once more.
 */
const SETTLING_SECONDS = 60;

/** What judging at the slot came to; `writeAtSlot` writes it down. */
export interface SlotJudgement {
  /** As far as all rules go but the limits of the wallet ... */
  readonly allowed: ReadonlySet<WithdrawalId>;
  /** ... which have this left: who gets a nonce takes of it. */
  readonly room: WalletRoom;
  readonly judgements: readonly Judgement[];
}

/** What came of judging withdrawals before they get a nonce: who waits for what. */
export interface SlotDecisions {
  /** Accepted ones that wait for something other than persons. */
  readonly waiting: readonly {
    readonly id: WithdrawalId;
    readonly reason: string;
    /** It is this wallet's own limit: another wallet may have room. */
    readonly isOfWallet: boolean;
  }[];
  /** The caller appends them last. */
  readonly events: readonly NewEvent[];
}

/**
 * Judges accepted withdrawals that are about to get a nonce of a wallet, all locked by the caller until
 * `writeAtSlot`.
 */
export async function judgeAtSlot(
  tx: Sql,
  { policy, wallet }: { readonly policy: HashedPolicy; readonly wallet: Address },
  ids: readonly WithdrawalId[],
): Promise<SlotJudgement> {
  if (ids.length > 0) await keepApprovals(tx, policy, ids);
  const stored = ids.length > 0 ? await readStored(tx, policy, ids) : [];
  const judgements = await judge(tx, policy, stored);
  const allowed = having(judgements, "pay").map((judgement) => judgement.stored);
  const room = await WalletRoom.read(tx, { policy, wallet }, allowed);
  return { allowed: new Set(allowed.map(({ id }) => id)), room, judgements };
}

/**
 * Writes down what was judged, once it is known who takes of the wallet's limits. What the policy forbids by
 * now ends as rejected, what needs persons goes back to waiting for them.
 */
export async function writeAtSlot(
  tx: Sql,
  policy: HashedPolicy,
  { room, judgements: judged }: SlotJudgement,
): Promise<SlotDecisions> {
  const judgements = judged.map((judgement) => withinWallet(judgement, room));
  const isRepeated = ({ stored, outcome, needed }: Judgement) =>
    outcome === "pay" && needed === 0 && stored.isAcceptedAlone && !asksForNonce(policy, stored);
  const events = await apply(tx, policy, { stage: "slot", isRepeated }, judgements);
  return {
    waiting: having(judgements, "wait").map(({ stored, reason, isOfWallet }) => ({
      id: stored.id,
      reason: `waits: ${reason}`,
      isOfWallet: isOfWallet === true,
    })),
    events,
  };
}

/** Whether the policy asks for something before a nonce that it did not ask at acceptance. */
function asksForNonce(policy: HashedPolicy, stored: Stored): boolean {
  const hasLimits = walletLimits(policy, stored.asset).length > 0;
  return hasLimits || screeningOf(policy.policy, stored) !== undefined;
}

/** Withdrawals of one transaction when all that wait for persons are judged again. */
const REJUDGED_AT_ONCE = 200;

/** SQL: whether a withdrawal `w` waits for persons under another policy than `$1`. */
const IS_OUTDATED = `w.phase = 'waiting' AND w.status = 'pending_approval'
  AND w.approval_policy IS DISTINCT FROM $1`;

/** SQL: whether a withdrawal `w` is accepted and was not judged by the policy `$1`. */
const IS_UNJUDGED = `w.phase = 'waiting' AND w.status = 'accepted' AND NOT EXISTS (
  SELECT 1 FROM policy_decision d WHERE d.withdrawal_id = w.id AND d.policy_hash = $1)`;

/** Position of the last outdated one; undefined for none. */
async function lastOutdated(sql: Sql, { hash }: HashedPolicy): Promise<number | undefined> {
  const [row] = await sql.query<{ last: string | null }>(
    `SELECT max(w.position)::text AS last FROM withdrawal w WHERE ${IS_OUTDATED}`,
    [hash],
  );
  return row === undefined || row.last === null ? undefined : storedInteger(row.last);
}

/**
 * Position of the last accepted one that was not judged, where limits count what came before and there are
 * few enough to judge; undefined for none. Looked for only some time behind a change: what a former policy
 * has accepted is written down by then, and afterwards all that waits would be looked through for nothing.
 */
async function lastUnjudged(sql: Sql, policy: HashedPolicy): Promise<number | undefined> {
  if (!limitsRequests(policy)) return undefined;
  const [row] = await sql.query<{ last: string | null; count: number }>(
    `SELECT max(few.position)::text AS last, count(*)::integer AS count
       FROM (SELECT w.position FROM withdrawal w
              WHERE coalesce((SELECT ${ageSecondsSql("a.at")} FROM policy_activation a
                               ORDER BY a.id DESC LIMIT 1) < $3::integer, true)
                AND ${IS_UNJUDGED} LIMIT $2) AS few`,
    [policy.hash, REJUDGED_AT_ONCE + 1, 2 * SETTLING_SECONDS],
  );
  if (row === undefined || row.last === null || row.count > REJUDGED_AT_ONCE) return undefined;
  return storedInteger(row.last);
}

/** Whether limits count what came before, and what was accepted up to a position is few enough to judge. */
async function judgesEarlier(sql: Sql, policy: HashedPolicy, last: number): Promise<boolean> {
  if (!limitsRequests(policy)) return false;
  const rows = await sql.query(
    `SELECT 1 FROM withdrawal w WHERE ${IS_UNJUDGED} AND w.position <= $2 LIMIT $3`,
    [policy.hash, last, REJUDGED_AT_ONCE + 1],
  );
  return rows.length <= REJUDGED_AT_ONCE;
}

/**
 * Judges what waits for persons under another policy than this one: other approvals, none, or
 * rejection. Where another one has come into force, it is that one's to judge. Where limits count what came
 * before, so is what is accepted and not judged by it yet: what falls itself counts against nobody, neither
 * here nor when others get their nonces while it is put off. Of more of these than `REJUDGED_AT_ONCE` none
 * is, as all of the worker waits for this, or those alone that came before what waits for persons: they are
 * judged when they are to get their nonces, and count until then.
 * @param shown see `readBehind`
 * @throws RECOVERY
 */
export async function rejudgePending(
  database: SqlDatabase,
  policy: HashedPolicy,
  shown?: KnownNonces,
): Promise<void> {
  const lastPending = await lastOutdated(database, policy);
  const lastAccepted = await lastUnjudged(database, policy);
  const last = Math.max(lastPending ?? 0, lastAccepted ?? 0);
  if (last === 0) return;
  const isEarlierJudged =
    lastAccepted !== undefined || (await judgesEarlier(database, policy, last));
  for (let after = 0; ; ) {
    const reached = await database.transaction(async (tx) => {
      if (await isReplaced(tx, policy)) return undefined;
      const rows = await tx.query<{ id: string; position: string }>(
        `SELECT w.id, w.position::text FROM withdrawal w
          WHERE w.phase = 'waiting' AND w.position > $2 AND w.position <= $3
            AND (${IS_OUTDATED} OR $4 AND ${IS_UNJUDGED})
          ORDER BY w.position LIMIT $5 FOR UPDATE OF w`,
        [policy.hash, after, last, isEarlierJudged, REJUDGED_AT_ONCE],
      );
      const ids = rows.map(({ id }) => toWithdrawalId(id));
      await keepApprovals(tx, policy, ids);
      const judgements = await judge(tx, policy, await readStored(tx, policy, ids));
      await appendEvents(tx, await apply(tx, policy, { stage: "change" }, judgements, shown));
      return rows.at(-1)?.position;
    });
    if (reached === undefined) return;
    after = storedInteger(reached);
  }
}

/** @param stored in the order of their requests */
async function judge(
  tx: Sql,
  policy: HashedPolicy,
  stored: readonly Stored[],
): Promise<readonly Judgement[]> {
  const tooNew = await tooNewPairs(tx, policy, stored);
  const most = await mostBefore(
    tx,
    policy,
    stored.filter(({ isJudged }) => !isJudged),
  );
  const judgements: Judgement[] = [];
  const rejected: WithdrawalId[] = [];
  for (const entry of stored) {
    const exceeded = entry.isJudged
      ? undefined
      : await exceededBefore(tx, policy, entry, { rejected, most });
    const judgement = judgeOne(policy, entry, { isTooNew: tooNew.has(entry), exceeded });
    if (judgement.outcome === "reject") rejected.push(entry.id);
    judgements.push(judgement);
  }
  return judgements;
}

function judgeOne(
  { policy }: HashedPolicy,
  stored: Stored,
  found: { readonly isTooNew: boolean; readonly exceeded: string | undefined },
): Judgement {
  const screening = screeningOf(policy, stored);
  const { needed, signed } = approvalsAsked(policy, stored);
  const base = { stored, needed, signed };
  const reject = (rule: string): Judgement => {
    return { ...base, outcome: "reject", rule, reason: `rule ${rule} of the policy` };
  };
  const broken = brokenRule(policy, stored);
  if (broken !== undefined) return reject(broken);
  if (found.exceeded !== undefined) return reject(`LIMIT_EXCEEDED ${found.exceeded}`);
  if (screening !== undefined && stored.verdict === "deny") return reject("SCREENING");
  const given = signed ? stored.signedApprovals : stored.approvals;
  if (given < needed) {
    const isReview = screening !== undefined && stored.verdict === "review";
    return { ...base, outcome: "approve", ...(isReview && { reason: reviewReason(stored) }) };
  }
  if (stored.status !== "accepted") return { ...base, outcome: "pay" };
  if (found.isTooNew) {
    const reason = "its destination was listed too short a time ago";
    return { ...base, outcome: "wait", rule: "DESTINATION_TOO_NEW", reason };
  }
  if (screening !== undefined && stored.verdict === null) {
    const reason = "screening has not answered";
    return { ...base, outcome: "wait", rule: "SCREENING", reason };
  }
  return { ...base, outcome: "pay" };
}

/** What persons are to look at: without it they see a further approval, and not why. */
function reviewReason({ reference }: Stored): string {
  const named = reference === null || reference === "" ? "" : ` (reference ${reference})`;
  return `screening asks for a review${named}`;
}

/** Lets those wait that are beyond what their wallet may pay in a window. */
function withinWallet(judgement: Judgement, room: WalletRoom): Judgement {
  const { asset, id } = judgement.stored;
  const limit = room.heldBy(id);
  if (limit === undefined) return judgement;
  const rule = `LIMIT_EXCEEDED ${asset} ${limit}`;
  const reason = `the wallet's limit (${limit}) is used up`;
  return { ...judgement, outcome: "wait", rule, reason, isOfWallet: true };
}

/** Writes what was decided. @returns events to append last */
async function apply(
  tx: Sql,
  policy: HashedPolicy,
  {
    stage,
    isRepeated = () => false,
  }: {
    readonly stage: DecisionStage;
    /** Says what stands as the last decision already: it is not written down again. */
    readonly isRepeated?: (judgement: Judgement) => boolean;
  },
  judgements: readonly Judgement[],
  shown?: KnownNonces,
): Promise<readonly NewEvent[]> {
  if (judgements.length === 0) return [];
  await recordDecisions(
    tx,
    { policy, stage },
    judgements
      .filter((judgement) => !isRepeated(judgement))
      .map(({ stored, outcome, rule, needed, signed }) => ({
        withdrawalId: stored.id,
        outcome,
        rules: { approvals: needed, signed, ...(rule === undefined ? {} : { rule }) },
      })),
  );
  await writeNeeds(tx, policy, judgements);
  const pending = having(judgements, "approve").map(({ stored, needed, reason }) => ({
    id: stored.id,
    ...(reason !== undefined && { reason }),
    data: { approvalsNeeded: needed },
  }));
  const rejected = having(judgements, "reject").map(({ stored, rule, reason }) => ({
    id: stored.id,
    reason: reason ?? "",
    data: { rule },
  }));
  const free = having(judgements, "pay").map(({ stored }) => ({ id: stored.id }));
  const results = [
    await stepWithdrawals(tx, "pending_approval", pending, ["accepted"]),
    await endBeforeSlotInside(tx, "rejected", rejected, shown),
    await stepWithdrawals(tx, "accepted", free, ["pending_approval"]),
  ];
  return results.flatMap(({ events }) => events);
}

/** What the database holds nonces against; what waits for persons already says why as of now. */
async function writeNeeds(
  tx: Sql,
  policy: HashedPolicy,
  judged: readonly Judgement[],
): Promise<void> {
  const judgements = judged.filter(
    ({ stored, needed, signed }) => stored.needs !== needsOf(needed, signed, policy.hash),
  );
  if (judgements.length === 0) return;
  await tx.query(
    `UPDATE withdrawal w
        SET approvals_needed = input.needed, approvals_signed = input.signed,
            approval_policy = CASE WHEN input.needed > 0 THEN $4 END,
            reason = CASE WHEN w.status = 'pending_approval' THEN input.reason ELSE w.reason END
       FROM unnest($1::text[], $2::integer[], $3::boolean[], $5::text[])
            AS input (id, needed, signed, reason)
      WHERE w.id = input.id`,
    [
      judgements.map(({ stored }) => stored.id),
      judgements.map(({ needed }) => needed),
      judgements.map(({ signed }) => signed),
      policy.hash,
      judgements.map(({ outcome, reason }) => (outcome === "approve" ? (reason ?? null) : null)),
    ],
  );
}

function needsOf(needed: number, signed: boolean, policyHash: string | null): string {
  return needed === 0 ? "none" : `${needed} ${signed} ${policyHash}`;
}

function having(judgements: readonly Judgement[], outcome: DecisionOutcome): readonly Judgement[] {
  return judgements.filter((judgement) => judgement.outcome === outcome);
}

async function readStored(
  tx: Sql,
  policy: HashedPolicy,
  ids: readonly WithdrawalId[],
): Promise<readonly Stored[]> {
  const rows = await tx.query<
    Record<"id" | "status" | "customer_id" | "asset" | "destination" | "units", string> & {
      readonly is_judged: boolean;
      readonly is_accepted_alone: boolean;
      readonly verdict: string | null;
      readonly reference: string | null;
      readonly approvals: number;
      readonly signed: number;
      readonly approvals_needed: number;
      readonly approvals_signed: boolean;
      readonly approval_policy: string | null;
    }
  >(
    `SELECT w.id, w.status, w.customer_id, w.asset, w.destination, w.amount_units::text AS units,
            decided.passed
              AND w.created_at > coalesce(
                (SELECT a.at FROM policy_activation a ORDER BY a.id DESC LIMIT 1), '-infinity')
                + $3::integer * interval '1 second' AS is_judged,
            decided.is_accepted_alone,
            v.verdict, v.reference, given.approvals, given.signed, w.approvals_needed,
            w.approvals_signed, w.approval_policy
       FROM withdrawal w
       LEFT JOIN screening_verdict v ON v.withdrawal_id = w.id
       CROSS JOIN LATERAL (
         SELECT coalesce(bool_or(d.policy_hash = $2 AND d.outcome IN ('pay', 'approve')), false)
                  AS passed,
                count(*) = 1 AND bool_and(
                  d.policy_hash = $2 AND d.stage = 'accept' AND d.outcome = 'pay')
                  AS is_accepted_alone
           FROM policy_decision d WHERE d.withdrawal_id = w.id) AS decided
       CROSS JOIN LATERAL (
         SELECT count(*)::integer AS approvals, count(a.signature)::integer AS signed
           FROM withdrawal_approval a WHERE a.withdrawal_id = w.id AND a.policy_hash = $2
            AND a.decision = 'approve') AS given
      WHERE w.id = ANY ($1::text[]) ORDER BY w.position`,
    [ids, policy.hash, SETTLING_SECONDS],
  );
  return rows.map((row) => ({
    id: toWithdrawalId(row.id),
    status: row.status,
    customerId: row.customer_id,
    asset: row.asset,
    destination: storedAddress(row.destination),
    amountUnits: storedAtoken(row.units),
    isJudged: row.is_judged,
    isAcceptedAlone: row.is_accepted_alone,
    verdict: row.verdict,
    reference: row.reference,
    needs: needsOf(row.approvals_needed, row.approvals_signed, row.approval_policy),
    approvals: row.approvals,
    signedApprovals: row.signed,
  }));
}
