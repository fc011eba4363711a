/** Rules of the pool for Cosmos transactions that tests of the EVM's leave as they are. */
import { parseMinimumGasPrices } from "../../../chain/units.js";

/** For a pool of the local test network. */
export const COSMOS_RULES = {
  cosmosChainId: "chain_6940-1",
  minGasPrice: parseMinimumGasPrices("0.025atoken"),
  headHeight: () => 0,
  headTimeMs: () => 0,
};
