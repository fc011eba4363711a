/** Values in Solidity's contract ABI: strict reading of what callers send, and writing. */
import { type Address, addressToBytes, bytesToAddress } from "../../address.js";
import { AppError } from "../../errors.js";
import { bigintToWord, bytesToBigint } from "../../hex.js";
import { type AbiParameter, type AbiType, headWords, isDynamic } from "./abi-types.js";

/** Codes of faults in encoded values. */
export type AbiErrorCode = "ABI_INVALID";

/** Bytes that are not what their types say. */
export class AbiError extends AppError<AbiErrorCode> {}

/** A value: addresses and texts are strings, integers bigints, structs are by their names. */
export type AbiValue =
  | bigint
  | boolean
  | string
  | Uint8Array
  | readonly AbiValue[]
  | { readonly [name: string]: AbiValue };

const WORD = 32;
const UINT256 = 1n << 256n;

/**
 * Reads values by their names. What an honest encoder writes is read; dirty upper bits, offsets
 * behind the end, texts that are not UTF-8 and values that use the same bytes again and again are
 * refused, so that the work is bounded by the length of the bytes.
 * @throws ABI_INVALID
 */
export function decodeAbi(
  parameters: readonly AbiParameter[],
  bytes: Uint8Array,
): { readonly [name: string]: AbiValue } {
  return new Reader(bytes).members(parameters, 0);
}

class Reader {
  /** Bytes that values may still take; each of them is used once by who encodes honestly. */
  private leftBytes: number;

  constructor(private readonly bytes: Uint8Array) {
    this.leftBytes = bytes.length;
  }

  members(members: readonly AbiParameter[], start: number): { [name: string]: AbiValue } {
    const values: { [name: string]: AbiValue } = {};
    let at = start;
    for (const { name, type } of members) {
      values[name] = this.value(type, start, at);
      at += WORD * headWords(type);
    }
    return values;
  }

  /** The value whose head is at a place; offsets count from the start of what it is a member of. */
  private value(type: AbiType, start: number, at: number): AbiValue {
    return isDynamic(type) ? this.content(type, start + this.size(at)) : this.content(type, at);
  }

  private content(type: AbiType, at: number): AbiValue {
    switch (type.kind) {
      case "address":
        return this.address(at);
      case "bool":
        return this.bool(at);
      case "integer":
        return this.integer(type, at);
      case "string":
        return this.text(at);
      case "bytes":
        return this.data(at);
      case "tuple":
        return this.members(type.members, at);
      default:
        return this.list(type.item, at);
    }
  }

  private list(item: AbiType, at: number): AbiValue[] {
    const count = this.size(at);
    const start = at + WORD;
    const step = WORD * headWords(item);
    if (start + count * step > this.bytes.length) throw cutShort();
    return Array.from({ length: count }, (_, index) =>
      this.value(item, start, start + index * step),
    );
  }

  private address(at: number): Address {
    const word = this.word(at);
    if (word.subarray(0, 12).some((byte) => byte !== 0)) throw invalid("an address is too long");
    return bytesToAddress(word.subarray(12));
  }

  private bool(at: number): boolean {
    const value = bytesToBigint(this.word(at));
    if (value > 1n) throw invalid("a bool is neither 0 nor 1");
    return value === 1n;
  }

  private integer(type: AbiType & { kind: "integer" }, at: number): bigint {
    const raw = bytesToBigint(this.word(at));
    const value = type.isSigned && raw >> 255n === 1n ? raw - UINT256 : raw;
    if (!isInRange(type, value)) throw invalid("an integer is out of its type's range");
    return value;
  }

  private text(at: number): string {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.data(at));
    } catch (cause) {
      if (cause instanceof AbiError) throw cause;
      throw invalid("a string is not UTF-8");
    }
  }

  private data(at: number): Uint8Array {
    const length = this.size(at);
    const start = at + WORD;
    if (start + length > this.bytes.length) throw cutShort();
    this.take(length);
    return this.bytes.slice(start, start + length);
  }

  /** An offset or length: no more than there are bytes. */
  private size(at: number): number {
    const value = bytesToBigint(this.word(at));
    if (value > BigInt(this.bytes.length)) throw cutShort();
    return Number(value);
  }

  private word(at: number): Uint8Array {
    if (at + WORD > this.bytes.length) throw cutShort();
    this.take(WORD);
    return this.bytes.subarray(at, at + WORD);
  }

  private take(count: number): void {
    this.leftBytes -= count;
    if (this.leftBytes < 0) throw invalid("values overlap");
  }
}

function invalid(what: string): AbiError {
  return new AbiError("ABI_INVALID", what);
}

function cutShort(): AbiError {
  return invalid("the input is cut short");
}

function isInRange({ isSigned, bits }: AbiType & { kind: "integer" }, value: bigint): boolean {
  const top = 1n << BigInt(isSigned ? bits - 1 : bits);
  return value < top && value >= (isSigned ? -top : 0n);
}

/** Encodes values in the order of their parameters. Throws TypeError for values of other types. */
export function encodeAbi(
  parameters: readonly AbiParameter[],
  values: readonly AbiValue[],
): Uint8Array {
  const types = parameters.map(({ type }) => type);
  return Buffer.concat(sequence(types, values));
}

/** Heads, then what they point to. */
function sequence(types: readonly AbiType[], values: readonly AbiValue[]): Uint8Array[] {
  const heads: Uint8Array[] = [];
  const tails: Uint8Array[] = [];
  let offset = WORD * types.reduce((sum, type) => sum + headWords(type), 0);
  for (const [index, type] of types.entries()) {
    const value = values[index];
    if (value === undefined) throw new TypeError("a value is missing");
    const encoded = Buffer.concat(parts(type, value));
    if (!isDynamic(type)) heads.push(encoded);
    else {
      heads.push(bigintToWord(BigInt(offset)));
      tails.push(encoded);
      offset += encoded.length;
    }
  }
  return [...heads, ...tails];
}

function parts(type: AbiType, value: AbiValue): Uint8Array[] {
  switch (type.kind) {
    case "address":
      if (typeof value !== "string") throw mismatch(type);
      return [padLeft(addressToBytes(value as Address))];
    case "bool":
      return [bigintToWord(value === true ? 1n : 0n)];
    case "integer":
      if (typeof value !== "bigint" || !isInRange(type, value)) throw mismatch(type);
      return [bigintToWord(value < 0n ? value + UINT256 : value)];
    case "string":
      if (typeof value !== "string") throw mismatch(type);
      return withLength(Buffer.from(value, "utf8"));
    case "bytes":
      if (!(value instanceof Uint8Array)) throw mismatch(type);
      return withLength(value);
    case "tuple":
      return tuple(type.members, value);
    default:
      if (!Array.isArray(value)) throw mismatch(type);
      return [
        bigintToWord(BigInt(value.length)),
        ...sequence(
          value.map(() => type.item),
          value,
        ),
      ];
  }
}

function tuple(members: readonly AbiParameter[], value: AbiValue): Uint8Array[] {
  if (typeof value !== "object" || Array.isArray(value) || value instanceof Uint8Array) {
    throw new TypeError("a struct is expected");
  }
  const byName = value as { readonly [name: string]: AbiValue };
  const values = members.map(({ name }) => {
    const member = byName[name];
    if (member === undefined) throw new TypeError(`the struct has no ${name}`);
    return member;
  });
  return sequence(
    members.map(({ type }) => type),
    values,
  );
}

function withLength(bytes: Uint8Array): Uint8Array[] {
  const padding = new Uint8Array((WORD - (bytes.length % WORD)) % WORD);
  return [bigintToWord(BigInt(bytes.length)), bytes, padding];
}

function padLeft(bytes: Uint8Array): Uint8Array {
  const word = new Uint8Array(WORD);
  word.set(bytes, WORD - bytes.length);
  return word;
}

function mismatch({ kind }: AbiType): TypeError {
  return new TypeError(`the value is no ${kind}`);
}
