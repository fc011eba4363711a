/** The balance journal as the node's own methods give it. */
import type { BalanceChange } from "../../../chain/balance-change.js";
import { bytesToHex, toQuantity } from "../../../chain/hex.js";
import type { Log } from "../../../chain/receipt.js";
import type { CommittedBlock } from "../../event-bus.js";
import type { JsonValue } from "./method.js";

/** One change: quantities as hex, missing sides as null. */
export function changeJson(change: BalanceChange): JsonValue {
  return {
    reason: change.reason,
    from: change.from ?? null,
    to: change.to ?? null,
    amount: toQuantity(change.amountAtoken),
    effective: change.effective,
    tracePath: change.tracePath ?? null,
    error: change.error ?? null,
  };
}

/** One log without its place: the transaction that it stands in tells that. */
function logJson({ address, topics, data }: Log): JsonValue {
  return { address, topics, data: bytesToHex(data) };
}

/** The whole answer of causeway_getBlockJournal. */
export function blockJournalJson(committed: CommittedBlock): string {
  const { block, receipts, journal } = committed;
  const transactions = block.transactions.map(({ tx, from }, index): JsonValue => {
    const receipt = receipts[index];
    const changes = journal.transactions[index];
    if (receipt === undefined || changes?.transactionHash !== tx.hash) {
      throw new Error(`block ${block.header.height}: receipt or journal ${index} does not match`);
    }
    return {
      hash: tx.hash,
      index,
      status: toQuantity(receipt.status),
      from,
      to: tx.to ?? null,
      contractAddress: receipt.contractAddress ?? null,
      gasUsed: toQuantity(receipt.gasUsed),
      gasPrice: toQuantity(receipt.effectiveGasPriceAtoken),
      nonce: toQuantity(tx.nonce),
      input: bytesToHex(tx.data),
      changes: changes.changes.map(changeJson),
      logs: receipt.logs.map(logJson),
    };
  });
  return JSON.stringify({
    blockHash: block.hash,
    blockNumber: toQuantity(block.header.height),
    parentHash: block.header.parentHash,
    timestampMs: block.timeMs,
    transactions,
    blockChanges: journal.blockChanges.map(changeJson),
    minted: toQuantity(journal.mintedAtoken),
    burned: toQuantity(journal.burnedAtoken),
  });
}
