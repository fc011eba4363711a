/** Simulation of EVM transactions that come as the SDK Tx around them (D20). */
import {
  decodeSdkTransaction,
  wrapsEthereum,
} from "../../../chain/consensus/sdk-transaction-decode.js";
import { effectiveGasPriceAtoken } from "../../../chain/transaction.js";
import type { CallWorkers } from "../../execution/calls/call-port.js";
import type { Asker } from "../../../runtime/turns/resting-lane.js";
import type { SdkResult, SdkTransactions } from "../../view/sdk-transactions.js";
import type { CometChain } from "../comet/ports.js";
import { isOversized } from "../comet/submission.js";

/** Code of an execution that failed in the EVM, in codespace "evm". */
const EXECUTION_FAILED = 4;

/** The port with simulations of both kinds: those of the EVM run as `eth_call` does, at the head. */
export function withEvmSimulation(
  transactions: SdkTransactions,
  { view }: Pick<CometChain, "view">,
  calls: CallWorkers,
): SdkTransactions {
  return {
    ...transactions,
    simulate: (bytes, asker) =>
      wrapsEthereum(bytes) && !isOversized(bytes)
        ? simulateEvm(bytes, { height: view.head().height, calls, asker })
        : transactions.simulate(bytes, asker),
  };
}

async function simulateEvm(
  bytes: Uint8Array,
  at: {
    readonly height: number;
    readonly calls: CallWorkers;
    readonly asker: Asker;
  },
): Promise<SdkResult> {
  const { height, calls, asker } = at;
  const { tx, from } = decodeSdkTransaction(bytes);
  const { to, valueAtoken, gasLimit, data, accessList, nonce } = tx;
  const request = { from, to, valueAtoken, gasLimit, data, accessList, nonce };
  const gasPriceAtoken = effectiveGasPriceAtoken(tx);
  const { maxFeePerGasAtoken, maxPriorityFeePerGasAtoken } = tx;
  // Of what is not a transaction of type 2 both are its price.
  const dynamicFees = { maxFeePerGasAtoken, maxPriorityFeePerGasAtoken };
  const priced = { ...request, gasPriceAtoken, dynamicFees };
  const done = await calls.call(priced, height, asker);
  const result = {
    code: 0,
    codespace: "",
    log: "",
    data: new Uint8Array(0),
    gasWanted: gasLimit,
    gasUsed: done.gasUsed,
    events: [],
  };
  if (done.outcome === "success") return result;
  const log = done.outcome === "revert" ? "execution reverted" : done.error;
  return { ...result, code: EXECUTION_FAILED, codespace: "evm", log };
}
