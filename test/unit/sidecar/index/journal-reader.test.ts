/** How many journals are read ahead: few of full blocks, so that all of them come in time. */
import { describe, expect, it } from "@jest/globals";
import type { EvmClient, NodeBlockHeader } from "../../../../rpc-client/evm-client.js";
import { type JournaledBlock, parseJournaledBlock } from "../../../../rpc-client/journal-codec.js";
import { readJournals } from "../../../../sidecar/index/journal-reader.js";
import { hashOf, journals, transaction } from "../../../helpers/chains/journal-chain.js";

const rpc = { signal: new AbortController().signal };

const headerOf = (height: number): NodeBlockHeader => ({
  height,
  hash: hashOf(`block ${height}`),
  parentHash: hashOf(`block ${height - 1}`),
  timestampSeconds: 0,
});

/** Reads 30 blocks; the most that were on their way at once, after the first of them. */
async function mostInFlight(transactionCount: number): Promise<number> {
  const [genesis] = journals();
  const transactions = Array.from({ length: transactionCount }, (_, index) =>
    transaction(`t ${index}`, index, {}),
  );
  const full = parseJournaledBlock({ ...genesis, transactions });
  let inFlight = 0;
  let most = 0;
  const client: Pick<EvmClient, "getBlockHeaders" | "blockJournal"> = {
    getBlockHeaders: (heights) => Promise.resolve(heights.map(headerOf)),
    async blockJournal(hash): Promise<JournaledBlock> {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await new Promise((resolve) => setImmediate(resolve));
      inFlight -= 1;
      const height = Array.from({ length: 31 }, (_, nth) => nth).find(
        (nth) => headerOf(nth).hash === hash,
      );
      return { ...full, hash, height: height ?? -1 };
    },
  };
  const read: number[] = [];
  for await (const { height } of readJournals(client, { above: 0, target: headerOf(30) }, rpc)) {
    read.push(height);
  }
  expect(read).toEqual(Array.from({ length: 30 }, (_, nth) => nth + 1));
  return most;
}

describe("journals", () => {
  it("of small blocks are read eight at a time, of full ones two", async () => {
    expect(await mostInFlight(0)).toBe(8);
    expect(await mostInFlight(6_000)).toBe(4);
    expect(await mostInFlight(28_000)).toBe(2);
  });
});
