/** RLP that is written, beside ethers' codec. */
import { describe, expect, it } from "@jest/globals";
import { encodeRlp as encodeWithEthers, hexlify, toBeArray } from "ethers";
import { encodeRlp, RlpEncoded, type RlpInput } from "../../../chain/encoding/rlp-writer.js";
import { Slab } from "../../../chain/encoding/slab.js";
import { bytesToHex, parseHexBytes } from "../../../chain/hex.js";
import { createRandom, type Random } from "../../helpers/random.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20261126);
console.log(`RLP: seed ${SEED} (CAUSEWAY_TEST_SEED)`);

type Digits = string | Digits[];

/** The same item for our encoder and for the other one. */
type Pair = readonly [ours: RlpInput, known: Digits];

/** An integer is bytes without leading zeros. */
const digitsOf = (value: bigint) => hexlify(toBeArray(value));

const SIZES_BYTES = [0, 1, 2, 20, 32, 40, 41, 55, 56, 57, 255, 256, 300];

function somePair(random: Random, depth: number): Pair {
  const kind = random.integer(depth === 0 ? 5 : 8);
  if (kind >= 5) {
    const pairs = Array.from({ length: random.integer(6) }, () => somePair(random, depth - 1));
    return [pairs.map(([ours]) => ours), pairs.map(([, known]) => known)];
  }
  const bytes = Uint8Array.from({ length: random.pick(SIZES_BYTES) }, () => random.integer(256));
  const digits = hexlify(bytes);
  if (kind === 0) return [bytes, digits];
  if (kind === 1) return [bytesToHex(bytes), digits];
  if (kind === 2) return [new RlpEncoded(parseHexBytes(encodeWithEthers(digits))), digits];
  const value = 2n ** BigInt(random.integer(257)) - BigInt(random.integer(2));
  if (kind === 3 || value > Number.MAX_SAFE_INTEGER) return [value, digitsOf(value)];
  return [Number(value), digitsOf(value)];
}

describe("RLP that is written", () => {
  it("is what another implementation writes, of bytes, texts, integers and lists", () => {
    const random = createRandom(SEED);
    const slab = new Slab();
    for (let turn = 0; turn < 300; turn++) {
      const [ours, known] = somePair(random, 4);
      const expected = encodeWithEthers(known);
      expect(bytesToHex(encodeRlp(ours))).toBe(expected);
      expect(bytesToHex(encodeRlp(ours, slab))).toBe(expected);
    }
  });

  it("is whole when it outgrows the room that is kept, and what follows is too", () => {
    const long = Uint8Array.from({ length: 70_000 }, (_, index) => index % 251);
    const many = Array.from({ length: 9 }, () => [long, [long]]);
    const expected = encodeWithEthers(many.map(() => [hexlify(long), [hexlify(long)]]));
    expect(hexlify(encodeRlp(many))).toBe(expected);
    expect(hexlify(encodeRlp([1, "0x00", 128n]))).toBe(encodeWithEthers(["0x01", "0x00", "0x80"]));
  });

  it("has integers in their shortest form on both sides of each power of two", () => {
    for (let bits = 0n; bits <= 300n; bits++) {
      for (const value of [2n ** bits - 1n, 2n ** bits, 2n ** bits + 1n]) {
        expect(bytesToHex(encodeRlp(value))).toBe(encodeWithEthers(digitsOf(value)));
      }
    }
  });

  it("refuses what is no unsigned integer: cut off, it would be another amount", () => {
    for (const value of [-1, -1n, -(2n ** 300n), 0.5, Number.NaN, 2 ** 53]) {
      expect(() => encodeRlp([value])).toThrow(RangeError);
    }
    expect(bytesToHex(encodeRlp([1]))).toBe("0xc101");
  });
});
