/** Parsers of untrusted JSON-RPC parameters, with go-ethereum's texts. */
import { parseAddress, type Address } from "../../../chain/address.js";
import { type Hash32, type Height, type Hex, hexToBytes, parseHash32 } from "../../../chain/hex.js";
import { invalidParams, RpcFault } from "./errors.js";

/** Why a value was refused; `Params` puts the position in front. */
export class ParamError extends Error {}

/** The positional parameters of one call. */
export class Params {
  constructor(private readonly values: readonly unknown[]) {}

  /**
   * The parsed value at a position; null counts as missing.
   * @throws INVALID_PARAMS
   */
  required<T>(index: number, parse: (value: unknown) => T): T {
    const value = this.values[index];
    if (value === undefined || value === null) {
      throw invalidParams(`missing value for required argument ${index}`);
    }
    return this.parsed(index, value, parse);
  }

  /** The parsed value, or undefined where it is missing or null. Throws INVALID_PARAMS. */
  optional<T>(index: number, parse: (value: unknown) => T): T | undefined {
    const value = this.values[index];
    if (value === undefined || value === null) return undefined;
    return this.parsed(index, value, parse);
  }

  private parsed<T>(index: number, value: unknown, parse: (value: unknown) => T): T {
    try {
      return parse(value);
    } catch (error) {
      if (error instanceof RpcFault) throw error;
      if (!(error instanceof ParamError)) throw error;
      throw invalidParams(`invalid argument ${index}: ${error.message}`);
    }
  }
}

/** A block as a client names it. */
export type BlockRef =
  | { readonly kind: "latest" }
  /** The pool's view for nonces, `latest` for everything else (D11). */
  | { readonly kind: "pending" }
  | { readonly kind: "height"; readonly height: Height }
  | { readonly kind: "hash"; readonly hash: Hash32 };

/** Hex digits after the prefix; go-ethereum's texts for what is wrong. */
function hexDigits(value: unknown): string {
  if (typeof value !== "string") throw new ParamError("non-string");
  if (value === "") throw new ParamError("empty hex string");
  if (!/^0[xX]/.test(value)) throw new ParamError("hex string without 0x prefix");
  const digits = value.slice(2);
  if (!/^[0-9a-fA-F]*$/.test(digits)) throw new ParamError("invalid hex string");
  return digits;
}

/** Unsigned quantity of at most `bits` bits. Throws ParamError. */
function parseUnsigned(value: unknown, bits: number): bigint {
  const digits = hexDigits(value);
  if (digits === "") throw new ParamError('hex string "0x"');
  if (digits.length > 1 && digits.startsWith("0")) {
    throw new ParamError("hex number with leading zero digits");
  }
  if (digits.length * 4 > bits) throw new ParamError(`hex number > ${bits} bits`);
  return BigInt(`0x${digits}`);
}

/** Quantity below 2^64. Throws ParamError. */
export function parseUint64(value: unknown): bigint {
  return parseUnsigned(value, 64);
}

/** Quantity below 2^256. Throws ParamError. */
export function parseUint256(value: unknown): bigint {
  return parseUnsigned(value, 256);
}

/** Index or count as a quantity; beyond 2^53 it is cut there, where nothing exists. */
export function parseIndex(value: unknown): number {
  return toSafeNumber(parseUint64(value));
}

/** A time as a JSON number, or as a quantity; beyond 2^53 it is cut there. Throws ParamError. */
export function parseMilliseconds(value: unknown): number {
  if (typeof value !== "number") return parseIndex(value);
  if (!Number.isInteger(value) || value < 0) throw new ParamError("expected milliseconds");
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

function toSafeNumber(value: bigint): number {
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
}

/** Id of a filter or a subscription: each text is looked up, and is unknown at most. Throws ParamError. */
export function parseId(value: unknown): Hex {
  if (typeof value !== "string") throw new ParamError("non-string");
  return value as Hex;
}

/** Hex of whole bytes; an empty text is no bytes, as in go-ethereum. Throws ParamError. */
export function parseBytes(value: unknown): Uint8Array {
  if (value === "") return new Uint8Array(0);
  const digits = hexDigits(value);
  if (digits.length % 2 !== 0) throw new ParamError("hex string of odd length");
  return hexToBytes(`0x${digits}`);
}

/** 20 bytes; any case. Throws ParamError. */
export function parseAddressParam(value: unknown): Address {
  const digits = hexDigits(value);
  if (digits.length !== 40) {
    throw new ParamError(`hex string has length ${digits.length}, want 40 for an address`);
  }
  return parseAddress(`0x${digits}`);
}

/** 32 bytes; any case. Throws ParamError. */
export function parseHashParam(value: unknown): Hash32 {
  const digits = hexDigits(value);
  if (digits.length !== 64) {
    throw new ParamError(`hex string has length ${digits.length}, want 64 for a hash`);
  }
  return parseHash32(`0x${digits}`);
}

/** Storage slot: 1 to 64 digits, with or without leading zeros. Throws ParamError. */
export function parseSlot(value: unknown): Hash32 {
  const digits = hexDigits(value);
  if (digits.length > 64) throw new ParamError("storage key too long (want at most 32 bytes)");
  return parseHash32(`0x${digits.padStart(64, "0")}`);
}

/** Of a text that is repeated in an error: it comes from the client. */
const MAX_SHOWN_CHARACTERS = 100;

/**
 * Key of eth_getStorageAt and eth_getProof: at most 32 bytes, with or without prefix and leading
 * zeros. Other than everywhere else no digits at all are zero, as go-ethereum has it for older
 * clients (`decodeStorageKey`).
 * @returns the slot, and whether the text wrote all 32 bytes of it
 * @throws ParamError; INVALID_PARAMS with go-ethereum's text, which repeats the key
 */
export function parseStorageKey(value: unknown): {
  readonly slot: Hash32;
  readonly isWhole: boolean;
} {
  if (typeof value !== "string") throw new ParamError("non-string");
  const digits = value.replace(/^0[xX]/, "");
  const shown = () => JSON.stringify(value.slice(0, MAX_SHOWN_CHARACTERS));
  if (digits.length > 64) {
    throw invalidParams(`storage key too long (want at most 32 bytes): ${shown()}`);
  }
  if (!/^[0-9a-fA-F]*$/.test(digits)) throw invalidParams(`invalid hex in storage key: ${shown()}`);
  return { slot: parseHash32(`0x${digits.padStart(64, "0")}`), isWhole: digits.length > 62 };
}

/** JSON true or false. Throws ParamError. */
export function parseBoolean(value: unknown): boolean {
  if (typeof value !== "boolean") throw new ParamError("expected a boolean");
  return value;
}

/** A JSON object that is no array. Throws ParamError. */
export function parseObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ParamError("expected an object");
  }
  return value as Readonly<Record<string, unknown>>;
}

/** A JSON array of at most `max` values, each parsed. Throws ParamError. */
export function parseList<T>(
  value: unknown,
  max: number,
  parse: (value: unknown) => T,
): readonly T[] {
  if (!Array.isArray(value)) throw new ParamError("expected an array");
  if (value.length > max) throw new ParamError(`at most ${max} values are allowed`);
  return value.map((item: unknown) => parse(item));
}

/** Own property of a parsed object; undefined where it is missing or null. */
export function field(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

/** Parsed own property, or undefined where it is missing or null. Throws ParamError. */
export function optionalField<T>(
  object: Readonly<Record<string, unknown>>,
  name: string,
  parse: (value: unknown) => T,
): T | undefined {
  const value = field(object, name);
  if (value === undefined) return undefined;
  try {
    return parse(value);
  } catch (error) {
    if (error instanceof ParamError) throw new ParamError(`${name}: ${error.message}`);
    throw error;
  }
}

/** Number or tag: latest, safe and finalized are the same block here (D11). Throws ParamError. */
export function parseBlockNumberOrTag(value: unknown): BlockRef {
  switch (value) {
    case "latest":
    case "safe":
    case "finalized":
      return { kind: "latest" };
    case "pending":
      return { kind: "pending" };
    case "earliest":
      return { kind: "height", height: 0 };
    default:
      return { kind: "height", height: toSafeNumber(parseUint64(value)) };
  }
}

/**
 * Number, tag, block hash, or EIP-1898's `{blockNumber}` / `{blockHash, requireCanonical}`.
 * Every block here is canonical, so `requireCanonical` changes nothing. Throws ParamError.
 */
export function parseBlockRef(value: unknown): BlockRef {
  if (typeof value === "string") {
    if (/^0[xX][0-9a-fA-F]{64}$/.test(value)) return { kind: "hash", hash: parseHashParam(value) };
    return parseBlockNumberOrTag(value);
  }
  const object = parseObject(value);
  const hash = optionalField(object, "blockHash", parseHashParam);
  const number = optionalField(object, "blockNumber", parseBlockNumberOrTag);
  optionalField(object, "requireCanonical", parseBoolean);
  if (hash !== undefined && number !== undefined) {
    throw new ParamError("cannot specify both BlockHash and BlockNumber, choose one or the other");
  }
  if (hash !== undefined) return { kind: "hash", hash };
  if (number !== undefined) return number;
  throw new ParamError("either blockHash or blockNumber is needed");
}
