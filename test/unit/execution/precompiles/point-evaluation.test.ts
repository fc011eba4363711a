/** The precompile 0x0a against go-ethereum's published vector, and changes to it. */
import { describe, expect, it } from "@jest/globals";
import { bytesToHex, hexToBytes } from "../../../../chain/hex.js";
import { pointEvaluation } from "../../../../node/execution/precompiles/point-evaluation.js";

/** core/vm/testdata/precompiles/pointEvaluation.json, "pointEvaluation1". */
const INPUT = [
  "01e798154708fe7789429634053cbf9f99b619f9f084048927333fce637f549b",
  "564c0a11a0f704f4fc3e8acfe0f8245f0ad1347b378fbf96e206da11a5d36306",
  "24d25032e67a7e6a4910df5834b8fe70e6bcfeeac0352434196bdf4b2485d5a1",
  "8f59a8d2a1a625a17f3fea0fe5eb8c896db3764f3185481bc22f91b4aaffcca2",
  "5f26936857bc3a7c2539ea8ec3a952b7",
  "873033e038326e87ed3e1276fd140253fa08e9fc25fb2d9a98527fc22a2c9612",
  "fbeafdad446cbc7bcdbdcd780af2c16a",
].join("");
const ANSWER =
  "000000000000000000000000000000000000000000000000000000000000100073eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";

const run = (hex: string) => pointEvaluation.run(hexToBytes(`0x${hex}`));

describe("point evaluation", () => {
  it("answers a proof that holds", () => {
    expect(bytesToHex(run(INPUT) ?? new Uint8Array(0))).toBe(`0x${ANSWER}`);
  });

  it.each([
    ["another versioned hash", 0],
    ["another point", 40],
    ["another value", 80],
    ["another commitment", 110],
    ["another proof", 170],
  ])("refuses %s", (_what, place) => {
    const bytes = hexToBytes(`0x${INPUT}`);
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    expect(pointEvaluation.run(bytes)).toBeUndefined();
  });

  it("refuses numbers that are not of the field, and other lengths", () => {
    const beyond = "f".repeat(64);
    expect(run(INPUT.slice(0, 64) + beyond + INPUT.slice(128))).toBeUndefined();
    expect(run(INPUT.slice(0, 128) + beyond + INPUT.slice(192))).toBeUndefined();
    expect(run(INPUT.slice(2))).toBeUndefined();
    expect(run("")).toBeUndefined();
  });
});
