/** Answers that a program passes on as the node gives them: only their kind is checked here. */
import type { Address } from "../chain/address.js";
import { type Hash32, type Hex, toQuantity } from "../chain/hex.js";
import type { Atoken } from "../chain/units.js";
import {
  type AnswerObject,
  readAddress,
  readHash,
  readHex,
  readObject,
  readOptional,
} from "./answer-fields.js";
import { encodeStateAt, type StateAt } from "./at.js";
import { badAnswer } from "./errors.js";
import type { JsonRpcClient, RpcOptions } from "./json-rpc.js";

/** A message to execute without a transaction; what is absent is the node's default. */
export interface CallMessage {
  readonly from?: Address;
  /** Absent: the data is run as the code that creates a contract. */
  readonly to?: Address;
  readonly gas?: bigint;
  readonly gasPriceAtoken?: Atoken;
  readonly valueAtoken?: Atoken;
  readonly data?: Hex;
}

/** The node's tracers with their options (those of go-ethereum). */
export type TraceOptions =
  | {
      readonly tracer: "callTracer";
      readonly tracerConfig: { readonly onlyTopCall: boolean; readonly withLog: boolean };
    }
  | { readonly tracer: "prestateTracer"; readonly tracerConfig: { readonly diffMode: boolean } }
  | {
      readonly tracer: "structLogger";
      readonly enableMemory: boolean;
      readonly disableStack: boolean;
      readonly disableStorage: boolean;
      readonly enableReturnData: boolean;
    };

/** Calls whose answers have no type of their own. */
export interface ForwardedCalls {
  /** Returned bytes. A call that did not succeed is an RpcError: see `isExecutionFailure`. */
  call(message: CallMessage, at: StateAt, options: RpcOptions): Promise<Hex>;
  /** `eth_getTransactionReceipt`; undefined where the transaction is not mined. */
  receiptObject(hash: Hash32, options: RpcOptions): Promise<AnswerObject | undefined>;
  /** `eth_getProof` (EIP-1186). */
  proofObject(
    account: { readonly address: Address; readonly storageKeys: readonly Hash32[] },
    at: StateAt,
    options: RpcOptions,
  ): Promise<AnswerObject>;
  /** `debug_traceTransaction` of a mined transaction. */
  traceObject(hash: Hash32, trace: TraceOptions, options: RpcOptions): Promise<AnswerObject>;
}

/** The calls over a JSON-RPC client. */
export function forwardedCalls(rpc: JsonRpcClient): ForwardedCalls {
  return {
    call: async (message, at, options) => {
      const params = [encodeMessage(message), encodeStateAt(at)];
      return readHex(await rpc.request("eth_call", params, options), "returned bytes");
    },
    async receiptObject(hash, options) {
      const answer = await rpc.request("eth_getTransactionReceipt", [hash], options);
      const receipt = readOptional(answer, "receipt", readObject);
      if (receipt === undefined) return undefined;
      if (readHash(receipt["transactionHash"], "transactionHash") === hash) return receipt;
      throw badAnswer("receipt of another transaction");
    },
    async proofObject({ address, storageKeys }, at, options) {
      const params = [address, storageKeys, encodeStateAt(at)];
      const proof = readObject(await rpc.request("eth_getProof", params, options), "proof");
      if (readAddress(proof["address"], "address") === address) return proof;
      throw badAnswer("proof of another account");
    },
    traceObject: async (hash, trace, options) =>
      readObject(await rpc.request("debug_traceTransaction", [hash, trace], options), "trace"),
  };
}

function encodeMessage(message: CallMessage): Readonly<Record<string, string>> {
  const { from, to, gas, gasPriceAtoken, valueAtoken, data } = message;
  return {
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(gas === undefined ? {} : { gas: toQuantity(gas) }),
    ...(gasPriceAtoken === undefined ? {} : { gasPrice: toQuantity(gasPriceAtoken) }),
    ...(valueAtoken === undefined ? {} : { value: toQuantity(valueAtoken) }),
    ...(data === undefined ? {} : { data }),
  };
}
