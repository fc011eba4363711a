/**
 * Turns what the EVM does into the balance journal of one transaction: value transfers are read
 * off the message frames, self-destructs off the raw balance differences that no frame explains.
 * The block's conservation check proves that nothing was missed.
 */
import type { Address } from "../../chain/address.js";
import type { BalanceChange, BalanceReason } from "../../chain/balance-change.js";
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import type { Atoken } from "../../chain/units.js";

/** A message frame as the EVM announces it. */
export interface FrameStart {
  readonly caller: Address;
  /** Undefined for a creation; its address comes with `created`. */
  readonly to: Address | undefined;
  readonly valueAtoken: Atoken;
  /**
   * CALL and the creations move value. CALLCODE takes it from the contract and gives it back, so
   * nothing is recorded; DELEGATECALL (NO_TRANSFER) only shows its parent's value.
   */
  readonly kind: "CALL" | "CREATE" | "CREATE2" | "CALLCODE" | "NO_TRANSFER";
}

interface Frame {
  readonly path: string;
  readonly firstChange: number;
  readonly firstEvent: number;
  readonly start: FrameStart;
  self: Address | undefined;
  children: number;
  /** Differences that the frame's own value transfer will cause. */
  debitDue: boolean;
  creditDue: boolean;
  /** Coins a SELFDESTRUCT has paid out already; the debit of the contract follows. */
  paidOutAtoken: Atoken;
}

type MutableChange = { -readonly [Key in keyof BalanceChange]: BalanceChange[Key] };

/** Records one transaction; make a new one for each. */
export class BalanceRecorder {
  private readonly recorded: MutableChange[] = [];
  private readonly frames: Frame[] = [];
  private readonly emitted: AbciEvent[] = [];

  /** Events of modules that code called, without those of frames that failed. */
  events(): readonly AbciEvent[] {
    return this.emitted;
  }

  /** The changes so far, in order of execution. */
  changes(): readonly BalanceChange[] {
    return this.recorded;
  }

  /** Records a change outside the EVM's frames (fees, plain transfers, destroyed remainders). */
  add(
    reason: BalanceReason,
    from: Address | undefined,
    to: Address | undefined,
    amountAtoken: Atoken,
    tracePath?: string,
  ): void {
    this.recorded.push({ reason, from, to, amountAtoken, effective: true, tracePath });
  }

  /**
   * Coins that a module moved for the frame on top. The differences of both balances must not come
   * to `balanceChanged` as well.
   */
  moved(reason: BalanceReason, from: Address, to: Address | undefined, amountAtoken: Atoken): void {
    this.add(reason, from, to, amountAtoken, this.frames.at(-1)?.path ?? "");
  }

  /** An event of a module that the frame on top called. */
  emit(event: AbciEvent): void {
    this.emitted.push(event);
  }

  /** A frame begins, before any of its effects. */
  enter(start: FrameStart): void {
    const parent = this.frames.at(-1);
    const path = parent === undefined ? "" : childPath(parent);
    const moves = start.kind !== "NO_TRANSFER" && start.valueAtoken > 0n;
    const frame: Frame = {
      path,
      firstChange: this.recorded.length,
      firstEvent: this.emitted.length,
      start,
      self: start.to,
      children: 0,
      debitDue: moves,
      creditDue: moves,
      paidOutAtoken: 0n,
    };
    this.frames.push(frame);
    if (start.kind === "CALL" && (moves || path === "")) {
      this.add("CALL", start.caller, start.to, start.valueAtoken, path);
    }
  }

  /** The creation frame on top got its address. */
  created(address: Address): void {
    const frame = this.frames.at(-1);
    if (frame === undefined) return;
    frame.self = address;
    const { kind, valueAtoken, caller } = frame.start;
    if ((kind === "CREATE" || kind === "CREATE2") && (valueAtoken > 0n || frame.path === "")) {
      this.add(kind, caller, address, valueAtoken, frame.path);
    }
  }

  /** A balance changed by a difference while the top frame runs. */
  balanceChanged(address: Address, deltaAtoken: Atoken): void {
    const frame = this.frames.at(-1);
    if (frame === undefined) return;
    const { start } = frame;
    if (frame.debitDue && address === start.caller && deltaAtoken === -start.valueAtoken) {
      frame.debitDue = false;
    } else if (frame.creditDue && address === frame.self && deltaAtoken === start.valueAtoken) {
      frame.creditDue = false;
    } else if (deltaAtoken > 0n) {
      frame.paidOutAtoken += deltaAtoken;
      this.add("SELFDESTRUCT", frame.self, address, deltaAtoken, frame.path);
    } else {
      this.debited(frame, address, -deltaAtoken);
    }
  }

  /** A contract's balance was zeroed: after a payout, or burned when it named itself (EIP-6780). */
  private debited(frame: Frame, address: Address, amountAtoken: Atoken): void {
    const burnedAtoken = amountAtoken - frame.paidOutAtoken;
    frame.paidOutAtoken = 0n;
    if (burnedAtoken > 0n) this.add("DESTRUCT", address, undefined, burnedAtoken, frame.path);
  }

  /** The top frame ends; with an error everything recorded in it and below had no effect. */
  leave(error: string | undefined): void {
    const frame = this.frames.pop();
    if (frame === undefined || error === undefined) return;
    this.emitted.length = frame.firstEvent;
    for (const change of this.recorded.slice(frame.firstChange)) {
      if (!change.effective) continue;
      change.effective = false;
      change.error = error;
    }
  }
}

function childPath(parent: Frame): string {
  const index = parent.children++;
  return parent.path === "" ? String(index) : `${parent.path}_${index}`;
}
