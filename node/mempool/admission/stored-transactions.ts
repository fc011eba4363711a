/** Transactions that come back out of the pool's journal. */
import {
  type AnyTransaction,
  decodeCosmosTransaction,
  isCosmosBytes,
  hasTooManyMessages,
} from "../../../chain/cosmos/cosmos-transaction.js";
import { decodeTransaction } from "../../../chain/transaction.js";
import { sizeFault, staticFault } from "../../../chain/transaction-rules.js";
import type { PoolRules } from "./admission.js";
import { cosmosFault } from "./cosmos-admission.js";

/** Decodes what the pool took before. Throws INVALID_TRANSACTION, INVALID_MESSAGE. */
export function decodeStored(raw: Uint8Array): AnyTransaction {
  return isCosmosBytes(raw)
    ? decodeCosmosTransaction(raw, { isTaken: true })
    : decodeTransaction(raw);
}

/** Why no block can come to hold it, in words: an older version may have taken it. */
export function storedFault(tx: AnyTransaction, rules: PoolRules): string | undefined {
  const oversized = sizeFault(tx.raw, rules.maxTransactionBytes);
  if (oversized !== undefined) return oversized.message;
  if (tx.type !== "cosmos") return staticFault(tx, rules)?.message;
  // Blocks may hold it, but no validator votes for a proposal that does (`judgeProposed`).
  if (hasTooManyMessages(tx.raw)) return "more messages in each other than a pool takes";
  return cosmosFault(tx, rules)?.log;
}
