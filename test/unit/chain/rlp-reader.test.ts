/** RLP that is read in place: beside ethers' codec, and against bytes that somebody has changed. */
import { describe, expect, it } from "@jest/globals";
import { encodeRlp as encodeWithEthers, hexlify } from "ethers";
import { decodeRlp, encodedRlpItems, type RlpItem } from "../../../chain/encoding/rlp.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { readRlp, RlpReader } from "../../../chain/encoding/rlp-reader.js";
import { parseHexBytes } from "../../../chain/hex.js";
import { createRandom } from "../../helpers/random.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20261123);
console.log(`RLP: seed ${SEED} (CAUSEWAY_TEST_SEED)`);
const random = createRandom(SEED);

/** Bytes of the lengths at which encodings differ. */
function someBytes(): Uint8Array {
  const size = [0, 1, 1, 2, 20, 32, 55, 56, 57, 255, 256, 300][random.integer(12)] ?? 0;
  return Uint8Array.from({ length: size }, () => random.integer(256));
}

function someItem(depth: number): RlpItem {
  if (depth === 0 || random.integer(3) > 0) return someBytes();
  return Array.from({ length: random.integer(6) }, () => someItem(depth - 1));
}

type Digits = string | Digits[];
const digitsOf = (item: RlpItem): Digits =>
  Array.isArray(item) ? item.map(digitsOf) : hexlify(item);

/** What is there, read item by item. */
function readAnything(reader: RlpReader): RlpItem {
  return reader.isList ? reader.items(readAnything) : reader.bytes();
}

describe("RLP that is read in place", () => {
  it("has what another implementation has encoded", () => {
    for (let turn = 0; turn < 500; turn++) {
      const item = someItem(4);
      const encoded = parseHexBytes(encodeWithEthers(digitsOf(item)));
      expect(digitsOf(readRlp(encoded, readAnything))).toEqual(digitsOf(item));
      expect(digitsOf(decodeRlp(encoded))).toEqual(digitsOf(item));
      if (!Array.isArray(item)) continue;
      const parts = encodedRlpItems(encoded).map((part) => hexlify(part));
      expect(parts).toEqual(item.map((one) => encodeWithEthers(digitsOf(one))));
    }
  });

  it("is read item by item of a list that fills the bytes, and of no other", () => {
    const reader = new RlpReader(encodeRlp([1, [2, 3], 4]));
    reader.enter();
    expect(reader.number()).toBe(1);
    reader.skip();
    expect([reader.hasMore, reader.number(), reader.hasMore]).toEqual([true, 4, false]);
    for (const bytes of [encodeRlp(1), Buffer.concat([encodeRlp([1]), encodeRlp(2)])]) {
      expect(() => new RlpReader(bytes).enter()).toThrow(
        expect.objectContaining({ code: "INVALID_RLP" }),
      );
    }
  });

  it("is refused, or the one encoding of what it says, whatever was done to it", () => {
    let refused = 0;
    let taken = 0;
    for (let turn = 0; turn < 3_000; turn++) {
      const bytes = Uint8Array.from(encodeRlp(someItem(3)));
      for (let change = random.integer(3); change >= 0; change--) {
        bytes[random.integer(Math.min(bytes.length, 8))] = random.integer(256);
      }
      let item: RlpItem;
      try {
        item = readRlp(bytes, readAnything);
      } catch (error) {
        expect(error).toMatchObject({ code: "INVALID_RLP" });
        refused += 1;
        continue;
      }
      expect(hexlify(encodeRlp(item))).toBe(hexlify(bytes));
      taken += 1;
    }
    expect(Math.min(refused, taken)).toBeGreaterThan(100);
  });

  it.each<readonly [string, string, (reader: RlpReader) => unknown]>([
    ["bytes behind it", "c180 00", (reader) => reader.list(() => reader.bytes())],
    ["an item too many", "c28080", (reader) => reader.list(() => reader.bytes())],
    ["an item too few", "c180", (reader) => reader.list(() => [reader.bytes(), reader.bytes()])],
    ["a list for bytes", "c0", (reader) => reader.bytes()],
    ["bytes for a list", "80", (reader) => reader.list(() => 0)],
    ["an integer with a zero before it", "820001", (reader) => reader.integer()],
    ["zero as a byte", "00", (reader) => reader.number()],
    ["an integer of nine bytes for eight", `89${"11".repeat(9)}`, (reader) => reader.integer(8)],
    ["2^53 as a number", "8720000000000000", (reader) => reader.number()],
    ["a number above 2^53", `88${"11".repeat(8)}`, (reader) => reader.number()],
    ["an address of 19 bytes", `93${"11".repeat(19)}`, (reader) => reader.hex(20)],
    ["an address of 1 byte", "01", (reader) => reader.optionalHex(20)],
    ["nothing at all", "", (reader) => reader.optionalHex(20)],
    ["an item that is cut short", "83aabb", (reader) => reader.encoded()],
  ])("refuses %s", (_, digits, read) => {
    const bytes = Buffer.from(digits.replaceAll(" ", ""), "hex");
    expect(() => readRlp(bytes, read)).toThrow(expect.objectContaining({ code: "INVALID_RLP" }));
  });

  it("has values of each kind", () => {
    const fields = ["0x", `0x${"ab".repeat(20)}`, "0x0400", "0x7b", "0x2f30"];
    const bytes = parseHexBytes(encodeWithEthers([...fields, ["0x01", "0x02"]]));
    const values = readRlp(bytes, (reader) =>
      reader.list(() => ({
        none: reader.optionalHex(20),
        address: reader.optionalHex(20),
        integer: reader.integer(),
        number: reader.number(),
        text: reader.text("ascii"),
        items: reader.items((within) => within.number()),
        hasMore: reader.hasMore,
      })),
    );
    expect(values).toEqual({
      none: undefined,
      address: `0x${"ab".repeat(20)}`,
      integer: 1024n,
      number: 123,
      text: "/0",
      items: [1, 2],
      hasMore: false,
    });
  });
});
