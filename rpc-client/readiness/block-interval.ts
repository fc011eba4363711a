/** How often a chain has blocks, where only a node of it is known and no genesis. */
import { intervalOfBlocks } from "../../chain/consensus/block-age.js";
import { isPruned } from "../errors.js";
import type { EvmClient, NodeBlockHeader } from "../evm-client.js";
import type { RpcOptions } from "../json-rpc.js";

/**
 * Time between blocks in front of a newest one, ms; undefined where the node has too few of them.
 * @throws the client's faults
 */
export async function readBlockInterval(
  evm: Pick<EvmClient, "getBlockHeader">,
  newest: Pick<NodeBlockHeader, "height" | "timestampSeconds">,
  options: RpcOptions,
): Promise<number | undefined> {
  // Block 0 has the time at which the chain was meant to begin, which may be long before block 1.
  const heights = [newest.height - 1, newest.height - 2].filter((height) => height > 0);
  const read = (height: number) =>
    evm.getBlockHeader(height, options).catch((error: unknown) => {
      // A node that has just begun from a snapshot has no block before it.
      if (isPruned(error)) return undefined;
      throw error;
    });
  const before = await Promise.all(heights.map(read));
  const times = before.flatMap((header) => (header === undefined ? [] : header.timestampSeconds));
  return intervalOfBlocks([newest.timestampSeconds, ...times]);
}
