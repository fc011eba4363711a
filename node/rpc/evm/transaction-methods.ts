/** Transactions by hash and by place, receipts, and sending. */
import { bytesToHex, type Height } from "../../../chain/hex.js";
import type { BlockTransaction } from "../../../chain/block.js";
import type { ChainView } from "../../chain-view.js";
import type { TransactionPool } from "../../mempool/pool-port.js";
import { receiptAt } from "./block-json.js";
import { minedTransactionJson, pendingTransactionJson, placeOf } from "./encode.js";
import { type MethodEntries, method, RawJson, type RpcResult } from "./method.js";
import { parseBlockNumberOrTag, parseBytes, parseHashParam, parseIndex } from "./params.js";
import { findBlock } from "./reads.js";
import type { SubmitQueue } from "./submit-queue.js";

/** What these methods read and write. */
export interface TransactionMethodPorts {
  readonly view: ChainView;
  readonly pool: TransactionPool;
  readonly submits: SubmitQueue;
}

/** Methods about single transactions; unknown ones are null, never an error. */
export function transactionMethods(ports: TransactionMethodPorts): MethodEntries {
  const { view, pool, submits } = ports;
  const at = (height: Height | undefined, index: number): BlockTransaction | undefined =>
    height === undefined ? undefined : view.block(height)?.block.transactions[index];
  const byPlace = (height: Height | undefined, index: number): RpcResult => {
    const committed = height === undefined ? undefined : view.block(height);
    const mined = committed?.block.transactions[index];
    if (committed === undefined || mined === undefined) return null;
    return new RawJson(minedTransactionJson(mined, placeOf(committed.block), index));
  };
  return [
    method("eth_getTransactionByHash", 1, (params) => {
      const hash = params.required(0, parseHashParam);
      const location = view.locate(hash);
      if (location !== undefined) return byPlace(location.height, location.index);
      const pending = pool.get(hash);
      return pending === undefined ? null : new RawJson(pendingTransactionJson(pending));
    }),
    method("eth_getTransactionReceipt", 1, (params) => {
      const location = view.locate(params.required(0, parseHashParam));
      const committed = location === undefined ? undefined : view.block(location.height);
      if (location === undefined || committed === undefined) return null;
      const json = receiptAt(committed, location.index);
      return json === undefined ? null : new RawJson(json);
    }),
    method("eth_getTransactionByBlockNumberAndIndex", 2, (params) => {
      const height = findBlock(view, params.required(0, parseBlockNumberOrTag));
      return byPlace(height, params.required(1, parseIndex));
    }),
    method("eth_getTransactionByBlockHashAndIndex", 2, (params) => {
      const height = view.heightOfHash(params.required(0, parseHashParam));
      return byPlace(height, params.required(1, parseIndex));
    }),
    method("eth_getRawTransactionByHash", 1, (params) => {
      const hash = params.required(0, parseHashParam);
      const location = view.locate(hash);
      return raw(location === undefined ? pool.get(hash) : at(location.height, location.index));
    }),
    method("eth_getRawTransactionByBlockNumberAndIndex", 2, (params) => {
      const height = findBlock(view, params.required(0, parseBlockNumberOrTag));
      return raw(at(height, params.required(1, parseIndex)));
    }),
    method("eth_getRawTransactionByBlockHashAndIndex", 2, (params) => {
      const height = view.heightOfHash(params.required(0, parseHashParam));
      return raw(at(height, params.required(1, parseIndex)));
    }),
    method(SEND_METHOD, 1, (params) => submits.add(params.required(0, parseBytes))),
  ];
}

function raw(found: { tx: { raw: Uint8Array } } | undefined): RpcResult {
  return found === undefined ? null : bytesToHex(found.tx.raw);
}

/** The one method whose calls of a batch are handed to the pool together. */
export const SEND_METHOD = "eth_sendRawTransaction";
