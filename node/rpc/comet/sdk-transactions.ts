/** The port of SDK interfaces to transactions, over what the consensus RPC reads. */
import {
  type ExecutedTransaction,
  failureOf,
  isEvmExecuted,
  transactionEventSteps,
} from "../../../chain/abci-event.js";
import { executionResult } from "../../../chain/consensus/execution-result.js";
import { decodeCosmosTransaction } from "../../../chain/cosmos/cosmos-transaction.js";
import { SDK_CODE, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import { wrapsEthereum } from "../../../chain/consensus/sdk-transaction-decode.js";
import { ChainError } from "../../../chain/errors.js";
import { sha256Hex } from "../../../chain/hashes.js";
import type { Height } from "../../../chain/hex.js";
import type { Steps } from "../../../chain/steps/steps.js";
import { doBreathing } from "../../../runtime/process/main-thread.js";
import { longWork } from "../../../runtime/turns/resting-lane.js";
import type {
  SdkResult,
  SdkSubmission,
  SdkTransactionPlace,
  SdkTransactionRecord,
  SdkTransactions,
} from "../../view/sdk-transactions.js";
import { bytesOf, committedOutline, executedAt } from "./chain-reads.js";
import { MempoolFault, type Refusal } from "./check-codes.js";
import type { CometChain } from "./ports.js";
import { gasWantedOf, isOversized, submitTransaction } from "./submission.js";
import { searchTransactions } from "./search/event-search.js";
import { parseQuery } from "./search/query.js";
import { SearchLane } from "./search/search-lane.js";

const NOTHING = new Uint8Array(0);

/** Makes the port. Searches of all its users share one lane. */
export function createSdkTransactions(chain: CometChain): SdkTransactions {
  const lane = new SearchLane();
  return {
    byHash: async (hash, { signal }) => {
      const place = chain.view.locateBySdkHash(hash);
      return place === undefined ? undefined : recordAt(chain, place, signal);
    },
    at: async (place, { signal }) => {
      const outline = chain.view.outline(place.height);
      if (outline === undefined) return undefined;
      const { transactionCount, cosmosPlaces } = outline;
      const isThere = place.index >= 0 && place.index < transactionCount + cosmosPlaces.length;
      return isThere ? recordAt(chain, place, signal) : undefined;
    },
    search: async (text, asker) => {
      const query = parseQuery(text);
      return lane.forTransactions(query, asker, (signal) =>
        searchTransactions(chain, query, signal),
      );
    },
    submit: (bytes) => submit(chain, bytes),
    simulate: (bytes, { signal, client }) =>
      longWork.run(signal, () => simulate(chain, bytes), client),
  };
}

async function recordAt(
  chain: CometChain,
  place: SdkTransactionPlace,
  signal: AbortSignal,
): Promise<SdkTransactionRecord> {
  const { timeMs } = committedOutline(chain, place.height);
  const executed = await executedAt(chain, place, signal);
  return doBreathing(recordSteps(executed, { height: place.height, timeMs }), signal);
}

function* recordSteps(
  executed: ExecutedTransaction,
  block: { readonly height: Height; readonly timeMs: number },
): Steps<SdkTransactionRecord> {
  const bytes = bytesOf(executed);
  const { index } = executed;
  return { ...block, hash: sha256Hex(bytes), bytes, index, result: yield* resultSteps(executed) };
}

function* resultSteps(executed: ExecutedTransaction): Steps<SdkResult> {
  if (!isEvmExecuted(executed)) return { ...executed.result, gasWanted: executed.tx.gasLimit };
  const { code, gasWanted, gasUsed } = executionResult(executed.tx, executed.receipt);
  return {
    code,
    codespace: code === 0 ? "" : "evm",
    log: failureOf(executed) ?? "",
    data: NOTHING,
    gasWanted,
    gasUsed,
    events: yield* transactionEventSteps(executed),
  };
}

function refusedResult(refusal: Refusal | undefined, gasWanted: bigint): SdkResult {
  const { code, codespace, log } = refusal ?? { code: 0, codespace: "", log: "" };
  return { code, codespace, log, data: NOTHING, gasWanted, gasUsed: 0n, events: [] };
}

async function submit(chain: CometChain, bytes: Uint8Array): Promise<SdkSubmission> {
  const { hash, refusal } = await submitTransaction(chain, bytes).catch((error: unknown) => {
    // SDK clients are told the hash of what the pool has already, or has no room for.
    if (error instanceof MempoolFault) return { hash: sha256Hex(bytes), refusal: error.refusal };
    throw error;
  });
  return { hash, result: refusedResult(refusal, gasWantedOf(bytes, refusal)) };
}

function simulate(chain: CometChain, bytes: Uint8Array): SdkResult {
  if (isOversized(bytes)) {
    return refusedResult(sdkFault(SDK_CODE.transactionTooLarge, ""), 0n);
  }
  if (wrapsEthereum(bytes)) {
    const text = "EVM transactions are estimated by eth_estimateGas";
    return refusedResult(sdkFault(SDK_CODE.notSupported, text), 0n);
  }
  try {
    const tx = decodeCosmosTransaction(bytes, { isSimulated: true });
    const outcome = chain.simulate(tx);
    return "events" in outcome
      ? { ...outcome, gasWanted: tx.gasLimit }
      : refusedResult(outcome, tx.gasLimit);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    return refusedResult(sdkFault(SDK_CODE.txDecode, error.message), 0n);
  }
}
