/** Reading blocks with their accounts alone while far behind, and whole ones wherever that fails. */
import { describe, expect, it } from "@jest/globals";
import type { Height } from "../../../chain/hex.js";
import { readRuns } from "../../../deposit-watcher/reading/block-reader.js";
import {
  type CatchUpClient,
  CatchUpSource,
} from "../../../deposit-watcher/reading/catch-up-source.js";
import type { DataBlock } from "../../../rpc-client/data-api/data-block.js";
import { badAnswer, DataApiError, NodeFault } from "../../../rpc-client/errors.js";
import { blockAt, hashAt } from "./blocks.js";

const { signal } = new AbortController();

interface Asked {
  readonly whole: Height[];
  readonly ranges: [Height, Height][];
}

/** A client over a chain; `brief` answers for a range. */
function sourceOver(brief: (from: Height, to: Height) => readonly DataBlock[]) {
  const asked: Asked = { whole: [], ranges: [] };
  const said: unknown[] = [];
  const client: CatchUpClient = {
    async block(height) {
      asked.whole.push(height);
      return blockAt(height);
    },
    async accountBlocks({ from, to }) {
      asked.ranges.push([from, to]);
      return brief(from, to);
    },
  };
  const source = new CatchUpSource(client, { info: (fields: unknown) => void said.push(fields) });
  const heights = async (from: Height, to: Height) => {
    const reads = Array.from({ length: to - from + 1 }, (_, index) =>
      source.block(from + index, { signal }),
    );
    return (await Promise.all(reads)).map((block) => block?.height);
  };
  return { source, heights, asked, said };
}

const upTo = (to: number, from = 0) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const brief = (from: Height, to: Height) => upTo(to, from).map(blockAt);

const apiError = (rosettaCode: number, retriable: boolean) =>
  new DataApiError("DATA_API_ERROR", "a test", { retriable, details: { rosettaCode } });

describe("a source for catching up", () => {
  it("asks in ranges for what is wanted at one moment", async () => {
    const { heights, asked, said } = sourceOver(brief);
    expect(await heights(5, 74)).toEqual(upTo(74, 5));
    expect(asked).toEqual({
      whole: [],
      ranges: [
        [5, 36],
        [37, 68],
        [69, 74],
      ],
    });
    expect(await heights(75, 75)).toEqual([75]);
    expect(asked.ranges.at(-1)).toEqual([75, 75]);
    expect(said).toEqual([]);
  });

  it("goes on where an answer ends early", async () => {
    const { heights, asked } = sourceOver((from, to) => brief(from, Math.min(to, from + 2)));
    expect(await heights(0, 7)).toEqual(upTo(7));
    expect(asked).toEqual({
      whole: [],
      ranges: [
        [0, 7],
        [3, 7],
        [6, 7],
      ],
    });
  });

  it.each<[string, () => Error]>([
    ["a server that does not know the method", () => apiError(211, false)],
    ["a server without /call", () => apiError(3, false)],
    ["an answer that makes no sense", () => badAnswer("a test")],
    ["an answer that is too large", () => new NodeFault("ANSWER_TOO_LARGE", "a test")],
  ])("reads whole blocks from then on: %s", async (_name, fault) => {
    const { heights, asked, said } = sourceOver(() => {
      throw fault();
    });
    expect(await heights(0, 40)).toEqual(upTo(40));
    expect(await heights(41, 45)).toEqual(upTo(45, 41));
    expect(asked.whole).toEqual(upTo(45));
    expect(asked.ranges).toEqual([
      [0, 31],
      [32, 40],
    ]);
    expect(said).toHaveLength(1);
  });

  it.each<[string, () => Error]>([
    ["a block that is not there yet", () => apiError(202, false)],
    ["an index that is behind", () => apiError(104, true)],
    ["node and index that contradict each other", () => apiError(106, false)],
    ["an index whose disk is full", () => apiError(110, false)],
    ["an index that needs a block which its node has deleted", () => apiError(204, false)],
    ["a node of another chain behind the index", () => apiError(105, false)],
    ["a node that refuses what the index asks", () => apiError(107, false)],
    ["a node whose journal does not add up", () => apiError(209, false)],
    [
      "a connection that broke",
      () => new NodeFault("NODE_UNREACHABLE", "a test", { retriable: true }),
    ],
  ])("reads whole blocks this time alone: %s", async (_name, fault) => {
    let faults = 1;
    const { heights, asked, said } = sourceOver((from, to) => {
      if (faults > 0) {
        faults -= 1;
        throw fault();
      }
      return brief(from, to);
    });
    expect(await heights(0, 3)).toEqual(upTo(3));
    expect(await heights(4, 6)).toEqual(upTo(6, 4));
    expect(asked.whole).toEqual(upTo(3));
    expect(said).toEqual([]);
  });

  it("reads whole blocks once transactions do not fit their block", async () => {
    const { source, heights, asked, said } = sourceOver((from, to) =>
      brief(from, to).map((block) => ({
        ...block,
        transactions: () => Promise.reject(badAnswer("other accounts")),
      })),
    );
    const block = await source.block(0, { signal });
    await expect(block?.transactions(() => true, { signal })).rejects.toMatchObject({
      code: "BAD_ANSWER",
    });
    expect(await heights(0, 2)).toEqual([0, 1, 2]);
    expect([asked.whole, asked.ranges, said.length]).toEqual([[0, 1, 2], [[0, 0]], 1]);
  });

  it("has no more whole blocks on their way than memory for them, wherever it falls back", async () => {
    const sizeBytes = 560 * 1024;
    let held = 0;
    let mostHeld = 0;
    let faults = 12;
    const client: CatchUpClient = {
      async block(height) {
        held += 1;
        mostHeld = Math.max(mostHeld, held);
        await new Promise((resolve) => setImmediate(resolve));
        return { ...blockAt(height), sizeBytes };
      },
      async accountBlocks({ from, to }) {
        const isUp = to < 400 || faults === 0;
        if (!isUp) faults -= 1;
        if (!isUp) throw new NodeFault("NODE_TIMEOUT", "a test", { retriable: true });
        return upTo(to, from).map((height) => ({ ...blockAt(height), sizeBytes: 30 * 1024 }));
      },
    };
    const source = new CatchUpSource(client, { info: () => undefined });
    const range = { previous: undefined, genesisHash: hashAt(0), to: 2_000, readsInFlight: 192 };
    const read: Height[] = [];
    for await (const run of readRuns(source, { ...range, signal })) {
      read.push(...run.map(({ height }) => height));
      held -= run.filter((block) => block.sizeBytes === sizeBytes).length;
    }
    expect(read).toEqual(upTo(2_000));
    expect([faults, held]).toEqual([0, 0]);
    // As many again at most are in the run that is being booked.
    expect(mostHeld * sizeBytes).toBeLessThanOrEqual(2 * 24 * 1024 * 1024);
  });

  it("gives up with who asked, and holds nothing against the server", async () => {
    const stop = new AbortController();
    const { source, heights, asked, said } = sourceOver((from, to) => {
      if (asked.ranges.length > 1) return brief(from, to);
      stop.abort(new Error("stopped"));
      throw badAnswer("cut off");
    });
    await expect(source.block(0, { signal: stop.signal })).rejects.toThrow("stopped");
    expect(await heights(0, 1)).toEqual([0, 1]);
    expect([asked.whole, said]).toEqual([[], []]);
  });
});
