/**
 * The composition root of the full node, built in the order in which a block flows. Read this
 * first: store -> view -> pool -> execution -> consensus -> servers.
 */
import path from "node:path";
import { type Address } from "../../chain/address.js";
import { EMPTY_CODE_HASH } from "../../chain/hex.js";
import { parseMinimumGasPrices } from "../../chain/units.js";
import { NETWORKS } from "../../chain/networks.js";
import { systemClock } from "../../runtime/process/clock.js";
import { ensureFolder } from "../../runtime/files/folder.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import { createMetrics } from "../../runtime/process/metrics.js";
import { createCometChain } from "./comet-chain.js";
import { CommittedView } from "../blocks/committed-view.js";
import {
  type AppConfig,
  consensusTimeouts,
  gasPriceFloorAtoken,
  type NodeConfig,
} from "../settings/config.js";
import { createBlockApplication } from "../blocks/block-application.js";
import { createProposedTransactions } from "../mempool/admission/proposed-transactions.js";
import { Consensus } from "../consensus/consensus.js";
import { PrivateValidator } from "../consensus/signing/private-validator.js";
import { loadValidatorIdentity } from "../consensus/signing/validator-key.js";
import { EventBus } from "../view/event-bus.js";
import { CallPool } from "../execution/calls/call-pool.js";
import { createGenesisBlock } from "../blocks/genesis-block.js";
import { assertMayBegin, type Genesis } from "../settings/genesis.js";
import type { VestingSchedules } from "../settings/vesting.js";
import type { Head } from "../view/chain-view.js";
import { largestTransaction } from "../mempool/admission/largest-transaction.js";
import type { PoolRules, StateAtHead } from "../mempool/admission/admission.js";
import { Mempool } from "../mempool/mempool.js";
import { spendableAtoken } from "../modules/vesting.js";
import { RecoveryThread } from "../mempool/recovery/recovery-thread.js";
import type { SenderRecovery } from "../mempool/recovery/sender-recovery.js";
import { openNetwork, runConsensus } from "./network.js";
import { registerNodeMetrics } from "./node-metrics.js";
import { haltAtHeight, startPruning } from "./pruning.js";
import { openSnapshots } from "./snapshots.js";
import type { Network } from "../p2p/network.js";
import { openNodeKey } from "../p2p/node-key.js";
import { databaseSettings, memoryBytes } from "../settings/memory-config.js";
import { keepsProofsByWindow } from "../settings/pruning-config.js";
import { createNodeClaims } from "./claims.js";
import { createNodeQueries } from "./queries.js";
import { startServers } from "./servers.js";
import { Stages } from "./stages.js";
import { type MetUpgrade, nodeUpgrades } from "./upgrades.js";
import { TrieCache } from "../state/trie-cache.js";
import { openStores, type OpenStores } from "../store/open-store.js";
import { PoolStore } from "../store/pool-store.js";
import type { StateReader } from "../store/state-reader.js";
import { createTrieReader } from "../store/tries/trie-store.js";

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
  /** Told of a planned upgrade that this program does not know and that stops the node; maybe repeatedly. */
  readonly onUpgradeNeeded?: (plan: MetUpgrade) => void;
  /** What a node without blocks does instead of following them; one with blocks ignores it. */
  readonly join?: (node: JoiningNode) => Promise<void>;
}

/** A node that has no chain yet. */
export interface JoiningNode {
  readonly network: Network;
  /** Shows why it cannot go on. */
  readonly halt: (reason: string) => void;
  /** Fires when the node ends, also when a later part of it cannot start. */
  readonly signal: AbortSignal;
}

/**
 * Starts a node, stage after stage; when one cannot start, those before it are ended again.
 * @returns the stages, to be stopped in reverse order; none when `halt-height` is reached already
 */
export async function startNode(options: NodeOptions): Promise<readonly Service[]> {
  const stages = new Stages(options.log, options.signal);
  try {
    await startStages({ ...options, signal: stages.signal }, stages);
    return stages.services();
  } catch (error) {
    await stages.unwind();
    throw error;
  }
}

async function startStages(options: NodeOptions, stages: Stages): Promise<void> {
  const { log } = options;
  const chain = await openChain(options, stages);
  const { stores, view, bus } = chain;
  if (haltAtHeight({ ...options, bus, height: stores.head.height })) return stages.unwind();
  const pool = await openTransactions(options, chain, stages);
  const node = await openConsensusStage(options, { ...chain, ...pool }, stages);
  const parts = { ...chain, ...pool, ...node };
  startProduction(options, parts, stages);
  await openServers(options, parts, stages);
  log.info({ height: view.head().height, genesis: view.genesis().block.hash }, "node started");
}

/** Stage 1: what is stored, and the view of it. */
async function openChain(options: NodeOptions, stages: Stages) {
  const { home, genesis, app, log } = options;
  const folder = path.join(home, "data", "chain");
  ensureFolder(folder);
  const memory = memoryBytes(app.memory);
  const open = () =>
    openStores({
      folder,
      genesisBlock: createGenesisBlock(genesis),
      // Who takes over a state follows a chain that stands.
      ...(options.join === undefined ? { assertMayBegin: () => assertMayBegin(genesis) } : {}),
      cosmosChainId: genesis.cosmosChainId,
      archive: !keepsProofsByWindow(app[""]),
      onDamage: options.fatal,
      database: databaseSettings(app.memory, app.store),
      memory,
    });
  const stores = await stages.start("store", open, closeStores);
  const join = stores.head.height === 0 ? options.join : undefined;
  if (options.join !== undefined && join === undefined) {
    log.info({ height: stores.head.height }, "state sync is ignored: this node has blocks");
  }
  const bus = new EventBus((error) => log.error({ err: error }, "event listener failed"));
  const halt = createHalt(bus);
  const view = new CommittedView(stores, stores.head);
  const reader = createTrieReader(stores.database);
  const tries = new TrieCache(reader, { maxSizeBytes: memory.trieBytes });
  const poolStore = new PoolStore(stores.database, (hash) => {
    return (view.locate(hash) ?? view.locateBySdkHash(hash)) !== undefined;
  });
  return { stores, join, bus, halt, view, tries, poolStore };
}

/** Stage 2: pending transactions, who signed them, and calls on states. */
async function openTransactions(options: NodeOptions, chain: Chain, stages: Stages) {
  const { genesis, app, log } = options;
  const { stores, view, join, halt } = chain;
  const recovery = await stages.start(
    "sender recovery",
    () => new RecoveryThread({ log }),
    (thread) => thread.close(),
  );
  const rules = poolRules(options, () => view.head());
  const state = stateAtHead(stores, genesis.params.locks, () => view.head().timeMs);
  const haltReason = () => halt.reason() ?? (join === undefined ? undefined : JOINING_REASON);
  const pool = await stages.start(
    "mempool",
    () => openPool(options, { ...chain, state, rules, recovery, haltReason }),
    (opened) => opened.close(),
  );
  const startCalls = () =>
    new CallPool({
      view,
      stateReaderAt: (height) => stores.state.readerAt(height),
      chainId: genesis.evmChainId,
      params: genesis.params,
      workerCount: app["json-rpc"]["call-workers"],
      gasCap: app["json-rpc"]["gas-cap"],
      timeoutMs: app["json-rpc"]["evm-timeout-ms"],
      log,
    });
  const calls = await stages.start("call workers", startCalls, (workers) => workers.close());
  return { recovery, rules, state, pool, calls };
}

/** Stage 3: consensus over the chain, what of the past is kept, and the network. */
async function openConsensusStage(
  options: NodeOptions,
  parts: Chain & Transactions,
  stages: Stages,
) {
  const { home, genesis } = options;
  const signer = await openSigner(options);
  const consensus = await openConsensus(options, parts, signer);
  const nodeKey = openNodeKey(path.join(home, "config", "node_key.json"));
  const snapshots = await stages.start(
    "snapshots",
    () => openSnapshots({ ...options, ...parts }),
    (opened) => opened.close(),
  );
  const pruning = startPruning({
    ...options,
    ...parts,
    consensus,
    blockIntervalMs: genesis.params.blockIntervalMs,
    oldestSnapshot: () => snapshots.folder.oldestHeight,
  });
  stages.add(pruning);
  const network = await stages.start(
    "network",
    () =>
      openNetwork({
        ...options,
        ...parts,
        chainId: genesis.cosmosChainId,
        nodeKey,
        consensus,
        handlers: [snapshots.handler],
      }),
    (opened) => opened.stop(),
  );
  return { consensus, nodeKey, network };
}

/** Stage 4: follows and decides blocks, or joins by state sync; ends when the signal fires. */
function startProduction(options: NodeOptions, parts: NodeParts, stages: Stages): void {
  const { network, consensus, halt, join } = parts;
  const follow = () =>
    runConsensus({
      ...options,
      network,
      consensus,
      halt: halt.set,
    });
  const { signal } = options;
  const production = join === undefined ? follow() : join({ network, halt: halt.set, signal });
  stages.add({ name: "block production", stop: () => production });
}

/** Stage 5: the ports that others ask at. */
async function openServers(options: NodeOptions, parts: NodeParts, stages: Stages): Promise<void> {
  const { home, genesis } = options;
  const { network, stores, tries, halt, join } = parts;
  const metrics = createMetrics();
  registerNodeMetrics(metrics, {
    ...parts,
    chainId: genesis.cosmosChainId,
    isStateSyncing: join !== undefined,
    haltReason: halt.reason,
    trieCacheBytes: () => tries.sizeBytes,
  });
  const comet = createCometChain({
    ...parts,
    genesis,
    database: stores.database,
    accounts: headReader(stores),
    network: { listeners: network.listeners(), peers: () => network.peers() },
  });
  const { nodeId } = parts.nodeKey;
  const servers = await startServers({
    ...options,
    ...parts,
    network: NETWORKS[genesis.network],
    metrics,
    comet,
    peerHeight: () => network.peerHeight(),
    ...createNodeClaims({ ...options, ...parts }),
    queries: createNodeQueries({ ...options, ...parts, comet, nodeId }),
    identity: loadValidatorIdentity(path.join(home, "config", "priv_validator_key.json")),
    nodeId,
    maxTransactionGas: genesis.params.maxTransactionGas,
    chainAccounts: genesis.params,
    refusedBlocks: () => parts.consensus.refusedBlocks(),
  });
  stages.add(servers);
}

type Chain = Awaited<ReturnType<typeof openChain>>;
type Transactions = Awaited<ReturnType<typeof openTransactions>>;
type NodeParts = Chain & Transactions & Awaited<ReturnType<typeof openConsensusStage>>;

async function closeStores(stores: OpenStores): Promise<void> {
  await stores.state.close();
  await stores.database.close();
}

interface Halt {
  readonly reason: () => string | undefined;
  readonly set: (reason: string) => void;
}

/** The first reason stays, and is told once. */
function createHalt(bus: EventBus): Halt {
  let current: string | undefined;
  return {
    reason: () => current,
    set(reason) {
      if (current !== undefined) return;
      current = reason;
      bus.emit("halted", { reason });
    },
  };
}

function poolRules({ genesis, app }: NodeOptions, head: () => Head): PoolRules {
  return {
    chainId: genesis.evmChainId,
    ...largestTransaction(genesis),
    cosmosChainId: genesis.cosmosChainId,
    minGasPriceAtoken: gasPriceFloorAtoken(app),
    minGasPrice: parseMinimumGasPrices(app[""]["minimum-gas-prices"]),
    headHeight: () => head().height,
    headTimeMs: () => head().timeMs,
  };
}

function stateAtHead(
  stores: OpenStores,
  locks: VestingSchedules | undefined,
  headTimeMs: () => number,
): StateAtHead {
  const { state } = stores;
  const wholeAtoken = (address: Address) => state.account(address)?.balanceAtoken ?? 0n;
  const freeAtoken = (address: Address) =>
    spendableAtoken(headReader(stores), locks, { address, timeMs: headTimeMs() });
  const hasSchedule = (address: Address) => locks?.has(address) === true;
  return {
    nonce: (address: Address) => state.account(address)?.nonce ?? 0n,
    balanceAtoken: (address: Address) =>
      hasSchedule(address) ? freeAtoken(address) : wholeAtoken(address),
    lockedAtoken: (address: Address) =>
      hasSchedule(address) ? wholeAtoken(address) - freeAtoken(address) : 0n,
    hasCode: (address: Address) =>
      (state.account(address)?.codeHash ?? EMPTY_CODE_HASH) !== EMPTY_CODE_HASH,
  };
}

/** Always the head: the next block is built on nothing else. */
function headReader({ state }: OpenStores): StateReader {
  return {
    account: (address) => state.account(address),
    storage: (address, slot) => state.storage(address, slot),
    code: (codeHash) => state.code(codeHash),
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
  const { app, genesis, log } = options;
  return Mempool.open({
    state,
    journal: poolStore,
    recovery,
    bus,
    clock: systemClock,
    rules,
    limits: { totalCount: app.mempool["global-slots"] },
    unlocking: [...(genesis.params.locks?.keys() ?? [])],
    locate: (hash) => view.locate(hash) ?? view.locateBySdkHash(hash),
    oldestHeight: () => view.oldest().block,
    haltReason,
    onJournalFault: (error) => {
      log.error({ err: error }, "the mempool's journal cannot be written");
      options.fatal(error);
    },
  });
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
  parts: Chain & Transactions,
  signer: PrivateValidator,
): Promise<Consensus> {
  const { genesis, log, home, config, app } = options;
  const { stores, view, tries, halt } = parts;
  let opened: Consensus | undefined;
  const hasSignedHere = () => opened?.hasSignedHere() ?? false;
  const application = createBlockApplication({
    ...parts,
    ...stores,
    log,
    proposed: createProposedTransactions({
      chainId: genesis.evmChainId,
      cosmosChainId: genesis.cosmosChainId,
      params: genesis.params,
      pool: parts.pool,
      recovery: parts.recovery,
    }),
    executor: {
      chainId: genesis.evmChainId,
      params: genesis.params,
      state: headReader(stores),
      tries,
      blockHash: (height) => stores.blocks.hashOf(height),
      engine: app.execution.engine,
      monotonicMs: () => systemClock.monotonicMs(),
      upgrades: nodeUpgrades({ ...options, hasSignedHere }),
    },
  });
  opened = await Consensus.open({
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
    onHalt: halt.set,
  });
  return opened;
}
