/**
 * Receipts to outcomes. The chain's nonce says which slots are consumed; a receipt of any of a
 * slot's attempts decides it; a consumed nonce without one freezes and is never paid again.
 */
import type { Hash32, Height } from "../../chain/hex.js";
import { receiptOfSlot, type SlotReceipt } from "../../ledger/withdrawals/slot-outcomes.js";
import type { Inclusion, LiveSlot } from "../../ledger/withdrawals/slot-rows.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import { WORKER_FAILPOINTS } from "../failpoints.js";
import type { LaneContext, Round } from "./lane-context.js";
import { verdictOnConsumedNonce } from "../withdrawal-state.js";

/** Remembers since when receipts are missing; losing this memory only makes it more patient. */
export class Settler {
  readonly #context: LaneContext;
  /** Bounded by the open slots: entries leave when their slot is decided. */
  readonly #missingSinceMs = new Map<string, number>();
  /** Bounded likewise: slots whose block looked changed at the last look. */
  readonly #changedOnce = new Set<string>();

  constructor(context: LaneContext) {
    this.#context = context;
  }

  /** Records receipts of mined slots, then books what is recorded. @returns true when more waits */
  async settle(round: Round): Promise<boolean> {
    const hasMoreMined = await this.#recordMined(round);
    const hasMoreIncluded = await this.#bookIncluded(round);
    return hasMoreMined || hasMoreIncluded;
  }

  async #recordMined(round: Round): Promise<boolean> {
    const { ledger, settings, signer } = this.#context;
    let fromNonce = 0n;
    for (;;) {
      const slots = await ledger.readLiveSlots({
        wallet: signer.address,
        statuses: ["slotted", "signed", "broadcast", "cancelling", "frozen"],
        fromNonce,
        belowNonce: round.view.nonce,
        limit: settings.batchSize,
      });
      const last = slots.at(-1);
      if (last === undefined) return false;
      const recorded = await this.#recordBatch(slots, round);
      if (recorded > 0) return slots.length === settings.batchSize;
      // Nothing in this batch could be decided: undecided slots must not hide those behind them.
      if (slots.length < settings.batchSize) return false;
      fromNonce = last.nonce + 1n;
    }
  }

  async #recordBatch(slots: readonly LiveSlot[], round: Round): Promise<number> {
    const hashes = slots.flatMap((slot) => slot.attempts.map(({ hash }) => hash));
    const receipts = await this.#context.node.receipts(hashes, { signal: round.signal });
    const mined: SlotReceipt[] = [];
    const lost: LiveSlot[] = [];
    for (const slot of slots) {
      // Frozen after its block had changed: only an operator may say what is true now.
      if (slot.status === "frozen" && slot.inclusion !== undefined) continue;
      const receipt = receiptOfSlot(slot, receipts.byHash);
      const verdict = verdictOnConsumedNonce({
        hasReceipt: receipt !== undefined,
        receiptsHeight: receipts.height,
        nonceHeight: round.view.height,
        missingMs: this.#missingMs(slot, receipt !== undefined),
        patienceMs: this.#context.settings.receiptPatienceMs,
      });
      if (receipt !== undefined) mined.push(receipt);
      if (verdict === "freeze" && slot.status !== "frozen") lost.push(slot);
    }
    if (mined.length > 0) {
      failpoint(WORKER_FAILPOINTS.beforeInclusionCommit);
      await this.#context.ledger.recordInclusions(mined);
      failpoint(WORKER_FAILPOINTS.afterInclusionCommit);
    }
    if (lost.length > 0) await this.#freezeLost(lost);
    return mined.length;
  }

  #missingMs(slot: LiveSlot, hasReceipt: boolean): number {
    if (hasReceipt) {
      this.#missingSinceMs.delete(slot.slotId);
      return 0;
    }
    const nowMs = this.#context.clock.monotonicMs();
    const sinceMs = this.#missingSinceMs.get(slot.slotId) ?? nowMs;
    this.#missingSinceMs.set(slot.slotId, sinceMs);
    return nowMs - sinceMs;
  }

  async #freezeLost(slots: readonly LiveSlot[]): Promise<void> {
    const nonces = slots.map(({ nonce }) => nonce.toString());
    const reason = `nonce ${nonces[0]} was consumed by a transaction that this kit did not sign`;
    const { ledger, signer } = this.#context;
    await ledger.freezeSigning(signer.address, reason);
    await ledger.freezeWithdrawals(
      slots.map(({ withdrawalId, nonce }) => ({
        id: withdrawalId,
        reason: `nonce ${nonce} is consumed on the chain, and none of its transactions is mined`,
      })),
    );
    for (const { slotId } of slots) this.#missingSinceMs.delete(slotId);
    this.#context.log.error({ nonces }, "signing is frozen: a foreign transaction used our nonce");
  }

  /** Re-reads the receipts of recorded inclusions and books those that are still what they were. */
  async #bookIncluded(round: Round): Promise<boolean> {
    const { ledger, settings, signer, node } = this.#context;
    const slots = await ledger.readLiveSlots({
      wallet: signer.address,
      statuses: ["included"],
      limit: settings.batchSize,
    });
    const hashes = slots.flatMap(({ inclusion }) => inclusion?.hash ?? []);
    if (hashes.length === 0) return false;
    const receipts = await node.receipts(hashes, { signal: round.signal });
    const blockHashes = await this.#readBlockHashes(slots, round);
    const confirmed: SlotReceipt[] = [];
    const changed: LiveSlot[] = [];
    for (const slot of slots) {
      if (slot.inclusion === undefined) continue;
      const receipt = receiptOfSlot(slot, receipts.byHash);
      const blockHash = blockHashes.get(slot.inclusion.blockNumber);
      if (receipt === undefined || blockHash === undefined) continue;
      const isSame = isSameInclusion(receipt, slot.inclusion) && blockHash === receipt.blockHash;
      if (!isSame && this.#changedAgain(slot)) changed.push(slot);
      if (isSame) this.#changedOnce.delete(slot.slotId);
      if (isSame && receipts.height >= receipt.blockNumber) confirmed.push(receipt);
    }
    if (changed.length > 0) await this.#freezeChanged(changed);
    const unproven = confirmed.filter(({ isProven }) => !isProven);
    if (unproven.length > 0) await this.#freezeUnproven(unproven);
    if (confirmed.length === unproven.length) return false;
    await ledger.settleSlots(confirmed, settings.failures);
    failpoint(WORKER_FAILPOINTS.afterSettleCommit);
    return slots.length === settings.batchSize;
  }

  /** Paid again, it could be paid twice; given back, it could have been paid. */
  async #freezeUnproven(receipts: readonly SlotReceipt[]): Promise<void> {
    const { ledger, log } = this.#context;
    const ids = receipts.map(({ withdrawalId }) => withdrawalId);
    await ledger.freezeWithdrawals(
      receipts.map(({ withdrawalId: id, hash }) => ({
        id,
        reason:
          `${hash} was mined and succeeded, and the token did not log exactly this transfer: look ` +
          `at it, then causeway ledger decide-transfer ${id}`,
      })),
    );
    log.error({ ids }, "a token's payment was mined without its transfer");
  }

  /** One answer may come from another node behind a balancer: the next look has to agree. */
  #changedAgain({ slotId }: LiveSlot): boolean {
    if (this.#changedOnce.delete(slotId)) return true;
    this.#changedOnce.add(slotId);
    return false;
  }

  async #readBlockHashes(
    slots: readonly LiveSlot[],
    round: Round,
  ): Promise<ReadonlyMap<Height, Hash32>> {
    const heights = [...new Set(slots.flatMap(({ inclusion }) => inclusion?.blockNumber ?? []))];
    const headers = await this.#context.node.headers(heights, { signal: round.signal });
    return new Map(
      headers.flatMap((header) => (header === undefined ? [] : [[header.height, header.hash]])),
    );
  }

  /** A published block never changes on this chain, so this is an incident, not a reorganisation. */
  async #freezeChanged(slots: readonly LiveSlot[]): Promise<void> {
    const heights = [...new Set(slots.map(({ inclusion }) => inclusion?.blockNumber))];
    const reason = `block ${heights[0]} changed after a receipt of it was recorded`;
    const { ledger, signer } = this.#context;
    await ledger.freezeSigning(signer.address, reason);
    await ledger.freezeWithdrawals(slots.map(({ withdrawalId }) => ({ id: withdrawalId, reason })));
    this.#context.log.error({ heights }, "signing is frozen: a published block changed");
  }
}

function isSameInclusion(receipt: SlotReceipt, stored: Inclusion): boolean {
  return (
    receipt.hash === stored.hash &&
    receipt.blockNumber === stored.blockNumber &&
    receipt.blockHash === stored.blockHash &&
    receipt.gasUsed === stored.gasUsed &&
    receipt.effectiveGasPriceAtoken === stored.effectiveGasPriceAtoken
  );
}
