/** Rules that spare nonces: screening, customers whose payouts fail, and what the signer would refuse. */
import { screeningOf } from "../../../ledger/policy/policy.js";
import type { QueuedWithdrawal } from "../../../ledger/withdrawals/nonce-slots.js";
import type { SlotCandidate } from "../../../ledger/withdrawals/slot-choice.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import type { SigningRefusalCode } from "../../signers/signer-port.js";
import { approvalsOf } from "../attempts/attempts.js";
import type { LaneContext, Round } from "../lane-context.js";
import { storeEach } from "./put-off.js";
import type { Waiting } from "./waiting.js";

/** A candidate with what rules are about. */
export type Candidate = SlotCandidate & Omit<QueuedWithdrawal, "id" | "amountUnits">;

/** Ends payouts to code of customers whose payouts failed on the chain too often. */
export async function withoutRejected(
  context: LaneContext,
  { lease }: Round,
  candidates: readonly Candidate[],
): Promise<readonly Candidate[]> {
  const { maxCount: count, windowMs } = context.settings.failures;
  const toCode = candidates.filter(({ entersCode }) => entersCode);
  if (count === 0 || toCode.length === 0) return candidates;
  const customerIds = toCode.map(({ customerId }) => customerId);
  const options = { customerIds, count, windowMs };
  const failing = await context.ledger.customersWithFailures(options);
  const rejected = toCode.filter(({ customerId }) => failing.has(customerId));
  if (rejected.length === 0) return candidates;
  const reason =
    `rule failed-payouts: ${count} payouts of this customer failed on the chain within ` +
    `${Math.round(windowMs / 1_000)} s`;
  const steps = rejected.map(({ id }) => ({ id, reason, data: { rule: "failed-payouts" } }));
  await storeEach(context, steps, (some) => context.ledger.endBeforeSlot(lease, "rejected", some));
  context.log.warn({ count: rejected.length }, "payouts to contracts are rejected");
  return candidates.filter((candidate) => !rejected.includes(candidate));
}

/** Requests that may be judged: screening, where the policy wants it, has answered about them. */
export async function screen(
  { ledger, policy, screener }: LaneContext,
  round: Round,
  requests: readonly QueuedWithdrawal[],
): Promise<{
  readonly answered: readonly QueuedWithdrawal[];
  readonly waiting: readonly Waiting[];
}> {
  const { policy: rules } = await policy.current();
  const { screening } = rules;
  if (screening === undefined) return { answered: requests, waiting: [] };
  const screened = requests.filter((request) => screeningOf(rules, request) !== undefined);
  const open = await ledger.withoutVerdict(screened.map(({ id }) => id));
  const asked = screened.filter(({ id }) => open.has(id));
  const answers = await screener.ask(screening, asked, { signal: round.signal });
  await ledger.recordVerdicts(answers);
  const silent = new Set<string>(open);
  for (const { withdrawalId } of answers) silent.delete(withdrawalId);
  const reason = "waits: screening has not answered";
  return {
    answered: requests.filter(({ id }) => !silent.has(id)),
    waiting: requests.flatMap(({ id }) => (silent.has(id) ? [{ id, reason }] : [])),
  };
}

/** Refusals of the signer that end a request without a nonce: the ledger can decide nothing about them. */
const ENDING: ReadonlySet<SigningRefusalCode> = new Set<SigningRefusalCode>([
  "FORBIDDEN_DESTINATION",
  "APPROVALS_USED",
]);

/**
 * Spares a nonce where the signer would refuse it: what nobody is ever paid, and what persons have signed
 * for another nonce of, is rejected; what its day does not cover waits. What persons or the policy decide is
 * the ledger's to judge.
 */
export async function withoutRefused(
  context: LaneContext,
  { lease, view }: Round,
  {
    candidates,
    waiting,
  }: { readonly candidates: readonly Candidate[]; readonly waiting: Waiting[] },
): Promise<readonly Candidate[]> {
  const approvals = await approvalsOf(
    context,
    candidates.map(({ id }) => id),
  );
  const refusals = context.signer.review(
    candidates.map(({ id, customerId, asset, amountUnits, destination, addressIndex }) => ({
      withdrawalId: id,
      customerId,
      asset,
      amountUnits,
      destination,
      addressIndex,
      approvals: approvals.get(id) ?? [],
      fromNonce: view.nonce,
    })),
  );
  const forbidden: { id: WithdrawalId; reason: string; data: { rule: string } }[] = [];
  const kept = candidates.filter(({ id }, index) => {
    const refusal = refusals[index];
    if (refusal === undefined) return true;
    const { code, reason, isLasting } = refusal;
    if (ENDING.has(code)) {
      forbidden.push({ id, reason: `rule ${code}: ${reason}`, data: { rule: code } });
    } else if (!isLasting) {
      waiting.push({ id, reason: `waits: the signer refuses (${reason})`, isHere: true });
    }
    return isLasting && !ENDING.has(code);
  });
  if (forbidden.length > 0) {
    await storeEach(context, forbidden, (some) =>
      context.ledger.endBeforeSlot(lease, "rejected", some),
    );
    context.log.warn(
      { withdrawals: forbidden.map(({ id, data: { rule } }) => `${id} ${rule}`) },
      "withdrawals are rejected that the signer would never sign for",
    );
  }
  return kept;
}
