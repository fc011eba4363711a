/**
 * The precompiles of the curve BN254 against @noble/curves, and modexp against plain arithmetic: both
 * engines run the same ones, so that programs on both show no fault of theirs.
 */
import { describe, expect, it } from "@jest/globals";
import { bn254 } from "@noble/curves/bn254.js";
import { bigintToWord, bytesToBigint, bytesToHex } from "../../../../chain/hex.js";
import { bn254Add, bn254Mul, bn254Pairing } from "../../../../node/execution/precompiles/bn254.js";
import { modexp } from "../../../../node/execution/precompiles/modexp.js";
import { type Precompile, padded } from "../../../../node/execution/precompiles/precompile.js";
import { createRandom } from "../../../helpers/random.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 254);
console.log(`curve precompiles: seed ${SEED} (CAUSEWAY_TEST_SEED)`);
const random = createRandom(SEED);

const { Fp, Fp2, Fp12, Fr } = bn254.fields;
const [G1, G2] = [bn254.G1.Point, bn254.G2.Point];
const [P, N] = [Fp.ORDER, Fr.ORDER];
type Point1 = InstanceType<typeof G1>;
type Point2 = InstanceType<typeof G2>;

const pick = <T>(list: readonly T[]): T => random.pick(list);
const words = (...numbers: bigint[]) => Buffer.concat(numbers.map(bigintToWord));
const wordAt = (bytes: Uint8Array, index: number) =>
  bytesToBigint(bytes.subarray(32 * index, 32 * index + 32));
const anyWord = () => bytesToBigint(random.bytes(32));
const edge = () => pick([0n, 1n, 2n, P - 1n, P, P + 1n, 2n ** 256n - 1n, N, anyWord()]);
const factor = () => (anyWord() % (N - 1n)) + 1n;

function encode1(point: Point1): Buffer {
  const { x, y } = point.toAffine();
  return point.is0() ? words(0n, 0n) : words(x, y);
}

function encode2(point: Point2): Buffer {
  const { x, y } = point.toAffine();
  return words(x.c1, x.c0, y.c1, y.c0);
}

/** Mostly a point; a number beyond the field, or a point beside the curve, otherwise. */
function bytes1(): Buffer {
  const point = G1.BASE.multiply(factor());
  const { x, y } = point.toAffine();
  return pick([
    encode1(point),
    encode1(point),
    words(0n, 0n),
    words(x + P, y),
    words(edge(), edge()),
  ]);
}

function bytes2(): Buffer {
  const point = G2.BASE.multiply(factor());
  const { x, y } = point.toAffine();
  const good = encode2(point);
  const beyond = words(x.c1, x.c0 + P, y.c1, y.c0);
  const stray = words(edge(), edge(), edge(), edge());
  return pick([good, good, good, words(0n, 0n, 0n, 0n), beyond, stray, encode2(offGroup())]);
}

/** On the curve's twist, but not in the group of the pairing: most points are not. */
function offGroup(): Point2 {
  const b = Fp2.div({ c0: 3n, c1: 0n }, { c0: 9n, c1: 1n });
  for (;;) {
    const x = { c0: anyWord() % P, c1: anyWord() % P };
    try {
      const y = Fp2.sqrt(Fp2.add(Fp2.mul(Fp2.sqr(x), x), b));
      return G2.fromAffine({ x, y });
    } catch {
      // No root: another x.
    }
  }
}

function point1(bytes: Uint8Array): Point1 | undefined {
  const [x, y] = [wordAt(bytes, 0), wordAt(bytes, 1)];
  if (x >= P || y >= P) return undefined;
  if (x === 0n && y === 0n) return G1.ZERO;
  return (y * y - x * x * x - 3n) % P === 0n ? G1.fromAffine({ x, y }) : undefined;
}

function point2(bytes: Uint8Array): Point2 | undefined {
  const [x1, x0, y1, y0] = [0, 1, 2, 3].map((index) => wordAt(bytes, index)) as [
    bigint,
    bigint,
    bigint,
    bigint,
  ];
  if ([x1, x0, y1, y0].some((number) => number >= P)) return undefined;
  if ([x1, x0, y1, y0].every((number) => number === 0n)) return G2.ZERO;
  const point = G2.fromAffine({ x: { c0: x0, c1: x1 }, y: { c0: y0, c1: y1 } });
  try {
    point.assertValidity();
    return point.isTorsionFree() ? point : undefined;
  } catch {
    return undefined;
  }
}

/** Compares a precompile with a reference. @returns how many of the inputs were good */
function compare(
  precompile: Precompile,
  inputs: readonly Uint8Array[],
  reference: (input: Uint8Array) => Uint8Array | undefined,
): number {
  const textOf = (output: Uint8Array | undefined) => output && bytesToHex(output);
  let good = 0;
  for (const input of inputs) {
    const expected = textOf(reference(input));
    expect([bytesToHex(input), textOf(precompile.run(input))]).toEqual([
      bytesToHex(input),
      expected,
    ]);
    if (expected !== undefined) good++;
  }
  return good;
}

/** Some are cut, or have more behind them. */
function cut(input: Buffer): Buffer {
  const length = random.integer(input.length + 1);
  return pick([
    input,
    input,
    input,
    Buffer.concat([input, random.bytes(3)]),
    input.subarray(0, length),
  ]);
}

const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

describe("precompiles of BN254", () => {
  it("adds as @noble/curves does", () => {
    const inputs = many(200, () => cut(Buffer.concat([bytes1(), bytes1()])));
    const good = compare(bn254Add, inputs, (input) => {
      const bytes = padded(input, 128);
      const [left, right] = [point1(bytes), point1(bytes.subarray(64))];
      return left && right && encode1(left.add(right));
    });
    expect(good).toBeGreaterThan(40);
  });

  it("multiplies as @noble/curves does", () => {
    const inputs = many(200, () => cut(Buffer.concat([bytes1(), words(edge())])));
    const good = compare(bn254Mul, inputs, (input) => {
      const bytes = padded(input, 96);
      return (
        point1(bytes) && encode1(point1(bytes)?.multiplyUnsafe(wordAt(bytes, 2) % N) ?? G1.ZERO)
      );
    });
    expect(good).toBeGreaterThan(40);
  });

  it("pairs as @noble/curves does", () => {
    const inputs = many(60, () => {
      const pairs = many(random.integer(3), () => [bytes1(), bytes2()]).flat();
      const [left, right] = [G1.BASE.multiply(factor()), encode2(G2.BASE.multiply(factor()))];
      const one = pick([[], [encode1(left), right, encode1(left.negate()), right]]);
      return cut(Buffer.concat([...pairs, ...one]));
    });
    const results = new Set<string>();
    const good = compare(bn254Pairing, inputs, (input) => {
      const result = pairing(input);
      if (result !== undefined) results.add(bytesToHex(result));
      return result;
    });
    expect(good).toBeGreaterThan(10);
    expect(results.size).toBe(2);
  });
});

function pairing(input: Uint8Array): Uint8Array | undefined {
  if (input.length % 192 !== 0) return undefined;
  const pairs: { g1: Point1; g2: Point2 }[] = [];
  for (let at = 0; at < input.length; at += 192) {
    const [g1, g2] = [point1(input.subarray(at)), point2(input.subarray(at + 64))];
    if (g1 === undefined || g2 === undefined) return undefined;
    if (!g1.is0() && !g2.is0()) pairs.push({ g1, g2 });
  }
  const isOne = pairs.length === 0 || Fp12.eql(bn254.pairingBatch(pairs), Fp12.ONE);
  return words(isOne ? 1n : 0n);
}

describe("modexp", () => {
  it("does what plain arithmetic does", () => {
    const number = () => {
      const length = pick([0, 1, 2, 3, 31, 32, 33, 70]);
      const ones = Buffer.alloc(length, 255);
      return pick([Buffer.alloc(length), ones, Buffer.from(random.bytes(length))]);
    };
    const inputs = many(400, () => {
      const numbers = [number(), number(), number()];
      const lengths = numbers.map(({ length }) => BigInt(length));
      return cut(Buffer.concat([words(...lengths), ...numbers]));
    });
    compare(modexp, inputs, (input) => {
      const head = padded(input, 96);
      const sizes = [0, 1, 2].map((index) => Number(wordAt(head, index)));
      let at = 96;
      const [base, exponent, modulus] = sizes.map((size) => {
        at += size;
        return bytesToBigint(padded(input.subarray(at - size), size));
      }) as [bigint, bigint, bigint];
      const result = plainPower(base, exponent, modulus);
      return Buffer.from(result.toString(16).padStart(2 * (sizes[2] ?? 0), "0"), "hex").subarray(
        0,
        sizes[2],
      );
    });
  });
});

function plainPower(base: bigint, exponent: bigint, modulus: bigint): bigint {
  if (modulus === 0n) return 0n;
  let result = 1n % modulus;
  for (const bit of exponent.toString(2)) {
    result = (result * result) % modulus;
    if (bit === "1") result = (result * base) % modulus;
  }
  return result;
}
