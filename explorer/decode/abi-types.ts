/**
 * Types of Solidity's contract ABI: from the JSON that compilers write, and from signatures in
 * words. Source: Solidity's contract ABI specification.
 */
import { keccak256Hex } from "../../chain/hashes.js";
import type { Hash32 } from "../../chain/hex.js";

/** A type of Solidity as a contract's published JSON names it. */
export type AbiType =
  | { readonly kind: "uint" | "int"; readonly bits: number }
  | { readonly kind: "address" | "bool" | "bytes" | "string" }
  /** Bytes of a fixed number; `name` where the type is written in a way of its own. */
  | { readonly kind: "fixed"; readonly bytes: number; readonly name?: "function" }
  | { readonly kind: "array"; readonly item: AbiType; readonly length: number | undefined }
  | { readonly kind: "tuple"; readonly fields: readonly AbiParameter[] };

/** A parameter; names are strangers' texts. */
export interface AbiParameter {
  readonly name: string;
  readonly type: AbiType;
  /** In an event: stands in a topic. */
  readonly isIndexed: boolean;
}

/** A function, an event or an error. */
export interface AbiItem {
  readonly kind: "function" | "event" | "error" | "constructor";
  readonly name: string;
  readonly inputs: readonly AbiParameter[];
  readonly outputs: readonly AbiParameter[];
  /** True where it changes nothing: view and pure functions. */
  readonly isRead: boolean;
  readonly isPayable: boolean;
  /** An event without its hash in the first topic. */
  readonly isAnonymous: boolean;
  /** "transfer(address,uint256)". */
  readonly signature: string;
  /** keccak-256 of the signature; the selector is its beginning. */
  readonly hash: Hash32;
}

/** Levels of arrays and structs in each other. */
const MAX_DEPTH = 16;

/** Items of one ABI, and parameters of one item. */
const MAX_ITEMS = 2_000;
const MAX_PARAMETERS = 256;

const KINDS = new Set(["function", "event", "error", "constructor"]);

/** Reads an ABI; items that cannot be read are left out. */
export function readAbi(abi: readonly unknown[]): readonly AbiItem[] {
  return abi.slice(0, MAX_ITEMS).flatMap((value) => readItem(value) ?? []);
}

/** The selector of a function or error: "0x" and eight digits. */
export function selectorOf({ hash }: Pick<AbiItem, "hash">): string {
  return hash.slice(0, 10);
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
      return `(${type.fields.map(({ type: field }) => typeName(field)).join(",")})`;
    default:
      return type.kind;
  }
}

/** "Transfer(address indexed from, uint256 value)" as an item. Throws TypeError where it is none. */
export function readSignature(kind: "function" | "event", text: string): AbiItem {
  const open = text.indexOf("(");
  const list = text.slice(open + 1, -1);
  const inputs = (list === "" ? [] : list.split(", ")).map((written): AbiParameter => {
    const words = written.split(" ");
    const type = readType(words[0] ?? "", undefined, 0);
    if (type === undefined) throw new TypeError(`not a type: ${written}`);
    return { name: words.at(-1) ?? "", type, isIndexed: words[1] === "indexed" };
  });
  return itemOf({ kind, name: text.slice(0, open), inputs, outputs: [] });
}

function itemOf(
  parts: Pick<AbiItem, "kind" | "name" | "inputs" | "outputs"> &
    Partial<Pick<AbiItem, "isRead" | "isPayable" | "isAnonymous">>,
): AbiItem {
  const signature = `${parts.name}(${parts.inputs.map(({ type }) => typeName(type)).join(",")})`;
  return {
    isRead: false,
    isPayable: false,
    isAnonymous: false,
    ...parts,
    signature,
    hash: keccak256Hex(Buffer.from(signature, "utf8")),
  };
}

function readItem(value: unknown): AbiItem | undefined {
  const item = objectOf(value);
  const kind = item["type"];
  if (typeof kind !== "string" || !KINDS.has(kind)) return undefined;
  const inputs = readParameters(item["inputs"], 0);
  const outputs = readParameters(item["outputs"] ?? [], 0);
  if (inputs === undefined || outputs === undefined) return undefined;
  const mutability = item["stateMutability"];
  return itemOf({
    kind: kind as AbiItem["kind"],
    name: typeof item["name"] === "string" ? item["name"] : "",
    inputs,
    outputs,
    // Compilers of before 0.5 wrote `constant` and `payable`.
    isRead: mutability === "view" || mutability === "pure" || item["constant"] === true,
    isPayable: mutability === "payable" || item["payable"] === true,
    isAnonymous: item["anonymous"] === true,
  });
}

function readParameters(value: unknown, depth: number): readonly AbiParameter[] | undefined {
  if (!Array.isArray(value) || value.length > MAX_PARAMETERS) return undefined;
  const parameters = value.map((one: unknown): AbiParameter | undefined => {
    const { name, type: written, components, indexed } = objectOf(one);
    const type = typeof written === "string" ? readType(written, components, depth) : undefined;
    if (type === undefined) return undefined;
    return { name: typeof name === "string" ? name : "", type, isIndexed: indexed === true };
  });
  return parameters.every((one) => one !== undefined) ? parameters : undefined;
}

function readType(written: string, components: unknown, depth: number): AbiType | undefined {
  if (depth > MAX_DEPTH) return undefined;
  const array = /^(.*)\[(\d{0,9})\]$/.exec(written);
  if (array !== null) {
    const [, inner = "", length = ""] = array;
    const item = readType(inner, components, depth + 1);
    if (item === undefined || length === "0") return undefined;
    return { kind: "array", item, length: length === "" ? undefined : Number(length) };
  }
  if (written === "tuple") {
    const fields = readParameters(components, depth + 1);
    return fields === undefined || fields.length === 0 ? undefined : { kind: "tuple", fields };
  }
  return readElementary(written);
}

function readElementary(written: string): AbiType | undefined {
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

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
