/** /events/blocks over HTTP, against the replies of /block themselves. */
import { describe, expect, it } from "@jest/globals";
import { randomChain } from "../../index/random-blocks.js";
import { events, indexed, post, random, seen, serverOver, tip } from "./searched-chain.js";

describe("/events/blocks", () => {
  const expected = (first: number, count: number) =>
    seen.slice(first, first + count).map(({ block_identifier }) => ({
      sequence: block_identifier.index,
      block_identifier,
      type: "block_added",
    }));

  it("tells each block once, from an offset or back from the tip", async () => {
    const max_sequence = tip;
    expect(await events({ offset: 0, limit: 7 })).toEqual({ max_sequence, events: expected(0, 7) });
    expect(await events({ limit: 7 })).toEqual({ max_sequence, events: expected(tip - 6, 7) });
    expect(await events({})).toEqual({ max_sequence, events: expected(tip - 99, 100) });
    expect(await events({ offset: 3 })).toEqual({ max_sequence, events: expected(3, 100) });
    expect(await events({ limit: 10_000 })).toEqual({ max_sequence, events: expected(0, tip + 1) });
    expect(await events({ limit: 0 })).toEqual({ max_sequence, events: [] });
  });

  it("is followed by asking for the next one: empty until there is one, refused beyond", async () => {
    expect(await events({ offset: tip })).toEqual({ max_sequence: tip, events: expected(tip, 1) });
    expect(await events({ offset: tip + 1 })).toEqual({ max_sequence: tip, events: [] });
    const { status, body } = await post("/events/blocks", { offset: tip + 2 });
    expect({ status, body }).toMatchObject({
      status: 500,
      body: { code: 215, retriable: true, details: { offset: tip + 2, max_sequence: tip } },
    });
  });

  it("never returns more than 1,000", async () => {
    const long = randomChain(random, { heights: 1_200, maxTransactions: 1, accounts: 2 });
    const on = serverOver(await indexed("long", long), long);
    const { body } = await post("/events/blocks", { offset: 10, limit: 1_100 }, on);
    expect(body.events.map(({ sequence }: { sequence: number }) => sequence)).toEqual(
      Array.from({ length: 1_000 }, (_unused, nth) => 10 + nth),
    );
  });
});
