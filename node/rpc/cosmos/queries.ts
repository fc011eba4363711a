/** All queries of a node in one registry. */
import { latestHeight } from "../comet/chain-reads.js";
import { authQueries } from "./modules/auth.js";
import { bankQueries } from "./modules/bank.js";
import { chainQueries } from "./modules/chain.js";
import { economyQueries } from "./modules/economy.js";
import { evmQueries } from "./modules/evm.js";
import { txQueries } from "./modules/tx.js";
import { QueryRegistry } from "./registry.js";
import type { QuerySources } from "./sources.js";

/** The registry; every face of the node gets the same one. */
export function createQueries(sources: QuerySources): QueryRegistry {
  const registry: QueryRegistry = new QueryRegistry(
    sources.types,
    {
      ...authQueries(sources),
      ...bankQueries(sources),
      ...chainQueries(sources, () => registry),
      ...economyQueries(sources),
      ...evmQueries(sources),
      ...txQueries(sources),
    },
    () => latestHeight(sources.chain),
  );
  return registry;
}
