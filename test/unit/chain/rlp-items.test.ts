/** RLP that is made of as many items as it has bytes: each would be half a kilobyte of memory. */
import { expect, it } from "@jest/globals";
import { encode } from "@ethereumjs/rlp";
import { decodeRlp } from "../../../chain/encoding/rlp.js";
import { decodeTransaction } from "../../../chain/transaction.js";

const ONES = Array.from({ length: 100_000 }, () => Uint8Array.of(1));

it.each([
  ["among the fields", encode(ONES)],
  ["in an access list", encode([...ONES.slice(0, 8), ONES, ...ONES.slice(0, 3)])],
])("a transaction with too many %s is refused before all are read", (_where, fields) => {
  for (const raw of [
    fields,
    ...[1, 2].map((type) => Buffer.concat([Uint8Array.of(type), fields])),
  ]) {
    expect(() => decodeTransaction(raw)).toThrow(
      raw[0] === 1 || raw[0] === 2 ? "there are too many items" : /items|fields|list/,
    );
  }
});

it("the dearest access list for its bytes is read: entries without keys", () => {
  const entries = Array.from({ length: 10_000 }, () => [new Uint8Array(20).fill(7), []]);
  const bytes = encode([...ONES.slice(0, 8), entries, ...ONES.slice(0, 3)]);
  // Of what comes behind the reading of the items.
  expect(() => decodeTransaction(Buffer.concat([Uint8Array.of(2), bytes]))).toThrow(
    "recipient is not 20 bytes",
  );
});

it("items are counted where they are bounded", () => {
  const bytes = encode(ONES.slice(0, 10));
  expect(decodeRlp(bytes, 11)).toHaveLength(10);
  expect(() => decodeRlp(bytes, 10)).toThrow("there are too many items");
});
