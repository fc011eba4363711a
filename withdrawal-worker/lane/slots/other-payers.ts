/**
 * What another wallet may pay that this one, its home or its node cannot now: it keeps its place until others
 * have had their time, since whoever puts it off makes it wait for the same wallet again.
 */
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import type { Payer } from "../../../ledger/wallets/payer-choice.js";
import type { QueuedWithdrawal, TakenSlots } from "../../../ledger/withdrawals/nonce-slots.js";
import type { LaneContext, LaneSettings, Round } from "../lane-context.js";
import { failUnpaid, LONGEST_WAIT_DELAYS, postpone } from "./put-off.js";
import type { Candidate } from "./slot-rules.js";
import type { Waiting } from "./waiting.js";

/** Scans for which a request waits for the wallet that is to pay it, before any other does. */
const OVERDUE_SCANS = 3;

/** A request that has waited for longer is paid by whoever covers it. */
export function overdueBehindMs({ scanIntervalMs }: Pick<LaneSettings, "scanIntervalMs">): number {
  return OVERDUE_SCANS * scanIntervalMs;
}

/** Its payer and all others had their time: a request that has waited for longer is put off. */
export function patienceMs(settings: Pick<LaneSettings, "scanIntervalMs">): number {
  return 2 * overdueBehindMs(settings);
}

/** Those that cover a request had their time to put it off: behind it those may that lack the units. */
export function lastWordMs(settings: Pick<LaneSettings, "scanIntervalMs">): number {
  return 2 * patienceMs(settings);
}

/**
 * What is beyond this wallet's own limit may be another wallet's to pay: it keeps its place, and whoever
 * covers it takes it once it is overdue; what then still waits is put off.
 */
export async function heldHere(
  context: LaneContext,
  candidates: readonly Candidate[],
  held: TakenSlots["held"],
): Promise<readonly Waiting[]> {
  if (!held.some(({ isOfWallet }) => isOfWallet)) return held;
  if (!(await hasOthers(context))) return held;
  const isLate = new Set(
    candidates
      .filter(({ waitedMs }) => waitedMs > patienceMs(context.settings))
      .map(({ id }) => id),
  );
  return held.filter(({ id, isOfWallet }) => !isOfWallet || isLate.has(id));
}

/**
 * Of due requests those that the lane does not leave alone; what others did not take in time is put off. What
 * has waited for all its time is asked about once more: what was said when it was left ends nothing.
 */
export async function withoutLeft(
  context: LaneContext,
  { left }: Pick<Round, "left">,
  queued: readonly QueuedWithdrawal[],
): Promise<readonly QueuedWithdrawal[]> {
  const { due, over } = left.sift(queued, patienceMs(context.settings));
  const ending = await waitedOut(context, over);
  const putOff = over.filter(({ id }) => !ending.has(id));
  await postpone(context, putOff, LONGEST_WAIT_DELAYS);
  if (ending.size === 0) return due;
  const isDue = new Set(due);
  return queued.filter((request) => isDue.has(request) || ending.has(request.id));
}

/** Of requests with a failure those that have waited for all their time. */
async function waitedOut(
  { ledger, settings }: LaneContext,
  late: readonly Waiting[],
): Promise<ReadonlySet<WithdrawalId>> {
  const ids = late.flatMap(({ id, failure }) => (failure === undefined ? [] : [id]));
  if (ids.length === 0) return new Set();
  return ledger.readWaitedOut({ ids, forMs: settings.stall.giveUpAfterMs });
}

/**
 * Ends what has a failure and has waited for all its time: others had theirs now, and before it was put off.
 * @param late requests that nobody took in time
 */
async function withoutEnded(
  context: LaneContext,
  round: Pick<Round, "lease">,
  late: readonly Waiting[],
): Promise<readonly Waiting[]> {
  const ending = await waitedOut(context, late);
  if (ending.size === 0) return late;
  const failing = late.flatMap(({ id, failure: reason }) =>
    ending.has(id) && reason !== undefined ? [{ id, reason }] : [],
  );
  await failUnpaid(context, round, failing);
  return late.filter(({ id }) => !ending.has(id));
}

/**
 * Puts off or ends what waits, without what another wallet may pay and covers, as far as is known here: that
 * is left to it. What it has of a token is not known. Half of what is looked at is left at most, so that it
 * hides no requests of others.
 * @param unansweredDelays as for `postpone`
 * @returns how many are left
 */
export async function postponeOrLeave(
  context: LaneContext,
  round: Pick<Round, "left" | "lease">,
  requests: readonly QueuedWithdrawal[],
  waiting: readonly Waiting[],
  unansweredDelays = 1,
): Promise<number> {
  const { settings, log } = context;
  const { left } = round;
  const others = waiting.some(({ isHere }) => isHere === true) ? await readOthers(context) : [];
  const requestOf = new Map(requests.map((request) => [request.id, request]));
  const mayLeave = ({ contract, amountUnits, waitedMs }: QueuedWithdrawal) =>
    waitedMs <= patienceMs(settings) &&
    2 * (left.size + 1) <= settings.batchSize &&
    others.some(({ freeAtoken }) => contract !== undefined || freeAtoken >= amountUnits);
  const putOff = waiting.filter((entry) => {
    const request = requestOf.get(entry.id);
    if (entry.isHere !== true || request === undefined || !mayLeave(request)) return true;
    const isUnanswered = entry.isUnanswered === true && unansweredDelays > 1;
    left.add(request, { ...entry, isUnanswered });
    return false;
  });
  const count = waiting.length - putOff.length;
  const isLate = ({ id }: Waiting) => (requestOf.get(id)?.waitedMs ?? 0) > patienceMs(settings);
  if (count > 0) log.warn({ count }, "withdrawals are left to other wallets for a while");
  const inTime = putOff.filter((entry) => !isLate(entry));
  const late = await withoutEnded(context, round, putOff.filter(isLate));
  await postpone(context, [...inTime, ...late], unansweredDelays);
  return count;
}

/** Whether there is another wallet that pays at all. */
export async function hasOthers(context: Pick<LaneContext, "ledger" | "signer">): Promise<boolean> {
  return (await readOthers(context)).length > 0;
}

async function readOthers({
  ledger,
  signer,
}: Pick<LaneContext, "ledger" | "signer">): Promise<readonly Payer[]> {
  return (await ledger.readPayers()).filter(({ wallet }) => wallet !== signer.address);
}
