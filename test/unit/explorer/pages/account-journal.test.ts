/** The newest changes of an account, wherever in the chain they are, and however many there are. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { journalBefore } from "../../../../explorer/pages/address.js";
import { RpcError } from "../../../../rpc-client/errors.js";

const ACCOUNT = parseAddress(`0x${"70".repeat(20)}`);
const { signal } = new AbortController();

/** Heights of one answer of a node (`causeway_getAccountHeights`). */
const ANSWER_HEIGHTS = 1_000;

interface Range {
  readonly from: number;
  readonly to: number;
}

/** A node on which an account changed at these heights, in rising order. */
function contextOf(
  changed: readonly number[],
  node: {
    /** Changes of each of these blocks. */
    readonly changes?: number;
    /** Oldest block that it has with its state. */
    readonly oldest?: number;
  } = {},
): PageContext {
  const { changes = 1, oldest = 0 } = node;
  const within = ({ from, to }: Range, kept: number) => {
    if (from < kept) {
      const details = { rpcCode: 4444, method: "causeway_getAccountHeights" };
      throw new RpcError("pruned history unavailable", details);
    }
    return changed.filter((height) => height >= from && height <= to);
  };
  const evm = {
    async accountHeights(_account: string, range: Range) {
      const found = within(range, oldest);
      return { heights: found.slice(0, ANSWER_HEIGHTS), next: found[ANSWER_HEIGHTS] };
    },
    async accountJournal(_account: string, range: Range) {
      // Who joined by a snapshot of a block has the state after it, and not what changed in it.
      const entries = within(range, oldest === 0 ? 0 : oldest + 1).flatMap((height) =>
        Array.from({ length: changes }, (_, operationIndex) => ({ height, operationIndex })),
      );
      return { entries, next: undefined };
    },
    async oldestHeight() {
      return oldest;
    },
  };
  return { chain: { evm } } as unknown as PageContext;
}

const every = (first: number, last: number, step = 1) =>
  Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, at) => first + at * step);

/** All heights that the pages have, page by page, and how many pages there were. */
async function pagesOf(changed: readonly number[], head: number, most: number) {
  const context = contextOf(changed);
  const pages: number[][] = [];
  for (let below: number | undefined = head + 1; below !== undefined && pages.length < most; ) {
    const page = await journalBefore(context, ACCOUNT, below, signal);
    pages.push(page.entries.map(({ height }) => height));
    below = page.older;
  }
  return pages;
}

it("are on the first page, also of one that was busy once and is silent since", async () => {
  for (const [what, changed, head] of [
    ["busy at the beginning", every(1, 5_000), 1_000_000],
    ["busy at the beginning of a long chain", every(1, 10_000), 10_000_000],
    ["busy for long", every(1, 900_000, 3), 40_000_000],
    ["twice", [...every(1, 5_000), ...every(400_000, 402_000)], 3_000_000],
    ["now and then", every(1, 1_000_000, 997), 1_000_000],
    ["always", every(0, 30_000), 30_000],
    ["once", [7], 5_000_000],
  ] as const) {
    const [first] = await pagesOf(changed, head, 1);
    const newest = changed.toReversed().slice(0, 25);
    expect({ what, first }).toEqual({ what, first: newest });
  }
});

it("are each on one page", async () => {
  const changed = [...every(1, 1_500), 90_000, ...every(400_000, 400_040)];
  const pages = await pagesOf(changed, 1_000_000, 100);
  expect(pages.flat()).toEqual(changed.toReversed());
  expect(await pagesOf([], 1_000_000, 100)).toEqual([[]]);
});

it("of busy blocks are each on one page, and only those of a block that is none's page by itself are left out", async () => {
  for (const changes of [1, 7, 40, 100, 101, 250]) {
    const heights = every(5, 64);
    const context = contextOf(heights, { changes });
    const seen: string[] = [];
    let left = 0;
    for (let below: number | undefined = 1_000; below !== undefined; ) {
      const page = await journalBefore(context, ACCOUNT, below, signal);
      seen.push(...page.entries.map(({ height, operationIndex }) => `${height}.${operationIndex}`));
      expect(page.entries.length).toBeLessThanOrEqual(100);
      left += page.left;
      below = page.older;
    }
    const all = heights.flatMap((height) =>
      Array.from({ length: changes }, (_, place) => `${height}.${place}`),
    );
    expect({ changes, twice: seen.length - new Set(seen).size }).toEqual({ changes, twice: 0 });
    expect({ changes, shownOrTold: seen.length + left }).toEqual({
      changes,
      shownOrTold: all.length,
    });
    expect({ changes, left }).toEqual({ changes, left: 60 * Math.max(0, changes - 100) });
  }
});

it("are shown as far back as a node has them that has deleted what is older", async () => {
  for (const oldest of [2, 500, 9_000, 9_999, 10_000]) {
    // Of a snapshot's block each account's record was written anew.
    const changed = [7, 600, oldest, 9_500, 9_990].toSorted((left, right) => left - right);
    const context = contextOf(changed, { oldest });
    const page = await journalBefore(context, ACCOUNT, 10_001, signal);
    const kept = changed.filter((height) => height > oldest).toReversed();
    expect({ oldest, heights: page.entries.map(({ height }) => height) }).toEqual({
      oldest,
      heights: kept,
    });
    expect(page).toMatchObject({ keptFrom: oldest + 1, older: undefined });
    // A link of before leads to what is gone by now.
    expect(await journalBefore(context, ACCOUNT, oldest, signal)).toMatchObject({
      entries: [],
      keptFrom: oldest + 1,
      older: undefined,
    });
  }
  // Nothing is missed where nothing that is gone is looked for.
  const busy = contextOf(every(8_000, 10_000), { oldest: 7_000 });
  expect((await journalBefore(busy, ACCOUNT, 10_001, signal)).keptFrom).toBeUndefined();
});
