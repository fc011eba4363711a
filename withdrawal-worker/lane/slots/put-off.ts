/**
 * What cannot go on now: put off with a reason, so that it does not stand before those that can; and what
 * ends since it never can.
 */
import { errorCode, errorMessage } from "../../../chain/errors.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import type { Step } from "../../../ledger/requests/withdrawal-steps.js";
import { failpoint } from "../../../runtime/process/failpoint.js";
import { SqlError } from "../../../runtime/sql/sql-errors.js";
import { WORKER_FAILPOINTS } from "../../failpoints.js";
import type { LaneContext, Round } from "../lane-context.js";
import type { Waiting } from "./waiting.js";

/**
 * A payout to code whose estimate was not answered waits so many times the usual delay: others to
 * code that were never asked about come before it. Nothing is put off for longer.
 */
export const LONGEST_WAIT_DELAYS = 10;

/** Says nothing of the cause: its text may be what the ledger refuses to store. */
const NOT_STORED = "waits: the ledger did not take what came of it; see the worker's log";

/**
 * Puts off what cannot go on now, so that it does not stand before those that can. What nobody had time for
 * is put off first: it is due before what was tried and will be tried again.
 */
export async function postpone(
  context: LaneContext,
  waiting: readonly Waiting[],
  unansweredDelays = 1,
): Promise<void> {
  const isTried = ({ isUntried }: Waiting) => isUntried !== true;
  const ordered = [...waiting.filter((entry) => !isTried(entry)), ...waiting.filter(isTried)];
  for (const reason of new Set(ordered.map((entry) => entry.reason))) {
    const alike = waiting.filter((entry) => entry.reason === reason);
    const ids = alike.map(({ id }) => id);
    const delays = alike[0]?.isUnanswered === true ? unansweredDelays : 1;
    const delayMs = delays * context.settings.retryDelayMs;
    context.log.warn({ count: ids.length, reason }, "withdrawals wait");
    await storeEach(
      context,
      ids.map((id) => ({ id })),
      (some) =>
        context.ledger.postponeWithdrawals({ ids: some.map(({ id }) => id), reason, delayMs }),
    );
  }
}

/** Ends what cannot be paid, before it has a nonce: the holds go back. */
export async function failUnpaid(
  context: LaneContext,
  { lease }: Pick<Round, "lease">,
  failing: readonly Step[],
): Promise<void> {
  if (failing.length === 0) return;
  await storeEach(context, failing, (steps) =>
    context.ledger.endBeforeSlot(lease, "failed", steps),
  );
  failpoint(WORKER_FAILPOINTS.afterRefusalCommit);
  context.log.info({ count: failing.length }, "withdrawals cannot be paid, holds released");
}

/**
 * Writes what came of requests in one go; when the ledger refuses it, each by itself, and who is
 * refused then is put off: one request's fault ends neither the others nor the lane.
 * @throws faults that pass by themselves
 */
export async function storeEach<Entry extends { readonly id: WithdrawalId }>(
  context: LaneContext,
  entries: readonly Entry[],
  store: (entries: readonly Entry[]) => Promise<unknown>,
): Promise<void> {
  try {
    await store(entries);
  } catch (error) {
    if (!(error instanceof SqlError) || error.retriable) throw error;
    const [only] = entries;
    if (only === undefined) return;
    if (entries.length > 1) {
      for (const entry of entries) await storeEach(context, [entry], store);
      return;
    }
    const fault = { id: only.id, code: errorCode(error), reason: errorMessage(error) };
    context.log.error(fault, "the ledger refuses what came of a withdrawal: it is put off");
    const { retryDelayMs: delayMs } = context.settings;
    await context.ledger.postponeWithdrawals({ ids: [only.id], reason: NOT_STORED, delayMs });
  }
}
