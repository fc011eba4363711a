/** Holds what was answered against the sums, and finds the block in which they part. */
import type { BalanceCheck, BalanceEntry } from "./balance-book.js";
import type { FaultList, MeshFaultCode } from "./faults.js";
import type { BalanceReader, Observation } from "./observe.js";

/** What a verdict needs. */
export interface VerdictPorts {
  readonly faults: FaultList;
  readonly reader: BalanceReader;
}

/**
 * Judges one observation. Call it in the order of the blocks: a difference that was reported is
 * not reported again as long as it stays the same.
 */
export async function judge(
  observation: Observation,
  ofNode: bigint | undefined,
  ports: VerdictPorts,
): Promise<void> {
  const { check, before, after, byHash } = observation;
  const { entry, index } = check;
  if (before !== undefined && check.before !== undefined) {
    await judgeQuietTime(check, { answered: before, sum: check.before, upTo: index - 1 }, ports);
  }
  if (after === undefined) return;
  if (check.isIdle) {
    await judgeQuietTime(check, { answered: after, sum: check.after, upTo: index }, ports);
  } else if (after - check.after !== entry.offset) {
    entry.offset = after - check.after;
    const message = `the balance is ${after}, the operations add up to ${check.after}`;
    report(ports.faults, "BALANCE_AT_BLOCK", index, entry, message);
  }
  entry.agreedIndex = index;
  if (byHash !== undefined && byHash !== after) {
    const message = `the balance is ${byHash} by hash and ${after} by index`;
    report(ports.faults, "BALANCE_BY_HASH", index, entry, message);
  }
  if (ofNode !== undefined && ofNode !== after) {
    const message = `the balance is ${after}, at the node ${ofNode}`;
    report(ports.faults, "BALANCE_OF_NODE", index, entry, message);
  }
}

/** Nothing was reported up to a block: the balance must be what it was when it last agreed. */
async function judgeQuietTime(
  { entry }: BalanceCheck,
  seen: { readonly answered: bigint; readonly sum: bigint; readonly upTo: number },
  ports: VerdictPorts,
): Promise<void> {
  const { answered, sum, upTo } = seen;
  if (answered - sum === entry.offset) {
    entry.agreedIndex = upTo;
    return;
  }
  const index = await firstDifference(entry, sum + entry.offset, upTo, ports.reader);
  const message =
    `the balance became ${answered}, the operations up to then add up to ${sum}` +
    ` (they last agreed at block ${entry.agreedIndex})`;
  report(ports.faults, "BALANCE_WITHOUT_OPERATION", index, entry, message);
  entry.offset = answered - sum;
  entry.agreedIndex = upTo;
}

/** Bisects to the block after whose state the balance is no longer the expected one. */
async function firstDifference(
  entry: BalanceEntry,
  expected: bigint,
  upTo: number,
  reader: BalanceReader,
): Promise<number> {
  let agreed = entry.agreedIndex;
  let differs = upTo;
  while (differs - agreed > 1) {
    const middle = Math.floor((agreed + differs) / 2);
    const amount = (await reader.read([entry], { index: middle }, middle)).get(entry);
    if (amount === expected) agreed = middle;
    else differs = middle;
  }
  return differs;
}

function report(
  faults: FaultList,
  code: MeshFaultCode,
  blockIndex: number,
  entry: BalanceEntry,
  message: string,
): void {
  const { account, currency } = entry;
  faults.add({ code, blockIndex, account: account.name, currency: currency.name, message });
}
