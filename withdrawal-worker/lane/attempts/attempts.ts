/**
 * Signing: the first attempt of each slot, and those that replace it on the same nonce. Who signs may
 * refuse by rules of its own, say nothing, or say what was not asked for.
 */
import { hexToBytes } from "../../../chain/hex.js";
import type { Atoken } from "../../../chain/units.js";
import { TRANSFER_GAS } from "../../../chain/networks.js";
import type { ApprovalSignature } from "../../../ledger/policy/approval-digest.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import type { SigningIntent, SigningOutcome } from "../../signers/signer-port.js";
import type { NewAttempt } from "../../../ledger/withdrawals/nonce-slots.js";
import { feeOf } from "../../../ledger/withdrawals/slot-choice.js";
import { calldataOf, paymentTerms } from "../../../ledger/requests/payment-terms.js";
import type { Attempt, LiveSlot } from "../../../ledger/withdrawals/slot-rows.js";
import { failpoint } from "../../../runtime/process/failpoint.js";
import { WORKER_FAILPOINTS } from "../../failpoints.js";
import {
  affordableGas,
  type AttemptGas,
  estimateCeiling,
  type GasSettings,
  isTooDear,
  lower,
} from "../../gas.js";
import { gasOf, type LaneContext, type Round } from "../lane-context.js";
import type { PaymentEstimate } from "../wallet-node.js";

/** Payments signed for one slot; more means that something is wrong that a machine cannot mend. */
export const MAX_PAYMENT_ATTEMPTS = 32;

/** Attempts of one slot in all: the cancelling ones can rise tenfold in price within the rest. */
export const MAX_ATTEMPTS = 64;

/**
 * Leases that asking for one batch may last. `whileHolding` gives a lease up after MAX_LEASES_PER_STEP: what
 * a slow signer has signed is stored long before that, and the rest is asked for afterwards.
 */
const LEASES_PER_BATCH = 2;

/** Why nothing is signed for a payment of such a token, as operators and customers read it. */
const TOKEN_PAUSED =
  "its token is paused, because the contract runs other code than was accepted: " +
  "causeway tokens state";

/** What signing a batch came to. */
export interface Signed {
  /** More slots may be waiting for a signature. */
  readonly hasMore: boolean;
  /** No slot below this nonce waits for its first signature. */
  readonly nextNonce: bigint;
  /** Who signs had no time for all of them: slots that are taken would only wait behind these. */
  readonly isPostponed: boolean;
}

/** What came of attempts that were to be signed and stored. */
interface Stored {
  /** Every attempt was signed and stored. */
  readonly isComplete: boolean;
  /** There was no time to ask for all of them; of those that were asked for, all are stored. */
  readonly isPostponed: boolean;
}

/**
 * Signs slots that have no attempt yet, in nonce order.
 * @param fromNonce none below waits; never below the chain's nonce: what the chain has already used is
 *   never signed for, the settler looks at it
 */
export async function signSlots(
  context: LaneContext,
  round: Round,
  fromNonce: bigint,
): Promise<Signed> {
  const { ledger, settings, signer } = context;
  const none: Signed = {
    hasMore: false,
    nextNonce: fromNonce,
    isPostponed: false,
  };
  if ((await ledger.readFreeze(signer.address)).frozen) return none;
  const slots = await ledger.readLiveSlots({
    wallet: signer.address,
    statuses: ["slotted"],
    fromNonce,
    limit: settings.batchSize,
  });
  const last = slots.at(-1);
  if (last === undefined) return none;
  // Slots are taken by the settings of then; what is signed keeps to those of now.
  await giveUp(context, round, slots);
  const planned = slots.flatMap((slot) => {
    if (whyGivenUp(context, slot) !== undefined) return [];
    return [planPayment(context, slot, firstGas(context, slot))];
  });
  const { isComplete, isPostponed } = await signAndStore(context, round, planned, {
    isFirst: true,
    before: WORKER_FAILPOINTS.beforeAttemptCommit,
    after: WORKER_FAILPOINTS.afterAttemptCommit,
  });
  if (!isComplete) return { ...none, hasMore: isPostponed, isPostponed };
  const hasMore = slots.length === settings.batchSize;
  return { ...none, hasMore, nextNonce: last.nonce + 1n };
}

/** Why the payment of a slot is given up at once; undefined where it is not. */
function whyGivenUp(context: LaneContext, slot: LiveSlot): string | undefined {
  const { limitMax } = context.settings.gas;
  const { gasLimit } = slot;
  if (isOfPausedToken(slot)) return TOKEN_PAUSED;
  if (gasLimit <= limitMax) return undefined;
  return `its payment needs more gas than is allowed now (${gasLimit} above ${limitMax})`;
}

/** Gas and price of a slot's first attempt. */
export function firstGas(
  { settings }: Pick<LaneContext, "settings">,
  { gasLimit, gasPriceAtoken }: LiveSlot,
): AttemptGas {
  return { gasLimit, gasPriceAtoken: lower(gasPriceAtoken, settings.gas.priceCapAtoken) };
}

/** Whether its token is paused: no further payment is signed for it. */
export function isOfPausedToken({ pausedAfter }: LiveSlot): boolean {
  return pausedAfter !== undefined;
}

/**
 * Of slots for which nothing was ever signed those that are not to be. No customer is to blame: the transfers
 * of nothing that take these nonces end as not mined.
 */
async function giveUp(
  context: LaneContext,
  { lease }: Round,
  slots: readonly LiveSlot[],
): Promise<void> {
  const given = slots.flatMap((slot) => {
    const reason = slot.attempts.length === 0 ? whyGivenUp(context, slot) : undefined;
    return reason === undefined ? [] : [{ slot, reason }];
  });
  if (given.length === 0) return;
  await context.ledger.beginCancelling(
    lease,
    given.map(({ slot, reason }) => ({ id: slot.withdrawalId, cause: "not-mined", reason })),
  );
  const nonces = given.map(({ slot }) => slot.nonce.toString());
  const reasons = [...new Set(given.map(({ reason }) => reason))];
  context.log.warn(
    { nonces, reasons },
    "payments are given up before signing: transfers of nothing take their nonces",
  );
}

/** An attempt before it is signed. */
export interface PlannedAttempt {
  readonly slot: LiveSlot;
  /** Without approvals, which are read when it is signed. */
  readonly intent: SigningIntent;
}

/** A slot's payment with this gas: coins, or the call of a token's contract. */
export function planPayment(context: LaneContext, slot: LiveSlot, gas: AttemptGas): PlannedAttempt {
  const { to, valueAtoken, transfer } = paymentTerms(slot);
  const data = transfer === undefined ? NO_DATA : hexToBytes(calldataOf({ transfer }));
  const signedBefore = dearestOf(slot)?.raw;
  return plan(context, slot, gas, { kind: "payment", to, valueAtoken, data, signedBefore });
}

/** A slot's payment as a node is asked about it before it is signed at another price, or for other gas. */
export function estimateOf(
  context: LaneContext,
  round: Round,
  slot: LiveSlot,
  gasPriceAtoken: Atoken,
): PaymentEstimate {
  const terms = paymentTerms(slot);
  const ceiling = estimateCeiling(gasOf(context, round));
  const leftAtoken = round.view.balanceAtoken - terms.valueAtoken;
  const affordable = affordableGas(leftAtoken, gasPriceAtoken, ceiling);
  // Below that a node limits nothing, and says by itself that the wallet cannot pay.
  const gasMax = affordable < TRANSFER_GAS ? TRANSFER_GAS : affordable;
  return { ...terms, gasPriceAtoken, gasMax };
}

/** Whether the wallet's coins cover a slot's payment with this gas, whatever other open slots cost. */
export function isCovered({ view }: Round, slot: LiveSlot, gas: AttemptGas): boolean {
  return paymentTerms(slot).valueAtoken + feeOf(gas) <= view.balanceAtoken;
}

/** A transfer of nothing to the wallet itself on a slot's nonce. */
export function planCancel(context: LaneContext, slot: LiveSlot, gas: AttemptGas): PlannedAttempt {
  const to = context.signer.address;
  return plan(context, slot, gas, { kind: "cancel", to, valueAtoken: 0n, data: NO_DATA });
}

/**
 * Signs and stores what is to replace earlier attempts.
 * @returns whether there was time to ask for all of them
 */
export async function signReplacements(
  context: LaneContext,
  round: Round,
  planned: readonly PlannedAttempt[],
): Promise<boolean> {
  if (planned.length === 0) return true;
  const { isComplete, isPostponed } = await signAndStore(context, round, planned, {
    isFirst: false,
    after: WORKER_FAILPOINTS.afterCorrectionCommit,
  });
  if (isComplete) context.log.info({ count: planned.length }, "transactions were signed anew");
  return !isPostponed;
}

/** Has attempts signed, stores those that were, and does what the other answers ask for. */
async function signAndStore(
  context: LaneContext,
  round: Round,
  planned: readonly PlannedAttempt[],
  options: {
    /** See `SignerAnswers.note`. */
    readonly isFirst: boolean;
    /** Failpoints around the commit. */
    readonly before?: string;
    readonly after: string;
  },
): Promise<Stored> {
  const { ledger, signer, settings } = context;
  const { hash: policyHash } = await context.policy.current();
  const approvals = await approvalsOf(
    context,
    planned.flatMap(({ intent, slot }) => (intent.kind === "payment" ? [slot.withdrawalId] : [])),
  );
  const outcomes = await signer.sign(
    planned.map(({ intent }) => {
      const given = approvals.get(intent.withdrawalId);
      return given === undefined ? intent : { ...intent, approvals: given };
    }),
    { signal: round.signal, withinMs: LEASES_PER_BATCH * settings.leaseMs },
  );
  round.answers.note(outcomes, options);
  const attempts = planned.flatMap((entry, index) => toAttempt(entry, outcomes[index]) ?? []);
  if (options.before !== undefined) failpoint(options.before);
  const { feePerDayAtoken } = settings.gas;
  const isStored = await ledger.storeAttempts(round.lease, attempts, {
    feePerDayAtoken,
    policyHash,
  });
  failpoint(options.after);
  await heedRefusals(context, round, planned, outcomes);
  const postponed = outcomes.filter(({ kind }) => kind === "postponed").length;
  return {
    isComplete: isStored && attempts.length === planned.length,
    isPostponed: isStored && postponed > 0 && attempts.length + postponed === planned.length,
  };
}

/** Signed approvals of withdrawals, where the policy knows who could have signed any. */
export async function approvalsOf(
  { policy, ledger }: LaneContext,
  ids: readonly WithdrawalId[],
): Promise<ReadonlyMap<string, readonly ApprovalSignature[]>> {
  const { approvers } = (await policy.current()).policy;
  if (approvers.length === 0 || ids.length === 0) return new Map();
  return ledger.readSignedApprovals(ids);
}

/**
 * A payment that the signer's rules forbid for good gives its nonce up; a wrong answer freezes the
 * wallet, because nobody knows what else was signed. Everything else is asked for again.
 */
async function heedRefusals(
  context: LaneContext,
  { lease }: Round,
  planned: readonly PlannedAttempt[],
  outcomes: readonly SigningOutcome[],
): Promise<void> {
  const { ledger, signer, log } = context;
  const forbidden = planned.flatMap(({ slot, intent }, index) => {
    const outcome = outcomes[index];
    if (outcome?.kind !== "refused" || !outcome.isLasting || intent.kind === "cancel") return [];
    // Signed under the policy of before: it is made no dearer, and what is signed goes on being sent.
    if (outcome.code === "APPROVALS_MISSING" && slot.attempts.length > 0) return [];
    const reason = `rule ${outcome.code} of the signer: ${outcome.reason}`;
    return [{ id: slot.withdrawalId, cause: "policy" as const, reason }];
  });
  if (forbidden.length > 0) {
    await ledger.beginCancelling(lease, forbidden);
    log.warn({ withdrawals: forbidden.map(({ id }) => id) }, "the signer's rules forbid payments");
  }
  const wrong = outcomes.find(({ kind }) => kind === "wrong");
  if (wrong === undefined || wrong.kind !== "wrong") return;
  const reason = `the signer answered wrongly: ${wrong.reason}`;
  if (await ledger.freezeSigning(signer.address, reason)) {
    log.error({ wallet: signer.address, reason }, "signing is frozen");
  }
}

/**
 * What may still be spent on dearer payments; of this wallet only the worker that holds the lease
 * spends it. Another wallet that looks at the same moment sees the same room: the commit that stores
 * what was signed counts once more, under a lock.
 */
export class FeeRoom {
  readonly #gas: GasSettings;
  #leftAtoken: Atoken;

  private constructor(gas: GasSettings, leftAtoken: Atoken) {
    this.#gas = gas;
    this.#leftAtoken = leftAtoken;
  }

  /** The day's budget less what is booked today and what open slots can cost at most. */
  static async read({ ledger, signer, settings }: LaneContext): Promise<FeeRoom> {
    const open = await ledger.sumOpenSlots(signer.address);
    const wallet = await ledger.readHotWallet(signer.address);
    const spentAtoken = open.feesAtoken + (wallet?.feesOfDayAtoken ?? 0n);
    return new FeeRoom(settings.gas, settings.gas.feePerDayAtoken - spentAtoken);
  }

  /** Takes what an attempt costs beyond the slot's dearest one; false when it may not be signed. */
  take(slot: LiveSlot, gas: AttemptGas): boolean {
    const dearest = dearestOf(slot);
    const signedAtoken = dearest === undefined ? 0n : feeOf(dearest);
    if (isTooDear(gas, this.#gas, signedAtoken)) return false;
    const slotAtoken = feeOf(slot);
    // Nothing is left where a budget was lowered or cancelling went beyond it: what costs no more may go on.
    const moreAtoken = feeOf(gas) - (signedAtoken > slotAtoken ? signedAtoken : slotAtoken);
    if (moreAtoken <= 0n) return true;
    if (moreAtoken > this.#leftAtoken) return false;
    this.#leftAtoken -= moreAtoken;
    return true;
  }
}

/** Member by member: copies of objects are made slowly, and this is done for each payment. */
function plan(
  { chainId }: LaneContext,
  slot: LiveSlot,
  gas: AttemptGas,
  wanted: Pick<SigningIntent, "kind" | "signedBefore" | "to" | "valueAtoken" | "data">,
): PlannedAttempt {
  const intent: SigningIntent = {
    kind: wanted.kind,
    signedBefore: wanted.signedBefore,
    chainId,
    nonce: slot.nonce,
    to: wanted.to,
    valueAtoken: wanted.valueAtoken,
    data: wanted.data,
    gasLimit: gas.gasLimit,
    gasPriceAtoken: gas.gasPriceAtoken,
    withdrawalId: slot.withdrawalId,
    customerId: slot.customerId,
    asset: slot.asset,
    amountUnits: slot.amountUnits,
    destination: slot.destination,
    addressIndex: slot.addressIndex,
    approvals: NO_APPROVALS,
  };
  return { slot, intent };
}

/** What was signed for a slot and costs the most, by its bytes; undefined where nothing was. */
export function dearestOf({ attempts }: LiveSlot): Attempt | undefined {
  return attempts
    .filter(({ raw }) => raw !== undefined)
    .reduce<Attempt | undefined>(
      (dearest, next) => (dearest === undefined || feeOf(next) > feeOf(dearest) ? next : dearest),
      undefined,
    );
}

/** Highest price that was signed for a slot; what its first attempt will pay before there is one. */
export function priceOf(slot: LiveSlot): bigint {
  return slot.attempts.reduce(
    (highest, { gasPriceAtoken }) => (gasPriceAtoken > highest ? gasPriceAtoken : highest),
    slot.attempts.length === 0 ? slot.gasPriceAtoken : 0n,
  );
}

const NO_DATA = new Uint8Array(0);

const NO_APPROVALS: readonly ApprovalSignature[] = [];

function toAttempt(
  { slot, intent }: PlannedAttempt,
  outcome: SigningOutcome | undefined,
): NewAttempt | undefined {
  if (outcome?.kind !== "signed") return undefined;
  const { kind, gasLimit, gasPriceAtoken, valueAtoken } = intent;
  return {
    slotId: slot.slotId,
    withdrawalId: slot.withdrawalId,
    n: slot.attempts.length,
    kind,
    raw: outcome.raw,
    hash: outcome.hash,
    gasLimit,
    gasPriceAtoken,
    valueAtoken,
  };
}
