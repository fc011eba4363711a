/**
 * One hot wallet's order of work, round by round: settle what is mined, give nonces, sign, send.
 * The tables are the truth; a wake-up only makes the next round come sooner, and the scan interval
 * finds what a lost one left behind.
 */
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { WalletStatus } from "../../ledger/wallets/wallet.js";
import {
  type KillSwitchState,
  stops,
  SWITCH_UNTOUCHED,
} from "../../ledger/kill-switch/kill-switch-level.js";
import {
  type HotWalletState,
  LeaseLostError,
  type WalletLease,
} from "../../ledger/wallets/wallet-lease.js";
import {
  freezeIfBehind,
  refuseOlderHead,
  type ShownWallet,
} from "../../ledger/withdrawals/chain-nonces.js";
import { whileHolding } from "../../runtime/process/lease-keeper.js";
import { createWakeup, sleep } from "../../runtime/process/task.js";
import { signSlots } from "./attempts/attempts.js";
import { endExpired } from "./expired.js";
import { longRoundReason, NO_FEES_REASON, stallReason, switchReason } from "./blocked-reason.js";
import { Broadcaster, type SendReport } from "./attempts/broadcaster.js";
import { correctAttempts } from "./attempts/corrections.js";
import { SignerAnswers } from "./attempts/signer-answers.js";
import type { LaneContext, Round } from "./lane-context.js";
import { isPassing, isPolicyFault, leaseLost } from "./lane-faults.js";
import { Settler } from "./settler.js";
import { LateClock } from "./slots/late-clock.js";
import { LeftToOthers } from "./slots/waiting.js";
import { LeaseTurns } from "./lease-turns.js";
import { fillCodeSlots, fillSlots, NOT_FILLED } from "./slots/slotter.js";
import { signCancels, WayOut } from "./attempts/way-out.js";
import type { WalletView } from "./wallet-node.js";

/**
 * Batches of payments under one look at the chain: a long queue is worked off without asking anew for
 * what has not changed, and what is mined is still booked every few seconds.
 */
const BATCHES_PER_ROUND = 8;

/** No further batch begins behind it: what is mined waits to be booked, whoever takes long to answer. */
const BATCHES_MS = 5_000;

/**
 * Wait before a round that follows another at once: requests that come meanwhile share its reads and
 * commits. The first one after a rest is served without it.
 */
const GATHER_MS = 25;

/** What a lane is doing, for `/ready` and metrics. */
export interface LaneStatus {
  /** What the wallet may do; as it was at the last look. */
  readonly walletStatus: WalletStatus;
  /** Why nothing goes on; undefined while it does, or while another worker holds the wallet. */
  readonly blockedReason: string | undefined;
  readonly isFrozen: boolean;
  readonly holdsLease: boolean;
  readonly openSlots: number;
  /** How long the lowest open nonce has been waited for, milliseconds; 0 with none open. */
  readonly stalledMs: number;
}

/** Pays what a hot wallet is given to pay, round by round, while this process holds the wallet's lease. */
export class Lane {
  readonly #context: LaneContext;
  readonly #owner: string;
  readonly #broadcaster: Broadcaster;
  readonly #settler: Settler;
  readonly #wayOut: WayOut;
  readonly #turns: LeaseTurns;
  readonly #answers: SignerAnswers;
  readonly #lateClock = new LateClock();
  readonly #left = new LeftToOthers();
  readonly #wakeup = createWakeup();
  #lease: WalletLease | undefined;
  #lastHeight = 0;
  #rewinds = 0;
  #pausedUntilMs = 0;
  #killSwitch: KillSwitchState = SWITCH_UNTOUCHED;
  #blockedReason: string | undefined = "the first round has not ended yet";
  #isFrozen = false;
  #walletStatus: WalletStatus = "active";
  #openSlots = 0;
  /** When the present round began; undefined between rounds. */
  #roundSinceMs: number | undefined;
  /** Requests that the day's fees do not cover were met, and will be again by then. */
  #noFeesUntilMs = 0;
  /** It had no time for all that has a nonce. */
  #isSignerBehind = false;
  /** The guard let nothing go on at the last look. */
  #isHeld = false;
  /** The lease lies free for whoever can sign, and nobody has taken it. */
  #isOnOffer = false;

  /** @param owner name of this worker in the lease, different for every process */
  constructor(context: LaneContext, owner: string) {
    this.#context = context;
    this.#owner = owner;
    this.#broadcaster = new Broadcaster(context);
    this.#settler = new Settler(context);
    this.#wayOut = new WayOut(context);
    this.#turns = new LeaseTurns(context.settings);
    this.#answers = new SignerAnswers(context);
  }

  /** Makes the next round come at once. */
  wake(): void {
    this.#wakeup.wake();
  }

  /** What the last round came to. */
  status(): LaneStatus {
    return {
      walletStatus: this.#walletStatus,
      blockedReason: this.#blockedReason ?? this.#longRoundReason(),
      isFrozen: this.#isFrozen,
      holdsLease: this.#isAtWork(),
      openSlots: this.#openSlots,
      stalledMs: this.#isAtWork() ? (this.#wayOut.stalled()?.waitedMs ?? 0) : 0,
    };
  }

  /** Works until the signal fires. Rejects only on a broken invariant. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings } = this.#context;
    try {
      while (!signal.aborted) {
        const result = await this.#guardedRound(signal);
        // After a fault wake-ups are not heeded: they would turn an outage into a busy loop.
        if (result === "fault") await sleep(settings.scanIntervalMs, { signal });
        if (result === "idle") {
          const isBusy = this.#openSlots > 0 && this.#lease !== undefined;
          const timeoutMs = isBusy ? settings.pollIntervalMs : settings.scanIntervalMs;
          const restedMs = await this.#rest(signal, timeoutMs);
          if (restedMs < GATHER_MS) await sleep(GATHER_MS - restedMs, { signal });
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await this.#giveLeaseBack();
    }
  }

  /** Waits for a wake-up, or as long as is said. @returns for how long it did */
  async #rest(signal: AbortSignal, timeoutMs: number): Promise<number> {
    const { clock } = this.#context;
    const sinceMs = clock.monotonicMs();
    await this.#wakeup.wait({ signal, timeoutMs });
    return clock.monotonicMs() - sinceMs;
  }

  /** One round under the lease. @returns true when more work is waiting */
  async runRound(signal: AbortSignal): Promise<boolean> {
    this.#roundSinceMs = this.#context.clock.monotonicMs();
    try {
      return await this.#round(signal);
    } finally {
      this.#roundSinceMs = undefined;
    }
  }

  async #round(signal: AbortSignal): Promise<boolean> {
    const { clock, ledger, node, settings, signer } = this.#context;
    const askedMs = clock.monotonicMs();
    const view = await node.view(signer.address, { signal });
    const wallet = await this.#openWallet(view);
    this.#walletStatus = wallet.status;
    this.#checkHeight(view, wallet);
    const isKeyTold = wallet.isKeyUnsaid && (await this.#answers.maySayKey(view.nonce, { signal }));
    if (isKeyTold) await ledger.sayKeyHeld(signer.address);
    this.#lease = await this.#holdLease(askedMs);
    this.#isOnOffer = false;
    if (this.#lease === undefined) {
      // Whoever works for the wallet tells of it: what was seen here last grows old.
      this.#blockedReason = undefined;
      this.#openSlots = 0;
      this.#isFrozen = false;
      return false;
    }
    const lease = this.#lease;
    let hasMore: boolean;
    try {
      hasMore = await whileHolding(
        {
          renew: () => ledger.renewLease(lease, settings),
          lost: leaseLost,
          leaseMs: settings.leaseMs,
          signal,
        },
        (heldSignal) => {
          const known = { left: this.#left, answers: this.#answers };
          const round = { lease, view, askedMs, ...known, signal: heldSignal };
          return this.#work({ ...round, rewinds: wallet.rewinds }, wallet);
        },
      );
    } catch (error) {
      // Only this worker's policy file is at fault: another worker may go on with the wallet.
      if (isPolicyFault(error)) await this.#giveLeaseBack();
      else if (!(error instanceof LeaseLostError)) await this.#leaveToOthers();
      throw error;
    }
    await this.#readStatus();
    await this.#leaveToOthers();
    return hasMore;
  }

  /**
   * Behind each round, also a failed one. Whoever has the key comes first: a lane without it only books,
   * between the others' rounds. So does one whose signer is silent: another worker's may sign.
   */
  async #leaveToOthers(): Promise<void> {
    const hasKey = this.#context.hasKey();
    this.#isOnOffer = hasKey && this.#answers.isSilent;
    if (this.#isOnOffer || !hasKey) await this.#giveLeaseBack();
  }

  /** Whether what goes on with the wallet, or does not, is this lane's to tell. */
  #isAtWork(): boolean {
    return this.#lease !== undefined || this.#isOnOffer;
  }

  async #work(round: Round, wallet: ShownWallet): Promise<boolean> {
    const mayGoOn = await this.#context.guard.mayGoOn(round.view);
    // One look may be a late node's behind a balancer: the wait goes on over it.
    if (!mayGoOn && this.#isHeld) this.#wayOut.forget();
    this.#isHeld = !mayGoOn;
    if (!mayGoOn) return false;
    const { ledger, signer } = this.#context;
    // Safe as `wallet` was read after `view`: a nonce used beyond it is none that this ledger gave.
    await freezeIfBehind(this.#context, signer.address, round.view, wallet);
    await ledger.showBalance(round.lease, round.view);
    const hasMoreMined = await this.#settler.settle(round);
    const expired = await endExpired(this.#context, round);
    const hasMorePayments = await this.#goOn(round, wallet);
    if (expired.fault !== undefined) throw expired.fault;
    return hasMoreMined || expired.hasMore || hasMorePayments;
  }

  /** As much as the wallet and the kill switch allow. @returns true when more payments are waiting */
  async #goOn(round: Round, wallet: HotWalletState): Promise<boolean> {
    if (wallet.status === "retired") return false;
    const isStopped = await this.#isStopped();
    // What may be neither sent nor made dearer is not given up for the time that this takes.
    if (isStopped) this.#wayOut.forget();
    if (stops(this.#killSwitch.level, "stop-broadcast")) return false;
    if (!isStopped && this.#context.hasKey()) return this.#carryOn(round, wallet);
    await this.#sendStored(round);
    return false;
  }

  /** Everything that is signed, or that leads to it. @returns true when more payments are waiting */
  async #carryOn(round: Round, wallet: HotWalletState): Promise<boolean> {
    try {
      await this.#wayOut.attend(round);
      if (this.#context.clock.monotonicMs() < this.#pausedUntilMs) return false;
      await signCancels(this.#context, round);
      return await this.#pay(round, wallet);
    } catch (error) {
      // As with the kill switch: nothing new is signed, and what is signed goes out.
      if (isPolicyFault(error)) await this.#sendStored(round);
      throw error;
    }
  }

  /**
   * Batch after batch under one look at the chain: nonces and signatures of the next while the last one
   * is sent. What a batch takes of the balance is counted by its open slots; a refusal ends the round. While
   * who signs says nothing only what has its nonce is asked for: the rest is other wallets' to pay, and its
   * customers' to take back.
   */
  async #pay(round: Round, wallet: HotWalletState): Promise<boolean> {
    await this.#answers.forgetUsed(round.view.nonce);
    await this.#lateClock.attend(this.#context);
    let filled = NOT_FILLED;
    let hasMore = true;
    let sending: Promise<SendReport> | undefined;
    // Signed and sent so far: further batches do not read again what the first one left behind it.
    let signedNonce = round.view.nonce;
    try {
      for (let batch = 0; hasMore && batch < BATCHES_PER_ROUND; batch += 1) {
        if (batch > 0 && (this.#isLong(round) || (await this.#isStopped()))) break;
        const isSignerBusy = this.#answers.isSilent || this.#isSignerBehind;
        filled = isSignerBusy ? NOT_FILLED : await fillSlots(this.#context, round, wallet);
        if (filled.limit === "fee-budget") this.#noFeesUntilMs = this.#retriedByMs();
        const signed = await signSlots(this.#context, round, signedNonce);
        const isHeardAgain = isSignerBusy && !this.#answers.isSilent && !signed.isPostponed;
        this.#isSignerBehind = signed.isPostponed;
        const isSmooth = sending === undefined || (await this.#heed(round, await sending));
        sending = this.#broadcaster.sendDue(round, {
          isFirst: batch === 0,
          fromNonce: signedNonce,
        });
        signedNonce = signed.nextNonce;
        // Looked at below, whatever happens until then.
        sending.catch(() => undefined);
        hasMore = signed.hasMore || filled.hasMore || isHeardAgain || !isSmooth;
        if (this.#answers.isSilent) {
          filled = NOT_FILLED;
          hasMore = false;
        }
        // Another batch would read the same requests to contracts again; they are estimated below.
        if (!isSmooth || filled.toCode.length > 0) break;
      }
    } finally {
      // Nothing of a round goes on behind it.
      await sending?.catch(() => undefined);
    }
    const isSmooth = sending === undefined || (await this.#heed(round, await sending));
    if (filled.fault !== undefined) throw filled.fault;
    // Behind the sending: what code does in its estimates holds up nobody's plain payment.
    const hasMoreCode = await fillCodeSlots(this.#context, round, filled.toCode);
    return hasMoreCode || hasMore || !isSmooth;
  }

  #isLong({ askedMs }: Round): boolean {
    return this.#context.clock.monotonicMs() - askedMs >= BATCHES_MS;
  }

  /** The kill switch holds between batches, too: a round may be long. */
  async #isStopped(): Promise<boolean> {
    this.#killSwitch = await this.#context.killSwitch.read();
    return stops(this.#killSwitch.level, "stop-sign");
  }

  /** Does what the node's answers ask for. @returns false when it refused something */
  async #heed(round: Round, report: SendReport): Promise<boolean> {
    await correctAttempts(this.#context, round, report.refused);
    const [conflict] = report.conflicts;
    if (conflict !== undefined) {
      const { ledger, settings } = this.#context;
      // Whoever has taken the wallet over since may have signed anew for it: then the pool holds that.
      if (!(await ledger.renewLease(round.lease, settings))) throw leaseLost();
      await this.#freeze(`the pool holds a foreign transaction with nonce ${conflict.nonce}`);
    }
    if (report.hasNoFunds) this.#pause();
    return report.refused.length === 0 && report.conflicts.length === 0 && !report.hasNoFunds;
  }

  /** What others have signed goes out all the same. */
  async #sendStored(round: Round): Promise<void> {
    const { nonce: fromNonce } = round.view;
    await this.#broadcaster.sendDue(round, { isFirst: true, fromNonce });
  }

  /** Reads the wallet's row; the first start ever makes it with the chain's nonce. */
  async #openWallet(view: WalletView): Promise<ShownWallet> {
    const { ledger, signer, log } = this.#context;
    const known = await ledger.readHotWallet(signer.address);
    if (known !== undefined) return known;
    await ledger.createHotWallet({ wallet: signer.address, firstNonce: view.nonce });
    log.info({ wallet: signer.address, firstNonce: view.nonce.toString() }, "hot wallet opened");
    const created = await ledger.readHotWallet(signer.address);
    if (created === undefined) throw new Error("the hot wallet's row cannot be read back");
    return created;
  }

  /**
   * A node below what is already booked shows old balances and nonces: nothing is done by it. A chain that
   * came back shorter, and that a person let the watcher go back on, is no such node.
   */
  #checkHeight(view: WalletView, wallet: HotWalletState): void {
    if (wallet.rewinds !== this.#rewinds) this.#lastHeight = 0;
    this.#rewinds = wallet.rewinds;
    const knownHeight = Math.max(this.#lastHeight, wallet.settledHeight);
    refuseOlderHead(view, knownHeight);
    this.#lastHeight = view.height;
  }

  async #holdLease(askedMs: number): Promise<WalletLease | undefined> {
    const { ledger, signer, settings, log } = this.#context;
    const { leaseMs } = settings;
    if (this.#lease !== undefined) {
      if (await ledger.renewLease(this.#lease, { leaseMs })) {
        this.#turns.begin(this.#lease, askedMs);
        return this.#lease;
      }
      log.warn({ wallet: signer.address }, "another worker has taken the wallet over");
    }
    const lease = await ledger.acquireLease({
      wallet: signer.address,
      owner: this.#owner,
      leaseMs,
    });
    if (lease === undefined) return undefined;
    const { isSame, isLater } = this.#turns.begin(lease, askedMs);
    if (isLater) {
      this.#settler.forget();
      this.#wayOut.forget();
    }
    if (!isSame) {
      log.info({ wallet: lease.wallet, epoch: lease.epoch.toString() }, "working for the wallet");
    }
    return lease;
  }

  async #freeze(reason: string): Promise<void> {
    const { ledger, signer, log } = this.#context;
    if (await ledger.freezeSigning(signer.address, reason)) {
      log.error({ wallet: signer.address, reason }, "signing is frozen");
    }
  }

  /** What is put off now has been looked at again, with a scan to spare. */
  #retriedByMs(): number {
    const { clock, settings } = this.#context;
    return clock.monotonicMs() + settings.retryDelayMs + 2 * settings.scanIntervalMs;
  }

  #pause(): void {
    const { clock, settings, log } = this.#context;
    this.#pausedUntilMs = clock.monotonicMs() + settings.retryDelayMs;
    log.warn({ delayMs: settings.retryDelayMs }, "the hot wallet cannot pay now; slots are kept");
  }

  async #readStatus(): Promise<void> {
    const { ledger, signer } = this.#context;
    const { count } = await ledger.sumOpenSlots(signer.address);
    this.#openSlots = count;
    if (this.#walletStatus === "retired") {
      // Nobody signs for it: whatever stops that stops nothing, and nobody has to look.
      this.#wayOut.forget();
      this.#isFrozen = false;
      this.#blockedReason = this.#settler.trouble();
      return;
    }
    const freeze = await ledger.readFreeze(signer.address);
    this.#isFrozen = freeze.frozen;
    this.#blockedReason = freeze.frozen
      ? `signing is frozen: ${freeze.reason}`
      : (freeze.behindElsewhere ??
        switchReason(this.#killSwitch) ??
        this.#signerReason(count) ??
        this.#settler.trouble() ??
        this.#stallReason());
  }

  /** Why the signer does not sign, while something waits for it. */
  #signerReason(openSlots: number): string | undefined {
    return openSlots > 0 ? this.#context.signer.trouble() : undefined;
  }

  #longRoundReason(): string | undefined {
    const { clock, settings } = this.#context;
    const nowMs = clock.monotonicMs();
    return longRoundReason(nowMs - (this.#roundSinceMs ?? nowMs), settings.stall);
  }

  /** Why the lane does not move, once that has lasted too long. */
  #stallReason(): string | undefined {
    const { clock, settings } = this.#context;
    const stalled = this.#wayOut.stalled();
    if (stalled === undefined || stalled.waitedMs < settings.stall.alarmAfterMs) {
      return clock.monotonicMs() < this.#noFeesUntilMs ? NO_FEES_REASON : undefined;
    }
    return stallReason(stalled, this.#broadcaster.answerTo(stalled.nonce));
  }

  /** Runs a round and sorts its faults: what passes is waited out, broken invariants end the lane. */
  async #guardedRound(signal: AbortSignal): Promise<"more" | "idle" | "fault"> {
    try {
      return (await this.runRound(signal)) ? "more" : "idle";
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof LeaseLostError) {
        this.#lease = undefined;
        return "idle";
      }
      if (!isPassing(error)) throw error;
      this.#noteFault(error);
      return "fault";
    }
  }

  #noteFault(error: unknown): void {
    const reason = errorMessage(error);
    if (reason === this.#blockedReason) return;
    this.#blockedReason = reason;
    this.#context.log.warn({ code: errorCode(error), reason }, "the lane waits");
  }

  async #giveLeaseBack(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease === undefined) return;
    try {
      await this.#context.ledger.releaseLease(lease);
    } catch (error) {
      // The lease runs out by itself; a database that is gone is no reason to fail a stop.
      this.#context.log.debug({ reason: errorMessage(error) }, "the lease was not given back");
    }
  }
}
