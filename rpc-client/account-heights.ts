/** At which heights accounts changed, many accounts in a batch. */
import type { Address } from "../chain/address.js";
import { type Height, toQuantity } from "../chain/hex.js";
import { type AccountHeightsPage, parseAccountHeightsPage } from "./journal-codec.js";
import { type JsonRpcClient, resultOf, type RpcOptions } from "./json-rpc.js";
import { askOverRange } from "./whole-range.js";

/** Reads of the heights at which account records were written. */
export interface AccountHeightsCalls {
  /**
   * First pages in the order of the accounts; continue with `accountHeights` at `next`. BAD_ANSWER while the
   * node does not have block `to`.
   */
  manyAccountHeights(
    accounts: readonly Address[],
    range: { readonly from: Height; readonly to: Height },
    options: RpcOptions,
  ): Promise<AccountHeightsPage[]>;
}

/** The calls over a JSON-RPC client. */
export function accountHeightsCalls(rpc: JsonRpcClient): AccountHeightsCalls {
  return {
    async manyAccountHeights(accounts, range, options) {
      const bounds = [toQuantity(range.from), toQuantity(range.to)];
      const calls = accounts.map((account) => ({
        method: "causeway_getAccountHeights",
        params: [account, ...bounds],
      }));
      const outcomes = await askOverRange(rpc, range.to, calls, options);
      return outcomes.map((outcome) => parseAccountHeightsPage(resultOf(outcome), range));
    },
  };
}
