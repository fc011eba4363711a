/** Traces of mined transactions and calls, and raw encodings; nothing that writes or profiles. */
import { encodeHeader } from "../../../chain/block.js";
import { bytesToHex, type Height } from "../../../chain/hex.js";
import { encodeReceipt } from "../../../chain/receipt.js";
import type { ChainView } from "../../chain-view.js";
import type { CommittedBlock } from "../../event-bus.js";
import type { CallWorkers, TraceKind } from "../../execution/call-port.js";
import type { TransactionPool } from "../../mempool/pool-port.js";
import {
  callRequestParser,
  DEFAULT_TRACE,
  parseNoBlockOverrides,
  parseOverrides,
  parseTraceConfig,
} from "./call-args.js";
import { encodeRawBlock } from "./encode.js";
import { RpcFault } from "./errors.js";
import { type MethodEntries, method, RawJson } from "./method.js";
import {
  optionalField,
  parseBlockNumberOrTag,
  parseBlockRef,
  parseHashParam,
  parseObject,
} from "./params.js";
import { findBlock, stateHeight } from "./reads.js";

/** What the debug methods read. */
export interface DebugMethodPorts {
  readonly view: ChainView;
  readonly calls: CallWorkers;
  readonly pool: TransactionPool;
  readonly chainId: bigint;
}

/** Read-only debug namespace. */
export function debugMethods(ports: DebugMethodPorts): MethodEntries {
  return [...traceMethods(ports), ...rawMethods(ports)];
}

function traceMethods({ view, calls, chainId }: DebugMethodPorts): MethodEntries {
  const parseCall = callRequestParser(chainId);
  const traceBlock = async (height: Height | undefined, kind: TraceKind, signal: AbortSignal) => {
    if (height === undefined) throw new RpcFault("SERVER_ERROR", "block not found");
    if (height === 0) throw new RpcFault("SERVER_ERROR", "genesis is not traceable");
    const traces = await calls.traceBlock(height, undefined, kind, { signal });
    const list = traces.map(({ transactionHash, result }) => ({ txHash: transactionHash, result }));
    return new RawJson(JSON.stringify(list));
  };
  return [
    method("debug_traceTransaction", 2, async (params, { signal }) => {
      const location = view.locate(params.required(0, parseHashParam));
      const kind = params.optional(1, parseTraceConfig) ?? DEFAULT_TRACE;
      if (location === undefined) throw new RpcFault("SERVER_ERROR", "transaction not found");
      const { height, index } = location;
      const [trace] = await calls.traceBlock(height, index, kind, { signal });
      if (trace === undefined) throw new RpcFault("SERVER_ERROR", "transaction not found");
      return new RawJson(JSON.stringify(trace.result));
    }),
    method("debug_traceBlockByNumber", 2, (params, { signal }) => {
      const height = findBlock(view, params.required(0, parseBlockNumberOrTag));
      return traceBlock(height, params.optional(1, parseTraceConfig) ?? DEFAULT_TRACE, signal);
    }),
    method("debug_traceBlockByHash", 2, (params, { signal }) => {
      const height = view.heightOfHash(params.required(0, parseHashParam));
      return traceBlock(height, params.optional(1, parseTraceConfig) ?? DEFAULT_TRACE, signal);
    }),
    method("debug_traceCall", 3, async (params, { signal }) => {
      const request = params.required(0, parseCall);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const kind = params.optional(2, parseTraceConfig) ?? DEFAULT_TRACE;
      const overrides = params.optional(2, (value) => {
        optionalField(parseObject(value), "blockOverrides", parseNoBlockOverrides);
        return optionalField(parseObject(value), "stateOverrides", parseOverrides);
      });
      const trace = await calls.traceCall(request, height, kind, { overrides, signal });
      return new RawJson(JSON.stringify(trace));
    }),
  ];
}

function rawMethods({ view, pool }: DebugMethodPorts): MethodEntries {
  const committed = (height: Height | undefined): CommittedBlock => {
    const block = height === undefined ? undefined : view.block(height);
    if (block === undefined) throw new RpcFault("SERVER_ERROR", "block not found");
    return block;
  };
  return [
    method("debug_getRawHeader", 1, (params) => {
      const { block } = committed(findBlock(view, params.required(0, parseBlockRef)));
      return bytesToHex(encodeHeader(block.header));
    }),
    method("debug_getRawBlock", 1, (params) => {
      const { block } = committed(findBlock(view, params.required(0, parseBlockRef)));
      return bytesToHex(encodeRawBlock(block));
    }),
    method("debug_getRawReceipts", 1, (params) => {
      const { receipts } = committed(findBlock(view, params.required(0, parseBlockRef)));
      return receipts.map((receipt) => bytesToHex(encodeReceipt(receipt)));
    }),
    method("debug_getRawTransaction", 1, (params) => {
      const hash = params.required(0, parseHashParam);
      const location = view.locate(hash);
      const found =
        location === undefined
          ? pool.get(hash)
          : view.block(location.height)?.block.transactions[location.index];
      return found === undefined ? "0x" : bytesToHex(found.tx.raw);
    }),
  ];
}
