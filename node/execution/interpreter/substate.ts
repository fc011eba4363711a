/**
 * What a transaction gathers beside the state (Yellow Paper, 6.1): warm addresses and slots, logs,
 * refunds, transient storage, contracts made and destroyed. A frame that fails undoes its part.
 */
import type { Address } from "../../../chain/address.js";
import type { Log } from "../../../chain/receipt.js";

/** A point to go back to. */
export interface SubstateMark {
  readonly undoCount: number;
  readonly logCount: number;
  readonly refundGas: number;
}

/** One transaction's; make a new one for each. */
export class Substate {
  /** Logs of frames that have not failed, in order. */
  readonly logs: Log[] = [];
  /** Gas that is refunded for cleared slots; may be below zero in between. */
  refundGas = 0;
  /** Contracts made in this transaction: they alone can be destroyed (EIP-6780). */
  readonly created = new Set<Address>();
  readonly destroyed = new Set<Address>();
  private readonly warmAddresses = new Set<Address>();
  private readonly warmSlots = new Map<Address, Set<bigint>>();
  private readonly transient = new Map<Address, Map<bigint, bigint>>();
  private readonly undo: (() => void)[] = [];

  /** @param alwaysWarm addresses that no transaction finds cold */
  constructor(private readonly alwaysWarm: ReadonlySet<Address>) {}

  /** Warms an address. @returns true when it was cold */
  warmAddress(address: Address): boolean {
    return !this.alwaysWarm.has(address) && this.addTo(this.warmAddresses, address);
  }

  isWarmAddress(address: Address): boolean {
    return this.alwaysWarm.has(address) || this.warmAddresses.has(address);
  }

  /** Warms a slot, and not its account. @returns true when it was cold */
  warmSlot(address: Address, slot: bigint): boolean {
    let slots = this.warmSlots.get(address);
    if (slots === undefined) {
      slots = new Set();
      this.warmSlots.set(address, slots);
    }
    return this.addTo(slots, slot);
  }

  markCreated(address: Address): void {
    this.addTo(this.created, address);
  }

  markDestroyed(address: Address): void {
    this.addTo(this.destroyed, address);
  }

  /** EIP-1153. */
  transientAt(address: Address, slot: bigint): bigint {
    return this.transient.get(address)?.get(slot) ?? 0n;
  }

  setTransient(address: Address, slot: bigint, value: bigint): void {
    let slots = this.transient.get(address);
    if (slots === undefined) {
      slots = new Map();
      this.transient.set(address, slots);
    }
    const before = slots.get(slot) ?? 0n;
    const owner = slots;
    owner.set(slot, value);
    this.undo.push(() => owner.set(slot, before));
  }

  mark(): SubstateMark {
    return {
      undoCount: this.undo.length,
      logCount: this.logs.length,
      refundGas: this.refundGas,
    };
  }

  /** Undoes everything since the mark. */
  goBack({ undoCount, logCount, refundGas }: SubstateMark): void {
    while (this.undo.length > undoCount) this.undo.pop()?.();
    this.logs.length = logCount;
    this.refundGas = refundGas;
  }

  private addTo<Item>(set: Set<Item>, item: Item): boolean {
    if (set.has(item)) return false;
    set.add(item);
    this.undo.push(() => set.delete(item));
    return true;
  }
}
