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

  it("refuse both an offset and a key", () => {
    expect(() => page(list, { key: keyOf("b"), offset: 1n })).toThrow(/either offset or key/);
  });
});
