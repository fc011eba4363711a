/** What a node has to be able to do beyond Ethereum's methods for an exchange to work on it. */
import { parseAddress } from "../chain/address.js";
import type { Hash32 } from "../chain/hex.js";
import { RpcError } from "./errors.js";
import type { EvmClient } from "./evm-client.js";
import type { RpcOptions } from "./json-rpc.js";

/** JSON-RPC's number for a method that a server does not have. */
const METHOD_NOT_FOUND = -32601;

/** The node's number for what it has deleted: the method is there. */
const PRUNED_RPC_CODE = 4444;

/** Whether a node refused because it has deleted what was asked for. */
export function isPruned(error: unknown): error is RpcError {
  return error instanceof RpcError && error.rpc.rpcCode === PRUNED_RPC_CODE;
}

/** Whether a node refused because it does not have the block whose state was asked for. */
export function isHeaderMissing(error: unknown): error is RpcError {
  return error instanceof RpcError && /header (for hash )?not found/i.test(error.nodeMessage);
}

/** The calls that are tried. */
type TriedCalls = Pick<
  EvmClient,
  "blockJournal" | "accountJournal" | "accountHeights" | "poolHashes" | "transactionStatus"
>;

/** Whether a node refused because it does not have the method at all. */
export function isMethodMissing(error: unknown): error is RpcError {
  return error instanceof RpcError && error.rpc.rpcCode === METHOD_NOT_FOUND;
}

/**
 * The methods of this kit's nodes that a node refuses, found by calling each; none for a node that
 * an exchange can work on.
 * @param genesisHash hash of its block 0
 * @throws NodeFault
 */
export async function missingNodeMethods(
  client: TriedCalls,
  genesisHash: Hash32,
  options: RpcOptions,
): Promise<readonly string[]> {
  const nobody = parseAddress(`0x${"00".repeat(20)}`);
  const range = { from: 0, to: 0 };
  const tries: readonly (() => Promise<unknown>)[] = [
    () => client.blockJournal(genesisHash, options),
    () => client.accountJournal(nobody, range, options),
    () => client.accountHeights(nobody, range, options),
    () => client.poolHashes(options),
    () => client.transactionStatus(genesisHash, options),
  ];
  const refused = await Promise.all(
    tries.map(async (attempt) => {
      try {
        await attempt();
        return [];
      } catch (error) {
        // Some providers have numbers of their own for what they do not serve.
        if (isPruned(error)) return [];
        if (!(error instanceof RpcError)) throw error;
        return [error.rpc.method];
      }
    }),
  );
  return refused.flat();
}
