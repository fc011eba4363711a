/** Which EVM executes blocks: our own, or @ethereumjs/evm as the other opinion. */
import { weightsOf } from "../../chain/evm/compute-weights.js";
import { createMachine } from "../execution/evm/evm.js";
import { LibraryEngine } from "../execution/evm/library-engine.js";
import { MeasuredEngine } from "../execution/evm/measured-engine.js";
import { Engine } from "../execution/interpreter/engine.js";
import type { TransactionEngine } from "../execution/transaction-engine.js";
import type { ChainParams } from "../settings/genesis.js";
import type { JournaledState } from "../state/journaled-state.js";
import type { MaybePromise } from "../store/state-reader.js";

/** By their names in settings. */
export const ENGINE_NAMES = ["causeway", "ethereumjs"] as const;

/** The engine of blocks. */
export type EngineName = (typeof ENGINE_NAMES)[number];

/** An engine over a block's state. */
export function createTransactionEngine(
  {
    chainId,
    params,
    engine = "causeway",
  }: {
    readonly chainId: bigint;
    readonly params: Pick<ChainParams, "computeWeights">;
    readonly engine?: EngineName;
  },
  state: JournaledState,
): MaybePromise<TransactionEngine> {
  const own = new Engine({ chainId, state, weights: weightsOf(params.computeWeights) });
  if (engine === "causeway") return own;
  return createMachine(chainId, state).then((machine) => {
    return new MeasuredEngine(own, new LibraryEngine(machine), state);
  });
}
