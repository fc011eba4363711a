/** One transaction of a block in memory, with what execution made of it. */
import {
  type EventSource,
  type ExecutedTransaction,
  executedTransactions,
} from "../../chain/abci-event.js";

/** By its place in `data.txs`. */
export function executedTransaction(source: EventSource, index: number): ExecutedTransaction {
  const found = [...executedTransactions(source)][index];
  if (found === undefined) throw new RangeError("a block has no such transaction");
  return found;
}
