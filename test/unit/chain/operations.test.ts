import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { type BalanceChange, forEachDelta } from "../../../chain/balance-change.js";
import { operationsOf } from "../../../chain/operations.js";

const A = parseAddress(`0x${"a1".repeat(20)}`);
const B = parseAddress(`0x${"b2".repeat(20)}`);

function change(fields: Partial<BalanceChange>): BalanceChange {
  return {
    reason: "CALL",
    from: A,
    to: B,
    amountAtoken: 5n,
    effective: true,
    tracePath: "",
    ...fields,
  };
}

describe("operations of balance changes", () => {
  it("number both sides of a pair, the payer first, and relate the receiver to it", () => {
    const operations = operationsOf([
      change({ reason: "FEE", amountAtoken: 2n, tracePath: undefined }),
      change({}),
    ]);
    const seen = operations.map(({ index, type, address, amountAtoken, relatedIndex }) => [
      index,
      type,
      address,
      amountAtoken,
      relatedIndex,
    ]);
    expect(seen).toEqual([
      [0, "FEE", A, -2n, undefined],
      [1, "FEE", B, 2n, 0],
      [2, "CALL", A, -5n, undefined],
      [3, "CALL", B, 5n, 2],
    ]);
  });

  it("give one operation for a one-sided change, without a relation", () => {
    const operations = operationsOf([
      change({ reason: "FEE_BURN", to: undefined }),
      change({ reason: "MINT", from: undefined }),
    ]);
    expect(
      operations.map(({ index, amountAtoken, relatedIndex }) => [
        index,
        amountAtoken,
        relatedIndex,
      ]),
    ).toEqual([
      [0, -5n, undefined],
      [1, 5n, undefined],
    ]);
  });

  it("mark what was undone as FAILURE and keep its numbers in the run", () => {
    const operations = operationsOf([
      change({}),
      change({ effective: false, tracePath: "0", error: "execution reverted" }),
    ]);
    expect(operations.map(({ index, status }) => `${index} ${status}`)).toEqual([
      "0 SUCCESS",
      "1 SUCCESS",
      "2 FAILURE",
      "3 FAILURE",
    ]);
  });

  it("move exactly what the journal says, per account, over 500 random lists", () => {
    let state = 7;
    const next = (bound: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return state % bound;
    };
    for (let round = 0; round < 500; round++) {
      const changes = Array.from({ length: next(6) }, () =>
        change({
          from: next(3) === 0 ? undefined : next(2) === 0 ? A : B,
          to: next(3) === 0 ? undefined : next(2) === 0 ? A : B,
          amountAtoken: BigInt(next(1_000)),
          effective: next(4) !== 0,
        }),
      );
      const expected = new Map([
        [A, 0n],
        [B, 0n],
      ]);
      for (const each of changes) {
        forEachDelta(each, (address, delta) =>
          expected.set(address, (expected.get(address) ?? 0n) + delta),
        );
      }
      const got = new Map([
        [A, 0n],
        [B, 0n],
      ]);
      const operations = operationsOf(changes);
      operations.forEach((operation, position) => {
        expect({ round, index: operation.index }).toEqual({ round, index: position });
        const { address, amountAtoken, status, relatedIndex } = operation;
        if (relatedIndex !== undefined) expect(relatedIndex).toBe(position - 1);
        if (status === "SUCCESS") got.set(address, (got.get(address) ?? 0n) + amountAtoken);
      });
      expect({ round, got }).toEqual({ round, got: expected });
    }
  });
});
