/** What a reader of protobuf keeps of a message that is larger than it looks. */
import { describe, expect, it } from "@jest/globals";
import { decodeConsensusBlock } from "../../../../chain/consensus/consensus-block.js";
import { encodeConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import { ProtoReader, ProtoWriter } from "../../../../chain/protobuf/wire.js";
import { lightChain } from "../../../helpers/chains/light-blocks.js";
import { countedBytes } from "../../../helpers/effort/counted-bytes.js";

/** Two bytes on the wire for each element of field 1. */
const empties = (count: number) => Buffer.alloc(count * 2, Buffer.from("0a00", "hex"));

describe("elements of a repeated field", () => {
  it("are refused with the first one that is too many, not when all are kept", () => {
    const { bytes, pieces } = countedBytes(empties(12_000));
    expect(() => new ProtoReader(bytes, [], { 1: 1_000 })).toThrow("malformed");
    expect(pieces()).toBe(1_001);
    expect(new ProtoReader(empties(1_000), [], { 1: 1_000 }).repeated(1)).toHaveLength(1_000);
  });

  it("are refused where the field occurs once, also if nobody asks for it", () => {
    expect(() => new ProtoReader(empties(2), [1, 2])).toThrow("repeated");
  });

  it("are refused where they are numbers", () => {
    expect(() => new ProtoReader(Buffer.from("0801", "hex"), [], { 1: 9 })).toThrow("not bytes");
  });

  it("in a block of 22 MB cost no more than a block does", () => {
    const [first] = lightChain(1, { validators: 1, change: 0 }).values();
    if (first === undefined) throw new Error("no header");
    const header = encodeConsensusHeader(first.header);
    const block = new ProtoWriter().message(1, header).message(2, empties(11_000_000)).finish();
    const { bytes, pieces } = countedBytes(block);
    expect(() => decodeConsensusBlock(bytes)).toThrow("occurs more than 200000 times");
    // The parts of block and header, and as many transactions as any block has.
    expect(pieces()).toBeGreaterThan(200_000);
    expect(pieces()).toBeLessThan(200_100);
  });

  it("of evidence are not begun with where they are more than any block has", () => {
    // Pieces of 290 bytes, each of which is decoded and checked.
    const piece = new ProtoWriter().message(1, Buffer.alloc(290)).finish();
    const evidence = new ProtoWriter();
    for (let count = 0; count < 10_000; count++) evidence.message(1, piece);
    const block = new ProtoWriter().message(3, evidence.finish()).finish();
    expect(() => decodeConsensusBlock(block)).toThrow("too much evidence");
  });
});
