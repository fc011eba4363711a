/**
 * Requests of millions of fields: two bytes each for whoever sends them, and one piece of work that
 * nothing else of the node gets in between.
 */
import { describe, expect, it } from "@jest/globals";
import { decodeMessage, decodeRequest } from "../../../../chain/protobuf/codec.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";

const types = loadDescriptors();

/** Most fields of a request. */
const MOST = 70_000;

const search = types.message("cosmos.tx.v1beta1.GetTxsEventRequest");
const simulation = types.message("cosmos.tx.v1beta1.SimulateRequest");
const location = types.message("google.protobuf.SourceCodeInfo.Location");

const varint = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >> 7)];
/** A field of bytes. */
const field = (number: number, content: Uint8Array) =>
  Buffer.concat([Buffer.from([number * 8 + 2, ...varint(content.length)]), content]);
/** So many texts, messages or lists of nothing. */
const empty = (number: number, count: number) =>
  Buffer.alloc(2 * count, field(number, Buffer.of()));

describe("a request", () => {
  it.each([
    ["fields", search, (count: number) => empty(1, count)],
    ["fields that are not known", search, (count: number) => empty(15, count)],
    // The transaction and its body are two fields themselves.
    ["fields of messages in it", simulation, (n: number) => field(1, field(1, empty(1, n - 2)))],
    ["numbers in one field", location, (count: number) => field(1, Buffer.alloc(count - 1, 7))],
  ] as const)("of too many %s is refused", (_what, type, bytesOf) => {
    expect(decodeRequest(type, bytesOf(MOST))).toEqual(decodeMessage(type, bytesOf(MOST)));
    expect(() => decodeRequest(type, bytesOf(MOST + 1))).toThrow(
      expect.objectContaining({
        code: "INVALID_MESSAGE",
        message: "malformed message: more than 70000 fields",
      }),
    );
    // What the node or a file of this kit says is read whole.
    expect(() => decodeMessage(type, bytesOf(MOST + 1))).not.toThrow();
  });
});
