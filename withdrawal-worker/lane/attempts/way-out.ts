/**
 * The way out of the lowest open nonce, for which all later ones wait: a better price after a
 * while, then a transfer of nothing in its place; and those transfers themselves.
 */
import { TRANSFER_GAS } from "../../../chain/networks.js";
import type { LiveSlot } from "../../../ledger/withdrawals/slot-rows.js";
import type { WithdrawalStatus } from "../../../ledger/requests/withdrawal-status.js";
import {
  estimateOf,
  FeeRoom,
  isCovered,
  isOfPausedToken,
  MAX_ATTEMPTS,
  MAX_PAYMENT_ATTEMPTS,
  planCancel,
  planPayment,
  priceOf,
  signReplacements,
} from "./attempts.js";
import {
  type AttemptGas,
  cancelGasMax,
  cancelPriceCap,
  choosePrice,
  lower,
  raisePrice,
  withMargin,
} from "../../gas.js";
import { gasOf, type LaneContext, type Round } from "../lane-context.js";
import { type Exit, giveUpTogether, refusedExits, pausedExits } from "./joint-exits.js";
import type { EstimateMeaning } from "../../withdrawal-state.js";
import { hasCancel, nextStall, OPEN_STATUSES, type Stall, stallAction } from "./stalled-slot.js";

/** The nonce that the lane waits for, for `/ready` and metrics. */
export interface StalledNonce {
  readonly nonce: bigint;
  readonly status: WithdrawalStatus;
  readonly waitedMs: number;
}

/** Remembers how long the lowest nonce has been waited for; losing this makes it more patient. */
export class WayOut {
  readonly #context: LaneContext;
  #stall: Stall | undefined;
  #status: WithdrawalStatus = "slotted";
  /** At the last look something that was signed for it could be sent. */
  #isMinable = false;

  constructor(context: LaneContext) {
    this.#context = context;
  }

  /** Another worker had the wallet, or nothing could be done for it: the wait begins anew. */
  forget(): void {
    this.#stall = undefined;
  }

  /** The nonce that is waited for; undefined when nothing is on its way. */
  stalled(): StalledNonce | undefined {
    if (this.#stall === undefined) return undefined;
    const { nonce, sinceMs } = this.#stall;
    const waitedMs = this.#context.clock.monotonicMs() - sinceMs;
    return { nonce, status: this.#status, waitedMs };
  }

  /** Looks at the lowest open nonce and does what its age asks for. */
  async attend(round: Round): Promise<void> {
    const { ledger, signer, settings } = this.#context;
    const { nonce, height, pendingNonce } = round.view;
    // The time of the look: what was mined while this process stood still behind it was not waited for.
    const nowMs = round.askedMs;
    const [lowest] = await ledger.readLiveSlots({
      wallet: signer.address,
      statuses: OPEN_STATUSES,
      fromNonce: nonce,
      belowNonce: nonce + 1n,
      limit: 1,
    });
    const isInPool = pendingNonce > nonce;
    const view = { nonce, height, nowMs, isInPool, isOpen: lowest !== undefined };
    // Nobody could mine it while it was not signed, or a person looked: from then on it is waited for anew.
    const isMinable =
      lowest !== undefined && lowest.status !== "frozen" && lowest.attempts.length > 0;
    const known = isMinable && !this.#isMinable ? undefined : this.#stall;
    this.#stall = nextStall(known, view, settings.stall);
    this.#isMinable = isMinable;
    if (this.#stall === undefined || lowest === undefined) return;
    this.#status = lowest.status;
    if (lowest.status === "frozen") return;
    const action = stallAction(this.#stall, view, settings.stall);
    // Neither a dearer one nor a transfer of nothing is signed then; what was signed goes on being sent.
    const isHeld = action !== "wait" && (await ledger.readFreeze(signer.address)).frozen;
    if (isHeld) return this.forget();
    const isCancelling = lowest.status === "cancelling";
    if (lowest.attempts.length === 0) {
      if (action === "give-up" && !isCancelling) await this.#giveUp(lowest, round);
      return;
    }
    if (action !== "wait" && !isCancelling && isOfPausedToken(lowest)) {
      this.#stall = { ...this.#stall, repricedAtMs: nowMs };
      // Each of those behind it would be waited for in its turn.
      const exits = await pausedExits(this.#context, lowest);
      return giveUpTogether(this.#context, round, exits);
    }
    if (action === "give-up" && !isCancelling) await this.#giveUp(lowest, round);
    const isDue = nowMs - this.#stall.repricedAtMs >= settings.stall.repriceAfterMs;
    if (action === "reprice" || (action === "give-up" && isCancelling && isDue)) {
      this.#stall = { ...this.#stall, repricedAtMs: nowMs };
      await this.#reprice(lowest, round);
    }
  }

  /**
   * The lowest one, with those behind it that would be waited for in their turn. Another payment may have
   * used up what the signer's day allowed when a nonce was taken: everybody behind it would wait for a day.
   * The worker of another home may have taken it that allows more in fees, and has had its time to sign.
   * Whatever else keeps the lowest unsigned passes, or is a person's matter.
   */
  async #giveUp(lowest: LiveSlot, round: Round): Promise<void> {
    const refused = await refusedExits(this.#context, round, lowest);
    if (lowest.attempts.length === 0) {
      const isRefused = refused.some(({ slot }) => slot.nonce === lowest.nonce);
      return giveUpTogether(this.#context, round, isRefused ? refused : []);
    }
    const seconds = this.#context.settings.stall.giveUpAfterMs / 1_000;
    const reason = `its payment was not mined within ${seconds} s`;
    const own: Exit = { slot: lowest, cause: "not-mined", reason };
    const others = refused.filter(({ slot }) => slot.nonce !== lowest.nonce);
    await giveUpTogether(this.#context, round, [own, ...others]);
  }

  /** The lowest one, and what is cheaper than the chain's price now: it would be the next. */
  async #reprice(lowest: LiveSlot, round: Round): Promise<void> {
    const { ledger, signer, settings } = this.#context;
    const suggestedAtoken = choosePrice(round.view.suggestedPriceAtoken, settings.gas);
    const following =
      priceOf(lowest) >= suggestedAtoken
        ? []
        : await ledger.readLiveSlots({
            wallet: signer.address,
            statuses: ["broadcast"],
            fromNonce: lowest.nonce + 1n,
            limit: settings.batchSize,
          });
    const cheap = following.filter((slot) => priceOf(slot) < suggestedAtoken);
    const cancels = lowest.status === "cancelling" ? [lowest] : [];
    const payments = [...(cancels.length === 0 ? [lowest] : []), ...cheap];
    const dearerPayments = await this.#dearerPayments(payments, round);
    await signReplacements(this.#context, round, [
      ...cancels.flatMap((slot) => {
        const gas = cancelGas(this.#context, round, slot);
        return gas === undefined ? [] : [planCancel(this.#context, slot, gas)];
      }),
      ...dearerPayments,
    ]);
  }

  /** Code may do otherwise at another price: what fails its estimate there is left alone. */
  async #dearerPayments(slots: readonly LiveSlot[], round: Round) {
    const { node, signer } = this.#context;
    const gas = gasOf(this.#context, round);
    const suggestedAtoken = round.view.suggestedPriceAtoken;
    const wanted = slots.flatMap((slot) => {
      const price = raisePrice(priceOf(slot), { suggestedAtoken }, gas.priceCapAtoken);
      const isFull = slot.attempts.length >= MAX_PAYMENT_ATTEMPTS;
      if (price === undefined || price <= priceOf(slot) || isFull) return [];
      return isOfPausedToken(slot) ? [] : [{ slot, price }];
    });
    const estimates = await node.estimate(
      signer.address,
      wanted.map(({ slot, price }) => estimateOf(this.#context, round, slot, price)),
      { signal: round.signal, at: round.view.height },
    );
    this.#tellUnknown(
      wanted.map(({ slot }) => slot),
      estimates,
    );
    const room = await FeeRoom.read(this.#context);
    return wanted.flatMap(({ slot, price }, index) => {
      const estimate = estimates[index];
      if (estimate?.kind !== "payable") return [];
      // The limit may have been lowered since; what is needed now fits it by the estimate's ceiling.
      const former = lower((slot.attempts.at(-1) ?? slot).gasLimit, gas.limitMax);
      const needed = withMargin(estimate.gas, gas);
      const next = { gasLimit: needed > former ? needed : former, gasPriceAtoken: price };
      // Only the newest bytes are sent: a node would refuse these, and the former ones may be mined.
      if (!isCovered(round, slot, next)) return [];
      return room.take(slot, next) ? [planPayment(this.#context, slot, next)] : [];
    });
  }

  /** Their prices stay, and with them what waits behind them: nothing else would say why. */
  #tellUnknown(
    slots: readonly LiveSlot[],
    estimates: readonly (EstimateMeaning | undefined)[],
  ): void {
    const unknown = slots.flatMap(({ nonce }, index) => {
      const estimate = estimates[index];
      return estimate?.kind === "unknown" ? [{ nonce: nonce.toString(), ...estimate }] : [];
    });
    if (unknown.length === 0) return;
    const nonces = unknown.map(({ nonce }) => nonce);
    const reasons = [...new Set(unknown.map(({ reason }) => reason))];
    this.#context.log.warn({ nonces, reasons }, "payments cannot be estimated at a better price");
  }
}

/** Signs transfers of nothing for slots that are to be cancelled and have none yet. */
export async function signCancels(context: LaneContext, round: Round): Promise<void> {
  const { ledger, signer, settings } = context;
  let fromNonce = round.view.nonce;
  for (;;) {
    const slots = await ledger.readLiveSlots({
      wallet: signer.address,
      statuses: ["cancelling"],
      fromNonce,
      limit: settings.batchSize,
    });
    const last = slots.at(-1);
    if (last === undefined || (await ledger.readFreeze(signer.address)).frozen) return;
    const attempts = slots.flatMap((slot) => {
      if (hasCancel(slot)) return [];
      const gas = cancelGas(context, round, slot);
      return gas === undefined ? [] : [planCancel(context, slot, gas)];
    });
    // The lowest nonces come first: behind others they could not be mined.
    const isAskedForAll = await signReplacements(context, round, attempts);
    if (!isAskedForAll || slots.length < settings.batchSize) return;
    fromNonce = last.nonce + 1n;
  }
}

/**
 * Gas of the next cancelling transfer, dearer than everything before; where that would be above the cap,
 * the first one is at the cap, and there is no further one.
 */
function cancelGas(context: LaneContext, round: Round, slot: LiveSlot): AttemptGas | undefined {
  if (slot.attempts.length >= MAX_ATTEMPTS) return undefined;
  const { gas } = context.settings;
  const suggestedAtoken = choosePrice(round.view.suggestedPriceAtoken, gas);
  if (slot.attempts.length === 0) {
    return { gasLimit: TRANSFER_GAS, gasPriceAtoken: suggestedAtoken };
  }
  const former = priceOf(slot);
  const cap = cancelPriceCap(gas.priceCapAtoken);
  const price = raisePrice(former, { suggestedAtoken }, cap);
  const cancel = slot.attempts.findLast(({ kind }) => kind === "cancel");
  const gasLimit = lower(cancel?.gasLimit ?? TRANSFER_GAS, cancelGasMax(gas.limitMax));
  if (price !== undefined && price > former) return { gasLimit, gasPriceAtoken: price };
  // The cap was lowered since: what it still allows takes the nonce wherever a pool has lost the payment.
  return cancel === undefined ? { gasLimit, gasPriceAtoken: cap } : undefined;
}
