/**
 * CRC-32C of any stretch of bytes from one pass over them: the sum of a stretch follows from those
 * of the two beginnings that end where it begins and ends, because a checksum is linear.
 */
import { CRC32C_POLYNOMIAL, crc32cStep } from "./crc32c.js";

const ALL_ONES = 0xffff_ffff;

/** The polynomials 1 and x^8, their lowest power in the highest bit. */
const ONE = 0x8000_0000;
const ONE_BYTE = 0x0080_0000;

/** A length is written as two digits to this base, so that two small tables do for all lengths. */
const DIGIT = 1_024;

/** x^(8 n) and x^(8 * 1024 n): what multiplies a sum when so many bytes follow. */
const BYTES = powers(ONE_BYTE);
const KILOBYTES = powers(multiply(BYTES[DIGIT - 1] ?? ONE, ONE_BYTE));

/** Sums of stretches that begin in ascending order. */
export class RangeChecksums {
  /** Sums of the beginnings that end at a place, the place taken modulo the length. */
  private readonly sums: Uint32Array;
  private readAt: number;
  private sum = 0;

  /**
   * @param from no stretch begins before it
   * @param maxBytes no stretch is longer; below a megabyte squared
   */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly from: number,
    maxBytes: number,
  ) {
    if (maxBytes >= DIGIT * DIGIT * 2) throw new RangeError("stretches are too long");
    this.sums = new Uint32Array(Math.min(2 * maxBytes, bytes.length - from) + 1);
    this.readAt = from;
  }

  /** Bytes that were read so far; none is read twice. */
  get readBytes(): number {
    return this.readAt - this.from;
  }

  /** `crc32c` of the bytes from one place to before another. */
  of(from: number, to: number): number {
    const oldest = this.readAt - this.sums.length;
    if (from < this.from || from <= oldest || to < from || to > this.bytes.length) {
      throw new RangeError("a stretch whose sum is not kept");
    }
    while (this.readAt < to) {
      this.sum = crc32cStep(this.sum, this.bytes[this.readAt] ?? 0);
      this.readAt++;
      this.sums[(this.readAt - this.from) % this.sums.length] = this.sum;
    }
    const length = to - from;
    const factor = multiply(
      BYTES[length % DIGIT] ?? ONE,
      KILOBYTES[Math.floor(length / DIGIT)] ?? ONE,
    );
    return (multiply(factor, this.sumTo(from) ^ ALL_ONES) ^ this.sumTo(to) ^ ALL_ONES) >>> 0;
  }

  private sumTo(place: number): number {
    return this.sums[(place - this.from) % this.sums.length] ?? 0;
  }
}

function powers(base: number): Uint32Array {
  const list = new Uint32Array(DIGIT * 2);
  let power = ONE;
  for (let count = 0; count < list.length; count++) {
    list[count] = power;
    power = multiply(power, base);
  }
  return list;
}

/** Product of two polynomials modulo the checksum's. */
function multiply(one: number, other: number): number {
  let [product, shifted] = [0, other];
  for (let bit = 0x8000_0000; bit !== 0; bit >>>= 1) {
    if ((one & bit) !== 0) product ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ CRC32C_POLYNOMIAL;
  }
  return product >>> 0;
}
