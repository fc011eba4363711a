/**
 * Signed payments of tokens that stand still by now: nothing dearer is signed for them, so what the chain
 * does not take of them would hold up everybody behind it, one after the other.
 */
import type { LiveSlot } from "../../../ledger/withdrawals/slot-rows.js";
import type { LaneContext, Round } from "../lane-context.js";
import { isOfStoppedToken } from "./attempts.js";

/** The payments of such tokens from a nonce on, of which nothing is known to be mined. */
export async function readStopped(
  { ledger, signer, settings }: LaneContext,
  { nonce }: Pick<LiveSlot, "nonce">,
): Promise<readonly LiveSlot[]> {
  const stopped: LiveSlot[] = [];
  let fromNonce = nonce;
  for (;;) {
    const slots = await ledger.readLiveSlots({
      wallet: signer.address,
      statuses: ["slotted", "signed", "broadcast"],
      fromNonce,
      limit: settings.batchSize,
    });
    stopped.push(...slots.filter(isOfStoppedToken));
    const last = slots.at(-1);
    if (last === undefined || slots.length < settings.batchSize) return stopped;
    fromNonce = last.nonce + 1n;
  }
}

/** Gives their nonces up together. No customer is to blame: where nothing was paid they end as not mined. */
export async function giveUpStopped(
  { ledger, log }: LaneContext,
  { lease }: Round,
  stopped: readonly LiveSlot[],
): Promise<void> {
  if (stopped.length === 0) return;
  const reason = "its token stands still: nothing dearer is signed for its payment";
  await ledger.beginCancelling(
    lease,
    stopped.map(({ withdrawalId: id }) => ({ id, cause: "not-mined", reason })),
  );
  const nonces = stopped.map(({ nonce }) => nonce.toString());
  log.warn({ nonces }, "a token stands still: transfers of nothing take these nonces");
}
