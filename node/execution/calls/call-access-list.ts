/** eth_createAccessList: executions with a growing list until one touches nothing new. */
import type { Address } from "../../../chain/address.js";
import { PRECOMPILE_ADDRESSES } from "../../../chain/evm/precompiles.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { AccessListEntry } from "../../../chain/transaction.js";
import { CallError } from "./call-error.js";
import type { CallRequest } from "./call-port.js";
import type { MessageRunner, RanOutcome } from "./call-run.js";
import {
  ACCOUNT_OPCODES,
  CALL_ITEMS,
  CALL_OPCODES,
  SLOT_OPCODES,
} from "../interpreter/opcodes/naming-opcodes.js";
import type { Step, Watcher } from "../interpreter/watcher.js";
import { wordToAddress, wordToSlot } from "../interpreter/words.js";

/** Executions at most: a list grows with each, so only code that reacts to it needs many. */
const MAX_ROUNDS = 16;

/** What the last execution came to, with the list that it was given. */
export interface AccessListResult {
  readonly accessList: readonly AccessListEntry[];
  readonly gasUsed: bigint;
  readonly error?: string;
}

/**
 * The list of addresses and slots that the message touches, without those that are warm anyway; the block's
 * coinbase is warm, and named as by go-ethereum. It begins with the message's own list, put in that form.
 * @throws INSUFFICIENT_FUNDS; INVALID_MESSAGE where it cannot be executed, or not with its list: clients read
 *   list and gas, and not that the answer has an `error`
 */
export function createAccessList(
  request: CallRequest,
  runner: MessageRunner,
  gasLimit: bigint,
): AccessListResult {
  const alwaysWarm = [
    ...PRECOMPILE_ADDRESSES,
    request.from,
    ...(request.to === undefined ? [] : [request.to]),
  ];
  let accessList = mergeLists(request.accessList, [], new Set<string>(alwaysWarm));
  let outcome: RanOutcome;
  for (let round = 1; ; round++) {
    const touched = new TouchedList();
    const { watcher } = touched;
    const run = runner.run(request, { gasLimit, accessList, watcher });
    if (run.kind === "invalid") {
      throw new CallError("INVALID_MESSAGE", `failed to apply transaction: err: ${run.error}`);
    }
    outcome = run;
    const warm = new Set<string>([...alwaysWarm, ...touched.created]);
    const grown = mergeLists(accessList, touched.entries(), warm);
    if (isSame(grown, accessList) || round === MAX_ROUNDS) break;
    accessList = grown;
  }
  const { gasUsed, error } = outcome;
  return error === undefined ? { accessList, gasUsed } : { accessList, gasUsed, error };
}

/** What instructions name, also those of frames that are undone. */
class TouchedList {
  /** Contracts that the message makes: they are warm when they begin. */
  readonly created = new Set<Address>();
  private readonly touched = new Map<Address, Set<Hash32>>();
  readonly watcher: Watcher = {
    enter: ({ to }, address) => {
      if (to === undefined) this.created.add(address);
    },
    steps: { before: (step) => this.step(step) },
  };

  entries(): AccessListEntry[] {
    return [...this.touched].map(([address, slots]) => ({ address, storageKeys: [...slots] }));
  }

  private step({ frame, opcode }: Step): void {
    const height = frame.stackHeight;
    if (SLOT_OPCODES.has(opcode) && height >= 1) {
      this.slotsOf(frame.self).add(wordToSlot(frame.peek(0)));
    } else if (ACCOUNT_OPCODES.has(opcode) && height >= 1) {
      this.slotsOf(wordToAddress(frame.peek(0)));
    } else if (CALL_OPCODES.has(opcode) && height >= CALL_ITEMS) {
      this.slotsOf(wordToAddress(frame.peek(1)));
    }
  }

  private slotsOf(address: Address): Set<Hash32> {
    const slots = this.touched.get(address) ?? new Set();
    this.touched.set(address, slots);
    return slots;
  }
}

/** Union in order of appearance; addresses that are warm anyway stay only for their slots. */
function mergeLists(
  first: readonly AccessListEntry[],
  second: readonly AccessListEntry[],
  warm: ReadonlySet<string>,
): AccessListEntry[] {
  const merged = new Map<AccessListEntry["address"], Set<Hash32>>();
  for (const { address, storageKeys } of [...first, ...second]) {
    if (storageKeys.length === 0 && warm.has(address)) continue;
    const slots = merged.get(address) ?? new Set();
    for (const slot of storageKeys) slots.add(slot);
    merged.set(address, slots);
  }
  return [...merged].map(([address, slots]) => ({ address, storageKeys: [...slots] }));
}

/** Of merged lists, one of which was made from the other: what is named by both stands in the same order. */
function isSame(first: readonly AccessListEntry[], second: readonly AccessListEntry[]): boolean {
  return (
    first.length === second.length &&
    first.every(({ address, storageKeys }, index) => {
      const other = second[index];
      return address === other?.address && storageKeys.length === other.storageKeys.length;
    })
  );
}
