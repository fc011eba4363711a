/** What an audit asks a node's JSON-RPC for, read from the chain of a test. */
import type { AuditNode } from "../../../cli/audit/audit-node.js";
import { encodeHeader } from "../../../chain/block.js";
import { hexToBytes } from "../../../chain/hex.js";
import type { CometTestChain } from "./comet-chain.js";

/** The port of `collectProofs` over a chain. */
export function proofNodeOf(
  chain: () => CometTestChain,
): Pick<AuditNode, "headHeight" | "rawHeaders" | "balances" | "proofs"> {
  const { signal } = new AbortController();
  const view = () => chain().chain.view;
  return {
    headHeight: async () => view().head().height,
    rawHeaders: async (heights) =>
      heights.map((height) => {
        const block = view().block(height);
        if (block === undefined) throw new Error(`no block ${height}`);
        return encodeHeader(block.block.header);
      }),
    balances: (addresses, height) =>
      Promise.all(
        addresses.map(async (address) => {
          const account = await view().account(address, height);
          return account?.balanceAtoken ?? 0n;
        }),
      ),
    proofs: (queries, height) =>
      Promise.all(
        queries.map(async ({ address }) => {
          const { accountProof } = await view().proof(address, [], height, signal);
          return { account: accountProof.map((hex) => hexToBytes(hex)), storage: [] };
        }),
      ),
  };
}
