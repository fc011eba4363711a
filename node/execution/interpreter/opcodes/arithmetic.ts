/** Arithmetic, comparisons and bits: opcodes 0x01 to 0x1d. */
import type { Frame } from "../frame.js";
import { EXPONENT_BYTE_GAS } from "../schedule.js";
import { toSigned, wrap } from "../words.js";

const WORD_MASK = (1n << 256n) - 1n;
const WORD_BITS = 256n;

/** ADD: sum modulo 2^256. */
export function add(frame: Frame): void {
  frame.push(wrap(frame.pop() + frame.pop()));
}

/** MUL: product modulo 2^256. */
export function mul(frame: Frame): void {
  frame.push(wrap(frame.pop() * frame.pop()));
}

/** SUB: difference modulo 2^256. */
export function sub(frame: Frame): void {
  frame.push(wrap(frame.pop() - frame.pop()));
}

/** DIV: quotient rounded down; 0 for a divisor of 0. */
export function div(frame: Frame): void {
  const dividend = frame.pop();
  const divisor = frame.pop();
  frame.push(divisor === 0n ? 0n : dividend / divisor);
}

/** SDIV: quotient with signs, rounded to zero; 0 for a divisor of 0. */
export function sdiv(frame: Frame): void {
  const dividend = toSigned(frame.pop());
  const divisor = toSigned(frame.pop());
  frame.push(divisor === 0n ? 0n : wrap(dividend / divisor));
}

/** MOD: remainder; 0 for a modulus of 0. */
export function mod(frame: Frame): void {
  const dividend = frame.pop();
  const divisor = frame.pop();
  frame.push(divisor === 0n ? 0n : dividend % divisor);
}

/** SMOD: remainder with the dividend's sign; 0 for a modulus of 0. */
export function smod(frame: Frame): void {
  const dividend = toSigned(frame.pop());
  const divisor = toSigned(frame.pop());
  frame.push(divisor === 0n ? 0n : wrap(dividend % divisor));
}

/** ADDMOD: the sum is not cut to 256 bits before the remainder is taken. */
export function addmod(frame: Frame): void {
  const sum = frame.pop() + frame.pop();
  const modulus = frame.pop();
  frame.push(modulus === 0n ? 0n : sum % modulus);
}

/** MULMOD: the product is not cut to 256 bits before the remainder is taken. */
export function mulmod(frame: Frame): void {
  const product = frame.pop() * frame.pop();
  const modulus = frame.pop();
  frame.push(modulus === 0n ? 0n : product % modulus);
}

/** EXP: 50 gas for each byte of the exponent. */
export function exp(frame: Frame): void {
  const base = frame.pop();
  const exponent = frame.pop();
  if (exponent > 0n) {
    const bytes = Math.ceil(exponent.toString(16).length / 2);
    frame.charge(EXPONENT_BYTE_GAS * bytes);
    frame.spend(frame.weights.exponentByteNs * bytes);
  }
  frame.push(power(base, exponent));
}

/** base ^ exponent modulo 2^256. */
function power(base: bigint, exponent: bigint): bigint {
  // Powers of two are what compilers ask for.
  if (base === 2n) return exponent < WORD_BITS ? 1n << exponent : 0n;
  let result = 1n;
  let square = base;
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = wrap(result * square);
    if (square <= 1n && left > 1n) return square === 0n ? 0n : result;
    square = wrap(square * square);
  }
  return result;
}

/** SIGNEXTEND: of a number of so many bytes less one. */
export function signextend(frame: Frame): void {
  const size = frame.pop();
  const word = frame.pop();
  frame.push(size >= 31n ? word : wrap(BigInt.asIntN(8 * (Number(size) + 1), word)));
}

/** LT: 1 where the top is less. */
export function lt(frame: Frame): void {
  frame.push(frame.pop() < frame.pop() ? 1n : 0n);
}

/** GT: 1 where the top is greater. */
export function gt(frame: Frame): void {
  frame.push(frame.pop() > frame.pop() ? 1n : 0n);
}

/** SLT: as LT, with signs. */
export function slt(frame: Frame): void {
  frame.push(toSigned(frame.pop()) < toSigned(frame.pop()) ? 1n : 0n);
}

/** SGT: as GT, with signs. */
export function sgt(frame: Frame): void {
  frame.push(toSigned(frame.pop()) > toSigned(frame.pop()) ? 1n : 0n);
}

/** EQ: 1 for equal words. */
export function eq(frame: Frame): void {
  frame.push(frame.pop() === frame.pop() ? 1n : 0n);
}

/** ISZERO: 1 for 0. */
export function iszero(frame: Frame): void {
  frame.push(frame.pop() === 0n ? 1n : 0n);
}

/** AND: bits of both. */
export function and(frame: Frame): void {
  frame.push(frame.pop() & frame.pop());
}

/** OR: bits of either. */
export function or(frame: Frame): void {
  frame.push(frame.pop() | frame.pop());
}

/** XOR: bits of one alone. */
export function xor(frame: Frame): void {
  frame.push(frame.pop() ^ frame.pop());
}

/** NOT: the other bits. */
export function not(frame: Frame): void {
  frame.push(frame.pop() ^ WORD_MASK);
}

/** BYTE: the n-th byte, counted from the highest. */
export function byte(frame: Frame): void {
  const index = frame.pop();
  const word = frame.pop();
  frame.push(index >= 32n ? 0n : (word >> (8n * (31n - index))) & 0xffn);
}

/** SHL (EIP-145). */
export function shl(frame: Frame): void {
  const shift = frame.pop();
  const word = frame.pop();
  frame.push(shift >= WORD_BITS ? 0n : wrap(word << shift));
}

/** SHR (EIP-145). */
export function shr(frame: Frame): void {
  const shift = frame.pop();
  const word = frame.pop();
  frame.push(shift >= WORD_BITS ? 0n : word >> shift);
}

/** SAR (EIP-145): copies of the sign come in from the left. */
export function sar(frame: Frame): void {
  const shift = frame.pop();
  const word = toSigned(frame.pop());
  frame.push(wrap(word >> (shift >= WORD_BITS ? WORD_BITS : shift)));
}
