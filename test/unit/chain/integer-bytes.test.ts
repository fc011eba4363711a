/** Integers as bytes, beside another implementation. */
import { bigIntToUnpaddedBytes } from "@ethereumjs/util";
import { describe, expect, it } from "@jest/globals";
import { bigintToBytes, bytesToBigint } from "../../../chain/hex.js";

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
});
