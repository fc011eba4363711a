/** Bytes in pieces of any size come out as they went in; small pieces are not kept as they are. */
import { describe, expect, it } from "@jest/globals";
import { CollectedBytes } from "../../../../runtime/http/collected-bytes.js";
import { KeptPieces } from "../../../helpers/effort/kept-pieces.js";
import { createRandom } from "../../../helpers/random.js";

const SEED = 20_251_126;

function collect(pieces: readonly Buffer[]): Buffer {
  const collected = new CollectedBytes();
  for (const piece of pieces) collected.add(piece);
  expect(collected.sizeBytes).toBe(pieces.reduce((sum, { length }) => sum + length, 0));
  return collected.whole();
}

describe("CollectedBytes", () => {
  it("gives pieces of all sizes in order", () => {
    const random = createRandom(SEED);
    for (let round = 0; round < 60; round++) {
      const pieces = Array.from({ length: random.integer(40) }, () => {
        const most = random.pick([1, 2, 500, 4_096, 4_097, 20_000, 70_000]);
        return Buffer.from(random.bytes(random.integer(most + 1)));
      });
      const message = `seed ${SEED}, round ${round}`;
      expect([message, collect(pieces).equals(Buffer.concat(pieces))]).toEqual([message, true]);
    }
  });

  it("gives a single piece as it is, and nothing for nothing", () => {
    const only = Buffer.from("only");
    expect(collect([only])).toBe(only);
    expect(collect([])).toHaveLength(0);
  });

  it("keeps large pieces, and none of the small ones but the first", async () => {
    const collected = new CollectedBytes();
    const pieces = { small: new KeptPieces(), large: new KeptPieces() };
    for (let index = 0; index < 30_000; index++) {
      const isLarge = index % 1_000 === 999;
      const piece = Buffer.alloc(isLarge ? 4_096 : 1, index % 251);
      pieces[isLarge ? "large" : "small"].note(piece);
      collected.add(piece);
    }
    expect(await pieces.small.kept()).toBe(1);
    expect(await pieces.large.kept()).toBe(30);
    expect(collected.whole()).toHaveLength(29_970 + 30 * 4_096);
  });
});
