/** Pages of a search that come to blocks which nobody has any more: dropped here, deleted by the node. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { journals, POOL } from "../../../../helpers/chains/journal-chain.js";
import { RpcFault } from "../../../../helpers/chains/fake-node.js";
import { closeAll, extend, start, startNode } from "../../index/index-bench.js";
import { call } from "../../servers.js";

/** Lowest height of which the node has the block. */
const OLDEST = 30;

afterEach(closeAll);

/** A sidecar that dropped the replies of all but the newest blocks, and the node behind it. */
async function startDropped() {
  const blocks = journals();
  extend(blocks, 40);
  const node = await startNode({}, blocks);
  const online = start(node, { storedBlocksBytes: 5_000, cacheBytes: 1 });
  await online.indexed(42);
  extend(blocks, 1);
  await online.indexed(43);
  expect(online.index.store.record(OLDEST)).toBeUndefined();
  const search = (fields: Record<string, unknown>) =>
    call(online.server, "/search/transactions", { address: POOL, max_block: 43, ...fields });
  return { blocks, node, search };
}

describe("/search/transactions behind a node that has deleted blocks", () => {
  it("gives what there is before the first of them, and refuses them by their number", async () => {
    const { blocks, node, search } = await startDropped();
    const whole = await search({});
    const journal = node.methods.get("causeway_getBlockJournal");
    const header = node.methods.get("eth_getBlockByNumber");
    // A node forgets the hashes of blocks that it deletes.
    node.methods.set("causeway_getBlockJournal", (params) => {
      const height = blocks.findIndex(({ blockHash }) => blockHash === params[0]);
      return height < OLDEST ? null : journal?.(params);
    });
    node.methods.set("eth_getBlockByNumber", (params) => {
      if (Number(params[0]) < OLDEST) throw new RpcFault(4444, "pruned history unavailable");
      return header?.(params);
    });
    const { status, text, body } = await search({});
    expect({ status, text }).toMatchObject({ status: 200 });
    const page = body as unknown as { transactions: unknown[]; next_offset: number };
    const all = whole.body as unknown as { transactions: unknown[]; total_count: number };
    // One transaction of the pool in each block from the third on.
    expect(page.transactions).toEqual(all.transactions.slice(0, 43 - OLDEST + 1));
    expect(body).toMatchObject({ total_count: all.total_count, next_offset: 43 - OLDEST + 1 });
    const rest = await search({ offset: page.next_offset });
    expect([rest.status, rest.body.code, rest.body.retriable]).toEqual([500, 204, false]);
  });

  it("refuses a page of which the node cannot tell a block for now", async () => {
    const { blocks, node, search } = await startDropped();
    const journal = node.methods.get("causeway_getBlockJournal");
    node.methods.set("causeway_getBlockJournal", (params) => {
      const height = blocks.findIndex(({ blockHash }) => blockHash === params[0]);
      if (height < OLDEST) throw new RpcFault(-32_005, "busy");
      return journal?.(params);
    });
    const { status, body } = await search({});
    expect([status, body.code, body.retriable]).toEqual([500, 104, true]);
  });
});
