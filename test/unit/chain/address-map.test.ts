/** Texts by address: held against JavaScript's own map. */
import { describe, expect, it } from "@jest/globals";
import { AddressMap } from "../../../chain/address-map.js";
import { type Address, bytesToAddress, toChecksumAddress } from "../../../chain/address.js";
import { createRandom } from "../../helpers/random.js";

const SEED = 20_261_124;
const random = createRandom(SEED);

/** Texts of 1 to 64 characters, as customers' names are. */
const anyText = (round: number) => `c-${round}`.padEnd(1 + (round % 64), ".").slice(0, 64);

/** Addresses that differ in a few bits only, so that they meet in the table. */
function nearAddress(): Address {
  const bytes = Buffer.alloc(20);
  for (let change = 0; change < 2; change += 1) bytes[random.integer(20)] = random.integer(256);
  return bytesToAddress(bytes);
}

describe("a map by addresses", () => {
  it.each([
    ["any", () => bytesToAddress(random.bytes(20))],
    ["near ones", nearAddress],
  ])("answers as a Map does: %s", (_, next) => {
    const map = new AddressMap();
    const oracle = new Map<Address, string>();
    for (let round = 0; round < 40_000; round += 1) {
      const address = next();
      const text = anyText(round);
      map.set(address, text);
      oracle.set(address, text);
    }
    expect([SEED, map.size]).toEqual([SEED, oracle.size]);
    const wrong = [...oracle].filter(([address, text]) => map.get(address) !== text);
    expect([SEED, wrong]).toEqual([SEED, []]);
    const others = Array.from({ length: 20_000 }, next);
    const mistaken = others.filter((address) => map.has(address) !== oracle.has(address));
    expect([SEED, mistaken]).toEqual([SEED, []]);
  });

  it("has the last text of an address", () => {
    const map = new AddressMap();
    const address = nearAddress();
    for (const text of ["unassigned", "ann", "ann", "a".repeat(64)]) map.set(address, text);
    expect([map.size, map.get(address)]).toEqual([1, "a".repeat(64)]);
  });

  it("knows nothing under text that is no address in lower case", () => {
    const map = new AddressMap();
    const address = "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd" as Address;
    map.set(address, "ann");
    const texts = [
      toChecksumAddress(address),
      address.replace("0x", "0X"),
      address.slice(0, -1),
      `${address}0`,
      address.replace("a", "g"),
      address.replace("a", ":"),
      address.replace("a", "`"),
      address.replace("a", "/"),
      address.replace("a", "\u0161"),
      "",
    ];
    expect(texts.filter((text) => map.has(text as Address))).toEqual([]);
    expect(map.get(address)).toBe("ann");
  });

  it("is empty once it is cleared, and can be filled again", () => {
    const map = new AddressMap();
    const addresses = Array.from({ length: 100 }, () => bytesToAddress(random.bytes(20)));
    for (const address of addresses) map.set(address, "before");
    map.clear();
    expect([map.size, addresses.filter((address) => map.has(address))]).toEqual([0, []]);
    for (const address of addresses) map.set(address, "after");
    expect(addresses.filter((address) => map.get(address) !== "after")).toEqual([]);
  });
});
