/** eth_call, eth_estimateGas, eth_createAccessList: executed in workers at a fixed height. */
import { bytesToHex, toQuantity } from "../../../chain/hex.js";
import type { ChainView } from "../../chain-view.js";
import type { CallResult, CallWorkers } from "../../execution/call-port.js";
import { callRequestParser, parseNoBlockOverrides, parseOverrides } from "./call-args.js";
import { RpcFault } from "./errors.js";
import { type MethodEntries, method } from "./method.js";
import { parseBlockRef } from "./params.js";
import { stateHeight } from "./reads.js";
import { revertFault } from "./revert.js";

/**
 * The error of a call that did not succeed: a revert with its data, or the EVM's own text. The
 * latter shares its number with faults of the node, so `data` says that the call itself failed.
 */
function callFault(result: Exclude<CallResult, { outcome: "success" }>): RpcFault {
  if (result.outcome === "revert") return revertFault(result.returnData);
  return new RpcFault("SERVER_ERROR", result.error, { reason: "EXECUTION_FAILED" });
}

/** Methods that execute without a transaction. */
export function callMethods(view: ChainView, calls: CallWorkers, chainId: bigint): MethodEntries {
  const parseCall = callRequestParser(chainId);
  return [
    method("eth_call", 4, async (params, { signal }) => {
      const request = params.required(0, parseCall);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const overrides = params.optional(2, parseOverrides);
      params.optional(3, parseNoBlockOverrides);
      const result = await calls.call(request, height, { overrides, signal });
      if (result.outcome !== "success") throw callFault(result);
      return bytesToHex(result.returnData);
    }),
    method("eth_estimateGas", 4, async (params, { signal }) => {
      const request = params.required(0, parseCall);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const overrides = params.optional(2, parseOverrides);
      params.optional(3, parseNoBlockOverrides);
      const result = await calls.estimateGas(request, height, { overrides, signal });
      if (result.outcome !== "success") throw callFault(result);
      return toQuantity(result.gas);
    }),
    method("eth_createAccessList", 2, async (params, { signal }) => {
      const request = params.required(0, parseCall);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const result = await calls.createAccessList(request, height, { signal });
      const accessList = result.accessList.map(({ address, storageKeys }) => ({
        address,
        storageKeys,
      }));
      return { accessList, gasUsed: toQuantity(result.gasUsed), error: result.error };
    }),
  ];
}
