/**
 * One hot wallet's order of work, round by round: settle what is mined, give nonces, sign, send.
 * The tables are the truth; a wake-up only makes the next round come sooner, and the scan interval
 * finds what a lost one left behind.
 */
import { errorCode, errorMessage } from "../chain/errors.js";
import { sumOpenSlots } from "../ledger/withdrawals/nonce-slots.js";
import { freezeSigning, readFreeze } from "../ledger/withdrawals/signing-freeze.js";
import {
  acquireLease,
  createHotWallet,
  type HotWalletState,
  LeaseLostError,
  readHotWallet,
  releaseLease,
  renewLease,
  type WalletLease,
} from "../ledger/withdrawals/wallet-lease.js";
import { NodeFault, RpcError } from "../rpc-client/errors.js";
import { SqlError } from "../runtime/sql/sql-errors.js";
import { createWakeup, sleep } from "../runtime/process/task.js";
import { correctAttempts, signSlots } from "./attempts.js";
import { Broadcaster } from "./broadcaster.js";
import { WorkerError } from "./errors.js";
import type { LaneContext, Round } from "./lane-context.js";
import { OlderChainWatch } from "./older-chain.js";
import { Settler } from "./settler.js";
import { fillSlots } from "./slotter.js";
import type { WalletView } from "./wallet-node.js";

/** What a lane is doing, for `/ready` and metrics. */
export interface LaneStatus {
  /** Why nothing goes on; undefined while it does, or while another worker holds the wallet. */
  readonly blockedReason: string | undefined;
  readonly isFrozen: boolean;
  readonly holdsLease: boolean;
  readonly openSlots: number;
}

/** The work of one hot wallet. */
export class Lane {
  readonly #context: LaneContext;
  readonly #owner: string;
  readonly #broadcaster: Broadcaster;
  readonly #settler: Settler;
  readonly #olderChain = new OlderChainWatch();
  readonly #wakeup = createWakeup();
  #lease: WalletLease | undefined;
  #lastHeight = 0;
  #pausedUntilMs = 0;
  #blockedReason: string | undefined = "the first round has not ended yet";
  #isFrozen = false;
  #openSlots = 0;

  /** @param owner name of this worker in the lease, different for every process */
  constructor(context: LaneContext, owner: string) {
    this.#context = context;
    this.#owner = owner;
    this.#broadcaster = new Broadcaster(context);
    this.#settler = new Settler(context);
  }

  /** Makes the next round come at once. */
  wake(): void {
    this.#wakeup.wake();
  }

  /** What the last round came to. */
  status(): LaneStatus {
    return {
      blockedReason: this.#blockedReason,
      isFrozen: this.#isFrozen,
      holdsLease: this.#lease !== undefined,
      openSlots: this.#openSlots,
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
          await this.#wakeup.wait({ signal, timeoutMs });
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await this.#giveLeaseBack();
    }
  }

  /** One round under the lease. @returns true when more work is waiting */
  async runRound(signal: AbortSignal): Promise<boolean> {
    const view = await this.#context.node.view(this.#context.signer.address, { signal });
    const wallet = await this.#openWallet(view);
    this.#checkHeight(view, wallet);
    this.#lease = await this.#holdLease();
    if (this.#lease === undefined) {
      this.#blockedReason = undefined;
      return false;
    }
    const hasMore = await this.#work({ lease: this.#lease, view, signal }, wallet);
    await this.#readStatus();
    return hasMore;
  }

  async #work(round: Round, wallet: HotWalletState): Promise<boolean> {
    if (!(await this.#olderChain.mayGoOn(this.#context, round))) return false;
    await this.#checkForeignNonce(round.view, wallet);
    const hasMoreMined = await this.#settler.settle(round);
    if (this.#context.clock.monotonicMs() < this.#pausedUntilMs) return hasMoreMined;
    const hasMoreRequests = await fillSlots(this.#context, round);
    const hasMoreToSign = await signSlots(this.#context, round);
    const report = await this.#broadcaster.sendDue(round);
    await correctAttempts(this.#context, round, report.refused);
    if (report.conflicts.length > 0) {
      const nonces = report.conflicts.map(({ nonce }) => nonce.toString());
      await this.#freeze(`the pool holds a foreign transaction with nonce ${nonces[0]}`);
    }
    if (report.hasNoFunds) this.#pause();
    return hasMoreMined || hasMoreRequests || hasMoreToSign || report.refused.length > 0;
  }

  /** Reads the wallet's row; the first start ever makes it with the chain's nonce. */
  async #openWallet(view: WalletView): Promise<HotWalletState> {
    const { database, signer, log } = this.#context;
    const known = await readHotWallet(database, signer.address);
    if (known !== undefined) return known;
    await createHotWallet(database, { wallet: signer.address, firstNonce: view.nonce });
    log.info({ wallet: signer.address, firstNonce: view.nonce.toString() }, "hot wallet opened");
    const created = await readHotWallet(database, signer.address);
    if (created === undefined) throw new Error("the hot wallet's row cannot be read back");
    return created;
  }

  /** A node below what is already booked shows old balances and nonces: nothing is done by it. */
  #checkHeight(view: WalletView, wallet: HotWalletState): void {
    const knownHeight = Math.max(this.#lastHeight, wallet.settledHeight);
    if (view.height < knownHeight) {
      throw new WorkerError(
        "NODE_BEHIND",
        `the node shows height ${view.height} after ${knownHeight}`,
        {
          retriable: true,
          details: { height: view.height, knownHeight },
        },
      );
    }
    this.#lastHeight = view.height;
  }

  async #holdLease(): Promise<WalletLease | undefined> {
    const { database, signer, settings, log } = this.#context;
    const { leaseMs } = settings;
    if (this.#lease !== undefined) {
      if (await renewLease(database, this.#lease, { leaseMs })) return this.#lease;
      log.warn({ wallet: signer.address }, "another worker has taken the wallet over");
    }
    const lease = await acquireLease(database, {
      wallet: signer.address,
      owner: this.#owner,
      leaseMs,
    });
    if (lease !== undefined) {
      log.info({ wallet: lease.wallet, epoch: lease.epoch.toString() }, "working for the wallet");
    }
    return lease;
  }

  /**
   * The chain or the pool has more transactions of the wallet than there are slots: the key was
   * used elsewhere, or the ledger comes from an older backup. The row was read after the chain.
   */
  async #checkForeignNonce(view: WalletView, wallet: HotWalletState): Promise<void> {
    const seen = view.nonce > view.pendingNonce ? view.nonce : view.pendingNonce;
    if (seen <= wallet.nextNonce) return;
    await this.#freeze(
      `the chain knows nonces below ${seen}, the ledger only below ${wallet.nextNonce}: ` +
        "the key was used elsewhere, or the ledger comes from an older backup",
    );
  }

  async #freeze(reason: string): Promise<void> {
    const { database, signer, log } = this.#context;
    if (await freezeSigning(database, signer.address, reason)) {
      log.error({ wallet: signer.address, reason }, "signing is frozen");
    }
  }

  #pause(): void {
    const { clock, settings, log } = this.#context;
    this.#pausedUntilMs = clock.monotonicMs() + settings.retryDelayMs;
    log.warn({ delayMs: settings.retryDelayMs }, "the hot wallet cannot pay now; slots are kept");
  }

  async #readStatus(): Promise<void> {
    const { database, signer } = this.#context;
    const { count } = await sumOpenSlots(database, signer.address);
    const freeze = await readFreeze(database, signer.address);
    this.#openSlots = count;
    this.#isFrozen = freeze.frozen;
    this.#blockedReason = freeze.frozen ? `signing is frozen: ${freeze.reason}` : undefined;
  }

  /** Runs a round and sorts its faults: weather is waited out, broken invariants end the lane. */
  async #guardedRound(signal: AbortSignal): Promise<"more" | "idle" | "fault"> {
    try {
      return (await this.runRound(signal)) ? "more" : "idle";
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof LeaseLostError) {
        this.#lease = undefined;
        return "idle";
      }
      if (!isWeather(error)) throw error;
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
      await releaseLease(this.#context.database, lease);
    } catch (error) {
      // The lease runs out by itself; a database that is gone is no reason to fail a stop.
      this.#context.log.debug({ reason: errorMessage(error) }, "the lease was not given back");
    }
  }
}

/** Faults that pass: the node or the database cannot be asked, or says what cannot be used. */
function isWeather(error: unknown): boolean {
  if (error instanceof NodeFault || error instanceof RpcError) return true;
  if (error instanceof WorkerError) {
    return ["WRONG_NODE", "NODE_BROKEN", "NODE_BEHIND"].includes(error.code);
  }
  return error instanceof SqlError && error.retriable;
}
