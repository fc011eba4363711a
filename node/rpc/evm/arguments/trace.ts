/** The options of the debug_trace methods, parsed. */
import type { TraceKind } from "../../../execution/calls/call-port.js";
import { RpcFault } from "../errors.js";
import { optionalField, ParamError, parseBoolean, parseObject } from "../params.js";

type Fields = Readonly<Record<string, unknown>>;

/** Tracers in one muxTracer, and such tracers in each other: the work of an instruction is bounded. */
const MAX_MUX_TRACERS = 8;
const MAX_MUX_DEPTH = 3;

/** Largest `limit`: no trace comes near it. */
const MAX_LIMIT = 2 ** 31 - 1;

/** What a tracer's name looks like; anything else is a program. */
const NAME = /^[0-9A-Za-z_]{1,64}$/;

/** Members of the options and of every tracer's own. */
const OPTIONS = [
  "tracer",
  "tracerConfig",
  "enableMemory",
  "disableStack",
  "disableStorage",
  "enableReturnData",
  "limit",
  "onlyTopCall",
  "withLog",
  "convertParityErrors",
  "includePrecompiles",
  "diffMode",
  "disableCode",
  "includeEmpty",
  "stateOverrides",
  "blockOverrides",
  "txIndex",
];

const OPTION_IN_ANY_CASE = new Map(OPTIONS.map((name) => [name.toLowerCase(), name]));

/**
 * The options of a trace under the names that we know, whatever their case; of two spellings the last
 * one counts. go-ethereum reads them so, and its own client relies on it: it writes `Tracer` and
 * `EnableMemory`, because its struct of options names no members for JSON.
 * @throws ParamError
 */
export function parseTraceOptions(value: unknown): Fields {
  const members = Object.entries(parseObject(value));
  return Object.fromEntries(
    members.map(([name, item]) => [OPTION_IN_ANY_CASE.get(name.toLowerCase()) ?? name, item]),
  );
}

/** Options of the debug_trace methods. Throws ParamError. */
export function parseTraceConfig(value: unknown): TraceKind {
  const fields = parseTraceOptions(value);
  const tracer = optionalField(fields, "tracer", (name) => name);
  if (tracer === undefined || tracer === "structLogger") {
    return {
      tracer: "structLogger",
      enableMemory: option(fields, "enableMemory"),
      disableStack: option(fields, "disableStack"),
      disableStorage: option(fields, "disableStorage"),
      enableReturnData: option(fields, "enableReturnData"),
      limit: optionalField(fields, "limit", parseLimit) ?? 0,
    };
  }
  return parseNamedTracer(
    tracer,
    optionalField(fields, "tracerConfig", parseTraceOptions) ?? {},
    1,
  );
}

function parseNamedTracer(tracer: unknown, config: Fields, depth: number): TraceKind {
  switch (tracer) {
    case "callTracer":
      return {
        tracer,
        onlyTopCall: option(config, "onlyTopCall"),
        withLog: option(config, "withLog"),
      };
    case "flatCallTracer":
      return {
        tracer,
        convertParityErrors: option(config, "convertParityErrors"),
        includePrecompiles: option(config, "includePrecompiles"),
      };
    case "prestateTracer":
      return parsePrestate(config);
    case "4byteTracer":
    case "noopTracer":
      return { tracer };
    case "muxTracer":
      return { tracer, tracers: parseMux(config, depth) };
    default:
      throw new RpcFault("SERVER_ERROR", unknownText(tracer));
  }
}

function parsePrestate(config: Fields): TraceKind {
  const diffMode = option(config, "diffMode");
  const includeEmpty = option(config, "includeEmpty");
  if (diffMode && includeEmpty) {
    throw new RpcFault("SERVER_ERROR", "cannot use diffMode with includeEmpty");
  }
  return {
    tracer: "prestateTracer",
    diffMode,
    disableCode: option(config, "disableCode"),
    disableStorage: option(config, "disableStorage"),
    includeEmpty,
  };
}

function parseMux(config: Fields, depth: number): readonly (readonly [string, TraceKind])[] {
  const entries = Object.entries(config);
  if (entries.length > MAX_MUX_TRACERS || depth > MAX_MUX_DEPTH) {
    const bounds = `${MAX_MUX_TRACERS} tracers, ${MAX_MUX_DEPTH} of them in each other`;
    throw new RpcFault("SERVER_ERROR", `a muxTracer holds at most ${bounds}`);
  }
  return entries.map(([name, value]) => {
    const options = value === null ? {} : parseTraceOptions(value);
    return [name, parseNamedTracer(name, options, depth + 1)];
  });
}

/** JavaScript tracers would run a client's program in the node: they are never served. */
function unknownText(tracer: unknown): string {
  if (typeof tracer === "string" && NAME.test(tracer)) return "tracer not found";
  return (
    "JavaScript tracers are not served: use callTracer, flatCallTracer, prestateTracer, " +
    "4byteTracer, muxTracer or no tracer for struct logs"
  );
}

function parseLimit(value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_LIMIT) {
    return value;
  }
  throw new ParamError(`expected a number from 0 to ${MAX_LIMIT}`);
}

/** The trace when a client gives no options: the struct logger, as in go-ethereum. */
export const DEFAULT_TRACE: TraceKind = parseTraceConfig({});

function option(fields: Fields, name: string): boolean {
  return optionalField(fields, name, parseBoolean) ?? false;
}
