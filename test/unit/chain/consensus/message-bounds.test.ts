/** What a reader of protobuf keeps of a message that is larger than it looks. */
import { describe, expect, it } from "@jest/globals";
import { decodeConsensusBlock } from "../../../../chain/consensus/consensus-block.js";
import { ProtoReader, ProtoWriter } from "../../../../chain/consensus/protobuf.js";

/** Two bytes on the wire for each element of field 1. */
const empties = (count: number) => Buffer.alloc(count * 2, Buffer.from("0a00", "hex"));

/** Milliseconds that a refusal takes. */
function refusalMs(refused: () => unknown): number {
  const startMs = performance.now();
  expect(refused).toThrow("malformed");
  return performance.now() - startMs;
}

describe("elements of a repeated field", () => {
  it("are refused with the first one that is too many, not when all are kept", () => {
    const bytes = empties(12_000_000);
    const beforeBytes = process.memoryUsage().heapUsed;
    const tookMs = refusalMs(() => new ProtoReader(bytes, [], { 1: 1_000 }));
    expect(process.memoryUsage().heapUsed - beforeBytes).toBeLessThan(20_000_000);
    expect(tookMs).toBeLessThan(200);
    expect(new ProtoReader(empties(1_000), [], { 1: 1_000 }).repeated(1)).toHaveLength(1_000);
  });

  it("are refused where the field occurs once, also if nobody asks for it", () => {
    expect(() => new ProtoReader(empties(2), [1, 2])).toThrow("repeated");
  });

  it("are refused where they are numbers", () => {
    expect(() => new ProtoReader(Buffer.from("0801", "hex"), [], { 1: 9 })).toThrow("not bytes");
  });

  it("in a block of 22 MB cost no more than a block does", () => {
    const block = new ProtoWriter().message(2, empties(11_000_000)).finish();
    const beforeBytes = process.memoryUsage().heapUsed;
    expect(() => decodeConsensusBlock(block)).toThrow();
    expect(process.memoryUsage().heapUsed - beforeBytes).toBeLessThan(150_000_000);
  });

  it("of evidence are not begun with where they are more than any block has", () => {
    // Pieces of 290 bytes: reading 10,000 of them took 0.7 s.
    const piece = new ProtoWriter().message(1, Buffer.alloc(290)).finish();
    const evidence = new ProtoWriter();
    for (let count = 0; count < 10_000; count++) evidence.message(1, piece);
    const block = new ProtoWriter().message(3, evidence.finish()).finish();
    expect(() => decodeConsensusBlock(block)).toThrow("too much evidence");
  });
});
