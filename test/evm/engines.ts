/** Both engines of the node, for the state tests. */
import { NEWEST_WEIGHTS, weightsOf } from "../../chain/evm/compute-weights.js";
import { createMachine } from "../../node/execution/evm/evm.js";
import { LibraryEngine } from "../../node/execution/evm/library-engine.js";
import { Engine } from "../../node/execution/interpreter/engine.js";
import type { JournaledState } from "../../node/state/journaled-state.js";
import type { TransactionEngine } from "../../node/execution/transaction-engine.js";

/** Chain id of all fixtures. */
const CHAIN_ID = 1n;

/** Makes an engine over a state. */
export type CreateEngine = (state: JournaledState) => Promise<TransactionEngine>;

/** By the name that `--engine` takes. */
export const ENGINES: Readonly<Record<string, CreateEngine>> = {
  causeway: async (state) =>
    new Engine({ chainId: CHAIN_ID, state, weights: weightsOf(NEWEST_WEIGHTS) }),
  ethereumjs: async (state) => new LibraryEngine(await createMachine(CHAIN_ID, state)),
};
