/** Checksums of stored values against zlib's, which is another program's. */
import { describe, expect, it } from "@jest/globals";
import { crc32 } from "node:zlib";
import { openValue, sealValue } from "../../../../runtime/files/sealed-value.js";
import { createRandom } from "../../../helpers/random.js";

describe("a sealed value", () => {
  const random = createRandom(29);

  it.each([0, 1, 2, 3, 4, 5, 7, 20, 29, 100, 148, 149, 150, 151, 152, 4_096])(
    "of %i bytes has zlib's sum of key and value, and is opened under its key alone",
    (length) => {
      for (const keyLength of [0, 1, 9, 29, 53]) {
        const key = random.bytes(keyLength);
        const value = random.bytes(length);
        const stored = sealValue(key, value);
        expect(stored.readUInt32BE(length)).toBe(crc32(value, crc32(key)));
        expect(openValue(key, stored)).toEqual(Buffer.from(value));
        if (keyLength > 0) expect(openValue(random.bytes(keyLength), stored)).toBeUndefined();
      }
    },
  );

  it("with a flipped bit is refused, wherever it is", () => {
    const key = random.bytes(9);
    const stored = sealValue(key, random.bytes(23));
    for (let bit = 0; bit < 8 * stored.length; bit++) {
      const damaged = Buffer.from(stored);
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(openValue(key, damaged)).toBeUndefined();
    }
  });
});
