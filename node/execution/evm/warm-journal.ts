/**
 * The EVM's record of warm addresses and slots (EIP-2929) and of touched accounts (EIP-161), in
 * place of the library's: that one keeps six collections for every frame until the transaction
 * ends, which lets a loop of cheap calls fill the memory. Here a frame costs one number.
 */
import type { StateManagerInterface } from "@ethereumjs/common";
import type { EVM } from "@ethereumjs/evm";
import { type Account, type Address, createAddressFromString } from "@ethereumjs/util";

/** Public side of the library's class, which the EVM is compiled against. */
type Journal = EVM["journal"];
/** Lower-case hex without prefix, as the library passes it to and fro. */
type BareHex = string;

/** A touched ripemd160 precompile stays touched after a revert (the library, and history). */
const RIPEMD160: BareHex = "0000000000000000000000000000000000000003";

interface Entry {
  readonly kind: "address" | "slot" | "touched";
  readonly address: BareHex;
  readonly slot: BareHex;
}

/** Checkpoints are positions in one list of what became warm or touched. */
class WarmJournal {
  private warm = new Map<BareHex, Set<BareHex>>();
  private alwaysWarm = new Map<BareHex, Set<BareHex>>();
  private touched = new Set<BareHex>();
  private entries: Entry[] = [];
  private marks: number[] = [];
  accessList: Map<BareHex, Set<BareHex>> | undefined;
  preimages: undefined;

  constructor(private readonly state: StateManagerInterface) {}

  startReportingAccessList(): void {
    this.accessList = new Map();
  }

  startReportingPreimages(): void {
    throw new TypeError("preimages are not reported here");
  }

  async putAccount(address: Address, account: Account): Promise<void> {
    this.touch(bareHex(address.bytes));
    return this.state.putAccount(address, account);
  }

  async deleteAccount(address: Address): Promise<void> {
    this.touch(bareHex(address.bytes));
    return this.state.deleteAccount(address);
  }

  private touch(address: BareHex): void {
    if (this.touched.has(address)) return;
    this.touched.add(address);
    this.entries.push({ kind: "touched", address, slot: "" });
  }

  async checkpoint(): Promise<void> {
    this.marks.push(this.entries.length);
    return this.state.checkpoint();
  }

  async commit(): Promise<void> {
    this.marks.pop();
    return this.state.commit();
  }

  async revert(): Promise<void> {
    const mark = this.marks.pop() ?? 0;
    while (this.entries.length > mark) this.undo(this.entries.pop());
    return this.state.revert();
  }

  private undo(entry: Entry | undefined): void {
    if (entry === undefined) return;
    const { kind, address, slot } = entry;
    if (kind === "slot") this.warm.get(address)?.delete(slot);
    else if (kind === "address") this.warm.delete(address);
    else if (address !== RIPEMD160) this.touched.delete(address);
  }

  /** Forgets the transaction. */
  cleanJournal(): void {
    this.warm = new Map();
    this.alwaysWarm = new Map();
    this.touched = new Set();
    this.entries = [];
    this.marks = [];
  }

  /** End of a transaction: touched accounts that are empty go (EIP-161). */
  async cleanup(): Promise<void> {
    for (const bare of this.touched) {
      const address = createAddressFromString(`0x${bare}`);
      const account = await this.state.getAccount(address);
      if (account === undefined || account.isEmpty()) await this.state.deleteAccount(address);
    }
    this.cleanJournal();
    this.accessList = undefined;
  }

  addAlwaysWarmAddress(text: string, isReported = false): void {
    const address = withoutPrefix(text);
    if (!this.alwaysWarm.has(address)) this.alwaysWarm.set(address, new Set());
    if (isReported) this.report(address);
  }

  addAlwaysWarmSlot(text: string, slotText: string, isReported = false): void {
    this.addAlwaysWarmAddress(text, isReported);
    const address = withoutPrefix(text);
    const slot = withoutPrefix(slotText);
    this.alwaysWarm.get(address)?.add(slot);
    if (isReported) this.report(address)?.add(slot);
  }

  isWarmedAddress(bytes: Uint8Array): boolean {
    const address = bareHex(bytes);
    return this.warm.has(address) || this.alwaysWarm.has(address);
  }

  addWarmedAddress(bytes: Uint8Array): void {
    this.warmSlots(bareHex(bytes));
  }

  isWarmedStorage(bytes: Uint8Array, key: Uint8Array): boolean {
    const address = bareHex(bytes);
    const slot = bareHex(key);
    return (
      this.warm.get(address)?.has(slot) === true || this.alwaysWarm.get(address)?.has(slot) === true
    );
  }

  addWarmedStorage(bytes: Uint8Array, key: Uint8Array): void {
    const address = bareHex(bytes);
    const slot = bareHex(key);
    const slots = this.warmSlots(address);
    this.report(address)?.add(slot);
    if (slots.has(slot)) return;
    slots.add(slot);
    this.entries.push({ kind: "slot", address, slot });
  }

  private warmSlots(address: BareHex): Set<BareHex> {
    this.report(address);
    const known = this.warm.get(address);
    if (known !== undefined) return known;
    const made = new Set<BareHex>();
    this.warm.set(address, made);
    this.entries.push({ kind: "address", address, slot: "" });
    return made;
  }

  private report(address: BareHex): Set<BareHex> | undefined {
    if (this.accessList === undefined) return undefined;
    const known = this.accessList.get(address) ?? new Set();
    this.accessList.set(address, known);
    return known;
  }
}

/** Puts the journal into an EVM. */
export function installJournal(evm: EVM): void {
  // The library's type is a class with private parts; its public side is implemented above.
  evm.journal = new WarmJournal(evm.stateManager) as unknown as Journal;
}

function bareHex(bytes: Uint8Array): BareHex {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

function withoutPrefix(text: string): BareHex {
  return text.startsWith("0x") ? text.slice(2) : text;
}
