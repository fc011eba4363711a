/**
 * The document of amino JSON as EIP-712 typed data, which Ethereum wallets show and sign, by the
 * rules of cosmos/evm (`ethereum/eip712`): messages are flattened to `msg0`, `msg1`, ...; types
 * follow from the JSON, fields in descending order of their names; types of equal fields are
 * shared. Bounded by the size of the transaction.
 */
import { keccak256 } from "../hashes.js";
import { bigintToWord } from "../hex.js";
import type { JsonValue } from "./field-schema.js";

/** One field of a type. */
interface TypedField {
  readonly name: string;
  readonly type: string;
}

type Types = Map<string, readonly TypedField[]>;

type JsonObject = { readonly [key: string]: JsonValue };

const DOMAIN: readonly TypedField[] = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "string" },
  { name: "salt", type: "string" },
];

/** Different fields under one type name, at most (cosmos/evm). */
const MAX_DUPLICATES = 1_000;

/** Objects of a document, at most: more than any wallet shows, and each is hashed before it is paid for. */
const MAX_OBJECTS = 500;

/** Typed data of a sign document, as wallets take it (`eth_signTypedData_v4`). */
export interface TypedData {
  readonly types: { readonly [name: string]: readonly TypedField[] };
  readonly primaryType: "Tx";
  readonly domain: JsonObject;
  readonly message: JsonObject;
}

/**
 * The typed data of an amino document.
 * @param evmChainId EIP-155 chain id
 * @returns undefined for documents that have none: without messages, with a message whose lists are of
 * several types, or with more objects than anybody signs in this way
 */
export function typedDataOf(document: JsonObject, evmChainId: bigint): TypedData | undefined {
  const { msgs, ...rest } = document;
  if (!Array.isArray(msgs) || msgs.length === 0) return undefined;
  const messages = (msgs as readonly JsonValue[]).filter(isObject);
  if (messages.length !== msgs.length || objectsIn(msgs) > MAX_OBJECTS) return undefined;
  const types: Types = new Map([
    ["EIP712Domain", DOMAIN],
    [
      "Tx",
      [
        { name: "account_number", type: "string" },
        { name: "chain_id", type: "string" },
        { name: "fee", type: "Fee" },
        { name: "memo", type: "string" },
        { name: "sequence", type: "string" },
      ],
    ],
    [
      "Fee",
      [
        { name: "amount", type: "Coin[]" },
        { name: "gas", type: "string" },
      ],
    ],
    [
      "Coin",
      [
        { name: "denom", type: "string" },
        { name: "amount", type: "string" },
      ],
    ],
  ]);
  const message: Record<string, JsonValue> = { ...rest };
  for (const [index, one] of messages.entries()) {
    const { type } = one;
    if (typeof type !== "string" || type === "") return undefined;
    const root = `Type${type.split("/").at(-1) ?? ""}`;
    const name = addTypes(types, { root, prefix: "_" }, one);
    if (name === undefined) return undefined;
    types.set("Tx", [...(types.get("Tx") ?? []), { name: `msg${index}`, type: name }]);
    message[`msg${index}`] = one;
  }
  return {
    types: Object.fromEntries(types),
    primaryType: "Tx",
    domain: {
      name: "Cosmos Web3",
      version: "1.0.0",
      chainId: evmChainId.toString(),
      verifyingContract: "cosmos",
      salt: "0",
    },
    message,
  };
}

function objectsIn(value: JsonValue): number {
  if (typeof value !== "object" || value === null) return 0;
  const inside: readonly JsonValue[] = Object.values(value);
  return inside.reduce((sum: number, one) => sum + objectsIn(one), Array.isArray(value) ? 0 : 1);
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Adds the types of an object and of those in it; the name of its own. */
function addTypes(
  types: Types,
  at: { readonly root: string; readonly prefix: string },
  object: JsonObject,
): string | undefined {
  const fields: TypedField[] = [];
  const names = Object.keys(object).toSorted((left, right) => (left < right ? 1 : -1));
  for (const name of names) {
    const value = object[name];
    if (value === undefined || value === null) continue;
    const isList = Array.isArray(value);
    if (isList && value.length === 0) {
      fields.push({ name, type: "string[]" });
      continue;
    }
    const items = isList ? (value as readonly JsonValue[]) : [value];
    const type = typeOfAll(types, { root: at.root, prefix: `${at.prefix}.${name}` }, items);
    if (type === undefined) return undefined;
    fields.push({ name, type: isList ? `${type}[]` : type });
  }
  const base = at.prefix === "_" ? at.root : sanitized(at.prefix);
  return addType(types, base, fields);
}

/**
 * The one type of all items. A list has the type of its first one, and a signature covers nothing that
 * another item holds beside it: such a list could be changed by anybody.
 */
function typeOfAll(
  types: Types,
  at: { readonly root: string; readonly prefix: string },
  items: readonly JsonValue[],
): string | undefined {
  let all: string | undefined;
  for (const item of items) {
    const type = typeOf(types, at, item);
    if (type === undefined || (all !== undefined && all !== type)) return undefined;
    all = type;
  }
  return all;
}

function typeOf(
  types: Types,
  at: { readonly root: string; readonly prefix: string },
  item: JsonValue,
): string | undefined {
  if (item === null || Array.isArray(item)) return undefined;
  if (!isObject(item)) return primitiveOf(item);
  const nested = addTypes(types, at, item);
  return nested === undefined ? undefined : sanitized(nested);
}

function primitiveOf(value: JsonValue): string {
  if (typeof value === "boolean") return "bool";
  return typeof value === "number" ? "int64" : "string";
}

function addType(types: Types, base: string, fields: readonly TypedField[]): string | undefined {
  for (let index = 0; index < MAX_DUPLICATES; index++) {
    const name = `${base}${index}`;
    const known = types.get(name);
    if (known === undefined) {
      types.set(name, fields);
      return name;
    }
    const isSame =
      known.length === fields.length &&
      known.every((one, at) => one.name === fields[at]?.name && one.type === fields[at]?.type);
    if (isSame) return name;
  }
  return undefined;
}

/** `_.foo_bar.baz` -> `TypeFooBarBaz`. */
function sanitized(text: string): string {
  return text
    .split(".")
    .map((part) => (part === "_" ? "Type" : part.split("_").map(capitalized).join("")))
    .join("");
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Digest that is signed: keccak256(0x1901 ‖ domain ‖ message) (EIP-712). */
export function typedDataDigest(data: TypedData): Uint8Array {
  const hasher = new StructHasher(data.types);
  const domain = hasher.struct("EIP712Domain", data.domain);
  const message = hasher.struct(data.primaryType, data.message);
  return keccak256(Buffer.concat([Uint8Array.of(0x19, 0x01), domain, message]));
}

/** Hashes values of one document; each type is hashed once, however many values have it. */
class StructHasher {
  private readonly typeHashes = new Map<string, Uint8Array>();

  constructor(private readonly types: TypedData["types"]) {}

  struct(type: string, value: JsonObject): Uint8Array {
    const fields = this.types[type] ?? [];
    const parts = fields.map(({ name, type: kind }) => this.field(kind, value[name]));
    return keccak256(Buffer.concat([this.typeHash(type), ...parts]));
  }

  private field(type: string, value: JsonValue | undefined): Uint8Array {
    if (type.endsWith("[]")) {
      const items = Array.isArray(value) ? (value as readonly JsonValue[]) : [];
      return keccak256(Buffer.concat(items.map((item) => this.field(type.slice(0, -2), item))));
    }
    if (type === "string") return keccak256(Buffer.from(typeof value === "string" ? value : ""));
    if (type === "bool") return bigintToWord(value === true ? 1n : 0n);
    if (type === "uint256" || type === "int64") {
      return bigintToWord(BigInt.asUintN(256, BigInt((value ?? 0) as string | number)));
    }
    return this.struct(type, (value ?? {}) as JsonObject);
  }

  private typeHash(type: string): Uint8Array {
    const known = this.typeHashes.get(type);
    if (known !== undefined) return known;
    const hash = keccak256(Buffer.from(typeText(this.types, type)));
    this.typeHashes.set(type, hash);
    return hash;
  }
}

/** `Tx(...)Coin(...)...`: the type and all that it refers to, these sorted. */
function typeText(types: TypedData["types"], type: string): string {
  const found = new Set<string>();
  const visit = (name: string): void => {
    for (const field of types[name] ?? []) {
      const base = field.type.replace(/\[\]$/, "");
      if (types[base] === undefined || found.has(base) || base === type) continue;
      found.add(base);
      visit(base);
    }
  };
  visit(type);
  const names = [type, ...[...found].toSorted()];
  return names
    .map((name) => {
      const fields = (types[name] ?? []).map((field) => `${field.type} ${field.name}`);
      return `${name}(${fields.join(",")})`;
    })
    .join("");
}
