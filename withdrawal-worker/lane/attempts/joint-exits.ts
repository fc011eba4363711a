/**
 * Nonces that are given up together: of payments for which nothing more is signed, and which do not go on
 * by themselves. They would hold up everybody behind them one after the other, each for as long as the first.
 */
import { choosePrice, isTooDear } from "../../gas.js";
import type { CancelIntent } from "../../../ledger/withdrawals/cancellation.js";
import { feeOf } from "../../../ledger/withdrawals/slot-choice.js";
import type { LiveSlot } from "../../../ledger/withdrawals/slot-rows.js";
import type { SigningRefusal } from "../../signers/signer-port.js";
import type { LaneContext, Round } from "../lane-context.js";
import { approvalsOf, dearestOf, firstGas, isOfPausedToken, priceOf } from "./attempts.js";

/** A slot that is to be given up, and why. */
export interface Exit extends Omit<CancelIntent, "id"> {
  readonly slot: LiveSlot;
}

/** The payments of paused tokens from a nonce on. */
export async function pausedExits(
  context: LaneContext,
  lowest: Pick<LiveSlot, "nonce">,
): Promise<readonly Exit[]> {
  return (await readOpenFrom(context, lowest, isOfPausedToken)).map(pausedExit);
}

/** No customer is to blame: where nothing was paid it ends as not mined. */
export function pausedExit(slot: LiveSlot): Exit {
  const reason = "its token is paused: nothing dearer is signed for its payment";
  return { slot, cause: "not-mined", reason };
}

/**
 * From the lowest nonce on the payments whose next signature is refused, and goes on being refused, by the
 * signer's rules or for its fee: the first one, or a dearer one of those that are cheaper than the chain's
 * price now. What was signed behind a payment that was not may be mined at its price still. All are judged
 * together: they share a day.
 */
export async function refusedExits(
  context: LaneContext,
  round: Round,
  lowest: LiveSlot,
): Promise<readonly Exit[]> {
  const suggestedAtoken = choosePrice(round.view.suggestedPriceAtoken, context.settings.gas);
  const slots = await readOpenFrom(context, lowest, (slot) => {
    if (slot.attempts.length === 0) return true;
    return lowest.attempts.length > 0 && priceOf(slot) < suggestedAtoken;
  });
  const approvals = await approvalsOf(
    context,
    slots.map(({ withdrawalId }) => withdrawalId),
  );
  const refusals = context.signer.review(
    slots.map((slot) => ({
      ...slot,
      approvals: approvals.get(slot.withdrawalId) ?? [],
      signedBefore: dearestOf(slot)?.raw,
    })),
  );
  return slots.flatMap((slot, index) => {
    const refusal = refusals[index];
    if (refusal !== undefined && staysRefused(refusal)) return [refusedExit(slot, refusal)];
    return tooDearExit(context, slot) ?? [];
  });
}

/** Of a payment that was not signed yet and is too dear for this home. No customer is to blame. */
function tooDearExit(context: LaneContext, slot: LiveSlot): Exit | undefined {
  const { gas } = context.settings;
  const first = firstGas(context, slot);
  if (slot.attempts.length > 0 || !isTooDear(first, gas)) return undefined;
  const figures = `${feeOf(first)} above ${gas.feePerPayoutAtoken}`;
  const reason = `its payment may cost more in fees than is allowed now (${figures})`;
  return { slot, cause: "not-mined", reason };
}

/** Whatever else keeps a payment unsigned passes sooner than others can wait, or is a person's matter. */
function staysRefused({ code, isLasting }: SigningRefusal): boolean {
  return isLasting || code === "DAY_TOTAL";
}

/** What was signed once may be paid: it ends as not mined, like all that is given up for its price. */
function refusedExit(slot: LiveSlot, { code, reason }: SigningRefusal): Exit {
  const rule = `rule ${code} of the signer: ${reason}`;
  return slot.attempts.length === 0
    ? { slot, cause: "policy", reason: rule }
    : { slot, cause: "not-mined", reason: `nothing dearer is signed for its payment: ${rule}` };
}

/** From now on transfers of nothing take these nonces. */
export async function giveUpTogether(
  { ledger, log }: LaneContext,
  { lease }: Pick<Round, "lease">,
  exits: readonly Exit[],
): Promise<void> {
  if (exits.length === 0) return;
  await ledger.beginCancelling(
    lease,
    exits.map(({ slot: { withdrawalId: id }, cause, reason }) => ({ id, cause, reason })),
  );
  const nonces = exits.map(({ slot }) => slot.nonce.toString());
  const reasons = [...new Set(exits.map(({ reason }) => reason))];
  log.warn({ nonces, reasons }, "payments are given up: transfers of nothing take their nonces");
}

/** The open payments from a nonce on that are meant, of which nothing is known to be mined. */
async function readOpenFrom(
  { ledger, signer, settings }: LaneContext,
  { nonce }: Pick<LiveSlot, "nonce">,
  isMeant: (slot: LiveSlot) => boolean,
): Promise<readonly LiveSlot[]> {
  const found: LiveSlot[] = [];
  let fromNonce = nonce;
  for (;;) {
    const slots = await ledger.readLiveSlots({
      wallet: signer.address,
      statuses: ["slotted", "signed", "broadcast"],
      fromNonce,
      limit: settings.batchSize,
    });
    found.push(...slots.filter(isMeant));
    const last = slots.at(-1);
    if (last === undefined || slots.length < settings.batchSize) return found;
    fromNonce = last.nonce + 1n;
  }
}
