/** The registry of queries, put together from the node's parts. */
import type { Height } from "../../chain/hex.js";
import { KIT_VERSION } from "../../chain/version.js";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import { formatListenAddress } from "../../runtime/config/config-values.js";
import { inflationPercent } from "../blocks/fees.js";
import type { CallWorkers } from "../execution/calls/call-port.js";
import { createModulesAt } from "../modules/reads/modules-at.js";
import { createVestingReads } from "../modules/reads/vesting-reads.js";
import { MODULE_ACCOUNTS } from "../modules/system-storage.js";
import type { CometChain } from "../rpc/comet/ports.js";
import { createSdkTransactions } from "../rpc/comet/sdk-transactions.js";
import { withEvmSimulation } from "../rpc/cosmos/evm-simulation.js";
import { createQueries } from "../rpc/cosmos/queries.js";
import type { QueryRegistry } from "../rpc/cosmos/registry.js";
import type { ModuleAccount, QuerySources } from "../rpc/cosmos/sources.js";
import type { AppConfig, NodeConfig } from "../settings/config.js";
import type { Genesis } from "../settings/genesis.js";
import type { OpenStores } from "../store/open-store.js";
import type { ChainView } from "../view/chain-view.js";

/** Parts of a running node. */
export interface QueryParts {
  readonly genesis: Genesis;
  readonly config: NodeConfig;
  readonly app: AppConfig;
  readonly comet: CometChain;
  readonly calls: CallWorkers;
  readonly stores: Pick<OpenStores, "state">;
  readonly nodeId: string;
}

/** All queries that REST, gRPC and `abci_query` answer. */
export function createNodeQueries(parts: QueryParts): QueryRegistry {
  const { genesis, config, app, comet, calls, nodeId, stores } = parts;
  const pruning = app[""];
  const sources: QuerySources = {
    types: loadDescriptors(),
    chain: comet,
    transactions: withEvmSimulation(createSdkTransactions(comet), comet, calls),
    calls,
    evmChainId: genesis.evmChainId,
    node: {
      moniker: config[""].moniker,
      nodeId,
      p2pListenAddress: formatListenAddress(config.p2p.laddr, "tcp://"),
      rpcListenAddress: formatListenAddress(config.rpc.laddr, "tcp://"),
      version: KIT_VERSION,
      minimumGasPrices: pruning["minimum-gas-prices"],
      pruningKeepRecent: `${pruning["pruning-keep-recent"]}`,
      pruningInterval: `${pruning["pruning-interval"]}`,
      haltHeight: pruning["halt-height"],
    },
    modules: genesis.modules && createModulesAt((height) => stores.state.readerAt(height)),
    moduleAccounts: moduleAccounts(genesis),
    burnAddress: genesis.params.burnAddress,
    inflationPercent,
    vesting: createVestingReads({
      schedules: genesis.params.locks,
      readerAt: (height) => stores.state.readerAt(height),
      timeMsAt: (height) => timeMsAt(comet.view, height),
    }),
  };
  return createQueries(sources, app.api["query-timeout-ms"]);
}

/** Time of a block, Unix milliseconds; blocks of a state that is there are there, too. */
function timeMsAt(view: ChainView, height: Height): number {
  const outline = view.outline(height);
  if (outline === undefined) throw new RangeError(`block ${height} has no outline`);
  return outline.timeMs;
}

/** The chain's own accounts, by the names that modules of SDK chains have where they have one. */
export function moduleAccounts({
  params,
  modules,
}: Pick<Genesis, "params" | "modules">): readonly ModuleAccount[] {
  const own = [
    { name: "fee_collector", address: params.feeCollector, permissions: ["burner"] },
    { name: "treasury", address: params.treasury, permissions: [] },
    { name: "validators_pool", address: params.validatorsPool, permissions: ["minter"] },
    { name: "development_fund", address: params.developmentFund, permissions: ["minter"] },
  ];
  if (modules === undefined) return own;
  const { staking, gov } = MODULE_ACCOUNTS;
  // Coins of bonded and unbonding stake lie on one account, rewards on the validators' pool.
  return [
    ...own,
    { name: "bonded_tokens_pool", address: staking, permissions: ["burner", "staking"] },
    { name: "not_bonded_tokens_pool", address: staking, permissions: ["burner", "staking"] },
    { name: "distribution", address: params.validatorsPool, permissions: [] },
    { name: "gov", address: gov, permissions: ["burner"] },
  ];
}
