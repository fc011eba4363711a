/** A real chain with pool, call workers and JSON-RPC, in this process; a test mines its blocks. */
import { minedTransactions } from "../../../node/blocks/block-pool.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import { COSMOS_RULES } from "./cosmos-rules.js";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Address } from "../../../chain/address.js";
import { EMPTY_CODE_HASH, parseHexBytes } from "../../../chain/hex.js";
import { ZERO_ADDRESS } from "../../../chain/address.js";
import { NETWORKS } from "../../../chain/networks.js";
import { EventBus } from "../../../node/view/event-bus.js";
import { CallPool } from "../../../node/execution/calls/call-pool.js";
import type { BlockFacts } from "../../../node/modules/modules.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { Mempool } from "../../../node/mempool/mempool.js";
import { createNodeClaims } from "../../../node/compose/claims.js";
import { createEvmApi } from "../../../node/rpc/evm/api.js";
import { createClientMemory } from "../../../node/rpc/client-memory.js";
import { startEvmHttpServer } from "../../../node/rpc/evm/http-server.js";
import { DEFAULT_EVM_RPC_LIMITS } from "../../../node/rpc/evm/options.js";
import type { RpcServer } from "../../../node/rpc/http-listener.js";
import { PoolStore } from "../../../node/store/pool-store.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { ExecutionChain } from "./execution-chain.js";
import { compiledFolder } from "../services/services.js";
import { PATIENCE_MS } from "../until.js";

const MIN_GAS_PRICE_ATOKEN = 1n;

/** `close` stops everything and deletes the chain. */
export class ServedChain {
  private constructor(
    readonly chain: ExecutionChain,
    readonly pool: Mempool,
    private readonly calls: CallPool,
    private readonly server: RpcServer,
  ) {}

  /** @param again the folder and port of one that was closed with `keep` */
  static async open(
    genesis: Genesis,
    again: { readonly folder?: string; readonly port?: number } = {},
  ): Promise<ServedChain> {
    const folder = await compiledFolder();
    const chain = await ExecutionChain.open(
      genesis,
      again.folder === undefined ? {} : { folder: again.folder },
    );
    const log = createLogger({ component: "test", level: "silent" });
    const bus = new EventBus((error) => {
      throw error;
    });
    const pool = await openPool(chain, bus);
    const calls = new CallPool({
      view: chain.view,
      stateReaderAt: (height) => chain.stores.state.readerAt(height),
      chainId: genesis.evmChainId,
      params: genesis.params,
      workerCount: 1,
      gasCap: 50_000_000n,
      timeoutMs: PATIENCE_MS,
      log,
      workerUrl: pathToFileURL(path.join(folder, "node", "execution", "calls", "call-worker.js")),
    });
    const api = createEvmApi({
      view: chain.view,
      bus,
      pool,
      calls,
      ...createNodeClaims({ genesis, stores: chain.stores }),
      network: NETWORKS[genesis.network],
      suggestedGasPriceAtoken: 25_000_000n,
      minimumGasPriceAtoken: 1n,
      isCatchingUp: () => false,
      peerHeight: () => 0,
      peerCount: () => 0,
      coinbase: ZERO_ADDRESS,
      consensusBlockHash: () => undefined,
      maxTransactionGas: genesis.params.maxTransactionGas,
      chainAccounts: genesis.params,
      retention: {},
      refusedBlocks: () => [],
      clientVersion: "causeway/test",
      limits: { ...DEFAULT_EVM_RPC_LIMITS, requestTimeoutMs: PATIENCE_MS },
      clock: systemClock,
      log,
      metrics: createMetrics({ processMetrics: false }),
    });
    const listen = { host: "127.0.0.1", port: again.port ?? 0 };
    const memory = createClientMemory(systemClock);
    const server = await startEvmHttpServer(api, { listen, allowedOrigins: [], memory });
    return new ServedChain(chain, pool, calls, server);
  }

  get port(): number {
    return this.server.address.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Mines these transactions as one block and tells the pool. */
  async mine(raws: readonly string[], cosmosRaws: readonly Uint8Array[] = [], facts?: BlockFacts) {
    const mined = await this.chain.mine(raws, cosmosRaws, facts);
    const { transactions } = mined.committed.block;
    allAtOnce(
      this.pool.onBlockCommitted({
        transactions: allAtOnce(minedTransactions(transactions)),
        touched: mined.changes.accounts.keys(),
      }),
    );
    return mined;
  }

  /** Puts transactions into the pool; throws the first refusal. */
  async submit(raws: readonly string[]): Promise<void> {
    const answers = await this.pool.submit(raws.map((raw) => parseHexBytes(raw)));
    for (const answer of answers) if (answer instanceof Error) throw answer;
  }

  async close(options: { readonly keep?: boolean } = {}): Promise<void> {
    await this.server.stop();
    await this.pool.close();
    await this.calls.close();
    await this.chain.close(options);
  }
}

function openPool({ stores, view, genesis }: ExecutionChain, bus: EventBus): Promise<Mempool> {
  const account = (address: Address) => stores.state.account(address);
  return Mempool.open({
    state: {
      nonce: (address) => account(address)?.nonce ?? 0n,
      balanceAtoken: (address) => account(address)?.balanceAtoken ?? 0n,
      lockedAtoken: () => 0n,
      hasCode: (address) => (account(address)?.codeHash ?? EMPTY_CODE_HASH) !== EMPTY_CODE_HASH,
    },
    journal: new PoolStore(stores.database, (hash) => view.locate(hash) !== undefined),
    bus,
    clock: systemClock,
    rules: {
      chainId: genesis.evmChainId,
      ...COSMOS_RULES,
      minGasPriceAtoken: MIN_GAS_PRICE_ATOKEN,
      maxTransactionGas: genesis.params.maxTransactionGas,
    },
    locate: (hash) => view.locate(hash),
    oldestHeight: () => 1,
    haltReason: () => undefined,
    onJournalFault(error) {
      throw error;
    },
  });
}
