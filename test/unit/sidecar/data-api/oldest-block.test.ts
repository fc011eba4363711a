/** The oldest block that /network/status names can be asked for, also where its reply was dropped. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { journals } from "../../../helpers/chains/journal-chain.js";
import { block, closeAll, extend, start, startNode } from "../index/index-bench.js";
import { call } from "../servers.js";

/** Lowest height of which the node has the state. */
const OLDEST = 5;

afterEach(closeAll);

describe("/network/status behind a node that has deleted states", () => {
  it("names a block that is served, with balances after it", async () => {
    const blocks = journals();
    extend(blocks, 40);
    const node = await startNode({}, blocks);
    const online = start(node, { storedBlocksBytes: 5_000, cacheBytes: 1 });
    await online.indexed(42);
    extend(blocks, 1);
    await online.indexed(43);
    const quantity = `0x${OLDEST.toString(16)}`;
    node.methods.set("eth_capabilities", () => ({
      state: { disabled: false, oldestBlock: quantity },
      blocks: { disabled: false, oldestBlock: "0x0" },
    }));
    // On a chain with stake the state before a block tells what the block did to claims.
    node.methods.set("causeway_getBlockJournal", ([hash]) => {
      const height = blocks.findIndex(({ blockHash }) => blockHash === hash);
      return { ...blocks[height], claims: height <= OLDEST ? null : [] };
    });
    const { body } = await call(online.server, "/network/status");
    expect(body).toMatchObject({ oldest_block_identifier: { index: OLDEST + 1 } });
    expect((await block(online, OLDEST + 1)).status).toBe(200);
    expect((await block(online, OLDEST)).body.code).toBe(204);
  });
});
