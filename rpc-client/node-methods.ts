/** What a node has to be able to do beyond Ethereum's methods for an exchange to work on it. */
import { parseAddress } from "../chain/address.js";
import type { Hash32 } from "../chain/hex.js";
import { isPruned, RpcError } from "./errors.js";
import type { EvmClient } from "./evm-client.js";
import type { RpcOptions } from "./json-rpc.js";

/** The calls that are tried. */
type TriedCalls = Pick<
  EvmClient,
  "blockJournal" | "accountJournal" | "accountHeights" | "poolHashes" | "transactionStatus"
>;

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
