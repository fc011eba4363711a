/** All queries of a node in one registry. */
import { latestHeight } from "../comet/chain-reads.js";
import { authQueries } from "./modules/auth.js";
import { bankQueries } from "./modules/bank.js";
import { chainQueries } from "./modules/chain.js";
import { distributionQueries } from "./modules/distribution.js";
import { economyQueries } from "./modules/economy.js";
import { evmQueries } from "./modules/evm.js";
import { evmTraceQueries } from "./modules/evm-traces.js";
import { govQueries } from "./modules/gov.js";
import { paramsQueries } from "./modules/params.js";
import { reflectionQueries } from "./modules/reflection.js";
import { slashingQueries } from "./modules/slashing.js";
import { stakingQueries } from "./modules/staking.js";
import { txQueries } from "./modules/tx.js";
import { upgradeQueries } from "./modules/upgrade.js";
import { type QueryHandlers, QueryRegistry } from "./registry.js";
import type { QuerySources } from "./sources.js";

/**
 * The registry; every face of the node gets the same one.
 * @param timeoutMs time after which a query is given up
 */
export function createQueries(sources: QuerySources, timeoutMs: number): QueryRegistry {
  const registry: QueryRegistry = new QueryRegistry(
    sources.types,
    {
      ...authQueries(sources),
      ...bankQueries(sources),
      ...chainQueries(sources, () => registry),
      ...economyQueries(sources),
      ...evmQueries(sources),
      ...evmTraceQueries(sources),
      ...paramsQueries(sources),
      ...reflectionQueries(sources, () => registry),
      ...txQueries(sources),
      ...moduleQueries(sources),
    },
    () => latestHeight(sources.chain),
    timeoutMs,
  );
  return registry;
}

/** Where validators have no stake there are no such modules, and their methods are unimplemented. */
function moduleQueries({ modules, ...sources }: QuerySources): QueryHandlers {
  if (modules === undefined) return {};
  const own = { ...sources, modules };
  return {
    ...stakingQueries(own),
    ...distributionQueries(own),
    ...slashingQueries(own),
    ...govQueries(own),
    ...upgradeQueries(own),
  };
}
