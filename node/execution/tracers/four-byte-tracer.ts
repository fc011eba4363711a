/** geth's 4byteTracer: how often each selector was called, with how many bytes behind it. */
import type { Address } from "../../../chain/address.js";
import { PRECOMPILE_ADDRESSES } from "../../../chain/evm/precompiles.js";
import { bytesToHex } from "../../../chain/hex.js";
import type { Message } from "../interpreter/frame-message.js";
import type { Watcher } from "../interpreter/watcher.js";
import type { TraceBudget, Tracer } from "./tracer.js";

const SELECTOR_BYTES = 4;
/** JSON of one selector. */
const ENTRY_BYTES = 30;

/** Counts by "<selector>-<bytes behind it>". */
export class FourByteTracer implements Tracer {
  readonly watcher: Watcher;
  private counts = new Map<string, number>();

  constructor(private readonly budget: TraceBudget) {
    this.watcher = { enter: (message, address) => this.enter(message, address) };
  }

  start(): void {
    this.counts = new Map();
  }

  finish(): unknown {
    const sorted = [...this.counts].toSorted(([left], [right]) => (left < right ? -1 : 1));
    return Object.fromEntries(sorted);
  }

  private enter({ to, input }: Message, address: Address): void {
    const isCall = to !== undefined && !PRECOMPILE_ADDRESSES.has(address);
    if (!isCall || input.length < SELECTOR_BYTES) return;
    const selector = bytesToHex(input.subarray(0, SELECTOR_BYTES));
    const key = `${selector}-${input.length - SELECTOR_BYTES}`;
    const count = this.counts.get(key) ?? 0;
    if (count === 0) this.budget.take(ENTRY_BYTES);
    this.counts.set(key, count + 1);
  }
}
