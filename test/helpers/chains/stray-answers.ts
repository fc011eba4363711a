/** A balancer before a fake chain and a node of another history: some exchanges come to the wrong one. */
import type { FakeChain } from "./fake-chain.js";
import { fakeChainMethods } from "./fake-chain-json.js";
import { RpcFault } from "./fake-node.js";

/**
 * Lets the next exchanges that fit be answered by the other chain, each as a whole.
 * @returns how many were
 */
export function stray(
  chain: FakeChain,
  other: FakeChain,
  {
    count,
    isFit,
  }: { readonly count: number; readonly isFit: (methods: readonly string[]) => boolean },
): { readonly strayed: number } {
  const state = { strayed: 0 };
  const methods = fakeChainMethods(other);
  let isWrong = false;
  chain.wireFault = (asked) => {
    isWrong = state.strayed < count && isFit(asked);
    if (isWrong) state.strayed += 1;
    return undefined;
  };
  chain.override = (method, params) => {
    if (!isWrong) return undefined;
    try {
      return { result: methods[method]?.(params) };
    } catch (error) {
      if (!(error instanceof RpcFault)) throw error;
      return { error: { code: error.code, message: error.message } };
    }
  };
  return state;
}
