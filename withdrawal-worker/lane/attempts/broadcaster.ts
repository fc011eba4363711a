/** Sends stored bytes, the same ones as often as needed, in nonce order; answers decide what next. */
import type { Hash32, Hex } from "../../../chain/hex.js";
import { stops } from "../../../ledger/kill-switch/kill-switch-level.js";
import type { SlotQuery } from "../../../ledger/withdrawals/nonce-slots.js";
import type { LiveSlot } from "../../../ledger/withdrawals/slot-rows.js";
import { failpoint } from "../../../runtime/process/failpoint.js";
import type { RefusedAttempt } from "./corrections.js";
import { WorkerError } from "../../errors.js";
import { WORKER_FAILPOINTS } from "../../failpoints.js";
import type { LaneContext, Round } from "../lane-context.js";
import { meaningOfSend, type SendMeaning } from "../../withdrawal-state.js";

/** What a round of sending found out. */
export interface SendReport {
  readonly sentCount: number;
  /** Deterministic refusals: these slots need another attempt. */
  readonly refused: readonly RefusedAttempt[];
  /** A transaction that we never signed holds this nonce in the pool. */
  readonly conflicts: readonly LiveSlot[];
  /** The node says that the wallet cannot pay now. */
  readonly hasNoFunds: boolean;
}

/** A slot with the bytes to send for it. */
interface Sendable {
  readonly slot: LiveSlot;
  readonly raw: Hex;
  readonly hash: Hash32;
}

/** When bytes were last sent, and what the node said. */
interface Sent {
  readonly nonce: bigint;
  readonly atMs: number;
  /** True once the node had taken them. */
  isTaken: boolean;
  /** Why it did not, in the words of `SendMeaning`. */
  answer: SendMeaning["kind"];
}

/** Remembers when bytes were sent; losing this memory costs one needless repeat, and patience. */
export class Broadcaster {
  readonly #context: LaneContext;
  /** Bounded by the open slots: entries below the chain's nonce are dropped each round. */
  readonly #sent = new Map<Hash32, Sent>();
  /** Bounded likewise: when bytes were first sent. */
  readonly #firstSent = new Map<Hash32, Pick<Sent, "nonce" | "atMs">>();

  constructor(context: LaneContext) {
    this.#context = context;
  }

  /** What the node last said to bytes with this nonce; undefined when none were sent. */
  answerTo(nonce: bigint): SendMeaning["kind"] | undefined {
    let latest: Sent | undefined;
    for (const sent of this.#sent.values()) {
      if (sent.nonce === nonce && (latest === undefined || sent.atMs >= latest.atMs)) latest = sent;
    }
    return latest?.answer;
  }

  /**
   * Sends what was never sent, and what the node's pool does not show although it was sent a while
   * ago. A fault of the wire leaves everything as it is: the same bytes go out again later.
   * @param options.isFirst false for further batches of the same round, which look only at what was
   *   signed since, from `fromNonce` on
   * @throws NODE_BROKEN, NodeFault
   */
  async sendDue(
    round: Round,
    { isFirst, fromNonce }: { readonly isFirst: boolean; readonly fromNonce: bigint },
  ): Promise<SendReport> {
    this.#forgetMined(round.view.nonce);
    const report: MutableReport = {
      sentCount: 0,
      refused: [],
      conflicts: [],
      hasNoFunds: false,
      isStopped: false,
    };
    const { nonce, pendingNonce } = round.view;
    // Below the pool's next nonce the node shows every nonce as taken up: nothing to send again but
    // what is to replace the transaction there, and what was never sent.
    const missingFrom = pendingNonce > nonce ? pendingNonce : nonce;
    // What was sent before has been looked at in this round: only what was signed since is left.
    const signed = { statuses: ["signed"], fromNonce } as const;
    const pages: readonly Omit<SlotQuery, "wallet" | "limit">[] = [
      // First: these cost the least, and what waits behind them may be waiting for them.
      { statuses: ["cancelling"], fromNonce: nonce },
      { statuses: ["broadcast", "signed"], fromNonce: nonce, missingFrom },
    ];
    for (const page of isFirst ? pages : [signed])
      await this.#sendPages(page, missingFrom, round, report);
    return report;
  }

  /** Sends what is due of all these open slots, in nonce order. */
  async #sendPages(
    query: Omit<SlotQuery, "wallet" | "limit">,
    missingFrom: bigint,
    round: Round,
    report: MutableReport,
  ): Promise<void> {
    const { settings, signer, ledger } = this.#context;
    let { fromNonce } = query;
    while (!report.hasNoFunds && !report.isStopped) {
      const limit = settings.batchSize;
      const slots = await ledger.readLiveSlots({
        ...query,
        fromNonce,
        wallet: signer.address,
        limit,
      });
      const sendable = slots.flatMap(toSendable);
      // The commit that was to say so may have been lost behind the sending, which is not repeated.
      await this.#recordTaken(sendable.filter((entry) => this.#isHeld(entry, missingFrom)));
      const due = sendable.filter((entry) => this.#isDue(entry, missingFrom));
      if (due.length > 0) await this.#send(due, round, report);
      const last = slots.at(-1);
      if (last === undefined || slots.length < settings.batchSize) return;
      fromNonce = last.nonce + 1n;
    }
  }

  #forgetMined(minedNonce: bigint): void {
    for (const sent of [this.#sent, this.#firstSent]) {
      for (const [hash, { nonce }] of sent) if (nonce < minedNonce) sent.delete(hash);
    }
  }

  /** The node has taken these bytes, and its pool shows their nonce. */
  #isHeld({ slot, hash }: Sendable, missingFrom: bigint): boolean {
    return this.#sent.get(hash)?.isTaken === true && slot.nonce < missingFrom;
  }

  #isDue(entry: Sendable, missingFrom: bigint): boolean {
    if (this.#isHeld(entry, missingFrom)) return false;
    const sent = this.#sent.get(entry.hash);
    const waitMs = this.#context.settings.rebroadcastIntervalMs;
    return sent === undefined || this.#context.clock.monotonicMs() - sent.atMs >= waitMs;
  }

  async #send(due: readonly Sendable[], round: Round, report: MutableReport): Promise<void> {
    // Before each batch: what a person stops while thousands are sent again is stopped there.
    report.isStopped = stops((await this.#context.killSwitch.read()).level, "stop-broadcast");
    if (report.isStopped) return;
    const atMs = this.#context.clock.monotonicMs();
    for (const { hash, slot } of due) {
      const isTaken = this.#sent.get(hash)?.isTaken ?? false;
      this.#sent.set(hash, { nonce: slot.nonce, atMs, isTaken, answer: "unknown" });
      if (!this.#firstSent.has(hash)) this.#firstSent.set(hash, { nonce: slot.nonce, atMs });
    }
    const outcomes = await this.#context.node.send(
      due.map(({ raw }) => raw),
      { signal: round.signal },
    );
    failpoint(WORKER_FAILPOINTS.afterSend);
    const taken: Sendable[] = [];
    let brokenReason: string | undefined;
    due.forEach((entry, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined) return;
      const meaning = meaningOfSend(outcome, entry.hash);
      this.#remember(entry.hash, meaning);
      if (meaning.kind === "sent") taken.push(entry);
      else if (meaning.kind === "node-broken") brokenReason ??= meaning.reason;
      else this.#note(entry, { meaning, atMs }, report);
    });
    await this.#recordTaken(taken);
    report.sentCount += taken.length;
    if (brokenReason !== undefined) {
      throw new WorkerError("NODE_BROKEN", `the node cannot be believed: ${brokenReason}`);
    }
  }

  #remember(hash: Hash32, { kind }: SendMeaning): void {
    const sent = this.#sent.get(hash);
    if (sent === undefined) return;
    sent.answer = kind;
    sent.isTaken = kind === "sent";
  }

  async #recordTaken(taken: readonly Sendable[]): Promise<void> {
    const first = taken.filter(({ slot }) => slot.status === "signed");
    if (first.length === 0) return;
    await this.#context.ledger.markBroadcast(
      first.map(({ slot, hash }) => ({ id: slot.withdrawalId, data: { txHash: hash } })),
    );
    failpoint(WORKER_FAILPOINTS.afterBroadcastCommit);
  }

  #note(
    { slot, hash }: Sendable,
    { meaning, atMs }: { readonly meaning: SendMeaning; readonly atMs: number },
    report: MutableReport,
  ): void {
    const triedMs = atMs - (this.#firstSent.get(hash)?.atMs ?? atMs);
    switch (meaning.kind) {
      case "price-too-low":
      case "gas-too-low":
      case "gas-too-high":
        report.refused.push({ slot, meaning, triedMs });
        return;
      case "conflict":
        // With earlier attempts of the slot around, the pool holds one of those: either may mine.
        if (slot.attempts.length === 1) report.conflicts.push(slot);
        else if (slot.status === "cancelling") report.refused.push({ slot, meaning, triedMs });
        return;
      case "no-funds":
        report.hasNoFunds = true;
        return;
      case "gap":
        // An earlier slot is missing at the node; everything open goes out again, in order.
        this.#sent.clear();
        return;
      default:
        // nonce-consumed: the settler holds receipts against the chain's nonce; unknown: later.
        this.#context.log.debug({ hash, answer: meaning.kind }, "the node did not take a payment");
    }
  }
}

/** The latest attempt's bytes, where anybody wants them to be mined. */
function toSendable(slot: LiveSlot): Sendable[] {
  const attempt = slot.attempts.at(-1);
  if (attempt?.raw === undefined) return [];
  // Nobody wants this payment any more; what cancels it is not signed yet.
  if (slot.status === "cancelling" && attempt.kind !== "cancel") return [];
  return [{ slot, raw: attempt.raw, hash: attempt.hash }];
}

interface MutableReport {
  sentCount: number;
  readonly refused: RefusedAttempt[];
  readonly conflicts: LiveSlot[];
  hasNoFunds: boolean;
  /** Sending was stopped meanwhile. */
  isStopped: boolean;
}
