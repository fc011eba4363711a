/** Integers as bytes, beside another implementation. */
import { bigIntToUnpaddedBytes, bytesToBigInt, setLengthLeft } from "@ethereumjs/util";
import { describe, expect, it } from "@jest/globals";
import { bigintAt, bigintToBytes, bigintToWord, bytesToBigint } from "../../../chain/hex.js";

describe("an unsigned integer", () => {
  it("is the shortest bytes on both sides of each power of two", () => {
    for (let bits = 0n; bits <= 256n; bits++) {
      for (const offset of [-2n, -1n, 0n, 1n, 2n]) {
        const value = 2n ** bits + offset;
        if (value <= 0n) continue;
        expect(Buffer.from(bigintToBytes(value))).toEqual(
          Buffer.from(bigIntToUnpaddedBytes(value)),
        );
        expect(bytesToBigint(bigintToBytes(value))).toBe(value);
      }
    }
  });

  it("is no bytes where it is zero", () => {
    expect(bigintToBytes(0n)).toHaveLength(0);
  });

  it("is read from any range, with as many zeros before it as there are", () => {
    const bytes = Uint8Array.from({ length: 96 }, (_, index) => (index * 151 + 7) % 256);
    for (let zeros = 0; zeros <= 40; zeros++) {
      for (let end = zeros; end <= 80; end++) {
        const range = Uint8Array.from(bytes);
        range.fill(0, 0, zeros);
        expect(bigintAt(range, 0, end)).toBe(bytesToBigInt(range.slice(0, end)));
        expect(bigintAt(range.subarray(3), 2, end)).toBe(bytesToBigInt(range.slice(5, end + 3)));
      }
    }
  });

  it("is a word of 32 bytes, or refused: cut off it would be another amount", () => {
    for (const value of [0n, 1n, 2n ** 64n - 1n, 2n ** 64n, 2n ** 191n + 5n, 2n ** 256n - 1n]) {
      const expected = setLengthLeft(bigIntToUnpaddedBytes(value), 32);
      expect(Buffer.from(bigintToWord(value))).toEqual(Buffer.from(expected));
    }
    expect(() => bigintToWord(2n ** 256n)).toThrow(RangeError);
    expect(() => bigintToWord(-1n)).toThrow(RangeError);
  });
});
