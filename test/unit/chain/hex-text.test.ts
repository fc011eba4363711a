/** Bytes as hex text, beside Buffer's own. */
import { describe, expect, it } from "@jest/globals";
import { bytesToHex, hexAt } from "../../../chain/hex.js";

const bytes = Uint8Array.from({ length: 300 }, (_, index) => (index * 151 + 7) % 256);

describe("hex of bytes", () => {
  it("is Buffer's behind the prefix, of any length", () => {
    for (let size = 0; size <= bytes.length; size++) {
      const own = bytes.slice(0, size);
      expect(bytesToHex(own)).toBe(`0x${Buffer.from(own).toString("hex")}`);
    }
  });

  it("is the same of a range of bytes that begin anywhere", () => {
    const view = bytes.subarray(13);
    for (const [start, end] of [
      [0, 0],
      [0, 20],
      [5, 37],
      [31, 95],
      [32, 97],
      [0, view.length],
    ] as const) {
      const expected = `0x${Buffer.from(view.slice(start, end)).toString("hex")}`;
      expect(hexAt(view, start, end)).toBe(expected);
    }
  });

  it("keeps what it gave before, however much is written after it", () => {
    const first = bytesToHex(bytes.subarray(0, 32));
    const kept = Buffer.from(first).toString();
    for (let at = 0; at < 200; at++) bytesToHex(bytes.subarray(at, at + 32));
    expect(first).toBe(kept);
  });
});
