/**
 * Types of Solidity's contract ABI, from the JSON that compilers write, and their names in
 * signatures. Source: Solidity's contract ABI specification.
 */
import { keccak256Hex } from "../../hashes.js";
import type { Hash32, Hex } from "../../hex.js";

/** A type whose values are one word. */
export type WordType =
  | { readonly kind: "uint" | "int"; readonly bits: number }
  | { readonly kind: "address" | "bool" }
  /** Bytes of a fixed number; `name` where the type is written in a way of its own. */
  | { readonly kind: "fixed"; readonly bytes: number; readonly name?: "function" };

/** Items of one type, a fixed number of them or as many as there are. */
export interface ArrayType {
  readonly kind: "array";
  readonly item: AbiType;
  readonly length: number | undefined;
}

/** A type of Solidity. */
export type AbiType =
  | WordType
  | { readonly kind: "bytes" | "string" }
  | ArrayType
  | { readonly kind: "tuple"; readonly fields: readonly AbiParameter[] };

/** A named value of a call, an answer, a log or a struct; the name may be a stranger's text. */
export interface AbiParameter {
  readonly name: string;
  readonly type: AbiType;
  /** Of an event: stands in a topic. */
  readonly isIndexed: boolean;
}

/** Levels of arrays and structs in each other. */
const MAX_DEPTH = 16;

/** Parameters of one item, and fields of one struct. */
const MAX_PARAMETERS = 256;

/** Parameters from an ABI's JSON; undefined where one of them cannot be read. */
export function readParameters(json: unknown): readonly AbiParameter[] | undefined {
  return parametersIn(json, 0);
}

/**
 * A type from how an ABI's JSON writes it, "uint256[]"; `components` are the fields of a "tuple".
 * Undefined where it is none.
 */
export function readType(written: string, components?: unknown): AbiType | undefined {
  return typeIn(written, components, 0);
}

/** Whether a type's values are one word. In an event's topic stands the hash of all others. */
export function isWordType(type: AbiType): type is WordType {
  switch (type.kind) {
    case "bytes":
    case "string":
    case "array":
    case "tuple":
      return false;
    default:
      return true;
  }
}

/** The type as signatures write it. */
export function typeName(type: AbiType): string {
  switch (type.kind) {
    case "uint":
    case "int":
      return `${type.kind}${type.bits}`;
    case "fixed":
      return type.name ?? `bytes${type.bytes}`;
    case "array":
      return `${typeName(type.item)}[${type.length ?? ""}]`;
    case "tuple":
      return namesOf(type.fields);
    default:
      return type.kind;
  }
}

/** The signature of a function, an event or an error: "transfer(address,uint256)". */
export function signatureOf(name: string, parameters: readonly AbiParameter[]): string {
  return `${name}${namesOf(parameters)}`;
}

/** keccak-256 of a signature: an event's first topic. */
export function signatureHash(signature: string): Hash32 {
  return keccak256Hex(Buffer.from(signature, "utf8"));
}

/** The selector of the function or error whose signature has a hash: "0x" and eight digits. */
export function selectorOf(hash: Hash32): Hex {
  return hash.slice(0, 10) as Hex;
}

function namesOf(parameters: readonly AbiParameter[]): string {
  return `(${parameters.map(({ type }) => typeName(type)).join(",")})`;
}

function parametersIn(json: unknown, depth: number): readonly AbiParameter[] | undefined {
  if (!Array.isArray(json) || json.length > MAX_PARAMETERS) return undefined;
  const parameters = json.map((one: unknown): AbiParameter | undefined => {
    if (typeof one !== "object" || one === null) return undefined;
    const { name, type: written, components, indexed } = one as Readonly<Record<string, unknown>>;
    const type = typeof written === "string" ? typeIn(written, components, depth) : undefined;
    if (type === undefined) return undefined;
    return { name: typeof name === "string" ? name : "", type, isIndexed: indexed === true };
  });
  return parameters.every((one) => one !== undefined) ? parameters : undefined;
}

function typeIn(written: string, components: unknown, depth: number): AbiType | undefined {
  if (depth > MAX_DEPTH) return undefined;
  const array = /^(.*)\[(\d{0,9})\]$/.exec(written);
  if (array !== null) {
    const [, inner = "", length = ""] = array;
    const item = typeIn(inner, components, depth + 1);
    if (item === undefined || length === "0") return undefined;
    return { kind: "array", item, length: length === "" ? undefined : Number(length) };
  }
  if (written === "tuple") {
    const fields = parametersIn(components, depth + 1);
    return fields === undefined || fields.length === 0 ? undefined : { kind: "tuple", fields };
  }
  return elementaryType(written);
}

function elementaryType(written: string): AbiType | undefined {
  if (written === "address" || written === "bool" || written === "bytes" || written === "string") {
    return { kind: written };
  }
  // An address and a selector: encoded as bytes24, and in signatures under its own name.
  if (written === "function") return { kind: "fixed", bytes: 24, name: "function" };
  const [, kind, size = ""] = /^(uint|int|bytes)(\d{1,3})$/.exec(written) ?? [];
  const number = Number(size);
  if (kind === "bytes") {
    return number >= 1 && number <= 32 ? { kind: "fixed", bytes: number } : undefined;
  }
  const isSize = number >= 8 && number <= 256 && number % 8 === 0;
  return (kind === "uint" || kind === "int") && isSize ? { kind, bits: number } : undefined;
}
