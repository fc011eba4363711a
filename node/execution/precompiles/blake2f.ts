/**
 * The BLAKE2b compression precompile (0x09, EIP-152), in place of the library's: each mixing step
 * keeps its words in local variables, so that a round costs about what its one unit of gas says.
 */
import type { Precompile } from "./precompile.js";

const INPUT_BYTES = 213;
/** Compute units of a call and of one round. */
const BASE_NS = 3_000;
const ROUND_NS = 300;
const STATE_OFFSET = 4;
const MESSAGE_OFFSET = 68;
const COUNTER_OFFSET = 196;
const FINAL_OFFSET = 212;

/** Fraction of the square roots of the first primes, low and high halves in turn (RFC 7693). */
const IV = Int32Array.from([
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
]);

/** Message words of each of the ten rounds, then again from the first (RFC 7693, 2.7). */
const SIGMA = [
  "0123456789abcdef",
  "ea489fd61c02b753",
  "b8c052fdae367194",
  "7931dcbe265a40f8",
  "905724afe1bc683d",
  "2c6a0b834d75fe19",
  "c51fed4a0763928b",
  "db7ec13950f4862a",
  "6fe9b308c2d714a5",
  "a2847615fb9e3cd0",
].map((row) => Uint8Array.from(row, (digit) => 2 * Number.parseInt(digit, 16)));

/** The compression function F; gas is one per round. */
export const blake2f: Precompile = {
  gas: (input) => (input.length === INPUT_BYTES ? viewOf(input).getUint32(0) : 0),
  computeNs: (input) => BASE_NS + ROUND_NS * blake2f.gas(input),
  run: (input) => (input.length === INPUT_BYTES ? mixed(viewOf(input)) : undefined),
  failure: (input) =>
    input.length === INPUT_BYTES ? "invalid final flag" : "invalid input length",
};

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function mixed(view: DataView): Uint8Array | undefined {
  const isFinal = view.getUint8(FINAL_OFFSET);
  if (isFinal > 1) return undefined;
  const rounds = view.getUint32(0);
  const state = words(view, STATE_OFFSET, 16);
  const work = new Int32Array(32);
  work.set(state);
  work.set(IV, 16);
  for (let word = 0; word < 4; word++) {
    work[24 + word] = (work[24 + word] ?? 0) ^ view.getInt32(COUNTER_OFFSET + 4 * word, true);
  }
  if (isFinal === 1) {
    work[28] = ~(work[28] ?? 0);
    work[29] = ~(work[29] ?? 0);
  }
  compress(work, words(view, MESSAGE_OFFSET, 32), rounds);
  const result = new DataView(new ArrayBuffer(64));
  for (let word = 0; word < 16; word++) {
    const value = (state[word] ?? 0) ^ (work[word] ?? 0) ^ (work[word + 16] ?? 0);
    result.setInt32(4 * word, value, true);
  }
  return new Uint8Array(result.buffer);
}

function words(view: DataView, offset: number, count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, word) => view.getInt32(offset + 4 * word, true));
}

function compress(v: Int32Array, m: Int32Array, rounds: number): void {
  for (let round = 0; round < rounds; round++) {
    const s = SIGMA[round % 10] ?? new Uint8Array(16);
    mix(v, m, 0, 8, 16, 24, s[0] ?? 0, s[1] ?? 0);
    mix(v, m, 2, 10, 18, 26, s[2] ?? 0, s[3] ?? 0);
    mix(v, m, 4, 12, 20, 28, s[4] ?? 0, s[5] ?? 0);
    mix(v, m, 6, 14, 22, 30, s[6] ?? 0, s[7] ?? 0);
    mix(v, m, 0, 10, 20, 30, s[8] ?? 0, s[9] ?? 0);
    mix(v, m, 2, 12, 22, 24, s[10] ?? 0, s[11] ?? 0);
    mix(v, m, 4, 14, 16, 26, s[12] ?? 0, s[13] ?? 0);
    mix(v, m, 6, 8, 18, 28, s[14] ?? 0, s[15] ?? 0);
  }
}

/** Carry of the sum of two low halves. */
function carry(sum: number, addend: number): number {
  return sum >>> 0 < addend >>> 0 ? 1 : 0;
}

/** RFC 7693, 3.1: indices are of low halves, the high half follows each. */
function mix(
  v: Int32Array,
  m: Int32Array,
  a: number,
  b: number,
  c: number,
  d: number,
  x: number,
  y: number,
): void {
  // Single assignments: destructuring would make arrays in the innermost loop.
  let al = v[a] ?? 0;
  let ah = v[a + 1] ?? 0;
  let bl = v[b] ?? 0;
  let bh = v[b + 1] ?? 0;
  let cl = v[c] ?? 0;
  let ch = v[c + 1] ?? 0;
  let xl = m[x] ?? 0;
  let xh = m[x + 1] ?? 0;
  let low = (al + bl) | 0;
  ah = (ah + bh + carry(low, bl)) | 0;
  al = (low + xl) | 0;
  ah = (ah + xh + carry(al, xl)) | 0;
  let dl = (v[d + 1] ?? 0) ^ ah;
  let dh = (v[d] ?? 0) ^ al;
  low = (cl + dl) | 0;
  ch = (ch + dh + carry(low, dl)) | 0;
  cl = low;
  xl = bl ^ cl;
  xh = bh ^ ch;
  bl = (xl >>> 24) | (xh << 8);
  bh = (xh >>> 24) | (xl << 8);
  xl = m[y] ?? 0;
  xh = m[y + 1] ?? 0;
  low = (al + bl) | 0;
  ah = (ah + bh + carry(low, bl)) | 0;
  al = (low + xl) | 0;
  ah = (ah + xh + carry(al, xl)) | 0;
  xl = dl ^ al;
  xh = dh ^ ah;
  dl = (xl >>> 16) | (xh << 16);
  dh = (xh >>> 16) | (xl << 16);
  low = (cl + dl) | 0;
  ch = (ch + dh + carry(low, dl)) | 0;
  cl = low;
  xl = bl ^ cl;
  xh = bh ^ ch;
  bl = (xh >>> 31) | (xl << 1);
  bh = (xl >>> 31) | (xh << 1);
  v[a] = al;
  v[a + 1] = ah;
  v[b] = bl;
  v[b + 1] = bh;
  v[c] = cl;
  v[c + 1] = ch;
  v[d] = dl;
  v[d + 1] = dh;
}
