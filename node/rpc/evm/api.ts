/** The node's EVM JSON-RPC, without sockets: all methods over one read model. */
import { BlockJson } from "./json/block-json.js";
import { blockMethods } from "./methods/block-methods.js";
import { callMethods } from "./methods/call-methods.js";
import { capabilityMethods } from "./methods/capability-methods.js";
import { claimMethods } from "./methods/claim-methods.js";
import { debugMethods } from "./methods/debug-methods.js";
import { Dispatcher } from "./dispatcher.js";
import { feeMethods } from "./methods/fee-methods.js";
import { fillMethods } from "./methods/fill-methods.js";
import { filterMethods } from "./methods/filter-methods.js";
import { FilterRegistry } from "./filters.js";
import { journalMethods } from "./methods/journal-methods.js";
import { nodeMethods, poolMethods, servedMethods } from "./methods/node-methods.js";
import type { EvmApiOptions } from "./options.js";
import { stateMethods } from "./methods/state-methods.js";
import { limitedMethods } from "./methods/limited-methods.js";
import { searchRate } from "../rate-limit.js";
import { ReceiptWaits } from "./receipt-waits.js";
import { SubmitQueue } from "./submit-queue.js";
import { SubscriptionHub } from "./subscriptions/hub.js";
import { transactionMethods } from "./methods/transaction-methods.js";

/** The API as its HTTP and WebSocket servers use it. */
export interface EvmApi {
  readonly dispatcher: Dispatcher;
  readonly limits: EvmApiOptions["limits"];
  readonly log: EvmApiOptions["log"];
  readonly metrics: EvmApiOptions["metrics"];
  /** Stops listening to the node's events; the servers are stopped by themselves. */
  close(): void;
}

/** Builds the API. Methods that hold keys or write files do not exist here. */
export function createEvmApi(options: EvmApiOptions): EvmApi {
  const { view, pool, calls, bus, limits, clock, log, metrics } = options;
  const chainId = options.network.evmChainId;
  const json = new BlockJson(view, limits, options);
  const filters = new FilterRegistry(clock, limits);
  const submits = new SubmitQueue(pool, view);
  const waits = new ReceiptWaits(view, bus, clock);
  const hub = new SubscriptionHub({ ...options, json });
  const stopPending = bus.on("pendingTransactions", (list) => filters.addPending(list));
  metrics.gauge("causeway_jsonrpc_subscriptions", "Open eth_subscribe subscriptions", [], (gauge) =>
    gauge.set(hub.size()),
  );
  const methods = limitedMethods(
    [
      ...nodeMethods(options),
      ...blockMethods(view, json),
      ...transactionMethods({ view, pool, submits, waits }),
      ...stateMethods(view, pool),
      ...callMethods(view, calls, chainId),
      ...feeMethods(view, options.suggestedGasPriceAtoken, limits.feeHistoryBlocks),
      ...filterMethods({ view, json, pool, filters, limits }),
      ...hub.methods(),
      ...poolMethods(pool, limits.responseBytes),
      ...capabilityMethods(options),
      ...fillMethods({ ...options, chainId }),
      ...debugMethods({ ...options, chainId }),
      ...journalMethods(view, json, pool),
      ...claimMethods(view, options.claims),
    ],
    searchRate(limits.searchesPerSecond, clock),
  );
  const dispatcher = new Dispatcher(servedMethods(methods, options.namespaces), options);
  return {
    dispatcher,
    limits,
    log,
    metrics,
    close() {
      hub.close();
      waits.close();
      stopPending();
    },
  };
}
