/**
 * The composition root of the full node, built in the order in which a block flows. Read this
 * first: store -> view -> pool -> execution -> consensus -> servers.
 */
import path from "node:path";
import { type Address } from "../chain/address.js";
import { EMPTY_CODE_HASH } from "../chain/hex.js";
import { NETWORKS } from "../chain/networks.js";
import { systemClock } from "../runtime/clock.js";
import { ensureFolder } from "../runtime/folder.js";
import type { Service } from "../runtime/lifecycle.js";
import type { Logger } from "../runtime/logger.js";
import { createMetrics } from "../runtime/metrics.js";
import { createCometChain } from "./comet-chain.js";
import { CommittedView } from "./committed-view.js";
import {
  type AppConfig,
  consensusTimeouts,
  gasPriceFloorAtoken,
  type NodeConfig,
} from "./config.js";
import { createBlockApplication } from "./consensus/application.js";
import { Consensus } from "./consensus/consensus.js";
import { PrivateValidator } from "./consensus/private-validator.js";
import { loadValidatorIdentity } from "./consensus/validator-key.js";
import { EventBus } from "./event-bus.js";
import { CallPool } from "./execution/call-pool.js";
import { PRECOMPILES } from "./execution/evm.js";
import { createGenesisBlock } from "./execution/genesis-block.js";
import type { Genesis } from "./genesis.js";
import type { PoolRules, StateAtHead } from "./mempool/admission.js";
import { Mempool } from "./mempool/mempool.js";
import { RecoveryThread } from "./mempool/recovery-thread.js";
import type { SenderRecovery } from "./mempool/sender-recovery.js";
import { openNetwork, runConsensus } from "./node-network.js";
import { registerNodeMetrics } from "./node-metrics.js";
import { haltAtHeight, startPruning } from "./node-pruning.js";
import { openSnapshots } from "./node-snapshots.js";
import type { Network } from "./p2p/network.js";
import { openNodeKey } from "./p2p/node-key.js";
import { keepsProofsByWindow } from "./pruning-config.js";
import { startServers } from "./servers.js";
import { TrieCache } from "./state/trie-cache.js";
import { openStores, type OpenStores } from "./store/open-store.js";
import { PoolStore } from "./store/pool-store.js";
import { createTrieReader } from "./store/trie-store.js";

/** Memory for trie nodes; the nodes near the root are touched by every block. */
const TRIE_CACHE_BYTES = 192 * 1024 * 1024;

/** Why no transaction is taken before there is a state to hold it against. */
const JOINING_REASON = "state sync is going on";

/** What a node is started with. */
export interface NodeOptions {
  readonly home: string;
  readonly genesis: Genesis;
  readonly config: NodeConfig;
  readonly app: AppConfig;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Ends the process: the store cannot be written, or a loop died. */
  readonly fatal: (error: unknown) => void;
  /** Ends the process because its work is done. */
  readonly finish: (reason: string) => void;
  /** What a node without blocks does instead of following them; one with blocks ignores it. */
  readonly join?: (node: JoiningNode) => Promise<void>;
}

/** A node that has no chain yet. */
export interface JoiningNode {
  readonly network: Network;
  /** Shows why it cannot go on. */
  readonly halt: (reason: string) => void;
}

/** Starts a node; the services are to be stopped in reverse order. */
export async function startNode(options: NodeOptions): Promise<readonly Service[]> {
  const { genesis, app, log } = options;
  const folder = path.join(options.home, "data", "chain");
  ensureFolder(folder);
  const stores = await openStores({
    folder,
    genesisBlock: createGenesisBlock(genesis),
    cosmosChainId: genesis.cosmosChainId,
    archive: !keepsProofsByWindow(app[""]),
  });
  const join = stores.head.height === 0 ? options.join : undefined;
  if (options.join !== undefined && join === undefined) {
    log.info({ height: stores.head.height }, "state sync is ignored: this node has blocks");
  }
  const halt = createHalt();
  const refusal = () => halt.reason() ?? (join === undefined ? undefined : JOINING_REASON);
  const bus = new EventBus((error) => log.error({ err: error }, "event listener failed"));
  if (haltAtHeight({ ...options, bus, height: stores.head.height })) {
    await closeStores(stores);
    return [];
  }
  const view = new CommittedView(stores, stores.head);
  const tries = new TrieCache(createTrieReader(stores.database), {
    maxSizeBytes: TRIE_CACHE_BYTES,
  });
  const poolStore = new PoolStore(stores.database, (hash) => view.locate(hash) !== undefined);
  const recovery = new RecoveryThread({ log });
  const [rules, state] = [poolRules(options), stateAtHead(stores)];
  const poolParts = { state, rules, view, bus, poolStore, recovery, haltReason: refusal };
  const pool = await openPool(options, poolParts);
  const calls = new CallPool({
    view,
    stateReaderAt: (height) => stores.state.readerAt(height),
    chainId: genesis.evmChainId,
    params: genesis.params,
    workerCount: app["json-rpc"]["call-workers"],
    gasCap: app["json-rpc"]["gas-cap"],
    timeoutMs: app["json-rpc"]["evm-timeout-ms"],
    log,
  });
  const parts = { stores, view, tries, pool, poolStore, recovery, bus, halt };
  const signer = await openSigner(options);
  const consensus = await openConsensus(options, parts, signer);
  const nodeKey = openNodeKey(path.join(options.home, "config", "node_key.json"));
  const chainId = genesis.cosmosChainId;
  const snapshots = await openSnapshots({ ...options, ...parts });
  const pruning = startPruning({
    ...options,
    ...parts,
    consensus,
    blockIntervalMs: genesis.params.blockIntervalMs,
    oldestSnapshot: () => snapshots.folder.oldestHeight,
  });
  const handlers = [snapshots.handler];
  const network = await openNetwork({
    ...options,
    ...parts,
    chainId,
    nodeKey,
    consensus,
    handlers,
  });
  const follow = () =>
    runConsensus({
      ...options,
      network,
      consensus,
      mayBeFirst: () => {
        const set = consensus.validators(consensus.height() + 1);
        return (set?.indexOf(signer.address) ?? -1) >= 0;
      },
      halt: halt.set,
    });
  const production = join === undefined ? follow() : join({ network, halt: halt.set });
  const metrics = createMetrics();
  registerNodeMetrics(metrics, {
    view,
    pool,
    bus,
    consensus,
    network,
    isStateSyncing: join !== undefined,
    haltReason: halt.reason,
    trieCacheBytes: () => tries.sizeBytes,
  });
  const servers = await startServers({
    ...options,
    network: NETWORKS[genesis.network],
    view,
    bus,
    pool,
    calls,
    metrics,
    comet: createCometChain({
      genesis,
      view,
      consensus,
      pool,
      bus,
      database: stores.database,
      rules,
      state,
      network: { listeners: network.listeners(), peers: () => network.peers() },
    }),
    identity: loadValidatorIdentity(path.join(options.home, "config", "priv_validator_key.json")),
    nodeId: nodeKey.nodeId,
  });
  log.info({ height: view.head().height, genesis: view.genesis().block.hash }, "node started");
  return [
    { name: "store", stop: () => closeStores(stores) },
    { name: "sender recovery", stop: () => recovery.close() },
    { name: "mempool", stop: () => pool.close() },
    { name: "call workers", stop: () => calls.close() },
    pruning,
    { name: "snapshots", stop: () => snapshots.close() },
    { name: "network", stop: () => network.stop() },
    { name: "block production", stop: () => production },
    ...servers,
  ];
}

async function closeStores(stores: OpenStores): Promise<void> {
  await stores.state.close();
  await stores.database.close();
}

interface Halt {
  readonly reason: () => string | undefined;
  readonly set: (reason: string) => void;
}

function createHalt(): Halt {
  let current: string | undefined;
  return {
    reason: () => current,
    set(reason) {
      current ??= reason;
    },
  };
}

function poolRules({ genesis, app }: NodeOptions): PoolRules {
  return {
    chainId: genesis.evmChainId,
    minGasPriceAtoken: gasPriceFloorAtoken(app),
    // D21: no transaction names more than this, whether it enters code or not.
    maxGas: genesis.params.maxCallGas,
    maxCallGas: genesis.params.maxCallGas,
    isPrecompile: (address) => PRECOMPILES.has(address),
  };
}

function stateAtHead({ state }: OpenStores): StateAtHead {
  return {
    nonce: (address: Address) => state.account(address)?.nonce ?? 0n,
    balanceAtoken: (address: Address) => state.account(address)?.balanceAtoken ?? 0n,
    hasCode: (address: Address) =>
      (state.account(address)?.codeHash ?? EMPTY_CODE_HASH) !== EMPTY_CODE_HASH,
  };
}

interface PoolParts {
  readonly state: StateAtHead;
  readonly rules: PoolRules;
  readonly view: CommittedView;
  readonly bus: EventBus;
  readonly poolStore: PoolStore;
  readonly recovery: SenderRecovery;
  readonly haltReason: () => string | undefined;
}

function openPool(options: NodeOptions, parts: PoolParts): Promise<Mempool> {
  const { state, rules, view, bus, poolStore, recovery, haltReason } = parts;
  const { app, log } = options;
  return Mempool.open({
    state,
    journal: poolStore,
    recovery,
    bus,
    clock: systemClock,
    rules,
    limits: { totalCount: app.mempool["global-slots"] },
    locate: (hash) => view.locate(hash),
    haltReason,
    onJournalFault: (error) => {
      log.error({ err: error }, "the mempool's journal cannot be written");
      options.fatal(error);
    },
  });
}

interface ConsensusParts {
  readonly stores: OpenStores;
  readonly view: CommittedView;
  readonly tries: TrieCache;
  readonly pool: Mempool;
  readonly poolStore: PoolStore;
  readonly recovery: SenderRecovery;
  readonly bus: EventBus;
  readonly halt: Halt;
}

function openSigner({ home, genesis }: NodeOptions): Promise<PrivateValidator> {
  return PrivateValidator.open({
    keyFile: path.join(home, "config", "priv_validator_key.json"),
    stateFile: path.join(home, "data", "priv_validator_state.json"),
    chainId: genesis.cosmosChainId,
  });
}

async function openConsensus(
  options: NodeOptions,
  parts: ConsensusParts,
  signer: PrivateValidator,
): Promise<Consensus> {
  const { genesis, log, home, config } = options;
  const { stores, view, tries, halt, bus } = parts;
  const application = createBlockApplication({
    ...parts,
    ...stores,
    log,
    executor: {
      chainId: genesis.evmChainId,
      params: genesis.params,
      // Always the head: the next block is built on nothing else.
      state: {
        account: (address) => stores.state.account(address),
        storage: (address, slot) => stores.state.storage(address, slot),
        code: (codeHash) => stores.state.code(codeHash),
      },
      tries,
      blockHash: (height) => stores.blocks.hashOf(height),
      monotonicMs: () => systemClock.monotonicMs(),
    },
  });
  return Consensus.open({
    home,
    genesis,
    database: stores.database,
    blocks: stores.blocks,
    application,
    headHeight: () => view.head().height,
    signer,
    timeouts: consensusTimeouts(config, genesis.params.blockIntervalMs),
    doubleSignCheckBlocks: config.consensus.double_sign_check_height,
    clock: systemClock,
    log,
    onHalt: (reason: string) => {
      halt.set(reason);
      bus.emit("halted", { reason });
    },
  });
}
