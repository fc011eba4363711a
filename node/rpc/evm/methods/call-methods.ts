/**
 * eth_call, eth_estimateGas, eth_createAccessList, eth_simulateV1: executed in workers over a
 * fixed height.
 */
import { bytesToHex, toQuantity } from "../../../../chain/hex.js";
import type { ChainView } from "../../../view/chain-view.js";
import type { CallResult, CallWorkers } from "../../../execution/calls/call-port.js";
import { callRequestParser } from "../arguments/call.js";
import { revertFault, RpcFault } from "../errors.js";
import { type MethodEntries, method, RawJson } from "../method.js";
import { parseBlockOverrides, parseStateOverrides } from "../arguments/overrides.js";
import { type Params, parseBlockRef } from "../params.js";
import { stateHeight } from "../reads.js";
import { simulationParser } from "../arguments/simulation.js";

/** The error of a call that did not succeed: a revert with its data, or the EVM's own text. */
export function executionFault(result: Exclude<CallResult, { outcome: "success" }>): RpcFault {
  if (result.outcome === "revert") return revertFault(result.returnData);
  return new RpcFault("SERVER_ERROR", result.error);
}

function overridesOf(params: Params) {
  return {
    overrides: params.optional(2, parseStateOverrides),
    blockOverrides: params.optional(3, parseBlockOverrides),
  };
}

/** Methods that execute without a transaction. */
export function callMethods(view: ChainView, calls: CallWorkers, chainId: bigint): MethodEntries {
  const parseCall = callRequestParser(chainId);
  const parseSimulation = simulationParser(parseCall);
  return [
    method("eth_call", 4, async (params, context) => {
      const request = params.required(0, parseCall);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const result = await calls.call(request, height, {
        ...overridesOf(params),
        // Small calls are over before anybody could ask for these.
        get signal() {
          return context.signal;
        },
        get client() {
          return context.client;
        },
      });
      if (result.outcome !== "success") throw executionFault(result);
      return bytesToHex(result.returnData);
    }),
    method("eth_estimateGas", 4, async (params, { signal, client }) => {
      const request = params.required(0, parseCall);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const options = { ...overridesOf(params), signal, client };
      const result = await calls.estimateGas(request, height, options);
      if (result.outcome !== "success") throw executionFault(result);
      return toQuantity(result.gas);
    }),
    method("eth_createAccessList", 3, async (params, { signal, client }) => {
      const request = params.required(0, parseCall);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const overrides = params.optional(2, parseStateOverrides);
      const result = await calls.createAccessList(request, height, { overrides, signal, client });
      const accessList = result.accessList.map(({ address, storageKeys }) => ({
        address,
        storageKeys,
      }));
      return { accessList, gasUsed: toQuantity(result.gasUsed), error: result.error };
    }),
    method("eth_simulateV1", 2, async (params, { signal, client }) => {
      const request = params.required(0, parseSimulation);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      return RawJson.of(await calls.simulate(request, height, { signal, client }));
    }),
  ];
}
