/** eth_blockNumber, blocks, headers, receipts of blocks, counts, uncles (there are none). */
import { type Height, toQuantity } from "../../../../chain/hex.js";
import type { ChainView } from "../../../view/chain-view.js";
import { headerJson } from "../../../view/evm-json.js";
import type { BlockJson } from "../json/block-json.js";
import {
  type CallContext,
  type MethodEntries,
  method,
  RawJson,
  type RpcResult,
} from "../method.js";
import {
  parseBlockNumberOrTag,
  parseBlockRef,
  parseBoolean,
  parseHashParam,
  parseIndex,
} from "../params.js";
import { findBlock } from "../reads.js";

/** Reads of whole blocks; an unknown block is null, never an error. */
export function blockMethods(view: ChainView, json: BlockJson): MethodEntries {
  const header = (height: Height | undefined): RpcResult => {
    const outline = height === undefined ? undefined : view.outline(height);
    return outline === undefined ? null : new RawJson(headerJson(outline));
  };
  const count = (height: Height | undefined): RpcResult => {
    const outline = height === undefined ? undefined : view.outline(height);
    return outline === undefined ? null : toQuantity(outline.transactionCount);
  };
  const block = async (
    height: Height | undefined,
    full: boolean,
    context: CallContext,
  ): Promise<RpcResult> =>
    height === undefined ? null : ((await json.block(height, full, context)) ?? null);
  return [
    method("eth_blockNumber", 0, () => toQuantity(view.head().height)),
    method("eth_getBlockByNumber", 2, (params, context) => {
      const height = findBlock(view, params.required(0, parseBlockNumberOrTag));
      const full = params.optional(1, parseBoolean) ?? false;
      return block(height, full, context);
    }),
    method("eth_getBlockByHash", 2, (params, context) => {
      const height = view.heightOfHash(params.required(0, parseHashParam));
      const full = params.optional(1, parseBoolean) ?? false;
      return block(height, full, context);
    }),
    method("eth_getBlockReceipts", 1, async (params, context) => {
      const height = findBlock(view, params.required(0, parseBlockRef));
      return height === undefined ? null : ((await json.receipts(height, context)) ?? null);
    }),
    method("eth_getHeaderByNumber", 1, (params) =>
      header(findBlock(view, params.required(0, parseBlockNumberOrTag))),
    ),
    method("eth_getHeaderByHash", 1, (params) =>
      header(view.heightOfHash(params.required(0, parseHashParam))),
    ),
    method("eth_getBlockTransactionCountByNumber", 1, (params) =>
      count(findBlock(view, params.required(0, parseBlockNumberOrTag))),
    ),
    method("eth_getBlockTransactionCountByHash", 1, (params) =>
      count(view.heightOfHash(params.required(0, parseHashParam))),
    ),
    method("eth_getUncleCountByBlockNumber", 1, (params) =>
      uncles(findBlock(view, params.required(0, parseBlockNumberOrTag))),
    ),
    method("eth_getUncleCountByBlockHash", 1, (params) =>
      uncles(view.heightOfHash(params.required(0, parseHashParam))),
    ),
    method("eth_getUncleByBlockNumberAndIndex", 2, (params) => {
      params.required(0, parseBlockNumberOrTag);
      params.required(1, parseIndex);
      return null;
    }),
    method("eth_getUncleByBlockHashAndIndex", 2, (params) => {
      params.required(0, parseHashParam);
      params.required(1, parseIndex);
      return null;
    }),
  ];
}

/** Count of uncles of a block: BFT blocks have none. */
function uncles(height: Height | undefined): RpcResult {
  return height === undefined ? null : "0x0";
}
