/** Gas of payments: margins round up, prices stay between floor and cap. */
import { describe, expect, it } from "@jest/globals";
import {
  affordableGas,
  cancelPriceCap,
  choosePrice,
  type GasSettings,
  raiseGasLimit,
  raisePrice,
  withMargin,
  withTokenMargin,
} from "../../../withdrawal-worker/gas.js";

const settings: GasSettings = {
  marginPercent: 20,
  limitMax: 100_000n,
  priceFloorAtoken: 10n,
  priceCapAtoken: 1_000n,
  feePerPayoutAtoken: 10n ** 9n,
  feePerDayAtoken: 10n ** 12n,
  codeGasInFlight: 100_000n,
};

describe("gas", () => {
  it("adds the margin and rounds up", () => {
    expect(withMargin(21_000n, settings)).toBe(25_200n);
    expect(withMargin(21_001n, settings)).toBe(25_202n);
    expect(withMargin(21_001n, { ...settings, marginPercent: 0 })).toBe(21_001n);
  });

  it("leaves room for a token's receiver that has nothing by then, within the limit", () => {
    expect(withTokenMargin(40_000n, settings)).toBe(65_100n);
    expect(withTokenMargin(80_000n, settings)).toBe(100_000n);
    expect(withTokenMargin(90_000n, settings)).toBe(108_000n);
  });

  it("is asked for as far as the coins behind the value go, within the ceiling", () => {
    expect(affordableGas(999n, 10n, 80_000n)).toBe(99n);
    expect(affordableGas(10n ** 18n, 10n, 80_000n)).toBe(80_000n);
    expect(affordableGas(0n, 0n, 80_000n)).toBe(80_000n);
    expect(affordableGas(-1n, 0n, 80_000n)).toBe(-1n);
  });

  it("takes the suggested price between floor and cap", () => {
    expect(choosePrice(500n, settings)).toBe(500n);
    expect(choosePrice(1n, settings)).toBe(10n);
    expect(choosePrice(9_999n, settings)).toBe(1_000n);
  });

  it("raises a refused price by a tenth at least, to what is needed, and never above the cap", () => {
    const cap = settings.priceCapAtoken;
    expect(raisePrice(100n, { suggestedAtoken: 50n }, cap)).toBe(110n);
    expect(raisePrice(101n, { suggestedAtoken: 50n }, cap)).toBe(112n);
    expect(raisePrice(100n, { suggestedAtoken: 300n, neededAtoken: 400n }, cap)).toBe(400n);
    expect(raisePrice(950n, { suggestedAtoken: 0n }, cap)).toBeUndefined();
    expect(raisePrice(10n, { suggestedAtoken: 0n, neededAtoken: 1_001n }, cap)).toBeUndefined();
    expect(raisePrice(100n, { suggestedAtoken: 5_000n }, cap)).toBe(cap);
  });

  it("makes also what costs nothing dearer, so that its nonce has a way out", () => {
    expect(raisePrice(0n, { suggestedAtoken: 0n }, 1_000n)).toBe(1n);
    expect(raisePrice(0n, { suggestedAtoken: 0n }, cancelPriceCap(1n))).toBe(1n);
    expect(raisePrice(1n, { suggestedAtoken: 0n }, cancelPriceCap(1n))).toBe(2n);
  });

  it("leaves a cancelling transfer room above the highest payment", () => {
    expect(raisePrice(1_000n, { suggestedAtoken: 0n }, cancelPriceCap(1_000n))).toBe(1_100n);
    expect(cancelPriceCap(1_001n)).toBe(1_102n);
  });

  it("raises a refused gas limit to what is needed, and never above the limit", () => {
    expect(raiseGasLimit(25_000n, { estimate: 21_000n, needed: 30_000n }, settings)).toBe(36_000n);
    expect(raiseGasLimit(40_000n, { estimate: 21_000n }, settings)).toBe(40_001n);
    expect(raiseGasLimit(25_000n, { estimate: 90_000n }, settings)).toBeUndefined();
  });
});
