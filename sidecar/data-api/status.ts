/** /network/status: where the chain stands, from the node alone. */
import type { Network } from "../../chain/networks.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { HttpRoute } from "../../runtime/http-server.js";
import { toRoute } from "../endpoint.js";
import type { BlockSource } from "./block-source.js";

/** The route over a source of blocks. */
export function statusRoutes(options: {
  readonly network: Network;
  readonly client: EvmClient;
  readonly source: BlockSource;
}): HttpRoute[] {
  const { network, client, source } = options;
  const status = {
    path: "/network/status",
    fields: ["metadata"],
    async handler(_fields: unknown, { signal }: { readonly signal: AbortSignal }) {
      const [tip, genesis, isSyncing] = await Promise.all([
        source.tip(),
        source.genesis(),
        client.isSyncing({ signal }),
      ]);
      const { timestampMs } = await source.block(tip);
      return {
        body: {
          current_block_identifier: tip,
          current_block_timestamp: timestampMs,
          genesis_block_identifier: genesis,
          sync_status: {
            current_index: tip.index,
            stage: isSyncing ? "catching up" : "following",
            synced: !isSyncing,
          },
          peers: [],
        },
      };
    },
  };
  return [toRoute(status, network)];
}
