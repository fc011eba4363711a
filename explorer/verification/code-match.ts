/**
 * Holds a contract's code against what a compiler made of its sources. What a constructor writes into
 * code (immutable values), addresses of libraries and the address in a library itself are masked;
 * everything else must be the same byte for byte. The metadata at the end says how the sources
 * themselves compare: an exact match has its hash, too (as Sourcify's terms are).
 * Sources: Solidity's documentation, "Contract Metadata" and "Libraries"; Sourcify's documentation.
 */
import { bytesToHex, type Hex } from "../../chain/hex.js";
import type { CodeRange, CompiledContract } from "./compilers.js";
import { refused } from "./refusal.js";

/** The end of a code: how the compiler names itself and its metadata. */
export interface CodeTail {
  /** Hash of the metadata, of whatever kind; undefined where it was left out. */
  readonly hash: Hex | undefined;
  readonly lengthBytes: number;
}

/** A value that stands in code. */
export interface CodeValue {
  readonly name: string;
  readonly value: Hex;
}

/** Codes that agree. */
export interface CodeMatch {
  /** "exact" proves sources, comments and settings, too; "partial" what the code does. */
  readonly kind: "exact" | "partial";
  readonly immutables: readonly CodeValue[];
  /** Libraries by "source:name". */
  readonly libraries: readonly CodeValue[];
  /** Hashes of the metadata; undefined where a code has none. */
  readonly chainHash: Hex | undefined;
  readonly compiledHash: Hex | undefined;
}

/** How a code was asked for. */
export interface CodeSettings {
  /** False where the compiler was told to write no metadata behind the code: all of it is the program's. */
  readonly hasTail: boolean;
}

/** `PUSH20 <own address>`, with which code of libraries begins. */
const LIBRARY_START = /^73(0{40})3014/;

const PLACEHOLDER = "_";

/**
 * Compares.
 * @param chainCode the account's code, not empty
 * @param address the account, without 0x and in small letters
 * @throws MISMATCH with what differs
 */
export function matchCode(
  chainCode: Uint8Array,
  compiled: Pick<CompiledContract, "runtimeCode" | "immutables" | "links">,
  address: string,
  settings: CodeSettings,
): CodeMatch {
  const chain = Buffer.from(chainCode).toString("hex");
  let expected = compiled.runtimeCode.toLowerCase();
  if (expected === "") throw refused("MISMATCH", "the compiler made no code: is it an interface?");
  const links = Object.entries(compiled.links).flatMap(([source, libraries]) =>
    Object.entries(libraries).map(([name, ranges]) => ({ name: `${source}:${name}`, ranges })),
  );
  const immutables = Object.entries(compiled.immutables).map(([name, ranges]) => ({
    name,
    ranges,
  }));
  let uneven: string | undefined;
  const fill = ({ name, ranges }: { name: string; ranges: readonly CodeRange[] }): CodeValue => {
    const [first] = ranges;
    const value = first === undefined ? "" : digitsAt(chain, first);
    for (const range of ranges) {
      const digits = digitsAt(chain, range);
      if (digits !== value) uneven ??= name;
      const at = 2 * range.start;
      expected = expected.slice(0, at) + digits + expected.slice(at + 2 * range.length);
    }
    return { name, value: `0x${value}` };
  };
  // Lengths may differ by the metadata alone, which is at the end: places before it stay.
  const values = { immutables: immutables.map(fill), libraries: links.map(fill) };
  if (LIBRARY_START.test(expected)) expected = `73${address}${expected.slice(42)}`;
  if (expected.includes(PLACEHOLDER)) {
    throw refused("MISMATCH", "addresses of libraries are missing in the compiled code");
  }
  const match = judged(chain, expected, values, settings);
  // Each place of one value has the same: else bytes of another meaning would be let through.
  if (uneven !== undefined) {
    throw refused("MISMATCH", `the value ${uneven} differs from place to place`);
  }
  return match;
}

function digitsAt(code: string, { start, length }: CodeRange): string {
  const digits = code.slice(2 * start, 2 * (start + length));
  if (digits.length !== 2 * length) {
    throw refused("MISMATCH", `the code on the chain is too short (${code.length / 2} bytes)`);
  }
  return digits;
}

function judged(
  chain: string,
  expected: string,
  values: Pick<CodeMatch, "immutables" | "libraries">,
  { hasTail }: CodeSettings,
): CodeMatch {
  // What ends like metadata, and is none, is a constant of the program: it says nothing, and counts.
  const [chainTail, compiledTail] = hasTail ? [readTail(chain), readTail(expected)] : [];
  const hashes = { chainHash: chainTail?.hash, compiledHash: compiledTail?.hash };
  if (chain === expected) {
    return { kind: chainTail?.hash === undefined ? "partial" : "exact", ...values, ...hashes };
  }
  const chainBody = withoutTail(chain, chainTail);
  const compiledBody = withoutTail(expected, compiledTail);
  if (chainBody === compiledBody) return { kind: "partial", ...values, ...hashes };
  throw refused("MISMATCH", differenceOf(chainBody, compiledBody));
}

function withoutTail(code: string, tail: CodeTail | undefined): string {
  return tail === undefined ? code : code.slice(0, code.length - 2 * tail.lengthBytes);
}

function differenceOf(chain: string, compiled: string): string {
  const sizes = `${chain.length / 2} bytes on the chain, ${compiled.length / 2} compiled`;
  let at = 0;
  while (at < chain.length && chain[at] === compiled[at]) at += 1;
  return `${sizes}; first difference at byte ${Math.floor(at / 2)}`;
}

/**
 * Keys that compilers write, with the bytes that each value has: a multihash of SHA-256 for IPFS,
 * Swarm's hashes, a version of three bytes or a text before a release, a truth value. Anything else
 * could hide bytes from the comparison.
 */
const KEYS: Readonly<Record<string, (value: Buffer) => boolean>> = {
  ipfs: (value) => value.length === 34 && value[0] === 0x12 && value[1] === 0x20,
  bzzr0: (value) => value.length === 32,
  bzzr1: (value) => value.length === 32,
  solc: (value) => value.length === 3 || /^[\x20-\x7e]{5,200}$/.test(value.toString("latin1")),
  experimental: (value) => value.length === 1,
};

/** Those of them that name the metadata. */
const HASH_KEYS = new Set(["ipfs", "bzzr0", "bzzr1"]);

/**
 * The metadata at the end of a code (hex without 0x): a CBOR map and its length in two bytes.
 * Undefined where the end is anything else, so that no other bytes are taken for it.
 */
export function readTail(code: string): CodeTail | undefined {
  const bytes = Buffer.from(code, "hex");
  if (bytes.length < 2) return undefined;
  const mapBytes = bytes.readUInt16BE(bytes.length - 2);
  const start = bytes.length - 2 - mapBytes;
  if (start < 0 || mapBytes === 0) return undefined;
  const map = bytes.subarray(start, bytes.length - 2);
  const count = (map[0] ?? 0) - 0xa0;
  if (count < 1 || count > 4) return undefined;
  let at = 1;
  let hash: Hex | undefined;
  for (let entry = 0; entry < count; entry++) {
    const key = readText(map, at);
    if (key === undefined) return undefined;
    at = key.end;
    const value = readValue(map, at);
    if (value === undefined) return undefined;
    at = value.end;
    const isOfCompilers = Object.hasOwn(KEYS, key.text) && KEYS[key.text]?.(value.bytes) === true;
    if (!isOfCompilers) return undefined;
    if (HASH_KEYS.has(key.text)) hash = bytesToHex(value.bytes);
  }
  return at === map.length ? { hash, lengthBytes: mapBytes + 2 } : undefined;
}

function readText(map: Buffer, at: number): { text: string; end: number } | undefined {
  const length = (map[at] ?? 0) - 0x60;
  const end = at + 1 + length;
  if (length < 1 || length > 23 || end > map.length) return undefined;
  return { text: map.toString("latin1", at + 1, end), end };
}

/** A byte string, a text or a truth value. */
function readValue(map: Buffer, at: number): { bytes: Buffer; end: number } | undefined {
  const head = map[at] ?? 0;
  if (head === 0xf4 || head === 0xf5) return { bytes: map.subarray(at, at + 1), end: at + 1 };
  const kind = head >> 5;
  const short = head & 0x1f;
  if ((kind !== 2 && kind !== 3) || short > 24) return undefined;
  const start = short === 24 ? at + 2 : at + 1;
  const length = short === 24 ? (map[at + 1] ?? 0) : short;
  const end = start + length;
  return end > map.length ? undefined : { bytes: map.subarray(start, end), end };
}
