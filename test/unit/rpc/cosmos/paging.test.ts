/** Pages of lists as SDK nodes give them: they go on where they stopped, whatever came or went. */
import { describe, expect, it } from "@jest/globals";
import type { ProtoMessage } from "../../../../chain/protobuf/values.js";
import { MessageReader } from "../../../../chain/protobuf/values.js";
import { pageOf, pageRequest } from "../../../../node/rpc/cosmos/paging.js";

const keyOf = (item: string) => Buffer.from(item);

function page(items: readonly string[], pagination: ProtoMessage) {
  const request = pageRequest(new MessageReader({ pagination }));
  const { items: given, response } = pageOf(items, request, keyOf);
  const next = response["next_key"];
  return {
    items: given,
    next: next instanceof Uint8Array ? Buffer.from(next).toString() : undefined,
    total: response["total"],
  };
}

describe("pages of a list that is at hand", () => {
  const list = ["a", "b", "c", "d"];

  it("go on at the key that the one before gave", () => {
    expect(page(list, { limit: 2n })).toEqual({ items: ["a", "b"], next: "c" });
    expect(page(list, { limit: 2n, key: keyOf("c") })).toEqual({ items: ["c", "d"] });
    expect(page(list, { limit: 3n, reverse: true })).toEqual({ items: ["d", "c", "b"], next: "a" });
    expect(page(list, { limit: 3n, reverse: true, key: keyOf("a") })).toEqual({ items: ["a"] });
  });

  it("go on behind what has left the list since", () => {
    const left = ["a", "b", "d"];
    expect(page(left, { limit: 2n, key: keyOf("c") })).toEqual({ items: ["d"] });
    expect(page(left, { limit: 2n, key: keyOf("c"), reverse: true })).toEqual({
      items: ["b", "a"],
    });
    expect(page(left, { key: keyOf("e") })).toEqual({ items: [] });
    expect(page([], { key: keyOf("a") })).toEqual({ items: [] });
  });

  it("tell the total to who asks, and to who names no limit", () => {
    expect(page(list, {})).toMatchObject({ total: 4n });
    expect(page(list, { limit: 1n })).toMatchObject({ total: undefined });
    expect(page(list, { limit: 1n, count_total: true })).toMatchObject({ total: 4n });
    expect(page(list, { key: keyOf("b"), count_total: true })).toMatchObject({ total: undefined });
    expect(page(list, { offset: 9n, count_total: true })).toEqual({ items: [], total: 4n });
  });

  it("have 1,000 items at most, and a key where more are there", () => {
    const long = Array.from({ length: 2_500 }, (_, place) => `item ${place + 1_000}`);
    for (const limit of [1_000n, 3_000n, 100_000n, 2n ** 64n - 1n]) {
      const first = page(long, { limit });
      expect(first).toMatchObject({ items: long.slice(0, 1_000), next: "item 2000" });
      const third = page(long, { limit, key: keyOf("item 3000") });
      expect(third).toEqual({ items: long.slice(2_000) });
      expect(page(list, { limit })).toEqual({ items: list });
    }
  });

  it("are no longer than 1,000 from an offset on, because the next one is counted by what was asked for", () => {
    expect(page(list, { limit: 1_000n, offset: 1n })).toEqual({ items: ["b", "c", "d"] });
    expect(() => page(list, { limit: 1_001n, offset: 1n })).toThrow(
      /at most 1000 from an offset on/,
    );
  });

  it("refuse both an offset and a key", () => {
    expect(() => page(list, { key: keyOf("b"), offset: 1n })).toThrow(/either offset or key/);
  });
});
