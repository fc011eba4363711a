/** What the chain says of a transaction against what its second execution came to. */
import type { TypedTransaction } from "@ethereumjs/tx";
import { generateAddress, type Address as LibraryAddress } from "@ethereumjs/util";
import type { RunTxResult } from "@ethereumjs/vm";
import { type Address, bytesToAddress } from "../../chain/address.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import { bigintToBytes, bytesToHash32, bytesToHex } from "../../chain/hex.js";
import { operationsOf } from "../../chain/operations.js";
import type { AuditedLog, AuditedReceipt } from "./audit-node.js";
import type { Comparison } from "./errors.js";

/** A transaction as the audit executed it. */
export interface Outcome {
  readonly tx: TypedTransaction;
  readonly result: RunTxResult;
  /** Gas of the block up to this transaction, with its own. */
  readonly gasUsed: bigint;
}

/** Everything that a receipt says, against the execution. */
export function* receiptComparisons(
  receipt: AuditedReceipt | undefined,
  { tx, result, gasUsed }: Outcome,
): Iterable<Comparison> {
  if (receipt === undefined) {
    yield { field: "receipt", chain: undefined, audit: "one" };
    return;
  }
  const failed = result.execResult.exceptionError !== undefined;
  const sender = tx.getSenderAddress();
  const logs = result.receipt.logs;
  yield {
    field: "transactionHash",
    chain: receipt.transactionHash,
    audit: bytesToHash32(tx.hash()),
  };
  yield { field: "type", chain: receipt.type, audit: tx.type };
  yield { field: "from", chain: receipt.from, audit: bytesToAddress(sender.bytes) };
  yield { field: "to", chain: receipt.to, audit: tx.to && bytesToAddress(tx.to.bytes) };
  yield { field: "status", chain: receipt.status, audit: failed ? 0 : 1 };
  yield { field: "gasUsed", chain: receipt.gasUsed, audit: result.totalGasSpent };
  yield { field: "cumulativeGasUsed", chain: receipt.cumulativeGasUsed, audit: gasUsed };
  yield {
    field: "effectiveGasPrice",
    chain: receipt.effectiveGasPriceAtoken,
    audit: tx.getEffectivePriorityFee(0n),
  };
  yield {
    field: "contractAddress",
    chain: receipt.contractAddress,
    audit: tx.to === undefined ? createdBy(tx, sender) : undefined,
  };
  yield { field: "logs", chain: receipt.logs.length, audit: logs.length };
  for (const [index, log] of receipt.logs.entries()) {
    const executed = logs[index];
    if (executed !== undefined) yield* logComparisons(index, log, executed);
  }
  yield {
    field: "logsBloom",
    chain: receipt.logsBloom,
    audit: bytesToHex(result.bloom.bitvector),
  };
}

/** Where a creation puts its contract, whether or not it succeeds. */
function createdBy(tx: TypedTransaction, sender: LibraryAddress): Address {
  return bytesToAddress(generateAddress(sender.bytes, bigintToBytes(tx.nonce)));
}

function* logComparisons(
  index: number,
  log: AuditedLog,
  [address, topics, data]: RunTxResult["receipt"]["logs"][number],
): Iterable<Comparison> {
  const at = `logs[${index}]`;
  yield { field: `${at}.address`, chain: log.address, audit: bytesToAddress(address) };
  yield {
    field: `${at}.topics`,
    chain: log.topics.join(" "),
    audit: topics.map((topic) => bytesToHex(topic)).join(" "),
  };
  yield { field: `${at}.data`, chain: log.data, audit: bytesToHex(data) };
}

/** Each account's change by the journal and by the execution, by address. */
export function* journalComparisons(
  changes: readonly BalanceChange[],
  executed: ReadonlyMap<Address, bigint>,
): Iterable<Comparison> {
  const journalled = new Map<Address, bigint>();
  for (const { status, address, amountAtoken } of operationsOf(changes)) {
    if (status !== "SUCCESS") continue;
    journalled.set(address, (journalled.get(address) ?? 0n) + amountAtoken);
  }
  const addresses = new Set([...journalled.keys(), ...executed.keys()]);
  for (const address of [...addresses].toSorted()) {
    yield {
      field: `change of the balance of ${address}`,
      chain: journalled.get(address) ?? 0n,
      audit: executed.get(address) ?? 0n,
    };
  }
}

/** Of changes that no second execution has: coins come into being by the mint alone. */
export function creationComparison(changes: readonly BalanceChange[]): Comparison {
  const chain = changes
    .filter(({ effective, from }) => effective && from === undefined)
    .reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
  return { field: "coins made of nothing", chain, audit: 0n };
}
