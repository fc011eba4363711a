/** Which EVM executes blocks: our own, or @ethereumjs/evm as the other opinion. */
import { createMachine } from "../execution/evm/evm.js";
import { LibraryEngine } from "../execution/evm/library-engine.js";
import { Engine } from "../execution/interpreter/engine.js";
import type { TransactionEngine } from "../execution/transaction-engine.js";
import type { JournaledState } from "../state/journaled-state.js";
import type { MaybePromise } from "../store/state-reader.js";

/** By their names in settings. */
export const ENGINE_NAMES = ["causeway", "ethereumjs"] as const;

/** The engine of blocks. */
export type EngineName = (typeof ENGINE_NAMES)[number];

/** An engine over a block's state. */
export function createTransactionEngine(
  { chainId, engine = "causeway" }: { readonly chainId: bigint; readonly engine?: EngineName },
  state: JournaledState,
): MaybePromise<TransactionEngine> {
  return engine === "causeway"
    ? new Engine({ chainId, state })
    : createMachine(chainId, state).then((machine) => new LibraryEngine(machine));
}
