/**
 * How values of Solidity's contract ABI lie behind each other: heads, and behind all heads what
 * they point to. Source: Solidity's contract ABI specification.
 */
import type { AbiType, ArrayType } from "./abi-types.js";
import { WORD_BYTES, writeSize } from "./abi-words.js";

/** A value's bytes, from its own beginning on. */
export interface EncodedValue {
  readonly type: AbiType;
  readonly bytes: Uint8Array;
}

interface Layout {
  readonly isDynamic: boolean;
  readonly headBytes: number;
}

/**
 * What is known of types: whoever has a contract verified chooses how large they are, and whoever
 * calls it how many values there are of each.
 */
const LAYOUTS = new WeakMap<AbiType, Layout>();

/** Whether values stand behind the heads, which have their offset only. */
export function isDynamic(type: AbiType): boolean {
  return layoutOf(type).isDynamic;
}

/** Bytes that a type takes among the heads: a static one itself, a dynamic one its offset. */
export function headBytes(type: AbiType): number {
  return layoutOf(type).headBytes;
}

/** Values as one sequence: arguments, a struct's, a list's. Offsets count from its beginning. */
export function sequenceBytes(values: readonly EncodedValue[]): Uint8Array {
  const heads: Uint8Array[] = [];
  const tails: Uint8Array[] = [];
  let offset = values.reduce((sum, { type }) => sum + headBytes(type), 0);
  for (const { type, bytes } of values) {
    if (!isDynamic(type)) {
      heads.push(bytes);
      continue;
    }
    heads.push(writeSize(offset));
    tails.push(bytes);
    offset += bytes.length;
  }
  return Buffer.concat([...heads, ...tails]);
}

/** Items of a list, behind their number where the type leaves it open. */
export function arrayBytes({ length }: ArrayType, items: readonly EncodedValue[]): Uint8Array {
  const sequence = sequenceBytes(items);
  if (length !== undefined) return sequence;
  return Buffer.concat([writeSize(items.length), sequence]);
}

/** Content of any length, behind its length and up to a whole word. */
export function contentBytes(content: Uint8Array): Uint8Array {
  const padding = new Uint8Array((WORD_BYTES - (content.length % WORD_BYTES)) % WORD_BYTES);
  return Buffer.concat([writeSize(content.length), content, padding]);
}

function layoutOf(type: AbiType): Layout {
  const known = LAYOUTS.get(type);
  if (known !== undefined) return known;
  const layout = isDynamicType(type)
    ? { isDynamic: true, headBytes: WORD_BYTES }
    : { isDynamic: false, headBytes: staticBytes(type) };
  LAYOUTS.set(type, layout);
  return layout;
}

function isDynamicType(type: AbiType): boolean {
  switch (type.kind) {
    case "bytes":
    case "string":
      return true;
    case "array":
      return type.length === undefined || isDynamic(type.item);
    case "tuple":
      return type.fields.some(({ type: field }) => isDynamic(field));
    default:
      return false;
  }
}

function staticBytes(type: AbiType): number {
  if (type.kind === "array") return (type.length ?? 0) * headBytes(type.item);
  if (type.kind !== "tuple") return WORD_BYTES;
  return type.fields.reduce((sum, { type: field }) => sum + headBytes(field), 0);
}
