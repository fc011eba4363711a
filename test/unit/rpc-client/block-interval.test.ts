/** The time between blocks, read from a node's last ones. */
import { expect, it } from "@jest/globals";
import { readBlockInterval } from "../../../rpc-client/readiness/block-interval.js";
import { RpcError } from "../../../rpc-client/errors.js";
import type { EvmClient, NodeBlockHeader } from "../../../rpc-client/evm-client.js";

const { signal } = new AbortController();

/** A node that has blocks from a height on, one each 30 s. */
function nodeFrom(oldest: number, rpcCode = 4444): Pick<EvmClient, "getBlockHeader"> {
  return {
    async getBlockHeader(at) {
      const height = Number(at);
      const method = "eth_getBlockByNumber";
      if (height < oldest) throw new RpcError("pruned", { rpcCode, method });
      return { height, timestampSeconds: height * 30 } as NodeBlockHeader;
    },
  };
}

it("tells the interval, of a node that began with its newest block none", async () => {
  const newest = { height: 9, timestampSeconds: 270 };
  const read = (node: Pick<EvmClient, "getBlockHeader">) =>
    readBlockInterval(node, newest, { signal });
  expect(await read(nodeFrom(0))).toBe(30_000);
  expect(await read(nodeFrom(8))).toBe(30_000);
  expect(await read(nodeFrom(9))).toBeUndefined();
  await expect(read(nodeFrom(9, -32_000))).rejects.toThrow(RpcError);
  // Block 0 has the time at which the chain was meant to begin.
  const first = { height: 1, timestampSeconds: 9_000 };
  expect(await readBlockInterval(nodeFrom(0), first, { signal })).toBeUndefined();
});
