/**
 * Functions, events and errors of contracts: from the ABI that one was verified with, and from
 * signatures in words.
 */
import {
  type AbiParameter,
  readParameters,
  readType,
  signatureHash,
  signatureOf,
} from "../../chain/evm/abi/abi-types.js";
import type { Hash32 } from "../../chain/hex.js";

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

/** Items of one ABI that are read. */
const MAX_ITEMS = 2_000;

const KINDS = new Set(["function", "event", "error", "constructor"]);

/** Reads an ABI; items that cannot be read are left out. */
export function readAbi(abi: readonly unknown[]): readonly AbiItem[] {
  return abi.slice(0, MAX_ITEMS).flatMap((value) => readItem(value) ?? []);
}

/** "Transfer(address indexed from, uint256 value)" as an item. Throws TypeError where it is none. */
export function readSignature(kind: "function" | "event", text: string): AbiItem {
  const open = text.indexOf("(");
  const list = text.slice(open + 1, -1);
  const inputs = (list === "" ? [] : list.split(", ")).map((written): AbiParameter => {
    const words = written.split(" ");
    const type = readType(words[0] ?? "");
    if (type === undefined) throw new TypeError(`not a type: ${written}`);
    return { name: words.at(-1) ?? "", type, isIndexed: words[1] === "indexed" };
  });
  return itemOf({ kind, name: text.slice(0, open), inputs, outputs: [] });
}

function itemOf(
  parts: Pick<AbiItem, "kind" | "name" | "inputs" | "outputs"> &
    Partial<Pick<AbiItem, "isRead" | "isPayable" | "isAnonymous">>,
): AbiItem {
  const signature = signatureOf(parts.name, parts.inputs);
  return {
    isRead: false,
    isPayable: false,
    isAnonymous: false,
    ...parts,
    signature,
    hash: signatureHash(signature),
  };
}

function readItem(value: unknown): AbiItem | undefined {
  const item = objectOf(value);
  const kind = item["type"];
  if (typeof kind !== "string" || !KINDS.has(kind)) return undefined;
  const inputs = readParameters(item["inputs"]);
  const outputs = readParameters(item["outputs"] ?? []);
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

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
