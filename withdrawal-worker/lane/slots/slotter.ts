/**
 * Requests to nonce slots, within the wallet's reserve. Plain payments come first and in one go; what
 * runs code is estimated behind them, as far as time goes.
 */
import { type Address, ZERO_ADDRESS } from "../../../chain/address.js";
import { shorten } from "../../../chain/evm/foreign-text.js";
import { TRANSFER_GAS } from "../../../chain/networks.js";
import type { Atoken } from "../../../chain/units.js";
import type { QueuedWithdrawal, TakenSlots } from "../../../ledger/withdrawals/nonce-slots.js";
import { paymentTerms } from "../../../ledger/requests/payment-terms.js";
import { feeOf, type SlotLimit } from "../../../ledger/withdrawals/slot-choice.js";
import type { HotWalletState } from "../../../ledger/wallets/wallet-lease.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { failpoint } from "../../../runtime/process/failpoint.js";
import { WORKER_FAILPOINTS } from "../../failpoints.js";
import {
  affordableGas,
  choosePrice,
  estimateCeiling,
  isTooDear,
  withMargin,
  withTokenMargin,
} from "../../gas.js";
import { gasOf, type LaneContext, type Round } from "../lane-context.js";
import { stopsNewAlone } from "../lane-faults.js";
import { heldHere, postponeOrLeave, withoutLeft } from "./other-payers.js";
import { failUnpaid, LONGEST_WAIT_DELAYS, postpone } from "./put-off.js";
import { type Candidate, screen, withoutRefused, withoutRejected } from "./slot-rules.js";
import { shareOf, type TokenShare, withoutOwn } from "./slot-share.js";
import { type Judgement, judgeTokens, type Refusal } from "./token-refusals.js";
import type { Waiting } from "./waiting.js";
import type { PaymentEstimate } from "../wallet-node.js";

/** Characters of a destination's refusal that are kept; contracts choose these texts. */
const MAX_REASON_CHARACTERS = 200;

/** What a batch of estimates makes of the requests. */
interface Sorted {
  readonly candidates: Candidate[];
  readonly failing: { id: WithdrawalId; reason: string }[];
  /** Wait for what the reason says. */
  readonly waiting: Waiting[];
}

const TOO_DEAR = "waits: its fee would be above the budget of one payout";

const UNCOVERED = "waits: the hot wallet's free balance does not cover it";

const UNTOLD = "waits: the node does not say whether its destination runs code";

/** Requests to code that one round estimates at most; the others wait for the next. */
const MAX_CODE_PER_ROUND = 64;

/** Payments to addresses without code that are estimated of each batch. */
const PLAIN_SAMPLE = 16;

/** Addresses below are the chain's own: precompiles, and system accounts from 0x800 on. */
const RESERVED_BELOW = 0x1000n;

/** What came of requests that were to get slots. */
interface Progress {
  /** As in `Filled`. */
  readonly limit: SlotLimit | undefined;
  /** So many stand where they stood: a further look at once would find them again. */
  readonly stayingCount: number;
}

/** What filling slots came to. */
export interface Filled {
  /** More requests may be waiting that could get a slot now. */
  readonly hasMore: boolean;
  /** Why no further one gets a slot; undefined when nothing stands in the way. */
  readonly limit: SlotLimit | undefined;
  /** Requests to code, for `fillCodeSlots`. */
  readonly toCode: readonly QueuedWithdrawal[];
  /** What the node did not answer; undefined when it answered. */
  readonly fault?: Error;
}

/** No slot was taken, and none is to be taken at once. */
export const NOT_FILLED: Filled = { hasMore: false, limit: undefined, toCode: [] };

/**
 * Takes slots for the oldest waiting requests to plain addresses. A request that cannot be paid
 * fails without a nonce; one that cannot be judged or covered now waits. The node's silence about requests,
 * and a view that is behind what another wallet has paid, are told as a fault: what has its nonce already
 * waits for no such answer.
 */
export async function fillSlots(
  context: LaneContext,
  round: Round,
  wallet: Pick<HotWalletState, "status">,
): Promise<Filled> {
  try {
    return await fill(context, round, wallet);
  } catch (error) {
    if (!stopsNewAlone(error)) throw error;
    return { ...NOT_FILLED, fault: error };
  }
}

async function fill(
  context: LaneContext,
  round: Round,
  { status }: Pick<HotWalletState, "status">,
): Promise<Filled> {
  const { ledger, settings, signer, node } = context;
  if (status !== "active") return { ...NOT_FILLED, limit: "not-active" };
  // Only saves estimates: the commit of the slots reads the switch again, under a lock.
  if ((await ledger.readFreeze(signer.address)).frozen) {
    return { ...NOT_FILLED, limit: "frozen" };
  }
  const queued = await ledger.readSlotQueue({ limit: settings.batchSize });
  const due = await withoutLeft(context, round, await withoutOwn(context, round, queued));
  const { coins, tokens } = await shareOf(context, round, due);
  if (coins.length + tokens.requests.length === 0) return NOT_FILLED;
  const destinations = coins.map(({ destination }) => destination);
  const haveCode = await node.haveCode(destinations, {
    signal: round.signal,
    at: round.view.height,
  });
  const runsCode = (index: number) =>
    haveCode[index] === true || isReserved(destinations[index] ?? ZERO_ADDRESS);
  const isKnown = (index: number) => typeof haveCode[index] === "boolean";
  const plain = coins.filter((_, index) => isKnown(index) && !runsCode(index));
  const toCode = coins.filter((_, index) => isKnown(index) && runsCode(index));
  const untold = coins.filter((_, index) => haveCode[index] === "too-much");
  const waiting = untold.map(({ id }) => ({ id, reason: UNTOLD, isHere: true }));
  const leftCount = await postponeOrLeave(context, round, untold, waiting);
  const ofCoins = await fillScreened(context, round, plain, sortPlain);
  const ofTokens = await fillTokenSlots(context, round, tokens);
  const limit = ofTokens.limit ?? ofCoins.limit;
  const stayingCount = ofCoins.stayingCount + ofTokens.stayingCount + leftCount;
  const hasMoved = plain.length + tokens.requests.length + untold.length > stayingCount;
  const hasMore = queued.length === settings.batchSize && limit === undefined && hasMoved;
  return { hasMore, limit, toCode };
}

/** Takes slots for requests that screening, where the policy wants it, has answered about. */
async function fillScreened(
  context: LaneContext,
  round: Round,
  requests: readonly QueuedWithdrawal[],
  sort: (
    context: LaneContext,
    round: Round,
    requests: readonly QueuedWithdrawal[],
  ) => Promise<Sorted>,
  unansweredDelays = 1,
): Promise<Progress> {
  if (requests.length === 0) return { limit: undefined, stayingCount: 0 };
  const screened = await screen(context, round, requests);
  const sorted = await sort(context, round, screened.answered);
  sorted.waiting.push(...screened.waiting);
  return take(context, round, { requests, sorted, unansweredDelays });
}

/** Each is judged by itself: a token's code may take long, and what it does costs any gas. */
async function fillTokenSlots(
  context: LaneContext,
  round: Round,
  { requests, tokenUnits }: TokenShare,
): Promise<Progress> {
  return fillScreened(context, { ...round, tokenUnits }, requests, sortRequests);
}

/**
 * Sorts payments to addresses without code. The first ones are estimated; where each of those costs the
 * gas of a transfer, so do the others, and nobody is asked for hundreds of equal answers. One that gets
 * code before it is mined may fail for want of gas; its hold goes back like that of any payment that
 * failed on the chain.
 */
async function sortPlain(
  context: LaneContext,
  round: Round,
  requests: readonly QueuedWithdrawal[],
): Promise<Sorted> {
  const sample = requests.slice(0, PLAIN_SAMPLE);
  const rest = requests.slice(PLAIN_SAMPLE);
  const sorted = await sortRequests(context, round, sample, { perCall: PLAIN_SAMPLE });
  const isPlain =
    sorted.candidates.length === sample.length &&
    sorted.candidates.every(({ entersCode }) => !entersCode);
  if (isPlain) addLike(sorted, rest, round.view.balanceAtoken);
  else if (rest.length > 0) {
    const perCall = context.settings.batchSize;
    const others = await sortRequests(context, round, rest, { perCall });
    sorted.candidates.push(...others.candidates);
    sorted.failing.push(...others.failing);
    sorted.waiting.push(...others.waiting);
  }
  return sorted;
}

/** Adds requests that cost what the ones before cost. */
function addLike(
  { candidates, waiting }: Sorted,
  requests: readonly QueuedWithdrawal[],
  balanceAtoken: Atoken,
): void {
  const [first] = candidates;
  if (first === undefined) return;
  const { gasLimit, gasPriceAtoken, entersCode } = first;
  const terms = { gasLimit, gasPriceAtoken, entersCode };
  for (const request of requests) {
    const { id, amountUnits } = request;
    if (amountUnits + feeOf(terms) > balanceAtoken) waiting.push({ id, reason: UNCOVERED });
    else candidates.push(candidateOf(request, terms));
  }
}

/** A request with what its transaction costs. */
function candidateOf(
  request: QueuedWithdrawal,
  terms: Pick<Candidate, "gasLimit" | "gasPriceAtoken" | "entersCode">,
): Candidate {
  return {
    id: request.id,
    waitedMs: request.waitedMs,
    isToOwnWallet: request.isToOwnWallet,
    customerId: request.customerId,
    asset: request.asset,
    contract: request.contract,
    destination: request.destination,
    addressIndex: request.addressIndex,
    amountUnits: request.amountUnits,
    gasLimit: terms.gasLimit,
    gasPriceAtoken: terms.gasPriceAtoken,
    entersCode: terms.entersCode,
  };
}

/** Precompiles and system accounts: what they do costs gas, whatever their code says. */
function isReserved(address: Address): boolean {
  return BigInt(address) < RESERVED_BELOW;
}

/**
 * Takes slots for requests to code, as many as there is time for; the others wait a moment, so that
 * they do not stand before plain ones.
 * @returns true when some may have got a slot, or others may have come up
 */
export async function fillCodeSlots(
  context: LaneContext,
  round: Round,
  toCode: readonly QueuedWithdrawal[],
): Promise<boolean> {
  if (toCode.length === 0) return false;
  const asked = toCode.slice(0, MAX_CODE_PER_ROUND);
  const delays = LONGEST_WAIT_DELAYS;
  const reason = "waits: payouts to contracts are estimated a few at a time";
  const later = toCode.slice(MAX_CODE_PER_ROUND).map(({ id }) => ({ id, reason }));
  // Before those that are asked about: what goes on waiting of these is not to come first again.
  await postpone(context, later);
  const { stayingCount } = await fillScreened(context, round, asked, sortRequests, delays);
  return toCode.length > stayingCount;
}

/** Gives slots to those that can be paid, ends what cannot, and puts off or leaves the others. */
async function take(
  context: LaneContext,
  round: Round,
  batch: {
    readonly requests: readonly QueuedWithdrawal[];
    readonly sorted: Sorted;
    readonly unansweredDelays: number;
  },
): Promise<Progress> {
  const { requests, sorted, unansweredDelays } = batch;
  await failUnpaid(context, round, sorted.failing);
  const trusted = await withoutRejected(context, round, sorted.candidates);
  const candidates = await withoutRefused(context, round, { ...sorted, candidates: trusted });
  const { limit, stayingCount } = await takeFor(context, round, { ...sorted, candidates });
  const { waiting } = sorted;
  const leftCount = await postponeOrLeave(context, round, requests, waiting, unansweredDelays);
  return { limit, stayingCount: stayingCount + leftCount };
}

async function sortRequests(
  context: LaneContext,
  round: Round,
  requests: readonly QueuedWithdrawal[],
  options: { readonly perCall?: number } = {},
): Promise<Sorted> {
  const sorted: Sorted = { candidates: [], failing: [], waiting: [] };
  const price = choosePrice(round.view.suggestedPriceAtoken, context.settings.gas);
  const ceiling = estimateCeiling(gasOf(context, round));
  const asked: { request: QueuedWithdrawal; payment: PaymentEstimate }[] = [];
  for (const request of requests) {
    const { id, asset, contract, amountUnits } = request;
    const { to, valueAtoken, transfer } = paymentTerms(request);
    if (contract !== undefined && amountUnits > (round.tokenUnits?.get(asset) ?? 0n)) {
      sorted.waiting.push({ id, reason: UNCOVERED });
      continue;
    }
    const affordable = affordableGas(round.view.balanceAtoken - valueAtoken, price, ceiling);
    // An estimate says something about the destination only if the wallet could pay at all.
    if (affordable < TRANSFER_GAS) sorted.waiting.push({ id, reason: UNCOVERED });
    else {
      const payment = { to, valueAtoken, transfer, gasPriceAtoken: price, gasMax: affordable };
      asked.push({ request, payment });
    }
  }
  const meanings = await context.node.estimate(
    context.signer.address,
    asked.map(({ payment }) => payment),
    { signal: round.signal, at: round.view.height, ...options },
  );
  const isRefused = meanings.some((meaning) => meaning?.kind === "refused-by-destination");
  const certain = isRefused ? await readCertain(context, round) : undefined;
  const areShort = asked.map(
    ({ request }) => certain !== undefined && !coversAll(certain, request, { price, ceiling }),
  );
  const refused = asked.flatMap(({ payment }, index) => {
    const meaning = meanings[index];
    if (meaning?.kind !== "refused-by-destination" || areShort[index] === true) return [];
    return [{ payment, reason: meaning.reason }];
  });
  const judged = await judgeTokens(context, round, refused);
  asked.forEach(({ request, payment }, index) => {
    const meaning = judged.has(payment) ? judged.get(payment) : meanings[index];
    if (meaning === undefined) {
      const reason = "waits: there was no time to estimate it";
      sorted.waiting.push({ id: request.id, reason, isUntried: true });
      return;
    }
    const isShort = areShort[index] === true;
    sortOne(context, round, { request, meaning, price, isShort, sorted });
  });
  return sorted;
}

/** What the wallet has whichever of its payments are mined by now. */
interface CertainBalances {
  readonly balanceAtoken: Atoken;
  readonly tokenUnits: ReadonlyMap<string, bigint>;
}

/**
 * The round's balances without what is on its way: a node may estimate on its newest state, whatever block it
 * is asked for.
 */
async function readCertain(
  { ledger, signer }: LaneContext,
  { view, tokenUnits = new Map() }: Round,
): Promise<CertainBalances> {
  const { nonce } = view;
  const { reservedAtoken } = await ledger.sumOpenSlots(signer.address, nonce);
  const hasTokens = tokenUnits.size > 0;
  const open = hasTokens ? await ledger.sumOpenTokens(signer.address, nonce) : new Map();
  return {
    balanceAtoken: view.balanceAtoken - reservedAtoken,
    tokenUnits: new Map(
      [...tokenUnits].map(([asset, units]) => [asset, units - (open.get(asset) ?? 0n)]),
    ),
  };
}

/** Whether they cover a payment with all the gas that the settings allow. */
function coversAll(
  { balanceAtoken, tokenUnits }: CertainBalances,
  request: QueuedWithdrawal,
  { price, ceiling }: { readonly price: bigint; readonly ceiling: bigint },
): boolean {
  const { asset, contract, amountUnits } = request;
  if (contract !== undefined && amountUnits > (tokenUnits.get(asset) ?? 0n)) return false;
  const { valueAtoken } = paymentTerms(request);
  return affordableGas(balanceAtoken - valueAtoken, price, ceiling) === ceiling;
}

function sortOne(
  context: LaneContext,
  round: Round,
  entry: {
    readonly request: QueuedWithdrawal;
    readonly meaning: Judgement;
    readonly price: bigint;
    /** By the time of the estimate the wallet may have had too little for it, or for the gas it may take. */
    readonly isShort: boolean;
    readonly sorted: Sorted;
  },
): void {
  const { id, contract } = entry.request;
  const { meaning, price, isShort, sorted } = entry;
  const gas = gasOf(context, round);
  switch (meaning.kind) {
    case "refused-by-destination": {
      const reason = `the destination refuses: ${shorten(meaning.reason, MAX_REASON_CHARACTERS)}`;
      // With more than the wallet had then the destination might not refuse.
      if (isShort) sorted.waiting.push({ id, reason: UNCOVERED });
      else sorted.failing.push({ id, reason });
      return;
    }
    case "refused-by-token": {
      const reason = wordsOf(meaning);
      if (meaning.hasOthers) {
        sorted.waiting.push({ id, reason: `waits: ${reason}`, isHere: true, failure: reason });
      } else sorted.failing.push({ id, reason });
      return;
    }
    case "no-funds":
      sorted.waiting.push({ id, reason: UNCOVERED });
      return;
    case "unknown": {
      const reason = shorten(meaning.reason, MAX_REASON_CHARACTERS);
      context.log.warn({ id, reason }, "an estimate was not answered");
      const waits = `waits: the node could not estimate it (${reason})`;
      sorted.waiting.push({ id, reason: waits, isUnanswered: true, isHere: true });
      return;
    }
    case "payable": {
      const margin = contract === undefined ? withMargin : withTokenMargin;
      const gasLimit = margin(meaning.gas, gas);
      if (gasLimit > gas.limitMax) {
        sorted.failing.push({ id, reason: `the destination needs more gas than ${gas.limitMax}` });
        return;
      }
      if (isTooDear({ gasLimit, gasPriceAtoken: price }, gas)) {
        sorted.waiting.push({ id, reason: TOO_DEAR, isHere: true });
        return;
      }
      // A listed token's code is known: it takes no share of what strangers' code may take.
      const entersCode = contract === undefined && meaning.gas > TRANSFER_GAS;
      const terms = { gasLimit, gasPriceAtoken: price, entersCode };
      sorted.candidates.push(candidateOf(entry.request, terms));
    }
  }
}

/** Where it refuses the wallet itself in other words, these may be of a rule that is about nothing else. */
function wordsOf({ reason, toItself }: Refusal): string {
  const words = `the token refuses: ${shorten(reason, MAX_REASON_CHARACTERS)}`;
  if (toItself === reason) return words;
  return `${words} (of a transfer to the wallet itself: ${shorten(toItself, MAX_REASON_CHARACTERS)})`;
}

/** Takes slots and adds who has to wait for funds, fees or the share of code. */
async function takeFor(
  context: LaneContext,
  round: Round,
  { candidates, waiting }: Pick<Sorted, "waiting"> & { candidates: readonly Candidate[] },
): Promise<Progress> {
  if (candidates.length === 0) return { limit: undefined, stayingCount: 0 };
  const { gas, maxLiveSlots } = context.settings;
  const budget = {
    balanceAtoken: round.view.balanceAtoken,
    balanceHeight: round.view.height,
    nonce: round.view.nonce,
    tokenUnits: round.tokenUnits,
    maxLiveSlots,
    maxCodeGas: gas.codeGasInFlight,
    feePerDayAtoken: gas.feePerDayAtoken,
  };
  const policy = await context.policy.current();
  const result = await context.ledger.takeSlots(round.lease, candidates, { budget, policy });
  if (result.taken.length > 0) failpoint(WORKER_FAILPOINTS.afterSlotCommit);
  const putOff = await heldHere(context, candidates, result.held);
  waiting.push(...putOff);
  for (const id of result.uncovered) waiting.push({ id, reason: UNCOVERED });
  for (const id of result.behindCode) {
    waiting.push({ id, reason: "waits: other payouts to contracts are on their way" });
  }
  if (result.limit === "fee-budget") {
    const reason = "waits: the day's budget of network fees does not cover its fee";
    const known = new Set([...result.taken, ...waiting.map(({ id }) => id)]);
    for (const { id } of candidates) if (!known.has(id)) waiting.push({ id, reason });
  }
  const limit = isLaneLimit(result, context, round) ? result.limit : undefined;
  const stayingCount =
    limit === undefined || limit === "fee-budget"
      ? result.held.length - putOff.length
      : candidates.length - result.taken.length;
  return { limit, stayingCount };
}

/** Whether no request goes on; where one alone has too little, or is too dear for today, others do. */
function isLaneLimit(
  { limit, feesLeftAtoken = 0n }: Pick<TakenSlots, "limit" | "feesLeftAtoken">,
  context: LaneContext,
  round: Round,
): boolean {
  if (limit !== "fee-budget") return limit !== "reserve";
  const gasPriceAtoken = choosePrice(round.view.suggestedPriceAtoken, context.settings.gas);
  const gasLimit = withMargin(TRANSFER_GAS, gasOf(context, round));
  return feesLeftAtoken < feeOf({ gasLimit, gasPriceAtoken });
}
