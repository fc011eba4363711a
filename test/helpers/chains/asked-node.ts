/** The servers of a validator of this process: consensus RPC and REST over its own stores. */
import { NETWORKS } from "../../../chain/networks.js";
import { inflationPercent } from "../../../node/blocks/fees.js";
import { createCometChain } from "../../../node/compose/comet-chain.js";
import { moduleAccounts } from "../../../node/compose/queries.js";
import { createModulesAt } from "../../../node/modules/reads/modules-at.js";
import { createClientMemory } from "../../../node/rpc/client-memory.js";
import { startCometServer } from "../../../node/rpc/comet/server.js";
import { createSdkTransactions } from "../../../node/rpc/comet/sdk-transactions.js";
import { createQueries } from "../../../node/rpc/cosmos/queries.js";
import type { QuerySources } from "../../../node/rpc/cosmos/sources.js";
import { startRestServer } from "../../../node/rpc/rest/server.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { loadDescriptors } from "../../../runtime/files/descriptor-set.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { COSMOS_RULES } from "./cosmos-rules.js";
import type { ValidatorNode } from "./validator-node.js";

const listen = { host: "127.0.0.1", port: 0 };
const log = createLogger({ component: "test", level: "silent" });

/** Where a node answers. */
export interface AskedNode {
  /** Result of a route of the consensus RPC. Rejects for a refusal. */
  comet(route: string): Promise<unknown>;
  /** A GET of REST, as of a height. Rejects where it is not answered with 200. */
  rest(route: string, height?: number): Promise<unknown>;
  close(): Promise<void>;
}

async function unserved(): Promise<never> {
  throw new Error("nothing is executed for queries here");
}

/** Opens both on ports of their own. */
export async function askNode(node: ValidatorNode, genesis: Genesis): Promise<AskedNode> {
  const { view, consensus, stores, bus, pool } = node;
  const account = (address: Parameters<typeof stores.state.account>[0]) =>
    stores.state.account(address);
  const chain = createCometChain({
    genesis,
    view,
    consensus,
    pool,
    bus,
    database: stores.database,
    rules: {
      chainId: genesis.evmChainId,
      ...COSMOS_RULES,
      minGasPriceAtoken: 1n,
      maxTransactionGas: genesis.params.maxTransactionGas,
    },
    state: {
      nonce: (address) => account(address)?.nonce ?? 0n,
      balanceAtoken: (address) => account(address)?.balanceAtoken ?? 0n,
      lockedAtoken: () => 0n,
      hasCode: () => false,
    },
    network: { listeners: [], peers: () => [] },
    accounts: {
      account,
      storage: (address, slot) => stores.state.storage(address, slot),
      code: (hash) => stores.state.code(hash),
    },
  });
  const noCalls = { call: unserved, estimateGas: unserved, createAccessList: unserved };
  const noTraces = { traceBlock: unserved, traceCall: unserved, simulate: unserved };
  const nodeId = "ab".repeat(20);
  const places = {
    moniker: "asked",
    nodeId,
    p2pListenAddress: "tcp://127.0.0.1:26656",
    rpcListenAddress: "tcp://127.0.0.1:26657",
    version: "0.0.0-test",
  };
  const sources: QuerySources = {
    types: loadDescriptors(),
    chain,
    transactions: createSdkTransactions(chain),
    calls: { ...noCalls, ...noTraces },
    evmChainId: genesis.evmChainId,
    node: {
      ...places,
      minimumGasPrices: "0.025atoken",
      pruningKeepRecent: "0",
      pruningInterval: "0",
      haltHeight: 0,
    },
    modules: genesis.modules && createModulesAt((height) => stores.state.readerAt(height)),
    moduleAccounts: moduleAccounts(genesis),
    burnAddress: genesis.params.burnAddress,
    inflationPercent,
    vesting: { account: async () => undefined, lockedSupplyAtoken: () => 0n },
  };
  const queries = createQueries(sources, 240_000);
  const comet = await startCometServer({
    ...places,
    view,
    network: NETWORKS[genesis.network],
    isCatchingUp: () => false,
    validator: { publicKey: Buffer.alloc(32, 9), votingPower: 0n },
    listen,
    log,
    chain,
    queries,
  });
  const rest = await startRestServer({
    listen,
    queries,
    allowedOrigins: [],
    isSwaggerServed: false,
    maxConnections: 10,
    maxBodyBytes: 100_000,
    requestsPerSecond: 0,
    memory: createClientMemory(systemClock),
    clock: systemClock,
    log,
  });
  return {
    async comet(route) {
      const reply = await fetch(`http://127.0.0.1:${comet.address.port}/${route}`);
      const { result, error } = (await reply.json()) as { result?: unknown; error?: unknown };
      if (error !== undefined) throw new Error(`${route}: ${JSON.stringify(error)}`);
      return result;
    },
    async rest(route, height) {
      const headers = new Headers();
      if (height !== undefined) headers.set("x-cosmos-block-height", `${height}`);
      const reply = await fetch(`http://127.0.0.1:${rest.address.port}${route}`, { headers });
      const text = await reply.text();
      if (reply.status !== 200) throw new Error(`${route}: ${reply.status} ${text}`);
      return JSON.parse(text);
    },
    async close() {
      await rest.stop();
      await comet.stop();
    },
  };
}
