/**
 * Cosmos transactions that are void after a height or a time: they leave the pool when no block can hold
 * them any more, so that their signers can use the sequence again for the same price.
 */
import { timeoutFault, timestampFault } from "../../chain/cosmos/ante.js";
import type { AnyTransaction, CosmosTransaction } from "../../chain/cosmos/cosmos-transaction.js";
import type { SdkFault } from "../../chain/cosmos/sdk-fault.js";
import type { PoolRules } from "./admission.js";

/** Whether a transaction is void at some time. */
export function isTimed(tx: AnyTransaction): tx is CosmosTransaction {
  return tx.type === "cosmos" && (tx.timeoutHeight > 0n || tx.timeoutTimestamp !== undefined);
}

/** Why no block after the head can hold a transaction; undefined where one can. */
export function voidFault(
  tx: CosmosTransaction,
  rules: Pick<PoolRules, "headHeight" | "headTimeMs">,
): SdkFault | undefined {
  return timeoutFault(tx, rules.headHeight() + 1) ?? timestampFault(tx, rules.headTimeMs());
}
