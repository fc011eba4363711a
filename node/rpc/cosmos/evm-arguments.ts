/** What requests of the EVM's queries bring as JSON, read by the parsers of the JSON-RPC. */
import type { MessageReader } from "../../../chain/protobuf/values.js";
import { callRequestParser } from "../evm/arguments/call.js";
import { hasTooManyValues } from "../json-text.js";
import { RpcFault } from "../evm/errors.js";
import { ParamError } from "../evm/params.js";
import { invalidArgument } from "./errors.js";
import type { QuerySources } from "./sources.js";

/** Reads a parameter with a parser of the JSON-RPC; what it refuses is INVALID_ARGUMENT. */
export function readParam<Value>(read: () => Value, name: string): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ParamError) && !(error instanceof RpcFault)) throw error;
    throw invalidArgument(`${name}: ${error.message}`);
  }
}

/** JSON in UTF-8. @throws INVALID_ARGUMENT */
export function jsonOf(bytes: Uint8Array, name: string): unknown {
  const json = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (hasTooManyValues(json)) throw invalidArgument(`${name}: too large`);
  try {
    return JSON.parse(json.toString("utf8"));
  } catch {
    throw invalidArgument(`${name}: no JSON`);
  }
}

/** The call in a request's `args`, with the gas that it may take. @throws INVALID_ARGUMENT */
export function callOf({ evmChainId }: QuerySources, request: MessageReader) {
  const args = jsonOf(request.bytes("args"), "args");
  const call = readParam(() => callRequestParser(evmChainId)(args), "args");
  const cap = request.bigint("gas_cap");
  const isCapped = cap > 0n && (call.gasLimit === undefined || call.gasLimit > cap);
  return isCapped ? { ...call, gasLimit: cap } : call;
}
