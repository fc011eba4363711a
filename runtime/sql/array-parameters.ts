/**
 * Arrays among parameters in PostgreSQL's binary format. The driver makes one text of an array, in which it
 * escapes each element, and the server reads each of them out of it again; bytes are sent as they are. What
 * type the elements have the statement says, by a cast behind the parameter.
 * Source: PostgreSQL, `array_recv`.
 */
import { BinaryValues } from "./binary-values.js";

/** How elements are written; each is known by its name in casts. */
type ElementKind = "text" | "jsonb" | "int2" | "int4" | "int8" | "bool";

/** Names of types in casts. What is not here (amounts, moments, bytes) the driver writes. */
const KINDS: Readonly<Record<string, ElementKind>> = {
  text: "text",
  jsonb: "jsonb",
  smallint: "int2",
  int2: "int2",
  integer: "int4",
  int: "int4",
  int4: "int4",
  bigint: "int8",
  int8: "int8",
  boolean: "bool",
  bool: "bool",
};

/** Type ids of elements, the same in every database. */
const OIDS: Readonly<Record<ElementKind, number>> = {
  text: 25,
  jsonb: 3802,
  int2: 21,
  int4: 23,
  int8: 20,
  bool: 16,
};

/** The one version of jsonb's format. */
const JSONB_VERSION = 1;

/** Numbers of which a smaller type of integer has room, and their opposites less one. */
const ENDS = { int2: 2 ** 15, int4: 2 ** 31, int8: Number.MAX_SAFE_INTEGER } as const;

/** Whole numbers as the server writes them, which are safe integers for certain. */
const DIGITS = /^-?\d{1,15}$/;

/** A parameter, with the cast to an array that stands behind it, if any. */
const PARAMETER = /\$(\d+)(?:\s*::\s*([a-z0-9]+)\s*\[\](?!\s*\[))?/gi;

/** Texts whose casts are kept; beyond it they are looked for anew. */
const MAX_KEPT = 1_000;

/** Kinds by the place of the parameter, of texts that were met. */
const kept = new Map<string, readonly (ElementKind | undefined)[]>();

/**
 * The parameters as they are given to the driver: with bytes for arrays whose elements' type is certain and
 * whose elements all have it. Any other is left as it is, and so is what the server says to it.
 */
export function boundParameters(text: string, parameters: readonly unknown[]): unknown[] {
  const bound = [...parameters];
  for (let index = 0; index < bound.length; index++) {
    const list: unknown = bound[index];
    if (!Array.isArray(list)) continue;
    const kind = kindsIn(text)[index];
    if (kind !== undefined) bound[index] = encodeArray(kind, list) ?? list;
  }
  return bound;
}

function kindsIn(text: string): readonly (ElementKind | undefined)[] {
  const known = kept.get(text);
  if (known !== undefined) return known;
  const kinds = readKinds(text);
  if (kept.size >= MAX_KEPT) kept.clear();
  kept.set(text, kinds);
  return kinds;
}

/**
 * The kind of each parameter that is cast to the same array wherever it stands: the server takes the type
 * of whichever place it comes to first. What looks like a parameter in a comment or a literal can only keep
 * one from being certain.
 */
function readKinds(text: string): readonly (ElementKind | undefined)[] {
  const kinds: (ElementKind | undefined)[] = [];
  const seen = new Set<number>();
  for (const [, place, type] of text.matchAll(PARAMETER)) {
    const index = Number(place) - 1;
    const kind = type === undefined ? undefined : KINDS[type.toLowerCase()];
    kinds[index] = seen.has(index) && kinds[index] !== kind ? undefined : kind;
    seen.add(index);
  }
  return kinds;
}

/** @returns undefined where an element is none of this kind for certain */
function encodeArray(kind: ElementKind, list: readonly unknown[]): Buffer | undefined {
  let hasNulls = false;
  for (const value of list) {
    if (value === undefined || value === null) hasNulls = true;
    else if (!isOfKind(kind, value)) return undefined;
  }
  return bytes.array(kind, list, hasNulls);
}

function isOfKind(kind: ElementKind, value: unknown): boolean {
  if (kind === "text" || kind === "jsonb") return typeof value === "string";
  if (kind === "bool") return typeof value === "boolean";
  if (typeof value === "string") return DIGITS.test(value) && isWithin(kind, Number(value));
  return typeof value === "number" && isWithin(kind, value);
}

function isWithin(kind: keyof typeof ENDS, value: number): boolean {
  return Number.isInteger(value) && value < ENDS[kind] && value >= -ENDS[kind];
}

/** Bytes that are kept for the next array. */
const FIRST_BYTES = 64 * 1024;
const MOST_KEPT_BYTES = 4 * 1024 * 1024;

/** Writes arrays one after the other into the same memory. */
class ArrayBytes extends BinaryValues {
  /** Dimensions, NULLs, type; how many, from which number on; the elements. */
  array(kind: ElementKind, list: readonly unknown[], hasNulls: boolean): Buffer {
    this.used = 0;
    this.addInt32(list.length === 0 ? 0 : 1);
    this.addInt32(hasNulls ? 1 : 0);
    this.addInt32(OIDS[kind]);
    if (list.length > 0) {
      this.addInt32(list.length);
      this.addInt32(1);
    }
    for (const value of list) this.addElement(kind, value);
    const array = Buffer.from(this.piece.subarray(0, this.used));
    if (this.piece.length > MOST_KEPT_BYTES) this.piece = Buffer.alloc(0);
    return array;
  }

  private addElement(kind: ElementKind, value: unknown): void {
    if (typeof value === "boolean") this.addBoolean(value);
    else if (typeof value === "number") this.addInteger(kind, value);
    else if (typeof value !== "string") this.addNull();
    else if (kind === "text") this.addText(value);
    else if (kind === "jsonb") this.addText(value, JSONB_VERSION);
    else this.addInteger(kind, Number(value));
  }

  private addInteger(kind: ElementKind, value: number): void {
    if (kind === "int2") this.addInt2(value);
    else if (kind === "int4") this.addInt4(value);
    else this.addInt8(value);
  }

  protected override grow(sizeBytes: number): void {
    const wantedBytes = Math.max(FIRST_BYTES, 2 * this.piece.length, this.used + sizeBytes);
    const wider = Buffer.allocUnsafe(wantedBytes);
    this.piece.copy(wider, 0, 0, this.used);
    this.piece = wider;
  }
}

const bytes = new ArrayBytes();
