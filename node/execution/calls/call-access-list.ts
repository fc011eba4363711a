/** eth_createAccessList: executions with a growing list until one touches nothing new. */
import { parseAddress } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import type { AccessListEntry } from "../../../chain/transaction.js";
import type { CallRequest } from "./call-port.js";
import type { MessageRunner, RunOutcome } from "./call-run.js";
import { PRECOMPILES } from "../evm/evm.js";
import { toAddress } from "../evm/evm-state.js";

/** Executions at most: a list grows with each, so only code that reacts to it needs many. */
const MAX_ROUNDS = 16;

/** What the last execution came to, with the list that it was given. */
export interface AccessListResult {
  readonly accessList: readonly AccessListEntry[];
  readonly gasUsed: bigint;
  readonly error?: string;
}

/**
 * The list of addresses and slots that the message touches, without those that are warm anyway.
 * @throws INSUFFICIENT_FUNDS
 */
export async function createAccessList(
  request: CallRequest,
  runner: MessageRunner,
  gasLimit: bigint,
): Promise<AccessListResult> {
  let accessList = request.accessList;
  let outcome: RunOutcome;
  const created = new Set<string>();
  runner.machine.evm.events.on("newContract", ({ address }) => created.add(toAddress(address)));
  for (let round = 1; ; round++) {
    runner.machine.evm.journal.startReportingAccessList();
    let touched: ReadonlyMap<string, ReadonlySet<string>> = new Map();
    const afterwards = () => {
      touched = runner.machine.evm.journal.accessList ?? touched;
    };
    outcome = await runner.run(request, { gasLimit, accessList, afterwards });
    if (outcome.kind === "invalid") break;
    const warm = new Set<string>([...PRECOMPILES, request.from, ...created]);
    if (request.to !== undefined) warm.add(request.to);
    const grown = mergeLists(accessList, toEntries(touched), warm);
    if (sizeOf(grown) === sizeOf(accessList) || round === MAX_ROUNDS) break;
    accessList = grown;
  }
  if (outcome.kind === "invalid") return { accessList, gasUsed: 0n, error: outcome.error };
  const { gasUsed, error } = outcome;
  return error === undefined ? { accessList, gasUsed } : { accessList, gasUsed, error };
}

function toEntries(touched: ReadonlyMap<string, ReadonlySet<string>>): AccessListEntry[] {
  return [...touched].map(([address, slots]) => ({
    address: parseAddress(`0x${address}`),
    storageKeys: [...slots].map((slot) => `0x${slot}` as Hash32),
  }));
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

function sizeOf(list: readonly AccessListEntry[]): number {
  return list.reduce((size, { storageKeys }) => size + 1 + storageKeys.length, 0);
}
