/** Signing: the first attempt of each slot, and those that replace it on the same nonce. */
import type { NewAttempt } from "../../ledger/withdrawals/nonce-slots.js";
import { feeOf } from "../../ledger/withdrawals/slot-choice.js";
import type { LiveSlot } from "../../ledger/withdrawals/slot-rows.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import { WORKER_FAILPOINTS } from "../failpoints.js";
import { type AttemptGas, type GasSettings, lower } from "./gas.js";
import type { LaneContext, Round } from "./lane-context.js";

/** Payments signed for one slot; more means that something is wrong that a machine cannot mend. */
export const MAX_PAYMENT_ATTEMPTS = 32;

/** Attempts of one slot in all: the cancelling ones can rise tenfold in price within the rest. */
export const MAX_ATTEMPTS = 64;

/** Signs every slot that has no attempt yet. @returns true when more may be waiting */
export async function signSlots(context: LaneContext, round: Round): Promise<boolean> {
  const { ledger, settings, signer } = context;
  if ((await ledger.readFreeze(signer.address)).frozen) return false;
  const slots = await ledger.readLiveSlots({
    wallet: signer.address,
    statuses: ["slotted"],
    // A nonce that the chain has already used is never signed for: the settler looks at it.
    fromNonce: round.view.nonce,
    limit: settings.batchSize,
  });
  if (slots.length === 0) return false;
  // Slots are taken by the settings of then; what is signed keeps to those of now.
  const { limitMax, priceCapAtoken } = settings.gas;
  await giveUp(
    context,
    slots.filter(({ gasLimit }) => gasLimit > limitMax),
  );
  const attempts = slots.flatMap((slot) => {
    const { gasLimit } = slot;
    const gasPriceAtoken = lower(slot.gasPriceAtoken, priceCapAtoken);
    return gasLimit > limitMax ? [] : [signPayment(context, slot, { gasLimit, gasPriceAtoken })];
  });
  failpoint(WORKER_FAILPOINTS.beforeAttemptCommit);
  const isStored = await ledger.storeAttempts(round.lease, attempts);
  failpoint(WORKER_FAILPOINTS.afterAttemptCommit);
  return isStored && slots.length === settings.batchSize;
}

/** No customer is to blame: the transfers of nothing that take these nonces end as not mined. */
async function giveUp(context: LaneContext, slots: readonly LiveSlot[]): Promise<void> {
  if (slots.length === 0) return;
  const { limitMax } = context.settings.gas;
  await context.ledger.beginCancelling(
    slots.map(({ withdrawalId, gasLimit }) => ({
      id: withdrawalId,
      cause: "not-mined",
      reason: `its payment needs more gas than is allowed now (${gasLimit} above ${limitMax})`,
    })),
  );
  const nonces = slots.map(({ nonce }) => nonce.toString());
  context.log.warn({ nonces }, "the gas limit was lowered: transfers of nothing take these nonces");
}

/** Signs a slot's payment with this gas; the caller stores it before it leaves. */
export function signPayment(context: LaneContext, slot: LiveSlot, gas: AttemptGas): NewAttempt {
  const { destination: to, amountUnits: valueAtoken } = slot;
  return sign(context, slot, { kind: "payment", to, valueAtoken, gas });
}

/** Signs a transfer of nothing to the wallet itself on a slot's nonce. */
export function signCancel(context: LaneContext, slot: LiveSlot, gas: AttemptGas): NewAttempt {
  const to = context.signer.address;
  return sign(context, slot, { kind: "cancel", to, valueAtoken: 0n, gas });
}

/** Stores what was signed to replace earlier attempts. */
export async function storeReplacements(
  context: LaneContext,
  round: Round,
  attempts: readonly NewAttempt[],
): Promise<void> {
  if (attempts.length === 0) return;
  const isStored = await context.ledger.storeAttempts(round.lease, attempts);
  failpoint(WORKER_FAILPOINTS.afterCorrectionCommit);
  if (isStored) context.log.info({ count: attempts.length }, "transactions were signed anew");
}

/** What may still be spent on dearer payments; only the worker that holds the lease spends it. */
export class FeeRoom {
  readonly #gas: GasSettings;
  #leftAtoken: bigint;

  private constructor(gas: GasSettings, leftAtoken: bigint) {
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
    const feeAtoken = feeOf(gas);
    if (feeAtoken > this.#gas.feePerPayoutAtoken) return false;
    const dearest = slot.attempts.reduce((most, { gasLimit, gasPriceAtoken }) => {
      const fee = feeOf({ gasLimit, gasPriceAtoken });
      return fee > most ? fee : most;
    }, feeOf(slot));
    const moreAtoken = feeAtoken > dearest ? feeAtoken - dearest : 0n;
    if (moreAtoken > this.#leftAtoken) return false;
    this.#leftAtoken -= moreAtoken;
    return true;
  }
}

function sign(
  context: LaneContext,
  slot: LiveSlot,
  wanted: Pick<NewAttempt, "kind" | "valueAtoken"> & {
    readonly to: LiveSlot["destination"];
    readonly gas: AttemptGas;
  },
): NewAttempt {
  const { kind, to, valueAtoken } = wanted;
  const { gasLimit, gasPriceAtoken } = wanted.gas;
  const { chainId } = context;
  const gas = { gasLimit, gasPriceAtoken };
  const signed = context.signer.sign({ chainId, nonce: slot.nonce, to, valueAtoken, ...gas });
  return {
    slotId: slot.slotId,
    withdrawalId: slot.withdrawalId,
    n: slot.attempts.length,
    kind,
    raw: signed.raw,
    hash: signed.hash,
    ...gas,
    valueAtoken,
  };
}
