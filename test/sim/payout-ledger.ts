/**
 * The ledger of withdrawals in memory, by the same pure rules as the tables (steps, choice of
 * slots), holding every ending against what the chain of the model really did.
 */
import type { Address } from "../../chain/address.js";
import { behindReason } from "../../ledger/requests/freeze-causes.js";
import type { NewAttempt } from "../../ledger/withdrawals/nonce-slots.js";
import { chooseSlots, feeOf } from "../../ledger/withdrawals/slot-choice.js";
import type { SlotReceipt } from "../../ledger/withdrawals/recorded-inclusions.js";
import type { Attempt, Inclusion, LiveSlot } from "../../ledger/withdrawals/slot-rows.js";
import { LeaseLostError, type WalletLease } from "../../ledger/wallets/wallet-lease.js";
import {
  type CancelCause,
  endOfCancel,
  isAllowedStep,
  isFinalStatus,
  type WithdrawalStatus,
} from "../../ledger/requests/withdrawal-status.js";
import { toWithdrawalId, type WithdrawalId } from "../../ledger/requests/withdrawal-id.js";
import type { LaneLedger } from "../../withdrawal-worker/lane/lane-ledger.js";
import type { ModelChain } from "./payout-pool.js";

/** Rules of the ledger that a run may break on purpose. */
export type BrokenRule =
  /** A cancelled withdrawal's hold goes back while its payment may still be mined. */
  | "release-at-once"
  /** The bytes leave without having been stored. */
  | "forget-bytes"
  /** A cancelled slot's nonce is given out again. */
  | "recycle-nonce"
  /** Whatever is mined on a slot's nonce counts as its payment. */
  | "any-receipt-pays"
  /** A failed payment is tried again on a new nonce. */
  | "pay-again"
  /** A nonce is skipped. */
  | "skip-nonce";

/** A promise of the design that did not hold. */
export class BrokenPromise extends Error {}

interface Row {
  readonly id: WithdrawalId;
  readonly destination: Address;
  readonly amountUnits: bigint;
  readonly hasDeadline: boolean;
  status: WithdrawalStatus;
  cancel: LiveSlot["cancel"];
  waitsUntilMs: number;
  releases: number;
  slot: Slot | undefined;
}

interface Slot {
  readonly slotId: string;
  readonly nonce: bigint;
  readonly row: Row;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: bigint;
  readonly entersCode: boolean;
  readonly attempts: Attempt[];
  inclusion: Inclusion | undefined;
  isOpen: boolean;
}

/** The model pays coins alone. */
const COINS = { asset: "TOKEN", contract: undefined };

/** The tables. Every method is one commit: it runs in one piece. */
export class ModelLedger {
  readonly rows = new Map<WithdrawalId, Row>();
  readonly slots: Slot[] = [];
  readonly stored = new Set<string>();
  nextNonce = 0n;
  settledHeight = 0;
  feesOfDayAtoken = 0n;
  freeze: string | undefined;
  /** Set by the model when every deadline has passed. */
  isLate = false;
  #owner: string | undefined;
  #epoch = 0n;

  constructor(
    readonly chain: ModelChain,
    readonly nowMs: () => number,
    readonly broken: BrokenRule | undefined,
  ) {}

  request(destination: Address, amountUnits: bigint, hasDeadline: boolean): WithdrawalId {
    const id = toWithdrawalId(`wd_${this.rows.size}`);
    const common = { status: "accepted" as const, cancel: undefined, slot: undefined };
    const terms = { id, destination, amountUnits, hasDeadline };
    this.rows.set(id, { ...terms, ...common, waitsUntilMs: 0, releases: 0 });
    return id;
  }

  /** A client's wish to cancel, as `cancelWithdrawal` grants it. */
  cancel(id: WithdrawalId): void {
    const row = this.#row(id);
    if (row.status === "accepted") this.#end(row, "cancelled");
    else if (["slotted", "signed", "broadcast"].includes(row.status)) {
      this.#mark(row, "request", "asked");
      if (this.broken === "release-at-once") row.releases += 1;
    }
  }

  /** The lease of a silent worker runs out. */
  expireLease(): void {
    this.#owner = undefined;
  }

  #freezeFor(reason: string): boolean {
    const isNew = this.freeze === undefined;
    this.freeze ??= reason;
    return isNew;
  }

  /** The ledger as one worker sees it. */
  port(): LaneLedger {
    return {
      readHotWallet: async () => ({
        status: "active" as const,
        nextNonce: this.nextNonce,
        settledHeight: this.settledHeight,
        rewinds: 0,
        epoch: 1,
        feesOfDayAtoken: this.feesOfDayAtoken,
        isKeyUnsaid: true,
      }),
      createHotWallet: async () => undefined,
      acquireLease: async ({ owner, wallet }) => {
        if (this.#owner !== undefined) return undefined;
        this.#owner = owner;
        this.#epoch += 1n;
        return { wallet, epoch: this.#epoch };
      },
      renewLease: async ({ epoch }) => epoch === this.#epoch && this.#owner !== undefined,
      releaseLease: async ({ epoch }) => {
        if (epoch === this.#epoch) this.#owner = undefined;
      },
      sayKeyHeld: async () => undefined,
      showBalance: async () => undefined,
      // A single wallet pays everything.
      readPayers: async () => [],
      readOtherWallets: async () => [],
      readFreeze: async () => ({
        frozen: this.freeze !== undefined,
        reason: this.freeze ?? "",
        changedAt: undefined,
      }),
      freezeSigning: async (_wallet, reason) => this.#freezeFor(reason),
      freezeBehindChain: async ({ seen, known }) =>
        this.nextNonce < seen && this.#freezeFor(behindReason(seen, known)),
      sumOpenSlots: async (_wallet, nonce) => this.#sumOpen(nonce),
      sumOpenTokens: async () => new Map(),
      readSlotQueue: async ({ limit }) =>
        [...this.rows.values()]
          .filter((row) => row.status === "accepted" && row.waitsUntilMs <= this.nowMs())
          .slice(0, limit)
          .map((row) => ({
            ...row,
            ...COINS,
            customerId: "alice",
            waitedMs: 0,
            isToOwnWallet: false,
          })),
      takeSlots: async (lease, candidates, budget) => this.#takeSlots(lease, candidates, budget),
      readLiveSlots: async (query) =>
        this.slots
          .filter(
            ({ isOpen, nonce, row, attempts }) =>
              isOpen &&
              query.statuses.includes(row.status) &&
              nonce >= (query.fromNonce ?? 0n) &&
              (query.belowNonce === undefined || nonce < query.belowNonce) &&
              (query.missingFrom === undefined ||
                row.status !== "broadcast" ||
                attempts.length > 1 ||
                nonce >= query.missingFrom),
          )
          .slice(0, query.limit)
          .map((slot) => this.#live(slot)),
      // Its node keeps all blocks.
      readSigningAges: async (slotIds) => new Map(slotIds.map((slotId) => [slotId, 0])),
      storeAttempts: async (lease, attempts) => this.#storeAttempts(lease, attempts),
      markBroadcast: async (steps) => this.#moveAll(steps, "broadcast", ["signed"]),
      endBeforeSlot: async (lease, to, steps) => {
        this.#prove(lease);
        const moved = this.#moveAll(steps, to, ["accepted"]);
        for (const id of moved) this.#release(this.#row(id));
        return moved;
      },
      postponeWithdrawals: async ({ ids, delayMs }) => {
        for (const id of ids) this.#row(id).waitsUntilMs = this.nowMs() + delayMs;
      },
      // Its clock goes forward alone.
      drawBack: async () => 0,
      beginCancelling: async (lease, intents) => {
        this.#prove(lease);
        for (const { id, cause, reason } of intents) this.#mark(this.#row(id), cause, reason);
        return new Set(intents.map(({ id }) => id));
      },
      hasExpired: async () => this.isLate,
      cancelExpired: async ({ limit }) => {
        if (!this.isLate) return 0;
        const late = [...this.rows.values()].filter(
          ({ hasDeadline, status }) =>
            hasDeadline && ["accepted", "slotted", "signed", "broadcast"].includes(status),
        );
        for (const row of late.slice(0, limit)) {
          if (row.status === "accepted") this.#end(row, "cancelled");
          else this.#mark(row, "deadline", "late");
        }
        return Math.min(late.length, limit);
      },
      recordInclusions: async (lease, receipts) => {
        this.#prove(lease);
        const moved = this.#moveAll(
          receipts.map(({ withdrawalId }) => ({ id: withdrawalId })),
          "included",
        );
        for (const receipt of receipts) {
          const slot = this.#row(receipt.withdrawalId).slot;
          if (moved.has(receipt.withdrawalId) && slot !== undefined) slot.inclusion = receipt;
        }
        return moved;
      },
      settleSlots: async (receipts) => {
        for (const receipt of receipts) this.#settle(receipt);
        return new Set(receipts.map(({ withdrawalId }) => withdrawalId));
      },
      freezeWithdrawals: async (lease, steps, signing) => {
        this.#prove(lease);
        if (signing !== undefined) this.#freezeFor(signing);
        return this.#moveAll(steps, "frozen");
      },
      customersWithFailures: async () => new Set(),
      readSignedApprovals: async () => new Map(),
      withoutVerdict: async () => new Set(),
      readWaitedOut: async () => new Set(),
      recordVerdicts: async () => undefined,
    };
  }

  #row(id: WithdrawalId): Row {
    const row = this.rows.get(id);
    if (row === undefined) throw new BrokenPromise(`no withdrawal ${id}`);
    return row;
  }

  #move(row: Row, to: WithdrawalStatus, from?: readonly WithdrawalStatus[]): boolean {
    if (!isAllowedStep(row.status, to) || from?.includes(row.status) === false) return false;
    row.status = to;
    row.waitsUntilMs = 0;
    return true;
  }

  #moveAll(
    steps: readonly { readonly id: WithdrawalId }[],
    to: WithdrawalStatus,
    from?: readonly WithdrawalStatus[],
  ): Set<WithdrawalId> {
    return new Set(
      steps.filter(({ id }) => this.#move(this.#row(id), to, from)).map(({ id }) => id),
    );
  }

  #mark(row: Row, cause: CancelCause, reason: string): void {
    if (this.#move(row, "cancelling")) row.cancel ??= { cause, reason };
  }

  #end(row: Row, to: "cancelled" | "failed"): void {
    if (this.#move(row, to)) this.#release(row);
  }

  /** The hold goes back: only once, and only when nothing of it was paid or ever can be. */
  #release(row: Row): void {
    row.releases += 1;
    const { mined, nonce } = this.chain;
    const isPaid = mined.some(
      ({ intent, isSuccess }) =>
        isSuccess && row.slot?.nonce === intent.nonce && intent.to === row.destination,
    );
    const canBePaid = row.slot !== undefined && row.slot.nonce >= nonce;
    if (isPaid || canBePaid) throw new BrokenPromise(`${row.id} gives its hold back unproven`);
  }

  #prove({ epoch }: WalletLease): void {
    if (epoch !== this.#epoch) throw new LeaseLostError("LEASE_LOST", "another worker");
  }

  #sumOpen(nonce = 0n) {
    const open = this.slots.filter(({ isOpen }) => isOpen);
    const reserving = open.filter((slot) => slot.nonce >= nonce || slot.row.status === "frozen");
    const feesOf = (slots: readonly Slot[]) =>
      slots.reduce((sum, slot) => {
        const fees = [slot, ...slot.attempts].map(feeOf);
        return sum + fees.reduce((most, fee) => (fee > most ? fee : most));
      }, 0n);
    const valueAtoken = reserving.reduce((sum, { row }) => sum + row.amountUnits, 0n);
    const code = reserving.filter(({ entersCode }) => entersCode);
    return {
      count: open.length,
      reservedAtoken: feesOf(reserving) + valueAtoken,
      feesAtoken: feesOf(open),
      codeGas: code.reduce((sum, { gasLimit }) => sum + gasLimit, 0n),
    };
  }

  #takeSlots(...[lease, candidates, { budget }]: Parameters<LaneLedger["takeSlots"]>) {
    this.#prove(lease);
    const none = { taken: [], uncovered: [], behindCode: [], held: [] };
    if (this.freeze !== undefined) return { ...none, limit: "frozen" as const };
    if (budget.balanceHeight < this.settledHeight) {
      return { ...none, limit: "stale-balance" as const };
    }
    const present = candidates.filter(({ id }) => this.#row(id).status === "accepted");
    const open = this.#sumOpen(budget.nonce);
    const choice = chooseSlots(present, open, budget, this.feesOfDayAtoken);
    for (const candidate of choice.chosen) {
      if (this.broken === "skip-nonce" && this.nextNonce === 3n) this.nextNonce += 1n;
      const row = this.#row(candidate.id);
      const { gasLimit, gasPriceAtoken, entersCode } = candidate;
      const gas = { gasLimit, gasPriceAtoken, entersCode };
      const slotId = String(this.slots.length);
      const fresh = { attempts: [], inclusion: undefined, isOpen: true };
      const slot: Slot = { slotId, nonce: this.nextNonce, row, ...gas, ...fresh };
      this.nextNonce += 1n;
      row.slot = slot;
      this.slots.push(slot);
      this.#move(row, "slotted", ["accepted"]);
    }
    const { chosen, ...rest } = choice;
    return { taken: chosen.map(({ id }) => id), held: [], ...rest };
  }

  #storeAttempts(lease: WalletLease, attempts: readonly NewAttempt[]): boolean {
    this.#prove(lease);
    if (this.freeze !== undefined) return false;
    for (const attempt of attempts) {
      const row = this.#row(attempt.withdrawalId);
      const { slot } = row;
      const isWanted =
        attempt.kind === "cancel"
          ? row.status === "cancelling"
          : ["slotted", "signed", "broadcast"].includes(row.status);
      if (slot?.isOpen !== true || !isWanted || slot.attempts.length !== attempt.n) continue;
      slot.attempts.push(attempt);
      if (this.broken !== "forget-bytes") this.stored.add(attempt.raw);
      if (attempt.n === 0 && attempt.kind === "payment") this.#move(row, "signed", ["slotted"]);
    }
    return true;
  }

  #settle({ withdrawalId, cancelled, isSuccess, ...receipt }: SlotReceipt): void {
    const row = this.#row(withdrawalId);
    const isCancel = cancelled !== undefined && this.broken !== "any-receipt-pays";
    const end = isCancel ? endOfCancel(cancelled.cause) : isSuccess ? "settled" : "failed";
    if (row.slot === undefined || !this.#move(row, end, ["included"])) return;
    row.slot.isOpen = false;
    this.settledHeight = Math.max(this.settledHeight, receipt.blockNumber);
    this.feesOfDayAtoken += receipt.gasUsed * receipt.effectiveGasPriceAtoken;
    if (end !== "settled") this.#release(row);
    if (end === "failed" && this.broken === "pay-again") row.status = "accepted";
    if (end === "cancelled" && this.broken === "recycle-nonce") this.nextNonce = row.slot.nonce;
  }

  #live(slot: Slot): LiveSlot {
    const { slotId, nonce, row, gasLimit, gasPriceAtoken, inclusion } = slot;
    const { id: withdrawalId, status, destination, amountUnits, cancel } = row;
    const gas = { gasLimit, gasPriceAtoken };
    const asked = { customerId: "alice", ...COINS, destination, amountUnits };
    const terms = { withdrawalId, status, ...asked, cancel };
    const attempts = [...slot.attempts];
    return { slotId, wallet: this.chain.wallet, nonce, ...terms, ...gas, attempts, inclusion };
  }

  /** Whether every request has ended, and what holds then. */
  check(paidTo: (row: Row) => number): void {
    for (const row of this.rows.values()) {
      const paid = paidTo(row);
      const seen = JSON.stringify([row.id, row.status, this.chain.natureOf(row.destination)]);
      if (paid > 1) throw new BrokenPromise(`${seen} was paid ${paid} times`);
      if (row.releases > 1) throw new BrokenPromise(`${seen} gave its hold back twice`);
      if (!isFinalStatus(row.status)) continue;
      const isSettled = row.status === "settled";
      if (isSettled !== (paid === 1)) throw new BrokenPromise(`${seen} was paid ${paid} times`);
      if (isSettled === (row.releases === 1)) throw new BrokenPromise(`${seen} and its hold`);
    }
  }

  /** Requests that have not ended. */
  open(): readonly Row[] {
    return [...this.rows.values()].filter(({ status }) => !isFinalStatus(status));
  }

  /** Hashes are known before anything is sent. */
  assertStored(raw: string): void {
    if (!this.stored.has(raw)) throw new BrokenPromise(`${raw} left without having been stored`);
  }
}
