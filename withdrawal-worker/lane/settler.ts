/**
 * Receipts to outcomes. The chain's nonce says which slots are consumed; a receipt of any of a
 * slot's attempts decides it; a consumed nonce without one freezes and is never paid again. Where
 * there is a second node, nothing is settled that it does not show alike.
 */
import { errorMessage } from "../../chain/errors.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { SlotReceipt } from "../../ledger/withdrawals/recorded-inclusions.js";
import { receiptOfSlot, unprovenReason } from "../../ledger/withdrawals/slot-outcomes.js";
import { isSameInclusion, type LiveSlot } from "../../ledger/withdrawals/slot-rows.js";
import { isPruned, NodeFault, RpcError } from "../../rpc-client/errors.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import { WorkerError } from "../errors.js";
import { WORKER_FAILPOINTS } from "../failpoints.js";
import type { LaneContext, Round } from "./lane-context.js";
import { judgeLost } from "../kept-blocks.js";
import { verdictOnConsumedNonce } from "../withdrawal-state.js";
import { type ReceiptsAtHeight, untoldOf } from "./receipts.js";
import type { SecondNode } from "./wallet-node.js";

/** Batches that are booked before payments go on. */
const BATCHES_PER_ROUND = 8;

/** No further batch begins behind it: receipts that are large take long to read. */
const BATCHES_MS = 5_000;

/** What a batch of recorded inclusions came to. */
interface BookedBatch {
  readonly hasBooked: boolean;
  /** There may be more behind it. */
  readonly isFull: boolean;
  /** Behind the last one that was looked at. */
  readonly nextNonce: bigint;
}

/** Remembers since when receipts are missing; losing this memory only makes it more patient. */
export class Settler {
  readonly #context: LaneContext;
  readonly #looks = newLooks();
  /** At the second node: since when it has had their blocks, and no receipts of them. */
  readonly #secondLooks = newLooks();
  /** Bounded by the open slots: those whose block looked changed at the last look. */
  readonly #changedOnce = new Set<string>();
  /** Bounded likewise: slots that the second node showed otherwise at the last look. */
  readonly #disputedOnce = new Set<string>();
  /** Since when the second node has not come to blocks that the first one has; undefined while it has. */
  #secondLateSinceMs: number | undefined;
  #secondTrouble: string | undefined;
  /** Of the last look at all: recorded payments that cannot be booked for want of a receipt. */
  #lostReceipts = 0;
  /** Of the last look: why payments wait for blocks that the node does not keep. */
  #unkeptReason: string | undefined;
  #isUnkeptTold = false;
  /** Where the next round begins to look: as many as a round looks at may wait for something. */
  #bookFrom = 0n;

  constructor(context: LaneContext) {
    this.#context = context;
  }

  /** What was seen before another worker had the wallet agrees with nothing that is seen behind it. */
  forget(): void {
    for (const { missingSinceMs, untoldSinceMs } of [this.#looks, this.#secondLooks]) {
      missingSinceMs.clear();
      untoldSinceMs.clear();
    }
    this.#changedOnce.clear();
    this.#disputedOnce.clear();
    this.#secondLateSinceMs = undefined;
  }

  /**
   * Records receipts of mined slots and books what is recorded, batch after batch under one look at
   * the chain: what a round reads beside them grows with all that is on its way. Each recorded slot is
   * looked at once: what has to look the same twice waits for another round, and hides nothing.
   * @returns true when more waits that may be booked at once
   */
  async settle(round: Round): Promise<boolean> {
    let fromNonce = this.#bookFrom;
    let isMoving = false;
    let isCut = false;
    if (fromNonce === 0n) {
      this.#lostReceipts = 0;
      this.#looks.untold.clear();
      this.#secondLooks.untold.clear();
    }
    this.#bookFrom = 0n;
    for (let batch = 0; batch < BATCHES_PER_ROUND; batch += 1) {
      isCut = batch > 0 && this.#isLong(round);
      if (isCut) break;
      const hasMoreMined = await this.#recordMined(round);
      const included = await this.#bookIncluded(round, fromNonce);
      if (!hasMoreMined && !included.isFull) return false;
      fromNonce = included.nextNonce;
      if (hasMoreMined || included.hasBooked) isMoving = true;
    }
    if (isCut || !isMoving) this.#bookFrom = fromNonce;
    return isMoving;
  }

  #isLong({ askedMs }: Round): boolean {
    return this.#context.clock.monotonicMs() - askedMs >= BATCHES_MS;
  }

  async #recordMined(round: Round): Promise<boolean> {
    const { ledger, settings, signer } = this.#context;
    let fromNonce = 0n;
    if (this.#unkeptReason === undefined) this.#isUnkeptTold = false;
    this.#unkeptReason = undefined;
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
    const askedMs = this.#context.clock.monotonicMs();
    const receipts = await this.#context.node.receipts(hashes, { signal: round.signal });
    const mined: SlotReceipt[] = [];
    const lost: LiveSlot[] = [];
    for (const slot of slots) {
      // Frozen after its block had changed: only an operator may say what is true now.
      if (slot.status === "frozen" && slot.inclusion !== undefined) continue;
      if (!this.#isTold(slot, { receipts, askedMs })) continue;
      const receipt = receiptOfSlot(slot, receipts.byHash);
      const hasReceipt = receipt !== undefined;
      // A node that has not come to the block can have none: from its next look on it is waited for.
      const isLate = !hasReceipt && receipts.height < round.view.height;
      const verdict = verdictOnConsumedNonce({
        hasReceipt,
        receiptsHeight: receipts.height,
        nonceHeight: round.view.height,
        missingMs: isLate ? 0 : this.#missingMs(slot, { hasReceipt, askedMs }),
        patienceMs: this.#context.settings.receiptPatienceMs,
      });
      if (receipt !== undefined) mined.push(receipt);
      if (verdict === "freeze" && slot.status !== "frozen") lost.push(slot);
    }
    if (mined.length > 0) {
      failpoint(WORKER_FAILPOINTS.beforeInclusionCommit);
      await this.#context.ledger.recordInclusions(round.lease, mined, round.rewinds);
      failpoint(WORKER_FAILPOINTS.afterInclusionCommit);
    }
    if (lost.length > 0) await this.#freezeLost(round, lost);
    return mined.length;
  }

  /**
   * Between the first question that found none and this one. An answer says nothing of the time behind its
   * question: this process may have stood still since.
   */
  #missingMs(
    { slotId }: Pick<LiveSlot, "slotId">,
    { hasReceipt, askedMs }: { readonly hasReceipt: boolean; readonly askedMs: number },
    { missingSinceMs }: Pick<Looks, "missingSinceMs"> = this.#looks,
  ): number {
    return waitedMs(missingSinceMs, slotId, { isOver: hasReceipt, askedMs });
  }

  /**
   * Whether a node said what a slot came to, or that it has no receipt of it. What it has and has no room
   * for is not missing, whatever was said before.
   */
  #isTold(
    slot: LiveSlot,
    { receipts, askedMs }: { readonly receipts: ReceiptsAtHeight; readonly askedMs: number },
    { missingSinceMs, untoldSinceMs, untold }: Looks = this.#looks,
  ): boolean {
    const { slotId, attempts } = slot;
    const hasReceipt = receiptOfSlot(slot, receipts.byHash) !== undefined;
    const reason = hasReceipt ? undefined : untoldOf(attempts, receipts);
    const untoldMs = waitedMs(untoldSinceMs, slotId, { isOver: reason === undefined, askedMs });
    if (reason === "too-large") missingSinceMs.delete(slotId);
    if (untoldMs >= this.#context.settings.receiptPatienceMs) untold.add(slotId);
    return reason === undefined;
  }

  async #freezeLost({ lease, signal }: Round, lost: readonly LiveSlot[]): Promise<void> {
    const { ledger, node } = this.#context;
    const ages = await ledger.readSigningAges(lost.map(({ slotId }) => slotId));
    const kept = await node.keptBlocks({ signal });
    const { denied: slots, reason: unkept } = judgeLost(lost, kept, ({ slotId }) =>
      ages.get(slotId),
    );
    if (unkept !== undefined) this.#tellUnkept(unkept);
    if (slots.length === 0) return;
    const nonces = slots.map(({ nonce }) => nonce.toString());
    const reason = `nonce ${nonces[0]} was consumed by a transaction that this kit did not sign`;
    const steps = slots.map(({ withdrawalId, nonce }) => ({
      id: withdrawalId,
      reason: `nonce ${nonce} is consumed on the chain, and none of its transactions is mined`,
    }));
    await ledger.freezeWithdrawals(lease, steps, reason);
    for (const { slotId } of slots) this.#looks.missingSinceMs.delete(slotId);
    this.#context.log.error({ nonces }, "signing is frozen: a foreign transaction used our nonce");
  }

  #tellUnkept(reason: string): void {
    this.#unkeptReason ??= reason;
    if (this.#isUnkeptTold) return;
    this.#isUnkeptTold = true;
    this.#context.log.warn({ reason }, "used nonces of payments cannot be explained");
  }

  /** Re-reads the receipts of recorded inclusions and books those that are still what they were. */
  async #bookIncluded(round: Round, fromNonce: bigint): Promise<BookedBatch> {
    const { ledger, settings, signer, node, clock } = this.#context;
    const slots = await ledger.readLiveSlots({
      wallet: signer.address,
      statuses: ["included"],
      fromNonce,
      limit: settings.batchSize,
    });
    const last = slots.at(-1);
    if (last === undefined) return { hasBooked: false, isFull: false, nextNonce: fromNonce };
    const looked = { isFull: slots.length === settings.batchSize, nextNonce: last.nonce + 1n };
    const hashes = slots.flatMap(({ inclusion }) => inclusion?.hash ?? []);
    const askedMs = clock.monotonicMs();
    const receipts = await node.receipts(hashes, { signal: round.signal });
    const blockHashes = await this.#readBlockHashes(slots, round);
    const receiptsFound: SlotReceipt[] = [];
    const changed: LiveSlot[] = [];
    for (const slot of slots) {
      if (slot.inclusion === undefined) continue;
      if (!this.#isTold(slot, { receipts, askedMs })) continue;
      const receipt = receiptOfSlot(slot, receipts.byHash);
      const hasReceipt = receipt !== undefined;
      const missingMs = this.#missingMs(slot, { hasReceipt, askedMs });
      if (missingMs >= settings.receiptPatienceMs) this.#lostReceipts += 1;
      const blockHash = blockHashes.get(slot.inclusion.blockNumber);
      if (receipt === undefined) continue;
      const isRecorded = isSameInclusion(receipt, slot.inclusion);
      // Mined again on a chain that lost its block, it is not waited for until that is as high again.
      if (isRecorded && blockHash === undefined) continue;
      const isSame = isRecorded && blockHash === receipt.blockHash;
      if (!isSame && this.#changedAgain(slot)) changed.push(slot);
      if (isSame) this.#changedOnce.delete(slot.slotId);
      if (isSame && receipts.height >= receipt.blockNumber) receiptsFound.push(receipt);
    }
    if (changed.length > 0) await this.#freezeChanged(round, changed);
    const confirmed = await this.#seenByBoth(slots, receiptsFound, round);
    const unproven = confirmed.filter(({ isProven }) => !isProven);
    if (unproven.length > 0) await this.#freezeUnproven(round, unproven);
    if (confirmed.length === unproven.length) return { ...looked, hasBooked: false };
    const terms = { ...settings.failures, rewinds: round.rewinds };
    const ended = await ledger.settleSlots(confirmed, terms);
    failpoint(WORKER_FAILPOINTS.afterSettleCommit);
    // What waits for the watcher is looked at again in a later round, not at once.
    return { ...looked, hasBooked: ended.size > 0 };
  }

  /**
   * Of these receipts those that the second node shows, too; all where there is none. What it has not
   * come to waits for it, and so does what it does not keep. What it shows otherwise at two looks freezes,
   * and what it does not show of a block that it has for as long as receipts may be missing: one of the
   * nodes is wrong.
   */
  async #seenByBoth(
    slots: readonly LiveSlot[],
    found: readonly SlotReceipt[],
    round: Round,
  ): Promise<readonly SlotReceipt[]> {
    const { secondNode, settings, clock } = this.#context;
    if (secondNode === undefined || found.length === 0) return found;
    const hashes = found.map(({ hash }) => hash);
    const askedMs = clock.monotonicMs();
    const others = await this.#askSecond(secondNode, hashes, round);
    if (others === undefined) return [];
    const lateReason = this.#lateReason(found, others, askedMs);
    const slotsById = new Map(slots.map((slot) => [slot.slotId, slot]));
    const agreed: SlotReceipt[] = [];
    const disputed: LiveSlot[] = [];
    for (const receipt of found) {
      const slot = slotsById.get(receipt.slotId);
      if (slot === undefined) continue;
      if (!this.#isTold(slot, { receipts: others, askedMs }, this.#secondLooks)) continue;
      const other = receiptOfSlot(slot, others.byHash);
      if (other === undefined && others.height < receipt.blockNumber) continue;
      const hasReceipt = other !== undefined;
      const unseenMs = this.#missingMs(slot, { hasReceipt, askedMs }, this.#secondLooks);
      if (other === undefined) {
        if (unseenMs >= settings.receiptPatienceMs) disputed.push(slot);
      } else if (isSameOutcome(other, receipt)) agreed.push(receipt);
      else if (this.#disputedAgain(slot)) disputed.push(slot);
    }
    for (const { slotId } of agreed) this.#disputedOnce.delete(slotId);
    const { judged, trouble } = await this.#judgeDisputes(secondNode, disputed, round);
    this.#tellTrouble(lateReason ?? trouble ?? untoldReason("second node", this.#secondLooks));
    for (const { slotId } of judged) this.#secondLooks.missingSinceMs.delete(slotId);
    if (judged.length > 0) await this.#freezeDisputed(round, judged);
    return agreed;
  }

  /**
   * Of disputed slots those that the second node can judge, which serves this chain and has their blocks. One
   * that was restored from a snapshot, or prunes its blocks, has no receipts of others, and denies nothing.
   */
  async #judgeDisputes(
    node: SecondNode,
    disputed: readonly LiveSlot[],
    { signal }: Round,
  ): Promise<{ readonly judged: readonly LiveSlot[]; readonly trouble: string | undefined }> {
    if (disputed.length === 0) return { judged: [], trouble: undefined };
    const heights = new Set(disputed.flatMap(({ inclusion }) => inclusion?.blockNumber ?? []));
    try {
      await node.assertChain({ signal });
      for (const height of heights) {
        if (!(await hasBlock(node, height, signal))) heights.delete(height);
      }
    } catch (error) {
      return { judged: [], trouble: secondFault(error, signal) };
    }
    const judged = disputed.filter(
      ({ inclusion }) => inclusion !== undefined && heights.has(inclusion.blockNumber),
    );
    const trouble = "the second node does not keep the blocks of payments: name one that does";
    return { judged, trouble: judged.length === disputed.length ? undefined : trouble };
  }

  /** A block is nothing; one that stands still for long would hold up what is settled, unsaid. */
  #lateReason(
    found: readonly SlotReceipt[],
    { height }: ReceiptsAtHeight,
    askedMs: number,
  ): string | undefined {
    const isLate = found.some(({ blockNumber }) => blockNumber > height);
    if (!isLate) this.#secondLateSinceMs = undefined;
    else this.#secondLateSinceMs ??= askedMs;
    const lateMs = askedMs - (this.#secondLateSinceMs ?? askedMs);
    if (lateMs < this.#context.settings.stall.alarmAfterMs) return undefined;
    return "the second node has not come to blocks that the first one had long ago";
  }

  #tellTrouble(trouble: string | undefined): void {
    const isNew = trouble !== undefined && trouble !== this.#secondTrouble;
    if (isNew) this.#context.log.warn({ reason: trouble }, "not settled");
    this.#secondTrouble = trouble;
  }

  /** A second node that cannot be asked holds up what is settled, and nothing that is sent. */
  async #askSecond(
    node: SecondNode,
    hashes: readonly Hash32[],
    { signal }: Round,
  ): Promise<ReceiptsAtHeight | undefined> {
    try {
      return await node.receipts(hashes, { signal });
    } catch (error) {
      this.#tellTrouble(secondFault(error, signal));
      return undefined;
    }
  }

  /** Why mined payments are not settled; undefined while they are. */
  trouble(): string | undefined {
    const untold = untoldReason("node", this.#looks) ?? this.#unkeptReason;
    if (untold !== undefined) return untold;
    if (this.#secondTrouble !== undefined || this.#lostReceipts === 0) return this.#secondTrouble;
    return (
      `the node has no receipts of ${this.#lostReceipts} payments that were mined: ask one that ` +
      "keeps them"
    );
  }

  /** As with changed blocks, one answer of a balancer's is no dispute. */
  #disputedAgain({ slotId }: LiveSlot): boolean {
    if (this.#disputedOnce.delete(slotId)) return true;
    this.#disputedOnce.add(slotId);
    return false;
  }

  async #freezeDisputed({ lease }: Round, slots: readonly LiveSlot[]): Promise<void> {
    const { ledger, log } = this.#context;
    const hashes = slots.map(({ inclusion }) => inclusion?.hash);
    const reason = `the two nodes disagree about the receipt of ${hashes[0]}`;
    const steps = slots.map(({ withdrawalId }) => ({ id: withdrawalId, reason }));
    await ledger.freezeWithdrawals(lease, steps, reason);
    log.error({ hashes }, "signing is frozen: the two nodes disagree");
  }

  /** Paid again, it could be paid twice; given back, it could have been paid. */
  async #freezeUnproven({ lease }: Round, receipts: readonly SlotReceipt[]): Promise<void> {
    const { ledger, log } = this.#context;
    const ids = receipts.map(({ withdrawalId }) => withdrawalId);
    await ledger.freezeWithdrawals(
      lease,
      receipts.map((receipt) => ({ id: receipt.withdrawalId, reason: unprovenReason(receipt) })),
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
  async #freezeChanged({ lease }: Round, slots: readonly LiveSlot[]): Promise<void> {
    const heights = [...new Set(slots.map(({ inclusion }) => inclusion?.blockNumber))];
    const reason = `block ${heights[0]} changed after a receipt of it was recorded`;
    const steps = slots.map(({ withdrawalId }) => ({ id: withdrawalId, reason }));
    await this.#context.ledger.freezeWithdrawals(lease, steps, reason);
    this.#context.log.error({ heights }, "signing is frozen: a published block changed");
  }
}

/** What one node did not show at the last looks. */
interface Looks {
  /** Bounded by the open slots: entries leave when their slot is decided. */
  readonly missingSinceMs: Map<string, number>;
  /** Bounded likewise: since when it has told nothing of what they came to. */
  readonly untoldSinceMs: Map<string, number>;
  /** Of the last look at all: those of which nothing has been told for long. */
  readonly untold: Set<string>;
}

function newLooks(): Looks {
  return { missingSinceMs: new Map(), untoldSinceMs: new Map(), untold: new Set() };
}

/** Since something was first seen of a slot; 0 once it is over. */
function waitedMs(
  sinceMs: Map<string, number>,
  slotId: string,
  { isOver, askedMs }: { readonly isOver: boolean; readonly askedMs: number },
): number {
  if (isOver) {
    sinceMs.delete(slotId);
    return 0;
  }
  const firstMs = sinceMs.get(slotId) ?? askedMs;
  sinceMs.set(slotId, firstMs);
  return askedMs - firstMs;
}

/** What is mined and cannot be booked, since a node has no room for its receipts; undefined for none. */
function untoldReason(node: string, { untold }: Looks): string | undefined {
  if (untold.size === 0) return undefined;
  return (
    `the ${node} does not tell the receipts of ${untold.size} payments that were mined: they are too ` +
    "large for it, or it is too busy"
  );
}

/** Why the second node says nothing; what is no fault of it is thrown on. */
function secondFault(error: unknown, signal: AbortSignal): string {
  const isWrongNode = error instanceof WorkerError && error.code === "WRONG_NODE";
  if (isWrongNode) return "the second node serves another chain than the ledger's";
  if (!(error instanceof NodeFault || error instanceof RpcError)) throw error;
  signal.throwIfAborted();
  return `the second node cannot be asked: ${errorMessage(error)}`;
}

/** Whether a node has a block of the past. */
async function hasBlock(node: SecondNode, height: Height, signal: AbortSignal): Promise<boolean> {
  try {
    const [header] = await node.headers([height], { signal });
    return header !== undefined;
  } catch (error) {
    if (isPruned(error)) return false;
    throw error;
  }
}

/** Whether two nodes show the same end of a slot. */
function isSameOutcome(one: SlotReceipt, other: SlotReceipt): boolean {
  return (
    isSameInclusion(one, other) &&
    one.isSuccess === other.isSuccess &&
    one.isProven === other.isProven
  );
}
