/** Arithmetic, comparisons and bits: opcodes 0x01 to 0x1d. */
import type { Frame } from "./frame.js";
import { EXPONENT_BYTE_GAS } from "./schedule.js";
import { EXPONENT_BYTE_NS } from "../../../chain/evm/compute-weights.js";
import { toSigned, wrap } from "./words.js";

const WORD_MASK = (1n << 256n) - 1n;
const WORD_BITS = 256n;

export function add(frame: Frame): void {
  frame.push(wrap(frame.pop() + frame.pop()));
}

export function mul(frame: Frame): void {
  frame.push(wrap(frame.pop() * frame.pop()));
}

export function sub(frame: Frame): void {
  frame.push(wrap(frame.pop() - frame.pop()));
}

export function div(frame: Frame): void {
  const dividend = frame.pop();
  const divisor = frame.pop();
  frame.push(divisor === 0n ? 0n : dividend / divisor);
}

export function sdiv(frame: Frame): void {
  const dividend = toSigned(frame.pop());
  const divisor = toSigned(frame.pop());
  frame.push(divisor === 0n ? 0n : wrap(dividend / divisor));
}

export function mod(frame: Frame): void {
  const dividend = frame.pop();
  const divisor = frame.pop();
  frame.push(divisor === 0n ? 0n : dividend % divisor);
}

export function smod(frame: Frame): void {
  const dividend = toSigned(frame.pop());
  const divisor = toSigned(frame.pop());
  frame.push(divisor === 0n ? 0n : wrap(dividend % divisor));
}

export function addmod(frame: Frame): void {
  const sum = frame.pop() + frame.pop();
  const modulus = frame.pop();
  frame.push(modulus === 0n ? 0n : sum % modulus);
}

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
    frame.spend(EXPONENT_BYTE_NS * bytes);
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

export function signextend(frame: Frame): void {
  const size = frame.pop();
  const word = frame.pop();
  frame.push(size >= 31n ? word : wrap(BigInt.asIntN(8 * (Number(size) + 1), word)));
}

export function lt(frame: Frame): void {
  frame.push(frame.pop() < frame.pop() ? 1n : 0n);
}

export function gt(frame: Frame): void {
  frame.push(frame.pop() > frame.pop() ? 1n : 0n);
}

export function slt(frame: Frame): void {
  frame.push(toSigned(frame.pop()) < toSigned(frame.pop()) ? 1n : 0n);
}

export function sgt(frame: Frame): void {
  frame.push(toSigned(frame.pop()) > toSigned(frame.pop()) ? 1n : 0n);
}

export function eq(frame: Frame): void {
  frame.push(frame.pop() === frame.pop() ? 1n : 0n);
}

export function iszero(frame: Frame): void {
  frame.push(frame.pop() === 0n ? 1n : 0n);
}

export function and(frame: Frame): void {
  frame.push(frame.pop() & frame.pop());
}

export function or(frame: Frame): void {
  frame.push(frame.pop() | frame.pop());
}

export function xor(frame: Frame): void {
  frame.push(frame.pop() ^ frame.pop());
}

export function not(frame: Frame): void {
  frame.push(frame.pop() ^ WORD_MASK);
}

export function byte(frame: Frame): void {
  const index = frame.pop();
  const word = frame.pop();
  frame.push(index >= 32n ? 0n : (word >> (8n * (31n - index))) & 0xffn);
}

export function shl(frame: Frame): void {
  const shift = frame.pop();
  const word = frame.pop();
  frame.push(shift >= WORD_BITS ? 0n : wrap(word << shift));
}

export function shr(frame: Frame): void {
  const shift = frame.pop();
  const word = frame.pop();
  frame.push(shift >= WORD_BITS ? 0n : word >> shift);
}

export function sar(frame: Frame): void {
  const shift = frame.pop();
  const word = toSigned(frame.pop());
  frame.push(wrap(word >> (shift >= WORD_BITS ? WORD_BITS : shift)));
}
