/** Who waits for which transactions, within a bound. */
import { expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { WaitingHashes } from "../../../../node/rpc/evm/subscriptions/waiting-hashes.js";

const hash = (index: number) => keccak256Hex(Uint8Array.of(index));

it("finds the waiters of a block's transactions, in its order", () => {
  const waiting = new WaitingHashes<string>(10);
  waiting.add("one", new Set([hash(5), hash(1)]), "");
  waiting.add("two", new Set([hash(5), hash(9)]), "");
  expect([...waiting.found([hash(1), hash(2), hash(5)])]).toEqual([
    ["one", [0, 2]],
    ["two", [2]],
  ]);
});

it("refuses more than its bound, until some are gone", () => {
  const waiting = new WaitingHashes<string>(3);
  const many = new Set([hash(1), hash(2)]);
  waiting.add("one", many, "");
  expect(() => waiting.add("two", many, "")).toThrow("too many transaction hashes are waited for");
  expect(waiting.found([hash(1)])).toEqual(new Map([["one", [0]]]));
  waiting.remove("one", many);
  waiting.remove("one", many);
  waiting.add("two", many, "");
  expect(waiting.found([hash(2)])).toEqual(new Map([["two", [0]]]));
});
