/** The port of SDK transactions over a chain whose transactions are all EVM ones (D20). */
import type { ExecutedTransaction } from "../../../chain/consensus/abci-event.js";
import { failureOf, transactionEvents } from "../../../chain/consensus/abci-event.js";
import { executionResult } from "../../../chain/consensus/execution-result.js";
import { decodeSdkTransaction } from "../../../chain/consensus/sdk-transaction-decode.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { sha256 } from "../../../chain/hashes.js";
import { bytesToHash32, type Height } from "../../../chain/hex.js";
import { effectiveGasPriceAtoken, recoverSender } from "../../../chain/transaction.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import type { CallWorkers } from "../../execution/calls/call-port.js";
import type {
  SdkResult,
  SdkTransactionRecord,
  SdkTransactions,
} from "../../view/sdk-transactions.js";
import { executedAt, executedOf } from "../comet/chain-reads.js";
import { type Refusal, refusalOf, undecodable, WRONG_SENDER } from "../comet/check-codes.js";
import type { CometChain } from "../comet/ports.js";
import { searchTransactions } from "../comet/search/event-search.js";
import { parseQuery } from "../comet/search/query.js";

const NO_RESULT = {
  codespace: "",
  log: "",
  data: new Uint8Array(0),
  gasWanted: 0n,
  gasUsed: 0n,
  events: [],
};

/** The port, made of what the consensus RPC reads. */
export function createEvmTransactions(chain: CometChain, calls: CallWorkers): SdkTransactions {
  const { view } = chain;
  const record = (height: Height, executed: ExecutedTransaction): SdkTransactionRecord => {
    const bytes = encodeSdkTransaction(executed.tx, executed.from);
    const timeMs = view.outline(height)?.timeMs ?? 0;
    const hash = bytesToHash32(sha256(bytes));
    return { hash, bytes, height, index: executed.index, timeMs, result: resultOf(executed) };
  };
  const at: SdkTransactions["at"] = (place) => {
    const isThere = view.transaction(place.height, place.index) !== undefined;
    return isThere ? record(place.height, executedAt(chain, place)) : undefined;
  };
  return {
    at,
    byHash(hash) {
      const place = view.locateBySdkHash(hash);
      return place === undefined ? undefined : at(place);
    },
    async *ofBlock(height, signal) {
      for (const page of view.pages(height)) {
        for (const executed of executedOf(page)) {
          yield record(height, executed);
          await breathe(signal);
        }
      }
    },
    search: (query, signal) => searchTransactions(chain, parseQuery(query), signal),
    async submit(bytes) {
      const refusal = await submit(chain, bytes);
      const result =
        refusal === undefined ? { code: 0, ...NO_RESULT } : { ...NO_RESULT, ...refusal };
      return { hash: bytesToHash32(sha256(bytes)), result };
    },
    async simulate(bytes, signal) {
      const { tx, from } = decodeSdkTransaction(bytes);
      const { to, valueAtoken, gasLimit, data, accessList, nonce } = tx;
      const request = { from, to, valueAtoken, gasLimit, data, accessList, nonce };
      const gasPriceAtoken = effectiveGasPriceAtoken(tx);
      const height = view.head().height;
      const done = await calls.call({ ...request, gasPriceAtoken }, height, { signal });
      const gas = { gasWanted: gasLimit, gasUsed: done.gasUsed };
      if (done.outcome === "success") return { code: 0, ...NO_RESULT, ...gas };
      const log = done.outcome === "revert" ? "execution reverted" : done.error;
      return { ...NO_RESULT, ...gas, code: 4, codespace: "evm", log };
    },
  };
}

function resultOf(executed: ExecutedTransaction): SdkResult {
  const { code, gasWanted, gasUsed } = executionResult(executed.tx, executed.receipt);
  return {
    code,
    codespace: code === 0 ? "" : "evm",
    log: failureOf(executed) ?? "",
    data: NO_RESULT.data,
    gasWanted,
    gasUsed,
    events: transactionEvents(executed),
  };
}

/** As `broadcast_tx_sync` does it. */
async function submit(chain: CometChain, bytes: Uint8Array): Promise<Refusal | undefined> {
  let raw: Uint8Array;
  try {
    const transaction = decodeSdkTransaction(bytes);
    if (recoverSender(transaction.tx) !== transaction.from) return WRONG_SENDER;
    ({ raw } = transaction);
  } catch (error) {
    return undecodable(error);
  }
  const [answer] = await chain.pool.submit([raw]);
  if (answer === undefined) throw new RangeError("the pool gave no answer");
  return typeof answer === "string" ? undefined : refusalOf(answer);
}
