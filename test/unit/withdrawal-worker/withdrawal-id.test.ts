/** Identifiers of withdrawals: unique, and in the order of time. */
import { describe, expect, it } from "@jest/globals";
import { newWithdrawalId } from "../../../ledger/requests/withdrawal-id.js";

describe("a withdrawal's identifier", () => {
  it("holds a UUID of version 7 with the time it was made at", () => {
    // RFC 9562, appendix A.6: 22 February 2022, 14:22:22.000 at UTC-5.
    const id = newWithdrawalId(0x017f22e279b0);
    expect(id).toMatch(/^wd_017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it("sorts behind all that were made in an earlier millisecond", () => {
    const times = [0, 1, 255, 256, 1_700_000_000_000, 1_700_000_000_001, 2 ** 48 - 1];
    const ids = times.map((nowMs) => newWithdrawalId(nowMs));
    expect(ids.toSorted()).toEqual(ids);
  });

  it("is another one each time, within a millisecond as well", () => {
    const ids = Array.from({ length: 10_000 }, () => newWithdrawalId(1_700_000_000_000));
    expect(new Set(ids).size).toBe(ids.length);
  });
});
