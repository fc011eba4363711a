/** The explorer put together: sources, pages, server. */
import { join, resolve } from "node:path";
import { errorMessage } from "../chain/errors.js";
import { DEFAULT_PORTS, type Network } from "../chain/networks.js";
import type { TokenEntry } from "../chain/token-list.js";
import { KnownAccounts } from "../rpc-client/chain-accounts.js";
import { createEvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient, type JsonRpcClient } from "../rpc-client/json-rpc.js";
import type { Clock } from "../runtime/process/clock.js";
import type { Service } from "../runtime/process/lifecycle.js";
import type { Logger } from "../runtime/process/logger.js";
import type { Metrics } from "../runtime/process/metrics.js";
import { TaskGroup, withTimeout } from "../runtime/process/task.js";
import type { ExplorerConfig } from "./config.js";
import { nodeUrl } from "./html/node-url.js";
import { addressRoutes } from "./pages/address.js";
import { blockRoutes } from "./pages/block.js";
import type { ContractBook, PageContext } from "./pages/context.js";
import { contractRoutes } from "./pages/contracts/contract.js";
import { contractCallRoutes } from "./pages/contracts/calls.js";
import { depositRoutes } from "./pages/deposit.js";
import { parameterRoutes } from "./pages/governance/parameters.js";
import { proposalRoutes } from "./pages/governance/proposals.js";
import { homeRoutes } from "./pages/home.js";
import { pairRoutes } from "./pages/pairs.js";
import { proofRoutes } from "./pages/proofs.js";
import { searchRoutes } from "./pages/search.js";
import { supplyRoutes } from "./pages/supply.js";
import { tokenRoutes } from "./pages/tokens.js";
import { transactionRoutes } from "./pages/transaction.js";
import { validatorPageRoutes } from "./pages/staking/validator.js";
import { validatorRoutes } from "./pages/staking/validators.js";
import { verificationApiRoutes } from "./pages/contracts/verification-api.js";
import { verifyRoutes } from "./pages/verify.js";
import { loadAssets } from "../web/server/assets.js";
import { createPageServer, type PageServer } from "./server/page-server.js";
import { ChainSource } from "./sources/chain-source.js";
import { ConsensusSource } from "./sources/consensus-source.js";
import { HeadTracker } from "./sources/head-tracker.js";
import { IndexerSource } from "./sources/indexer-source.js";
import { createNodeReadiness } from "./sources/node-readiness.js";
import { GovernanceSource } from "./sources/modules/governance-source.js";
import { RestClient } from "./sources/modules/rest-client.js";
import { StakingSource } from "./sources/modules/staking-source.js";
import { VerifiedStore } from "./verification/verified-store.js";
import { Verifier } from "./verification/verifier.js";

/** What an explorer is made from. */
export interface ExplorerOptions {
  /** Home folder; verified contracts lie in data/explorer of it. */
  readonly home: string;
  readonly config: ExplorerConfig;
  readonly network: Network;
  readonly tokens: readonly TokenEntry[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The process's signal. */
  readonly signal: AbortSignal;
}

/** An explorer; `services` are what has to be stopped, in the order of their start. */
export interface Explorer {
  readonly server: PageServer;
  readonly services: readonly Service[];
  /** Listens and follows the head. @throws PORT_TAKEN, LISTEN_FAILED */
  start(): Promise<void>;
}

const MIB = 1024 * 1024;

/** Where a reader's own node answers unless it was told otherwise. */
const USUAL_CONSENSUS_URL = `http://127.0.0.1:${DEFAULT_PORTS.cometRpc}`;

/** Where the style sheet and the scripts lie; the build copies them beside the compiled code. */
const ASSETS = new URL("./assets/", import.meta.url);

/** Time for a node that is there to tell the chain's own accounts before the first page. */
const FIRST_ASK_MS = 1_000;

/** Clients of the node's three interfaces, and the chain as pages read it. */
interface NodeClients {
  readonly chain: ChainSource;
  readonly cometRpc: JsonRpcClient;
  readonly rest: RestClient;
  close(): void;
}

/** Puts an explorer together; the node is asked nothing before `start`. */
export function createExplorer(options: ExplorerOptions): Explorer {
  const { config, log, signal } = options;
  const clients = openClients(config);
  const { chain } = clients;
  const context = pageContext(options, clients, () => tracker.generation);
  const { verifier } = context.contracts;
  const tracker = new HeadTracker({
    chain,
    wsUrl: config.node["ws-url"],
    log,
    signal,
    onHead: (head) => server.announce(head),
  });
  const accounts = new KnownAccounts(chain.evm);
  const onFault = (_name: string, err: unknown) =>
    log.warn({ err }, "the chain's own accounts are not asked for any more");
  const tasks = new TaskGroup({ signal, onFault });
  const server = createServer(options, { context, tracker, accounts });
  const closing = { name: "node clients", stop: async () => clients.close() };
  const asking = { name: "chain accounts", stop: () => tasks.stop() };
  return {
    server,
    services: [closing, asking, ...(verifier === undefined ? [] : [verifier]), tracker, server],
    async start() {
      // With a node that is there every page has the names, and none is made anew for them.
      const first = { timeoutMs: FIRST_ASK_MS, signal, what: "the chain's own accounts" };
      await withTimeout((time) => accounts.ask({ signal: time }), first).catch(() => undefined);
      await server.start();
      tracker.start();
      tasks.run("chain accounts", (ending) => accounts.learn({ signal: ending, log }));
    },
  };
}

function openClients({ node }: ExplorerConfig): NodeClients {
  const timeoutMs = node["timeout-ms"];
  const maxBytes = node["max-response-mib"] * MIB;
  const limits = { timeoutMs, maxResponseBytes: maxBytes };
  const rpc = createJsonRpcClient({ url: node.url, ...limits });
  const cometRpc = createJsonRpcClient({ url: node["consensus-url"], ...limits });
  return {
    chain: new ChainSource(rpc, createEvmClient(rpc)),
    cometRpc,
    rest: new RestClient({ url: node["rest-url"], timeoutMs, maxBytes }),
    close: () => [rpc, cometRpc].forEach((one) => one.close()),
  };
}

function pageContext(
  options: ExplorerOptions,
  { chain, cometRpc, rest }: NodeClients,
  generation: () => number,
): PageContext {
  const { config, network, tokens, clock } = options;
  const publicUrl = config.server["public-url"];
  const timeoutMs = config.node["timeout-ms"];
  return {
    network,
    chain,
    consensus: new ConsensusSource(cometRpc),
    indexer: new IndexerSource({ url: config.indexer.url, timeoutMs }),
    staking: new StakingSource(rest),
    governance: new GovernanceSource(rest),
    tokens: new Map(tokens.map((token) => [token.contractAddress, token])),
    publicUrl,
    generation,
    commandUrls: {
      rpc: nodeUrl(config.node.url, publicUrl, "<RPC URL>"),
      consensus: nodeUrl(config.node["consensus-url"], publicUrl, USUAL_CONSENSUS_URL),
    },
    clock,
    contracts: contractBook(options, chain),
  };
}

function createServer(
  { config, network, clock, log, metrics, signal }: ExplorerOptions,
  parts: {
    readonly context: PageContext;
    readonly tracker: HeadTracker;
    readonly accounts: KnownAccounts;
  },
): PageServer {
  const { context, tracker, accounts } = parts;
  const { store } = context.contracts;
  return createPageServer({
    listen: config.server.listen,
    network: network.name,
    routes: routesOf(context),
    assets: loadAssets(ASSETS),
    cacheBytes: config.server["cache-mib"] * MIB,
    maxStreams: config.server["max-streams"],
    pagesPerMinute: config.limits["pages-per-minute"],
    limitsLoopback: config.limits.loopback,
    concurrentPages: config.limits["concurrent-pages"],
    head: () => tracker.head,
    // What was made before they were told lacks their names.
    generation: () =>
      (store?.generation ?? 0) + tracker.generation + (accounts.told === undefined ? 0 : 1),
    accounts: () => accounts.told,
    readiness: createNodeReadiness({
      chain: context.chain,
      network,
      maxBlockAgeMs: config.node["max-block-age-ms"],
      clock,
      signal,
    }),
    clock,
    log,
    metrics,
    signal,
  });
}

/** A home that cannot be written to has none: pages say so, and everything else goes on. */
function contractBook(
  { home, config: { verification, limits }, clock, log, signal }: ExplorerOptions,
  chain: ChainSource,
): ContractBook {
  let store: VerifiedStore;
  try {
    const folder = join(home, "data", "explorer", "contracts");
    store = VerifiedStore.open({ folder, maxBytes: verification["store-mib"] * MIB, log });
  } catch (error) {
    log.warn({ reason: errorMessage(error) }, "no place for verified contracts");
    return { store: undefined, verifier: undefined };
  }
  if (!verification.enabled) return { store, verifier: undefined };
  const { compilers } = verification;
  const verifier = new Verifier({
    chain,
    store,
    compilers: compilers === "" ? "" : resolve(home, compilers),
    limits: {
      timeoutMs: verification["compile-ms"],
      memoryBytes: verification["memory-mib"] * MIB,
    },
    limitsLoopback: limits.loopback,
    clock,
    log,
    signal,
  });
  return { store, verifier };
}

function routesOf(context: PageContext) {
  return [
    ...homeRoutes(context),
    ...blockRoutes(context),
    ...transactionRoutes(context),
    ...addressRoutes(context),
    ...contractRoutes(context),
    ...contractCallRoutes(context),
    ...verificationApiRoutes(context),
    ...validatorRoutes(context),
    ...validatorPageRoutes(context),
    ...proposalRoutes(context),
    ...parameterRoutes(context),
    ...supplyRoutes(context),
    ...tokenRoutes(context),
    ...pairRoutes(context),
    ...searchRoutes(context),
    ...depositRoutes(context),
    ...verifyRoutes(context),
    ...proofRoutes(context),
  ];
}
