/**
 * Types of Solidity's contract ABI, as far as the chain's own contracts use them: address, bool,
 * integers, string, bytes, structs and lists of any of these. Read from what the compiler writes.
 */
import { keccak256Hex } from "../../hashes.js";
import type { Hash32 } from "../../hex.js";

/** A type; `words` of a static one is how much of a head it takes. */
export type AbiType =
  | { readonly kind: "address" | "bool" | "string" | "bytes" }
  | { readonly kind: "integer"; readonly isSigned: boolean; readonly bits: number }
  | { readonly kind: "tuple"; readonly members: readonly AbiParameter[] }
  | { readonly kind: "list"; readonly item: AbiType };

/** A named value of a call, an answer, a log or a struct. */
export interface AbiParameter {
  readonly name: string;
  readonly type: AbiType;
  /** Of a log: whether it is a topic. */
  readonly isIndexed: boolean;
}

/** A parameter as the compiler writes it. */
export interface AbiJsonParameter {
  readonly name: string;
  readonly type: string;
  readonly indexed?: boolean | undefined;
  readonly components?: readonly AbiJsonParameter[] | undefined;
}

/** Reads a parameter. Throws RangeError for a type that is not used here. */
export function abiParameter(json: AbiJsonParameter): AbiParameter {
  return { name: json.name, type: typeOf(json, json.type), isIndexed: json.indexed === true };
}

function typeOf(json: AbiJsonParameter, text: string): AbiType {
  if (text.endsWith("[]")) return { kind: "list", item: typeOf(json, text.slice(0, -2)) };
  if (text === "tuple") {
    return { kind: "tuple", members: (json.components ?? []).map(abiParameter) };
  }
  if (text === "address" || text === "bool" || text === "string" || text === "bytes") {
    return { kind: text };
  }
  const integer = /^(u?)int([0-9]+)$/.exec(text);
  if (integer === null) throw new RangeError(`the type ${text} is not used here`);
  return { kind: "integer", isSigned: integer[1] === "", bits: Number(integer[2]) };
}

/** `name(type,type)`, of which the selector or first topic is the hash. */
function signatureOf(name: string, parameters: readonly AbiParameter[]): string {
  return `${name}(${parameters.map(({ type }) => typeText(type)).join(",")})`;
}

/** keccak-256 of a signature. */
export function signatureHash(name: string, parameters: readonly AbiParameter[]): Hash32 {
  return keccak256Hex(Buffer.from(signatureOf(name, parameters), "ascii"));
}

function typeText(type: AbiType): string {
  switch (type.kind) {
    case "integer":
      return `${type.isSigned ? "" : "u"}int${type.bits}`;
    case "tuple":
      return `(${type.members.map((member) => typeText(member.type)).join(",")})`;
    case "list":
      return `${typeText(type.item)}[]`;
    default:
      return type.kind;
  }
}

/** Whether values stand behind the head, which has their offset only. */
export function isDynamic(type: AbiType): boolean {
  if (type.kind === "tuple") return type.members.some((member) => isDynamic(member.type));
  return type.kind === "string" || type.kind === "bytes" || type.kind === "list";
}

/** Words of a value's head. */
export function headWords(type: AbiType): number {
  if (type.kind !== "tuple" || isDynamic(type)) return 1;
  return type.members.reduce((sum, member) => sum + headWords(member.type), 0);
}
