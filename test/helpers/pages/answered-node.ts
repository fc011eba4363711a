/** A node for the explorer's pages, of which a test says what it answers to each call. */
import { keccak256Hex } from "../../../chain/hashes.js";
import type { JsonRpcClient, RpcCall, RpcOutcome } from "../../../rpc-client/json-rpc.js";

/** Any word of 32 bytes. */
export const WORD = `0x${"ab".repeat(32)}`;

/** The client of such a node, for single calls and batches. */
export function answeredBy(answer: (call: RpcCall) => RpcOutcome): JsonRpcClient {
  return {
    batch: (calls: readonly RpcCall[]) => Promise.resolve(calls.map(answer)),
    request: (method: string, params: readonly unknown[]) => {
      const outcome = answer({ method, params });
      return outcome.ok ? Promise.resolve(outcome.result) : Promise.reject(outcome.error);
    },
  } as unknown as JsonRpcClient;
}

/** A header whose hash is made of its height. */
export function headerAt(height: number, timestampSeconds: number) {
  return {
    number: `0x${height.toString(16)}`,
    hash: keccak256Hex(Buffer.from(String(height))),
    parentHash: WORD,
    timestamp: `0x${timestampSeconds.toString(16)}`,
    stateRoot: WORD,
    transactionsRoot: WORD,
    receiptsRoot: WORD,
    miner: `0x${"70".repeat(20)}`,
    gasUsed: "0x0",
    gasLimit: "0x1",
  };
}
