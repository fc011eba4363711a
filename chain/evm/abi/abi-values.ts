/** Values in Solidity's contract ABI: strict reading of what callers send, and writing. */
import { AppError } from "../../errors.js";
import {
  arrayBytes,
  contentBytes,
  type EncodedValue,
  headBytes,
  isDynamic,
  sequenceBytes,
} from "./abi-layout.js";
import {
  type AbiParameter,
  type AbiType,
  type ArrayType,
  typeName,
  type WordType,
} from "./abi-types.js";
import { readSize, readWord, WORD_BYTES, writeWord } from "./abi-words.js";

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

/** What callers are told of a word that is no value of its type: part of what blocks come to. */
const WORD_FAULTS: Readonly<Record<WordType["kind"], string>> = {
  address: "an address is too long",
  bool: "a bool is neither 0 nor 1",
  uint: "an integer is out of its type's range",
  int: "an integer is out of its type's range",
  fixed: "bytes are longer than their type",
};

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

  members(fields: readonly AbiParameter[], start: number): { [name: string]: AbiValue } {
    const values: { [name: string]: AbiValue } = {};
    let at = start;
    for (const { name, type } of fields) {
      values[name] = this.value(type, start, at);
      at += headBytes(type);
    }
    return values;
  }

  /** The value whose head is at a place; offsets count from the start of what it is a member of. */
  private value(type: AbiType, start: number, at: number): AbiValue {
    return isDynamic(type) ? this.content(type, start + this.size(at)) : this.content(type, at);
  }

  private content(type: AbiType, at: number): AbiValue {
    switch (type.kind) {
      case "string":
        return this.text(at);
      case "bytes":
        return this.data(at);
      case "tuple":
        return this.members(type.fields, at);
      case "array":
        return this.list(type, at);
      default:
        return this.elementary(type, at);
    }
  }

  private list({ item, length }: ArrayType, at: number): AbiValue[] {
    const count = length ?? this.size(at);
    const start = length === undefined ? at + WORD_BYTES : at;
    const step = headBytes(item);
    if (start + count * step > this.bytes.length) throw cutShort();
    return Array.from({ length: count }, (_, index) =>
      this.value(item, start, start + index * step),
    );
  }

  private elementary(type: WordType, at: number): AbiValue {
    const value = readWord(type, this.word(at));
    if (value === undefined) throw invalid(WORD_FAULTS[type.kind]);
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
    const start = at + WORD_BYTES;
    if (start + length > this.bytes.length) throw cutShort();
    this.take(length);
    return this.bytes.slice(start, start + length);
  }

  /** An offset or length: no more than there are bytes. */
  private size(at: number): number {
    const size = readSize(this.word(at), this.bytes.length);
    if (size === undefined) throw cutShort();
    return size;
  }

  private word(at: number): Uint8Array {
    if (at + WORD_BYTES > this.bytes.length) throw cutShort();
    this.take(WORD_BYTES);
    return this.bytes.subarray(at, at + WORD_BYTES);
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

/** Encodes values in the order of their parameters. Throws TypeError for values of other types. */
export function encodeAbi(
  parameters: readonly AbiParameter[],
  values: readonly AbiValue[],
): Uint8Array {
  return sequenceBytes(
    parameters.map(({ type }, index) => {
      const value = values[index];
      if (value === undefined) throw new TypeError("a value is missing");
      return encoded(type, value);
    }),
  );
}

function encoded(type: AbiType, value: AbiValue): EncodedValue {
  return { type, bytes: bytesOf(type, value) };
}

function bytesOf(type: AbiType, value: AbiValue): Uint8Array {
  switch (type.kind) {
    case "string":
      if (typeof value !== "string") throw mismatch(type);
      return contentBytes(Buffer.from(value, "utf8"));
    case "bytes":
      if (!(value instanceof Uint8Array)) throw mismatch(type);
      return contentBytes(value);
    case "tuple":
      return encodeAbi(type.fields, fieldsOf(type.fields, value));
    case "array":
      return arrayBytes(
        type,
        itemsOf(type, value).map((item) => encoded(type.item, item)),
      );
    default: {
      const word = writeWord(type, value);
      if (word === undefined) throw mismatch(type);
      return word;
    }
  }
}

function fieldsOf(fields: readonly AbiParameter[], value: AbiValue): readonly AbiValue[] {
  if (typeof value !== "object" || Array.isArray(value) || value instanceof Uint8Array) {
    throw new TypeError("a struct is expected");
  }
  const byName = value as { readonly [name: string]: AbiValue };
  return fields.map(({ name }) => {
    const field = byName[name];
    if (field === undefined) throw new TypeError(`the struct has no ${name}`);
    return field;
  });
}

function itemsOf(type: ArrayType, value: AbiValue): readonly AbiValue[] {
  if (!Array.isArray(value)) throw mismatch(type);
  const items: readonly AbiValue[] = value;
  if (type.length !== undefined && items.length !== type.length) throw mismatch(type);
  return items;
}

function mismatch(type: AbiType): TypeError {
  return new TypeError(`the value is no ${typeName(type)}`);
}
