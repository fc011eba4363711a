/** What eth_simulateV1 is asked, parsed, with go-ethereum's bounds. */
import type {
  BlockStateCalls,
  CallRequest,
  SimulationRequest,
} from "../../../execution/calls/call-port.js";
import { invalidParams, RpcFault } from "../errors.js";
import { parseBlockOverrides, parseOverrides, SlotRoom } from "./overrides.js";
import { field, optionalField, ParamError, parseBoolean, parseObject } from "../params.js";

const MAX_BLOCKS = 256;
const MAX_CALLS_PER_BLOCK = 5_000;
const MAX_CALLS = 10_000;

/** Parser of a simulation's description, by the chain's parser of call objects. */
export function simulationParser(
  parseCall: (value: unknown) => CallRequest,
): (value: unknown) => SimulationRequest {
  return (value) => {
    const fields = parseObject(value);
    const list = field(fields, "blockStateCalls") ?? [];
    if (!Array.isArray(list)) throw new ParamError("blockStateCalls: expected an array");
    if (list.length === 0) throw invalidParams("empty input");
    if (list.length > MAX_BLOCKS) throw tooMany("too many blocks");
    let callCount = 0;
    const room = new SlotRoom();
    const parseState = (set: unknown) => parseOverrides(set, room);
    const blocks = list.map((item: unknown): BlockStateCalls => {
      const block = parseObject(item);
      const calls = callsOf(block);
      callCount += calls.length;
      if (callCount > MAX_CALLS) throw tooMany(`too many calls: ${callCount} > ${MAX_CALLS}`);
      return {
        blockOverrides: optionalField(block, "blockOverrides", parseBlockOverrides) ?? {},
        overrides: optionalField(block, "stateOverrides", parseState) ?? new Map(),
        calls: calls.map(parseCall),
      };
    });
    return {
      blocks,
      traceTransfers: optionalField(fields, "traceTransfers", parseBoolean) ?? false,
      validation: optionalField(fields, "validation", parseBoolean) ?? false,
      returnFullTransactions:
        optionalField(fields, "returnFullTransactions", parseBoolean) ?? false,
    };
  };
}

function callsOf(block: Readonly<Record<string, unknown>>): readonly unknown[] {
  const calls = field(block, "calls") ?? [];
  if (!Array.isArray(calls)) throw new ParamError("calls: expected an array");
  if (calls.length > MAX_CALLS_PER_BLOCK) {
    throw tooMany(`too many calls in block: ${calls.length} > ${MAX_CALLS_PER_BLOCK}`);
  }
  return calls;
}

function tooMany(text: string): RpcFault {
  return new RpcFault("CLIENT_LIMIT_EXCEEDED", text);
}
