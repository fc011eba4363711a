/** The call object, state overrides and trace options of a client, parsed. */
import { type Address, parseAddress, ZERO_ADDRESS } from "../../../chain/address.js";
import { bytesEqual, type Hash32 } from "../../../chain/hex.js";
import type { AccessListEntry } from "../../../chain/transaction.js";
import type { CallRequest, StateOverrides, TraceKind } from "../../execution/call-port.js";
import { RpcFault } from "./errors.js";
import {
  optionalField,
  ParamError,
  parseAddressParam,
  parseBoolean,
  parseBytes,
  parseHashParam,
  parseList,
  parseObject,
  parseSlot,
  parseUint256,
  parseUint64,
} from "./params.js";

/** Accounts in a state override; calls are answered in workers, the message is copied there. */
const MAX_OVERRIDES = 1_024;

/** Storage slots of one overridden account. */
const MAX_OVERRIDE_SLOTS = 16_384;

/** Entries of an access list, and slots of an entry. */
const MAX_ACCESS_LIST = 16_384;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Parser of call objects for one chain. Members that change nothing here (nonce, type) are
 * checked and dropped; `input` wins over its old name `data`, but both must agree.
 */
export function callRequestParser(chainId: bigint): (value: unknown) => CallRequest {
  return (value) => {
    const fields = parseObject(value);
    const named = optionalField(fields, "chainId", parseUint256);
    if (named !== undefined && named !== chainId) {
      throw new RpcFault(
        "INVALID_PARAMS",
        `chainId does not match node's (have=${named}, want=${chainId})`,
      );
    }
    optionalField(fields, "nonce", parseUint64);
    const blobs = optionalField(fields, "blobVersionedHashes", (list) => list);
    if (blobs !== undefined) throw new ParamError("blob transactions are not supported");
    const from = optionalField(fields, "from", parseAddressParam) ?? ZERO_ADDRESS;
    return {
      from,
      to: optionalField(fields, "to", parseAddressParam),
      valueAtoken: optionalField(fields, "value", parseUint256) ?? 0n,
      gasPriceAtoken: parsePrice(fields),
      gasLimit: optionalField(fields, "gas", parseUint64),
      data: parseCalldata(fields),
      accessList: optionalField(fields, "accessList", parseAccessList) ?? [],
    };
  };
}

function parsePrice(fields: Fields): bigint {
  const price = optionalField(fields, "gasPrice", parseUint256);
  const maxFee = optionalField(fields, "maxFeePerGas", parseUint256);
  const tip = optionalField(fields, "maxPriorityFeePerGas", parseUint256);
  if (price !== undefined && (maxFee !== undefined || tip !== undefined)) {
    throw new RpcFault(
      "SERVER_ERROR",
      "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
    );
  }
  if (price !== undefined) return price;
  if (maxFee !== undefined && tip !== undefined && maxFee < tip) {
    throw new RpcFault("SERVER_ERROR", `maxFeePerGas (${maxFee}) < maxPriorityFeePerGas (${tip})`);
  }
  // Base fee 0 (D7): the effective price is the smaller of the two, 0 where one is missing.
  const cap = maxFee ?? 0n;
  const wanted = tip ?? 0n;
  return wanted < cap ? wanted : cap;
}

function parseCalldata(fields: Fields): Uint8Array {
  const input = optionalField(fields, "input", parseBytes);
  const data = optionalField(fields, "data", parseBytes);
  if (input !== undefined && data !== undefined && !bytesEqual(input, data)) {
    throw new RpcFault(
      "SERVER_ERROR",
      'both "data" and "input" are set and not equal. Please use "input" to pass transaction ' +
        "call data",
    );
  }
  return input ?? data ?? new Uint8Array(0);
}

function parseAccessList(value: unknown): readonly AccessListEntry[] {
  return parseList(value, MAX_ACCESS_LIST, (item) => {
    const entry = parseObject(item);
    const address = optionalField(entry, "address", parseAddressParam);
    if (address === undefined) throw new ParamError("access list entry without address");
    return { address, storageKeys: optionalField(entry, "storageKeys", parseKeys) ?? [] };
  });
}

function parseKeys(value: unknown): readonly Hash32[] {
  return parseList(value, MAX_ACCESS_LIST, parseHashParam);
}

function boundedEntries(value: unknown, max: number): [string, unknown][] {
  const entries = Object.entries(parseObject(value));
  if (entries.length > max) throw new ParamError(`at most ${max} entries are allowed`);
  return entries;
}

function parseSlotMap(value: unknown): ReadonlyMap<Hash32, bigint> {
  const slots = boundedEntries(value, MAX_OVERRIDE_SLOTS);
  return new Map(slots.map(([slot, word]) => [parseSlot(slot), BigInt(parseSlot(word))]));
}

/** go-ethereum's state override set. Throws ParamError. */
export function parseOverrides(value: unknown): StateOverrides {
  const overrides = new Map<Address, NonNullable<ReturnType<typeof parseOverride>>>();
  for (const [key, item] of boundedEntries(value, MAX_OVERRIDES)) {
    overrides.set(parseAddressParam(key), parseOverride(item));
  }
  return overrides;
}

function parseOverride(value: unknown) {
  const fields = parseObject(value);
  const state = optionalField(fields, "state", parseSlotMap);
  const stateDiff = optionalField(fields, "stateDiff", parseSlotMap);
  if (state !== undefined && stateDiff !== undefined) {
    throw new ParamError("account has both 'state' and 'stateDiff'");
  }
  const moved = optionalField(fields, "movePrecompileToAddress", parseAddress);
  if (moved !== undefined) throw new ParamError("movePrecompileToAddress is not supported");
  return {
    balanceAtoken: optionalField(fields, "balance", parseUint256),
    nonce: optionalField(fields, "nonce", parseUint64),
    code: optionalField(fields, "code", parseBytes),
    state,
    stateDiff,
  };
}

/** Block overrides cannot be honoured: empty ones are taken, others refused. Throws ParamError. */
export function parseNoBlockOverrides(value: unknown): void {
  if (Object.keys(parseObject(value)).length > 0) {
    throw new ParamError("block overrides are not supported");
  }
}

function option(fields: Fields, name: string): boolean {
  return optionalField(fields, name, parseBoolean) ?? false;
}

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
