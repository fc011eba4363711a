/** The options of the debug_trace methods, parsed. */
import type { TraceKind } from "../../../execution/calls/call-port.js";
import { RpcFault } from "../errors.js";
import { optionalField, parseBoolean, parseObject } from "../params.js";

type Fields = Readonly<Record<string, unknown>>;

/** Options of the debug_trace methods. Throws ParamError. */
export function parseTraceConfig(value: unknown): TraceKind {
  const fields = parseObject(value);
  const tracer = optionalField(fields, "tracer", (name) => name);
  const config = optionalField(fields, "tracerConfig", parseObject) ?? {};
  switch (tracer) {
    case undefined:
    case "structLogger":
      return {
        tracer: "structLogger",
        enableMemory: option(fields, "enableMemory"),
        disableStack: option(fields, "disableStack"),
        disableStorage: option(fields, "disableStorage"),
        enableReturnData: option(fields, "enableReturnData"),
      };
    case "callTracer":
      return {
        tracer,
        onlyTopCall: option(config, "onlyTopCall"),
        withLog: option(config, "withLog"),
      };
    case "prestateTracer":
      return { tracer, diffMode: option(config, "diffMode") };
    default:
      // JavaScript tracers run a client's program in the node: never served.
      throw new RpcFault("SERVER_ERROR", "tracer not found");
  }
}

/** The trace when a client gives no options: the struct logger, as in go-ethereum. */
export const DEFAULT_TRACE: TraceKind = parseTraceConfig({});

function option(fields: Fields, name: string): boolean {
  return optionalField(fields, name, parseBoolean) ?? false;
}
