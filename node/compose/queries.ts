/** The registry of queries, put together from the node's parts. */
import { KIT_VERSION } from "../../chain/version.js";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import { formatListenAddress } from "../../runtime/config/config-values.js";
import { inflationPercent } from "../blocks/fees.js";
import type { CallWorkers } from "../execution/calls/call-port.js";
import type { CometChain } from "../rpc/comet/ports.js";
import { createSdkTransactions } from "../rpc/comet/sdk-transactions.js";
import { withEvmSimulation } from "../rpc/cosmos/evm-simulation.js";
import { createQueries } from "../rpc/cosmos/queries.js";
import type { QueryRegistry } from "../rpc/cosmos/registry.js";
import type { ModuleAccount } from "../rpc/cosmos/sources.js";
import type { AppConfig, NodeConfig } from "../settings/config.js";
import type { ChainParams, Genesis } from "../settings/genesis.js";

/** Parts of a running node. */
export interface QueryParts {
  readonly genesis: Genesis;
  readonly config: NodeConfig;
  readonly app: AppConfig;
  readonly comet: CometChain;
  readonly calls: CallWorkers;
  readonly nodeId: string;
  /** Version of the application protocol. */
  readonly appVersion: string;
}

/** All queries that REST, gRPC and `abci_query` answer. */
export function createNodeQueries(parts: QueryParts): QueryRegistry {
  const { genesis, config, app, comet, calls, nodeId, appVersion } = parts;
  const pruning = app[""];
  return createQueries({
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
      appVersion,
      minimumGasPrices: pruning["minimum-gas-prices"],
      pruningKeepRecent: `${pruning["pruning-keep-recent"]}`,
      pruningInterval: `${pruning["pruning-interval"]}`,
      haltHeight: pruning["halt-height"],
    },
    moduleAccounts: moduleAccounts(genesis.params),
    burnAddress: genesis.params.burnAddress,
    inflationPercent,
    // No genesis of this version names locked balances.
    lockedAtoken: () => 0n,
  });
}

/** The chain's own accounts, by the names that modules of SDK chains have where they have one. */
export function moduleAccounts(params: ChainParams): readonly ModuleAccount[] {
  return [
    { name: "fee_collector", address: params.feeCollector, permissions: ["burner"] },
    { name: "treasury", address: params.treasury, permissions: [] },
    { name: "validators_pool", address: params.validatorsPool, permissions: ["minter"] },
    { name: "development_fund", address: params.developmentFund, permissions: ["minter"] },
  ];
}
