/** Rules of the pool that most tests leave as they are. */
import { MAX_TRANSACTION_BYTES } from "../../../chain/transaction-rules.js";
import { parseMinimumGasPrices } from "../../../chain/units.js";

/** For a pool of the local test network. */
export const COSMOS_RULES = {
  maxTransactionBytes: MAX_TRANSACTION_BYTES,
  cosmosChainId: "chain_6940-1",
  minGasPrice: parseMinimumGasPrices("0.025atoken"),
  headHeight: () => 0,
  headTimeMs: () => 0,
};
