/** Numbers with 18 decimals as texts, in the spellings of the SDK's LegacyDec. */
import { describe, expect, it } from "@jest/globals";
import {
  DECIMAL_ONE,
  decimalText,
  parseDecimal,
  parseUnsigned,
  withPoint,
} from "../../../chain/encoding/decimal.js";

describe("numbers with 18 decimals", () => {
  it.each([
    [0n, "0.000000000000000000"],
    [1n, "0.000000000000000001"],
    [-1n, "-0.000000000000000001"],
    [DECIMAL_ONE / 2n, "0.500000000000000000"],
    [(-3n * DECIMAL_ONE) / 2n, "-1.500000000000000000"],
    [123n * DECIMAL_ONE + 45n, "123.000000000000000045"],
  ])("%s is %s, and the other way round", (scaled, text) => {
    expect(decimalText(scaled)).toBe(text);
    expect(parseDecimal(text)).toBe(scaled);
  });

  it("may have fewer decimals, or none, and zeros in front", () => {
    expect(parseDecimal("0.5")).toBe(DECIMAL_ONE / 2n);
    expect(parseDecimal("-007")).toBe(-7n * DECIMAL_ONE);
    expect(withPoint("-0500000000000000000")).toBe("-0.500000000000000000");
    expect(withPoint("00500000000000000000")).toBe("00.500000000000000000");
  });

  it.each(["", "-", ".5", "5.", "+1", "--1", "1e3", " 1", "1\n", "0.1234567890123456789"])(
    "are not told by %j",
    (text) => expect([parseDecimal(text), parseUnsigned(text)]).toEqual([undefined, undefined]),
  );

  it("have no sign and no more digits than are asked for", () => {
    expect(parseUnsigned("-1")).toBe(undefined);
    expect(parseUnsigned("999.5", 3)).toBe(1_999n * (DECIMAL_ONE / 2n));
    expect(parseUnsigned("1000", 3)).toBe(undefined);
    expect(parseDecimal("9".repeat(60))).toBe(BigInt("9".repeat(60)) * DECIMAL_ONE);
    expect(parseDecimal("9".repeat(61))).toBe(undefined);
  });
});
