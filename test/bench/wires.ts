/** How signed transactions reach a chain and how its blocks are seen, by the interfaces of two kinds. */
import { encodeCall, encodeRequest } from "./http-load.js";
import { encodeBatch, type Payment, type Sender, signNext } from "./senders.js";

/** A request whose answer is a number. */
export interface Question {
  readonly bytes: Buffer;
  /** The number in the answer's JSON. Throws Error where there is none. */
  readonly read: (answer: unknown) => number;
}

/** An interface of a chain. */
export interface Wire {
  /** Transactions in one request. */
  readonly batchSize: number;
  /** Connections that send; each waits for its answer before the next request. */
  readonly connections: number;
  /** The sender's next transaction, signed. */
  readonly sign: (sender: Sender, payment: Payment) => Uint8Array;
  /** One request that sends all of them. */
  readonly encode: (url: string, raws: readonly Uint8Array[]) => Buffer;
  /** How many of a request's transactions its answer refuses. */
  readonly refusals: (answer: string) => number;
  readonly head: (url: string) => Question;
  /** Transactions in a block. */
  readonly count: (url: string, height: number) => Question;
}

/** Ethereum's JSON-RPC. */
export const ETHEREUM_WIRE: Wire = {
  batchSize: 100,
  connections: 4,
  sign: signNext,
  encode: encodeBatch,
  refusals: (answer) => answer.split('"error"').length - 1,
  head: (url) => quantityAt(url, "eth_blockNumber", []),
  count: (url, height) =>
    quantityAt(url, "eth_getBlockTransactionCountByNumber", [`0x${height.toString(16)}`]),
};

function quantityAt(url: string, method: string, params: readonly unknown[]): Question {
  return {
    bytes: encodeCall(url, method, params),
    read: (answer) => Number((answer as { result: string }).result),
  };
}

/**
 * CometBFT's RPC. One transaction a request, as its clients send them: its server takes ten in a
 * batch at most. Every answer that is read is short: Go names no length of long ones.
 */
export function cometWire(sign: Wire["sign"]): Wire {
  return {
    batchSize: 1,
    connections: 16,
    sign,
    encode: (url, [raw = new Uint8Array(0)]) => {
      const tx = Buffer.from(raw).toString("base64");
      return encodeCall(url, "broadcast_tx_sync", { tx });
    },
    refusals: (answer) => (/"code": ?0[,}]/.test(answer) ? 0 : 1),
    head: (url) => ({
      bytes: encodeRequest(url, { path: "/abci_info", method: "GET" }),
      read: (answer) => {
        const { result } = answer as { result: { response: { last_block_height?: string } } };
        return Number(result.response.last_block_height ?? 0);
      },
    }),
    count: (url, height) => ({
      bytes: encodeRequest(url, {
        path: `/blockchain?minHeight=${height}&maxHeight=${height}`,
        method: "GET",
      }),
      read: (answer) => {
        const { result } = answer as { result: { block_metas: { num_txs: string }[] } };
        return Number(result.block_metas[0]?.num_txs ?? Number.NaN);
      },
    }),
  };
}
