/**
 * Traces of `cosmos.evm.vm.v1.Query`, by the tracers of `debug_trace...`. What is traced was mined
 * here: predecessors, hash, time and proposer of the block are the chain's own, whatever a client
 * says of them.
 */
import type { Hash32, Height } from "../../../../chain/hex.js";
import type { MessageReader } from "../../../../chain/protobuf/values.js";
import { decodeTransaction } from "../../../../chain/transaction.js";
import type { TraceKind } from "../../../execution/calls/call-port.js";
import { parseTraceConfig } from "../../evm/arguments/trace.js";
import { invalidArgument, notFound, QueryFault } from "../errors.js";
import { callOf, jsonOf, readParam } from "../evm-arguments.js";
import type { QueryHandlers } from "../registry.js";
import type { QuerySources } from "../sources.js";

const SERVICE = "/cosmos.evm.vm.v1.Query";

/** The traces of this service. */
export function evmTraceQueries(sources: QuerySources): QueryHandlers {
  const { chain, calls } = sources;
  return {
    [`${SERVICE}/TraceTx`]: async (request, { signal, client }) => {
      if (!request.has("msg")) throw invalidArgument("empty request");
      const kind = traceKindOf(request);
      const hash = hashOf(request.submessage("msg"));
      const place = chain.view.locate(hash);
      const named = request.bigint("block_number");
      if (place === undefined || (named > 0n && BigInt(place.height) !== named)) {
        throw notFound(`transaction ${hash} is not ${named > 0n ? `in block ${named}` : "mined"}`);
      }
      const [trace] = await calls.traceBlock(place.height, place.index, kind, { signal, client });
      if (trace === undefined) throw new RangeError("a mined transaction has no trace");
      return { data: trace.json };
    },
    [`${SERVICE}/TraceBlock`]: async (request, { signal, client }) => {
      const kind = traceKindOf(request);
      const height = blockOf(sources, request.bigint("block_number"));
      const wanted = new Set(request.messages("txs").map(hashOf));
      const traces = await calls.traceBlock(height, undefined, kind, { signal, client });
      const hashes = new Set(traces.map(({ transactionHash }) => transactionHash));
      for (const hash of wanted) {
        if (!hashes.has(hash)) throw notFound(`transaction ${hash} is not in block ${height}`);
      }
      const pieces = traces
        .filter(({ transactionHash }) => wanted.size === 0 || wanted.has(transactionHash))
        .flatMap(({ json }, index) => [Buffer.from(`${index === 0 ? "[" : "},"}{"result":`), json]);
      const end = Buffer.from(pieces.length === 0 ? "[]" : "}]");
      return { data: Buffer.concat([...pieces, end]) };
    },
    [`${SERVICE}/TraceCall`]: async (request, { height, signal, client }) => {
      const kind = traceKindOf(request);
      const named = request.bigint("block_number");
      if (named > BigInt(height) + 1n) {
        const bound = `must be less than or equal to current height [${height}]`;
        throw new QueryFault("FAILED_PRECONDITION", `requested height [${named}] ${bound}`);
      }
      const data = await calls.traceCall(callOf(sources, request), height, kind, {
        signal,
        client,
      });
      return { data };
    },
  };
}

/** Hash of the transaction in a `MsgEthereumTx`; who sent it follows from its signature. */
function hashOf(message: MessageReader): Hash32 {
  const raw = message.bytes("raw");
  if (raw.length === 0) throw invalidArgument("a MsgEthereumTx has no raw transaction");
  return decodeTransaction(raw).hash;
}

/** A block that the chain has behind its genesis. */
function blockOf({ chain }: QuerySources, named: bigint): Height {
  const latest = chain.view.head().height;
  if (named < 1n) throw invalidArgument("block_number must be greater than 0");
  if (named <= BigInt(latest)) return Number(named);
  const text = `requested height [${named}] must be less than or equal to current height [${latest}]`;
  throw new QueryFault("FAILED_PRECONDITION", text);
}

/** `TraceConfig` as the options that `debug_trace...` take. */
function traceKindOf(request: MessageReader): TraceKind {
  const config = request.submessage("trace_config");
  if (config.has("overrides")) throw invalidArgument("trace_config: overrides are not served");
  const limit = config.number("limit");
  if (limit < 0) {
    throw invalidArgument(`output limit cannot be negative, got ${limit}`);
  }
  const tracer = config.text("tracer");
  const tracerConfig = config.text("tracer_json_config");
  const options = {
    ...(tracer === "" ? {} : { tracer }),
    ...(tracerConfig === ""
      ? {}
      : { tracerConfig: jsonOf(Buffer.from(tracerConfig), "tracer_json_config") }),
    limit,
    disableStack: config.boolean("disable_stack"),
    disableStorage: config.boolean("disable_storage"),
    enableMemory: config.boolean("enable_memory"),
    enableReturnData: config.boolean("enable_return_data"),
  };
  return readParam(() => parseTraceConfig(options), "trace_config");
}
