/** The burned part of each fee of a block, against sums that are halved and rounded up. */
import { describe, expect, it } from "@jest/globals";
import { burnedFeesAtoken, paidFeeAtoken } from "../../../rpc-client/indexing/paid-fees.js";

/** An EVM transaction that paid so much. */
const evm = (feeAtoken: bigint) => ({ gasUsed: feeAtoken, gasPriceAtoken: 1n });

/** A Cosmos transaction that paid so much, at a place of `data.txs`. */
const cosmos = (feeAtoken: bigint, dataIndex: number) => ({
  gasUsed: 7n,
  gasPriceAtoken: 0n,
  cosmos: { gasLimit: 9n, feeAtoken, memo: "", messages: [], dataIndex },
});

const halfUp = (sum: bigint) => (sum + 1n) / 2n;

describe("burned parts of fees", () => {
  it("add up to what the block burns, in the order of its data", () => {
    const [a, b, c] = [evm(3n), evm(5n), evm(4n)];
    const [x, y] = [cosmos(1n, 1), cosmos(7n, 4)];
    // EVM transactions come first in lists; in the block it is a, x, b, c, y.
    const burned = burnedFeesAtoken([a, b, c, x, y]);
    const ordered = [a, x, b, c, y];
    let sum = 0n;
    for (const one of ordered) {
      const before = halfUp(sum);
      sum += paidFeeAtoken(one);
      expect(burned.get(one)).toBe(halfUp(sum) - before);
    }
    expect([...burned.values()].reduce((all, part) => all + part, 0n)).toBe(halfUp(20n));
  });

  it("leave nobody out where places are said that there are not", () => {
    const all = [evm(1n), cosmos(2n, 99), cosmos(3n, 99)];
    expect(burnedFeesAtoken(all).size).toBe(3);
    expect(burnedFeesAtoken([]).size).toBe(0);
  });
});
