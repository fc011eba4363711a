/** Cosmos transactions executed at the head, of which nothing is kept. */
import assert from "node:assert/strict";
import type { Address } from "../../chain/address.js";
import { simulationFault } from "../../chain/cosmos/ante.js";
import type { CosmosResult } from "../../chain/cosmos/cosmos-result.js";
import type { CosmosTransaction } from "../../chain/cosmos/cosmos-transaction.js";
import type { SdkFault } from "../../chain/cosmos/sdk-fault.js";
import { executeCosmosTransaction } from "../execution/cosmos/cosmos-executor.js";
import type { TransactionPool } from "../mempool/pool-port.js";
import type { ChainParams } from "../settings/genesis.js";
import { VestingLocks } from "../modules/vesting.js";
import { JournaledState } from "../state/journaled-state.js";
import { EMPTY_ACCOUNT } from "../store/account-record.js";
import type { StateReader } from "../store/state-reader.js";
import type { ChainView } from "../view/chain-view.js";

/** What a simulation reads. */
export interface SimulationParts {
  readonly view: Pick<ChainView, "head">;
  readonly accounts: StateReader;
  readonly params: ChainParams;
  readonly pool: Pick<TransactionPool, "pendingNonce">;
}

/**
 * What the next block would make of a transaction, whoever signed it; or why it would not. Time is the
 * head's, as in the SDK: the next block may come a moment later, and what waits for a time still waits.
 */
export function simulateCosmos(
  tx: CosmosTransaction,
  { view, accounts, params, pool }: SimulationParts,
): CosmosResult | SdkFault {
  const fault = simulationFault(tx);
  if (fault !== undefined) return fault;
  const [from] = tx.signers;
  assert(from !== undefined, "a transaction without fault has one signer");
  const { height, timeMs } = view.head();
  const state = new JournaledState(accounts);
  const { locks } = params;
  if (locks !== undefined) state.locks = new VestingLocks(state, locks, timeMs);
  countPending(state, tx, { from, pending: pool.pendingNonce(from) });
  const outcome = executeCosmosTransaction(
    { tx, from },
    {
      ...params,
      state,
      height: height + 1,
      timeMs,
      isSimulated: true,
    },
  );
  return outcome.included ? outcome.result : outcome.fault;
}

/**
 * Has the sender's sequence be the one that the pool takes: what is simulated may come behind what waits
 * there, or in its place. What waits is not executed.
 */
function countPending(
  state: JournaledState,
  { nonce }: CosmosTransaction,
  { from, pending }: { readonly from: Address; readonly pending: bigint },
): void {
  const account = state.accountNow(from) ?? EMPTY_ACCOUNT;
  // The pool may not have heard yet of the block that is the head.
  const next = pending > account.nonce ? pending : account.nonce;
  const isTaken = account.nonce <= nonce && nonce <= next;
  const expected = isTaken ? nonce : next;
  if (expected !== account.nonce) state.putAccount(from, { ...account, nonce: expected });
}
