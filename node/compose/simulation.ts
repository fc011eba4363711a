/** Cosmos transactions executed at the head, of which nothing is kept. */
import type { CosmosResult } from "../../chain/cosmos/cosmos-result.js";
import type { CosmosTransaction } from "../../chain/cosmos/cosmos-transaction.js";
import { SDK_CODE, type SdkFault, sdkFault } from "../../chain/cosmos/sdk-fault.js";
import { executeCosmosTransaction } from "../execution/cosmos/cosmos-executor.js";
import type { ChainParams } from "../settings/genesis.js";
import { VestingLocks } from "../modules/vesting.js";
import { JournaledState } from "../state/journaled-state.js";
import type { StateReader } from "../store/state-reader.js";
import type { ChainView } from "../view/chain-view.js";

/** What a simulation reads. */
export interface SimulationParts {
  readonly view: Pick<ChainView, "head">;
  readonly accounts: StateReader;
  readonly params: ChainParams;
}

/** What the next block would make of a transaction, whoever signed it; or why it would not. */
export function simulateCosmos(
  tx: CosmosTransaction,
  { view, accounts, params }: SimulationParts,
): CosmosResult | SdkFault {
  const [from, ...others] = tx.signers;
  if (from === undefined || others.length > 0) {
    return sdkFault(SDK_CODE.notSupported, "messages of several signers are not supported");
  }
  const { height, timeMs } = view.head();
  const state = new JournaledState(accounts);
  const { locks } = params;
  if (locks !== undefined) state.locks = new VestingLocks(state, locks, timeMs);
  const outcome = executeCosmosTransaction(
    { tx, from },
    {
      ...params,
      state,
      height: height + 1,
      timeMs: timeMs + params.blockIntervalMs,
      isSimulated: true,
    },
  );
  return outcome.included ? outcome.result : outcome.fault;
}
