/** geth's default tracer: one entry for each instruction, as it was before it ran. */
import type { Address } from "../../../chain/address.js";
import { bytesToBigint, bytesToHex, type Hex } from "../../../chain/hex.js";
import type { JournaledState } from "../../state/journaled-state.js";
import type { Step, StepEnd, WatchedFrame, Watcher } from "../interpreter/watcher.js";
import { wordToSlot } from "../interpreter/words.js";
import { opcodeName } from "./opcode-names.js";
import type { TraceBudget, Tracer, TraceSummary } from "./tracer.js";

/** JSON of an entry without its lists. */
const ENTRY_BYTES = 100;
const WORD_BYTES = 32;
const SLOAD = 0x54;
const SSTORE = 0x55;

/** Options as in geth's logger config. */
export interface StructLoggerOptions {
  readonly enableMemory: boolean;
  readonly disableStack: boolean;
  readonly disableStorage: boolean;
  readonly enableReturnData: boolean;
  /** Bytes of entries behind which no more are made; 0 for no bound but the trace's own. */
  readonly limit: number;
}

interface Entry {
  readonly pc: number;
  readonly op: string;
  readonly gas: number;
  readonly gasCost: number;
  readonly depth: number;
  readonly error?: string;
  readonly stack?: readonly Hex[];
  readonly returnData?: Hex;
  readonly memory?: readonly string[];
  readonly storage?: Readonly<Record<string, string>>;
  readonly refund?: number;
}

/** What is only known before the instruction. */
interface Before {
  readonly stack: readonly Hex[] | undefined;
  readonly memory: readonly string[] | undefined;
  readonly returnData: Hex | undefined;
  readonly storage: Entry["storage"];
  readonly refundGas: number;
}

/** Records every step. */
export class StructLogger implements Tracer {
  readonly watcher: Watcher;
  private entries: Entry[] = [];
  private readonly storage = new Map<Address, Record<string, string>>();
  private current: Before | undefined;
  private sizeBytes = 0;

  constructor(
    private readonly state: JournaledState,
    private readonly options: StructLoggerOptions,
    private readonly budget: TraceBudget,
  ) {
    this.watcher = {
      steps: {
        before: (step) => {
          this.current = this.isFull() ? undefined : this.look(step);
        },
        after: (step, end) => this.record(step, end),
      },
    };
  }

  start(): void {
    this.entries = [];
    this.storage.clear();
    this.sizeBytes = 0;
  }

  finish({ gasUsed, error, isRevert, returnData }: TraceSummary): unknown {
    const isShown = error === undefined || isRevert;
    const result = {
      gas: Number(gasUsed),
      failed: error !== undefined,
      returnValue: isShown ? bytesToHex(returnData) : "0x",
      structLogs: this.entries,
    };
    this.entries = [];
    return result;
  }

  private isFull(): boolean {
    return this.options.limit > 0 && this.sizeBytes > this.options.limit;
  }

  private look({ frame, opcode }: Step): Before {
    const { disableStack, enableMemory, enableReturnData } = this.options;
    const { memory, returnData } = frame;
    const before: Before = {
      stack: disableStack ? undefined : frame.stackItems().map((item): Hex => hexOf(item)),
      memory: enableMemory && memory.words > 0 ? memoryWords(frame) : undefined,
      returnData: enableReturnData && returnData.length > 0 ? bytesToHex(returnData) : undefined,
      storage: this.storageAt(frame, opcode),
      refundGas: frame.execution.substate.refundGas,
    };
    this.budget.take(sizeOf(before));
    return before;
  }

  private record({ frame, opcode, place, gas }: Step, { cost, refusal }: StepEnd): void {
    const { current } = this;
    if (current === undefined) return;
    const { stack, memory, returnData, storage } = current;
    // An SSTORE's refund is reckoned with its gas, before it is shown.
    const isStore = opcode === SSTORE && refusal === undefined;
    const refund = isStore ? frame.execution.substate.refundGas : current.refundGas;
    const entry: Entry = {
      pc: place,
      op: opcodeName(opcode),
      gas,
      gasCost: cost,
      depth: frame.message.depth + 1,
      ...(refusal === undefined ? {} : { error: refusal.text }),
      ...(stack === undefined ? {} : { stack }),
      ...(returnData === undefined ? {} : { returnData }),
      ...(memory === undefined ? {} : { memory }),
      ...(storage === undefined ? {} : { storage }),
      ...(refund > 0 ? { refund } : {}),
    };
    if (this.options.limit > 0) this.sizeBytes += JSON.stringify(entry).length;
    this.entries.push(entry);
    this.current = undefined;
  }

  /** Slots of the contract that were seen so far; only at SLOAD and SSTORE, as in geth. */
  private storageAt(frame: WatchedFrame, opcode: number): Entry["storage"] {
    const isStore = opcode === SSTORE;
    if (this.options.disableStorage || (opcode !== SLOAD && !isStore)) return undefined;
    if (frame.stackHeight < (isStore ? 2 : 1)) return undefined;
    const slot = wordToSlot(frame.peek(0));
    const value = isStore ? frame.peek(1) : bytesToBigint(this.state.storageNow(frame.self, slot));
    const key = slot.slice(2);
    const seen = { ...this.storage.get(frame.self), [key]: wordToSlot(value).slice(2) };
    this.storage.set(frame.self, seen);
    return seen;
  }
}

function hexOf(item: bigint): Hex {
  return `0x${item.toString(16)}`;
}

function memoryWords({ memory }: WatchedFrame): string[] {
  const hex = bytesToHex(memory.view(0, WORD_BYTES * memory.words)).slice(2);
  return Array.from({ length: memory.words }, (_, index) =>
    hex.slice(2 * WORD_BYTES * index, 2 * WORD_BYTES * (index + 1)),
  );
}

function sizeOf({ stack, memory, storage, returnData }: Before): number {
  const stackBytes = stack?.reduce((sum, item) => sum + item.length + 3, 0) ?? 0;
  const storageBytes = storage === undefined ? 0 : Object.keys(storage).length * 135;
  return (
    ENTRY_BYTES + stackBytes + 67 * (memory?.length ?? 0) + storageBytes + (returnData?.length ?? 0)
  );
}
