/** The index by price against a list that is searched. */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { PriceIndex, type PricedEntry } from "../../../node/mempool/order/price-index.js";
import { createRandom } from "../../helpers/random.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20_261_120);
console.log(`price-index: seed ${SEED} (CAUSEWAY_TEST_SEED)`);

const address = (n: number) => `0x${n.toString(16).padStart(40, "0")}` as Address;

const entryOf = (priceAtoken: bigint, sender: number, weightBytes = 100): PricedEntry => {
  return { priceAtoken, from: address(sender), weightBytes };
};

describe("the price index", () => {
  it("knows the cheapest, and what pays less, after any adding and removing", () => {
    const random = createRandom(SEED);
    for (const priceCount of [3, 40, 3_000]) {
      const index = new PriceIndex();
      const list: PricedEntry[] = [];
      for (let turn = 0; turn < 6_000; turn++) {
        // Grows, then shrinks to nothing.
        const grows = random.integer(6_000) > turn;
        if (grows || list.length === 0) {
          const price = BigInt(random.integer(priceCount)) ** 3n;
          const entry = entryOf(price, random.integer(9), 1 + random.integer(200));
          list.push(entry);
          index.add(entry);
        } else {
          const [entry] = list.splice(random.integer(list.length), 1);
          if (entry !== undefined) index.remove(entry);
        }
        if (turn % 97 === 0) check(index, list, BigInt(random.integer(priceCount)) ** 3n);
      }
      for (const entry of list) index.remove(entry);
      expect(index.cheapest()).toBeUndefined();
      expect(index.cheaperThan(10n ** 30n)).toEqual({ count: 0, weightBytes: 0 });
    }
  });

  it("names a sender with the most of a price, up to a power of two, and of these a late one", () => {
    const index = new PriceIndex();
    for (let sender = 1; sender <= 9; sender++) {
      for (let n = 0; n < sender; n++) index.add(entryOf(5n, sender));
    }
    const level = index.cheapest();
    if (level === undefined) throw new Error("the index is empty");
    expect(level.largestSender()).toBe(address(9));
    expect(level.countOf(address(9))).toBe(9);
    expect(level.countOf(address(10))).toBe(0);
    index.remove(entryOf(5n, 9));
    index.remove(entryOf(5n, 9));
    // Seven of sender 9 are no longer of the size of eight.
    expect(level.largestSender()).toBe(address(8));
    for (let n = 0; n < 8; n++) index.remove(entryOf(5n, 8));
    expect([4, 5, 6, 7, 9].map(address)).toContain(level.largestSender());
  });

  it("says so when something is taken out that is not there", () => {
    expect(() => new PriceIndex().remove(entryOf(1n, 1))).toThrow(/not in the price index/);
  });
});

function check(index: PriceIndex, list: readonly PricedEntry[], priceAtoken: bigint): void {
  const cheaper = list.filter((entry) => entry.priceAtoken < priceAtoken);
  expect(index.cheaperThan(priceAtoken)).toEqual({
    count: cheaper.length,
    weightBytes: cheaper.reduce((sum, { weightBytes }) => sum + weightBytes, 0),
  });
  const level = index.cheapest();
  expect(level === undefined).toBe(list.length === 0);
  if (level === undefined) return;
  expect(list.every((entry) => entry.priceAtoken >= level.priceAtoken)).toBe(true);
  const here = list.filter((entry) => entry.priceAtoken === level.priceAtoken);
  expect(level.count).toBe(here.length);
  const countOf = (from: Address) => here.filter((entry) => entry.from === from).length;
  const most = Math.max(...here.map(({ from }) => countOf(from)));
  expect(2 * countOf(level.largestSender())).toBeGreaterThan(most);
}
