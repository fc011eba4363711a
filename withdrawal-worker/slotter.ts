/** Requests to nonce slots: a preflight estimate first, then slots within the wallet's reserve. */
import { parseAddress } from "../chain/address.js";
import { readSlotQueue, type SlotCandidate, takeSlots } from "../ledger/withdrawals/nonce-slots.js";
import { readFreeze } from "../ledger/withdrawals/signing-freeze.js";
import { failBeforeSlot, postponeWithdrawals } from "../ledger/withdrawals/withdrawal-steps.js";
import type { WithdrawalId } from "../ledger/withdrawals/withdrawals.js";
import { failpoint } from "../runtime/process/failpoint.js";
import { WORKER_FAILPOINTS } from "./failpoints.js";
import { choosePrice, estimateCeiling, withMargin } from "./gas.js";
import type { LaneContext, Round } from "./lane-context.js";
import type { EstimateMeaning } from "./withdrawal-state.js";

/** Longest text of a destination's refusal that is kept; contracts choose these texts. */
const MAX_REASON_LENGTH = 200;

type QueuedRequest = Awaited<ReturnType<typeof readSlotQueue>>[number];

/** What a batch of estimates makes of the requests. */
interface Sorted {
  readonly candidates: SlotCandidate[];
  readonly failing: { id: WithdrawalId; reason: string }[];
  readonly uncovered: WithdrawalId[];
  readonly unanswered: { id: WithdrawalId; reason: string }[];
}

/**
 * Takes slots for the oldest waiting requests. A request that cannot be paid fails without a
 * nonce; one that cannot be judged or covered now waits. @returns true when more may be waiting
 */
export async function fillSlots(context: LaneContext, round: Round): Promise<boolean> {
  const { database, settings, signer } = context;
  // Only saves estimates: the commit of the slots reads the switch again, under a lock.
  if ((await readFreeze(database, signer.address)).frozen) return false;
  const requests = await readSlotQueue(database, {
    wallet: signer.address,
    limit: settings.batchSize,
  });
  if (requests.length === 0) return false;
  const sorted = await sortRequests(context, round, requests);
  if (sorted.failing.length > 0) {
    await failBeforeSlot(database, sorted.failing);
    failpoint(WORKER_FAILPOINTS.afterRefusalCommit);
    context.log.info(
      { count: sorted.failing.length },
      "withdrawals cannot be paid, holds released",
    );
  }
  const limit = await takeFor(context, round, sorted);
  await postpone(context, sorted);
  return requests.length === settings.batchSize && limit === undefined;
}

async function sortRequests(
  context: LaneContext,
  round: Round,
  requests: readonly QueuedRequest[],
): Promise<Sorted> {
  const sorted: Sorted = { candidates: [], failing: [], uncovered: [], unanswered: [] };
  // An estimate says something about the destination only if the wallet could pay at all.
  const covered = requests.filter((request) => request.amountAtoken <= round.view.balanceAtoken);
  for (const { id, amountAtoken } of requests) {
    if (amountAtoken > round.view.balanceAtoken) sorted.uncovered.push(id);
  }
  const meanings = await context.node.estimate(
    context.signer.address,
    covered.map(({ destination, amountAtoken }) => ({
      to: parseAddress(destination),
      valueAtoken: amountAtoken,
    })),
    { signal: round.signal, gasMax: estimateCeiling(context.settings.gas) },
  );
  covered.forEach((request, index) => {
    const meaning = meanings[index];
    if (meaning !== undefined) sortOne(context, round, { request, meaning, sorted });
  });
  return sorted;
}

function sortOne(
  context: LaneContext,
  round: Round,
  entry: {
    readonly request: QueuedRequest;
    readonly meaning: EstimateMeaning;
    readonly sorted: Sorted;
  },
): void {
  const { id, amountAtoken } = entry.request;
  const { meaning, sorted } = entry;
  const { gas } = context.settings;
  switch (meaning.kind) {
    case "refused-by-destination":
      sorted.failing.push({
        id,
        reason: `the destination refuses: ${meaning.reason.slice(0, MAX_REASON_LENGTH)}`,
      });
      return;
    case "no-funds":
      sorted.uncovered.push(id);
      return;
    case "unknown":
      sorted.unanswered.push({ id, reason: meaning.reason.slice(0, MAX_REASON_LENGTH) });
      return;
    case "payable": {
      const gasLimit = withMargin(meaning.gas, gas);
      if (gasLimit > gas.limitMax) {
        sorted.failing.push({ id, reason: `the destination needs more gas than ${gas.limitMax}` });
        return;
      }
      const gasPriceAtoken = choosePrice(round.view.suggestedPriceAtoken, gas);
      sorted.candidates.push({ id, amountAtoken, gasLimit, gasPriceAtoken });
    }
  }
}

/** Takes slots and adds what the reserve does not cover to the uncovered ones. */
async function takeFor(context: LaneContext, round: Round, sorted: Sorted) {
  if (sorted.candidates.length === 0) return undefined;
  const result = await takeSlots(context.database, round.lease, sorted.candidates, {
    balanceAtoken: round.view.balanceAtoken,
    balanceHeight: round.view.height,
    maxLiveSlots: context.settings.maxLiveSlots,
  });
  if (result.taken.length > 0) failpoint(WORKER_FAILPOINTS.afterSlotCommit);
  sorted.uncovered.push(...result.uncovered);
  return result.limit === "reserve" ? undefined : result.limit;
}

/** Puts off what cannot go on now, so that it does not stand before those that can. */
async function postpone(context: LaneContext, sorted: Sorted): Promise<void> {
  const delayMs = context.settings.retryDelayMs;
  if (sorted.uncovered.length > 0) {
    context.log.warn({ count: sorted.uncovered.length }, "withdrawals wait for hot wallet funds");
    await postponeWithdrawals(context.database, {
      ids: sorted.uncovered,
      reason: "waits: the hot wallet's free balance does not cover it",
      delayMs,
    });
  }
  const [first] = sorted.unanswered;
  if (first !== undefined) {
    const count = sorted.unanswered.length;
    context.log.warn({ count, reason: first.reason }, "estimates were not answered");
    await postponeWithdrawals(context.database, {
      ids: sorted.unanswered.map(({ id }) => id),
      reason: `waits: the node could not estimate it (${first.reason})`,
      delayMs,
    });
  }
}
