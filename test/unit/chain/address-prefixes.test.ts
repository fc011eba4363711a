/** Beginnings of addresses: none that is in the set is ever ruled out. */
import { describe, expect, it } from "@jest/globals";
import { addressPrefix, AddressPrefixes } from "../../../chain/address-prefixes.js";
import { bytesToAddress, toChecksumAddress } from "../../../chain/address.js";
import { createRandom } from "../../helpers/random.js";

const SEED = 20_261_123;
const random = createRandom(SEED);
const anyAddress = () => bytesToAddress(random.bytes(20));
const prefixOf = (text: string) => addressPrefix(Buffer.from(`..${text}`), 2);

describe("the beginning of an address", () => {
  it("is its first three bytes, in either case", () => {
    for (let round = 0; round < 1_000; round += 1) {
      const address = anyAddress();
      const wanted = Number(address.slice(0, 8));
      const texts = [address, toChecksumAddress(address), address.toUpperCase()];
      expect([SEED, address, texts.map(prefixOf)]).toEqual([
        SEED,
        address,
        texts.map(() => wanted),
      ]);
    }
  });
});

describe("a set of beginnings", () => {
  it("has those of its addresses, and hardly any other", () => {
    const set = new AddressPrefixes();
    const ours = Array.from({ length: 10_000 }, anyAddress);
    expect(ours.filter((address) => set.mayHave(prefixOf(address)))).toEqual([]);
    for (const address of ours) set.add(address);
    expect([SEED, ours.filter((address) => !set.mayHave(prefixOf(address)))]).toEqual([SEED, []]);
    const others = Array.from({ length: 10_000 }, anyAddress);
    // One in 1,600 begins like one of ours.
    const taken = others.filter((address) => set.mayHave(prefixOf(address)));
    expect([SEED, taken.length < 40]).toEqual([SEED, true]);
  });

  it("takes the first and the last beginning", () => {
    const ends = [`0x${"0".repeat(40)}`, `0x${"f".repeat(40)}`] as const;
    for (const address of ends.map((text) => bytesToAddress(Buffer.from(text.slice(2), "hex")))) {
      const set = new AddressPrefixes();
      set.add(address);
      const found = ends.filter((text) => set.mayHave(prefixOf(text)));
      expect(found).toEqual([address]);
    }
  });

  it("takes text that is no address for some number", () => {
    const set = new AddressPrefixes();
    for (const text of ["zzzzzzzz", "\u{10ffff}\u{10ffff}", '"{}[],:"']) {
      expect(set.mayHave(prefixOf(text))).toBe(false);
    }
  });
});
