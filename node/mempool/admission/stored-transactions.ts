/** Transactions that come back out of the pool's journal. */
import {
  type AnyTransaction,
  decodeCosmosTransaction,
  isCosmosBytes,
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

/** Why no block can hold it, in words: an older version may have taken it. */
export function storedFault(tx: AnyTransaction, rules: PoolRules): string | undefined {
  const oversized = sizeFault(tx.raw, rules.maxTransactionBytes);
  if (oversized !== undefined) return oversized.message;
  return tx.type === "cosmos" ? cosmosFault(tx, rules)?.log : staticFault(tx, rules)?.message;
}
