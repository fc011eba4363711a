/**
 * Parameters of /call, strictly read: an unknown field or a wrong type is CALL_PARAMETERS_INVALID
 * with the field. Names are those of Mesh's own Ethereum implementation where it has the method.
 */
import {
  ACCOUNT_PREFIX,
  type Address,
  bech32PrefixOf,
  parseBech32,
  parseStrictAddress,
  VALIDATOR_PREFIX,
} from "../../chain/address.js";
import { type Hash32, type Height, type Hex, parseHex } from "../../chain/hex.js";
import { MAX_GAS } from "../../chain/transaction-rules.js";
import { MAX_ATOKEN } from "../../chain/units.js";
import type { CallMessage, TraceOptions } from "../../rpc-client/forwarded-calls.js";
import {
  type BlockIdentifier,
  type BlockReference,
  parseBlockIdentifier,
  parseBlockReference,
  parseHash,
} from "../rosetta/identifiers.js";
import {
  type Fields,
  fault,
  inside,
  type Place,
  readFields,
  readFlag,
  readIndex,
  readItems,
  readMaybe,
  readText,
  readUnsigned,
} from "../rosetta/request-fields.js";

/** Storage keys of one proof, as the node allows. */
const MAX_STORAGE_KEYS = 1_024;

/** Blocks of one call, and transactions of them: an answer is bounded by its bytes as well. */
const MAX_BLOCKS = 64;
const MAX_WANTED_TRANSACTIONS = 4_096;

/** Where parameters stand. */
export const PARAMETERS: Place = { at: "parameters", code: "CALL_PARAMETERS_INVALID" };

/** A block as everywhere in Rosetta, or by its two parts as Mesh's Ethereum clients send them. */
const BLOCK_FIELDS = ["block_identifier", "index", "hash"];

/** Parameters of `eth_call`. */
export interface EthCallParameters {
  readonly message: CallMessage;
  readonly block: BlockReference;
}

/** Reads the parameters of `eth_call`. Throws CALL_PARAMETERS_INVALID. */
export function readEthCall(value: unknown): EthCallParameters {
  const known = ["from", "to", "gas", "gas_price", "value", "data"];
  const fields = readFields(value, PARAMETERS, [...known, ...BLOCK_FIELDS]);
  const from = optional(fields, "from", readAddress);
  const to = optional(fields, "to", readAddress);
  const data = optional(fields, "data", readData);
  if (to === undefined && data === undefined)
    throw fault(inside(PARAMETERS, "to"), "to, data or both");
  const gas = optional(fields, "gas", readGas);
  const gasPriceAtoken = optional(fields, "gas_price", readWord);
  const valueAtoken = optional(fields, "value", readWord);
  return {
    message: {
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
      ...(gas === undefined ? {} : { gas }),
      ...(gasPriceAtoken === undefined ? {} : { gasPriceAtoken }),
      ...(valueAtoken === undefined ? {} : { valueAtoken }),
      ...(data === undefined ? {} : { data }),
    },
    block: readBlock(fields),
  };
}

/** Reads the parameters of `eth_getTransactionReceipt`. Throws CALL_PARAMETERS_INVALID. */
export function readReceiptParameters(value: unknown): Hash32 {
  return required(readFields(value, PARAMETERS, ["tx_hash"]), "tx_hash", parseHash);
}

/** Parameters of `eth_getProof`. */
export interface ProofParameters {
  readonly address: Address;
  readonly storageKeys: readonly Hash32[];
  readonly block: BlockReference;
}

/** Reads the parameters of `eth_getProof`. Throws CALL_PARAMETERS_INVALID. */
export function readProofParameters(value: unknown): ProofParameters {
  const fields = readFields(value, PARAMETERS, ["address", "storage_keys", ...BLOCK_FIELDS]);
  return {
    address: required(fields, "address", readAddress),
    storageKeys: optional(fields, "storage_keys", readStorageKeys) ?? [],
    block: readBlock(fields),
  };
}

/** Options of each tracer, all false by default. */
const TRACER_FLAGS = {
  callTracer: ["only_top_call", "with_log"],
  prestateTracer: ["diff_mode"],
  structLogger: ["enable_memory", "disable_stack", "disable_storage", "enable_return_data"],
} as const satisfies Record<TraceOptions["tracer"], readonly string[]>;

/** Parameters of `debug_traceTransaction`. */
export interface TraceParameters {
  readonly hash: Hash32;
  readonly trace: TraceOptions;
}

/** Reads the parameters of `debug_traceTransaction`. Throws CALL_PARAMETERS_INVALID. */
export function readTraceParameters(value: unknown): TraceParameters {
  const tracer = optional(readFields(value, PARAMETERS), "tracer", readTracer) ?? "callTracer";
  const fields = readFields(value, PARAMETERS, ["tx_hash", "tracer", ...TRACER_FLAGS[tracer]]);
  const hash = required(fields, "tx_hash", parseHash);
  const flag = (name: string) => optional(fields, name, readFlag) ?? false;
  if (tracer === "callTracer") {
    const config = { onlyTopCall: flag("only_top_call"), withLog: flag("with_log") };
    return { hash, trace: { tracer, tracerConfig: config } };
  }
  if (tracer === "prestateTracer") {
    return { hash, trace: { tracer, tracerConfig: { diffMode: flag("diff_mode") } } };
  }
  const config = {
    enableMemory: flag("enable_memory"),
    disableStack: flag("disable_stack"),
    disableStorage: flag("disable_storage"),
    enableReturnData: flag("enable_return_data"),
  };
  return { hash, trace: { tracer, ...config } };
}

/**
 * Reads the parameters of `address_convert`: `address` in any of its three forms.
 * @throws CALL_PARAMETERS_INVALID
 */
export function readConvertParameters(value: unknown): Address {
  return required(readFields(value, PARAMETERS, ["address"]), "address", readAnyAddress);
}

/** Reads the parameters of `token_status`. Throws CALL_PARAMETERS_INVALID. */
export function readTokenParameters(value: unknown): Address {
  const fields = readFields(value, PARAMETERS, ["contract_address"]);
  return required(fields, "contract_address", readAddress);
}

/** Blocks in a row that `block_accounts` is asked for, both ends included. */
export interface BlockRange {
  readonly from: Height;
  readonly to: Height;
}

/** Reads the parameters of `block_accounts`. Throws CALL_PARAMETERS_INVALID. */
export function readBlockRange(value: unknown): BlockRange {
  const fields = readFields(value, PARAMETERS, ["from_index", "to_index"]);
  const from = required(fields, "from_index", readIndex);
  const to = required(fields, "to_index", readIndex);
  if (to < from || to - from >= MAX_BLOCKS) {
    throw fault(inside(PARAMETERS, "to_index"), `from_index to from_index + ${MAX_BLOCKS - 1}`);
  }
  return { from, to };
}

/** Transactions of a block by their positions in it, the block-level one included. */
export interface WantedTransactions {
  readonly block: BlockIdentifier;
  readonly positions: readonly number[];
}

/** Reads the parameters of `block_transactions`. Throws CALL_PARAMETERS_INVALID. */
export function readWantedTransactions(value: unknown): readonly WantedTransactions[] {
  const fields = readFields(value, PARAMETERS, ["blocks"]);
  const wanted = readItems(fields["blocks"], inside(PARAMETERS, "blocks")).map((item, index) => {
    const place = inside(inside(PARAMETERS, "blocks"), index);
    const { block_identifier, positions } = readFields(item, place, [
      "block_identifier",
      "positions",
    ]);
    const at = inside(place, "positions");
    return {
      block: parseBlockIdentifier(block_identifier, inside(place, "block_identifier")),
      positions: readItems(positions, at).map((position, number) =>
        readIndex(position, inside(at, number)),
      ),
    };
  });
  const count = wanted.reduce((sum, { positions }) => sum + positions.length, 0);
  if (wanted.length > MAX_BLOCKS || count > MAX_WANTED_TRANSACTIONS) {
    const most = `at most ${MAX_BLOCKS} blocks and ${MAX_WANTED_TRANSACTIONS} positions`;
    throw fault(inside(PARAMETERS, "blocks"), most);
  }
  return wanted;
}

type Reader<T> = (value: unknown, place: Place) => T;

function optional<T>(fields: Fields, name: string, reader: Reader<T>): T | undefined {
  return readMaybe(fields[name], inside(PARAMETERS, name), reader);
}

function required<T>(fields: Fields, name: string, reader: Reader<T>): T {
  return reader(fields[name], inside(PARAMETERS, name));
}

function readBlock(fields: Fields): BlockReference {
  const whole = optional(fields, "block_identifier", parseBlockReference);
  const index = optional(fields, "index", readIndex);
  const hash = optional(fields, "hash", parseHash);
  if (whole === undefined) return { index, hash };
  if (index === undefined && hash === undefined) return whole;
  throw fault(inside(PARAMETERS, "block_identifier"), "no index and no hash beside it");
}

function readAddress(value: unknown, place: Place): Address {
  try {
    return parseStrictAddress(value);
  } catch {
    throw fault(place, "0x and 40 hex digits, all lower case or with a right checksum");
  }
}

function readAnyAddress(value: unknown, place: Place): Address {
  const text = readText(value, place);
  const prefix = bech32PrefixOf(text, [VALIDATOR_PREFIX, ACCOUNT_PREFIX]);
  if (prefix === undefined) return readAddress(text, place);
  try {
    return parseBech32(text, prefix);
  } catch {
    throw fault(place, `20 bytes as bech32 with the prefix ${prefix}`);
  }
}

function readData(value: unknown, place: Place): Hex {
  try {
    return parseHex(value);
  } catch {
    throw fault(place, "0x and an even number of hex digits");
  }
}

function readGas(value: unknown, place: Place): bigint {
  return readAmount(value, place, MAX_GAS);
}

function readWord(value: unknown, place: Place): bigint {
  return readAmount(value, place, MAX_ATOKEN);
}

/** A decimal string; a JSON number as well, as Mesh's clients send it, where it is exact. */
function readAmount(value: unknown, place: Place, max: bigint): bigint {
  const text = typeof value === "number" ? readIndex(value, place).toString() : value;
  return readUnsigned(text, place, max);
}

function readTracer(value: unknown, place: Place): TraceOptions["tracer"] {
  const text = readText(value, place);
  if (text === "callTracer" || text === "prestateTracer" || text === "structLogger") return text;
  throw fault(place, "callTracer, prestateTracer or structLogger");
}

function readStorageKeys(value: unknown, place: Place): readonly Hash32[] {
  const items = readItems(value, place);
  if (items.length > MAX_STORAGE_KEYS) throw fault(place, `at most ${MAX_STORAGE_KEYS} keys`);
  return items.map((item, index) => parseHash(item, inside(place, index)));
}
