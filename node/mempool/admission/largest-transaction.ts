/** How large a transaction a chain takes. */
import { dataBytesOf } from "../../../chain/consensus/consensus-params.js";
import { MAX_TRANSACTION_BYTES } from "../../../chain/transaction-rules.js";
import { consensusParamsOf, type Genesis } from "../../settings/genesis.js";
import { SDK_OVERHEAD_BYTES } from "../order/ordering.js";

/**
 * The largest transaction that a block of the chain has room for: a genesis may allow larger ones than that,
 * which would keep their senders' nonces for ever. The validators are those of block 0.
 */
export function largestTransaction({
  params,
  validators,
}: Pick<Genesis, "params" | "validators">): {
  readonly maxTransactionGas: bigint;
  readonly maxTransactionBytes: number;
} {
  const { maxGas, maxTransactionGas } = params;
  const roomBytes = dataBytesOf(consensusParamsOf(params), validators.length, 0);
  return {
    maxTransactionGas: maxTransactionGas < maxGas ? maxTransactionGas : maxGas,
    maxTransactionBytes: Math.min(MAX_TRANSACTION_BYTES, roomBytes - SDK_OVERHEAD_BYTES),
  };
}
