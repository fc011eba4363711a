/**
 * Metrics of the node; names and the label `chain_id` as CometBFT has them where it has them, ours begin with
 * causeway_.
 */
import { transactionCountOf } from "../../chain/abci-event.js";
import type { Block } from "../../chain/block.js";
import { secp256k1 } from "../../chain/crypto.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import type { ChainView } from "../view/chain-view.js";
import { type ConsensusReports, registerConsensusMetrics } from "./consensus-metrics.js";
import type { ConsensusView } from "../consensus/consensus-ports.js";
import type { EventBus } from "../view/event-bus.js";
import type { Mempool } from "../mempool/mempool.js";
import type { PoolErrorCode } from "../mempool/pool-port.js";
import type { NetworkView } from "../p2p/network-port.js";

/** What the metrics are read from. */
export interface NodeMetricSources {
  readonly chainId: string;
  readonly view: ChainView;
  readonly pool: Mempool;
  readonly bus: EventBus;
  readonly consensus: ConsensusView & ConsensusReports;
  readonly network: NetworkView;
  /** Whether the node has no chain yet and restores one. */
  readonly isStateSyncing: boolean;
  readonly haltReason: () => string | undefined;
  readonly trieCacheBytes: () => number;
}

const TOKEN_IN_ATOKEN = 1e18;

/** Refusals that say nothing about the transaction. */
const RESOURCE_REFUSALS: ReadonlySet<PoolErrorCode> = new Set([
  "POOL_FULL",
  "UNDERPRICED",
  "ACCOUNT_LIMIT",
  "NODE_HALTED",
]);

/** Adds a gauge that is read when the page is asked for; CometBFT's have its label. */
type ReadGauge = (name: string, help: string, value: () => number) => void;

/** Registers the node's metrics; gauges are read when the page is asked for. */
export function registerNodeMetrics(metrics: Metrics, sources: NodeMetricSources): void {
  const comet = metrics.labelled({ chain_id: sources.chainId });
  const read: ReadGauge = (name, help, value) => {
    const place = name.startsWith("cometbft_") ? comet : metrics;
    place.gauge(name, help, [], (gauge) => gauge.set(value()));
  };
  readConsensus(read, sources);
  readNetwork(read, sources);
  readPoolSize(read, sources);
  readState(read, sources);
  metrics
    .gauge("causeway_secp256k1_backend", "Signature recovery in use.", ["backend"])
    .set({ backend: secp256k1.backend }, 1);
  readRefusals(read, sources);
  registerBlockMetrics({ comet, own: metrics }, sources);
  registerConsensusMetrics(comet, sources.consensus);
}

function readConsensus(read: ReadGauge, { view, consensus }: NodeMetricSources): void {
  const validators = () => consensus.validators(consensus.height() + 1);
  read("cometbft_consensus_height", "Height of the last block.", () => view.head().height);
  read("cometbft_consensus_latest_block_height", "Same.", () => view.head().height);
  read("cometbft_consensus_validators", "Validators in the set.", () => validators()?.size ?? 0);
  read("cometbft_consensus_validators_power", "Their power together.", () =>
    Number(validators()?.totalPower ?? 0n),
  );
  read("cometbft_consensus_rounds", "Round of the height in progress.", () => {
    return consensus.progress().round;
  });
}

function readNetwork(read: ReadGauge, { network, isStateSyncing }: NodeMetricSources): void {
  read("cometbft_p2p_peers", "Connected peers.", () => network.stats().peers);
  read(
    "causeway_network_height",
    "Height that half of the peers say they have; 0: none says.",
    () => network.networkHeight(),
  );
  read("causeway_p2p_received_bytes", "Bytes from peers since the start.", () => {
    return network.stats().receivedBytes;
  });
  read("causeway_p2p_sent_bytes", "Bytes to peers since the start.", () => {
    return network.stats().sentBytes;
  });
  read("causeway_p2p_peers_seconds", "Time of the main thread that peers cost.", () => {
    return network.stats().peersMs / 1_000;
  });
  read("cometbft_blocksync_syncing", "1 while block sync runs.", () =>
    network.isCatchingUp() && !isStateSyncing ? 1 : 0,
  );
  read("cometbft_statesync_syncing", "1 while state sync runs.", () => (isStateSyncing ? 1 : 0));
}

function readPoolSize(read: ReadGauge, { pool }: NodeMetricSources): void {
  read("cometbft_mempool_size", "Transactions in the pool.", () => {
    const { pending, queued } = pool.counts();
    return pending + queued;
  });
  read("cometbft_mempool_size_bytes", "Raw bytes in the pool.", () => pool.stats().sizeBytes);
  read("causeway_mempool_queued", "Transactions that wait for a lower nonce.", () => {
    return pool.counts().queued;
  });
}

/** Whether the node goes on, how far back it reaches, and what there is. */
function readState(read: ReadGauge, { view, haltReason, trieCacheBytes }: NodeMetricSources): void {
  read(
    "causeway_halted",
    "1 when no blocks are made until a person has looked; the log says why: a planned upgrade, " +
      "a decided block that was refused, a state sync that failed, a broken invariant.",
    () => (haltReason() === undefined ? 0 : 1),
  );
  read("causeway_oldest_block_height", "Oldest block that was not pruned.", () => {
    return view.oldest().block;
  });
  read("causeway_oldest_state_height", "Oldest height with balances and storage.", () => {
    return view.oldest().state;
  });
  read("causeway_trie_cache_bytes", "Memory held by trie nodes.", trieCacheBytes);
  read("causeway_supply_tokens", "Total supply in TOKEN, rounded.", () => {
    const supply = view.supply(view.head().height);
    return Number(supply?.totalAtoken ?? 0n) / TOKEN_IN_ATOKEN;
  });
}

/** Transactions that did not come into the pool, or had to leave it. */
function readRefusals(read: ReadGauge, { pool }: NodeMetricSources): void {
  read("cometbft_mempool_failed_txs", "Transactions refused because they are not valid.", () =>
    refusedCount(pool, (code) => !RESOURCE_REFUSALS.has(code) && code !== "ALREADY_KNOWN"),
  );
  read(
    "cometbft_mempool_evicted_txs",
    "Transactions that made room in a full pool for what pays more.",
    () => pool.stats().evictedTotal,
  );
  read("cometbft_mempool_rejected_txs", "Transactions refused because there was no room.", () =>
    refusedCount(pool, (code) => RESOURCE_REFUSALS.has(code)),
  );
}

function refusedCount(pool: Mempool, isCounted: (code: PoolErrorCode) => boolean): number {
  const counted = [...pool.stats().refusedTotal].filter(([code]) => isCounted(code));
  return counted.reduce((sum, [, count]) => sum + count, 0);
}

/** Where metrics of blocks go: with the label that CometBFT's have, and without. */
interface BlockMetricPlaces {
  readonly comet: Metrics;
  readonly own: Metrics;
}

function registerBlockMetrics({ comet, own }: BlockMetricPlaces, { bus }: NodeMetricSources): void {
  const count = comet.gauge("cometbft_consensus_num_txs", "Transactions in the last block.");
  const total = comet.counter("cometbft_consensus_total_txs", "Transactions since the start.");
  const gas = own.counter("causeway_gas_used_total", "Gas used since the start.");
  const interval = comet.histogram(
    "cometbft_consensus_block_interval_seconds",
    "Time between this block and the last.",
    [],
    [0.1, 0.2, 0.5, 1, 1.8, 1.9, 2, 2.1, 2.2, 3, 5, 10],
  );
  let lastTimeMs: number | undefined;
  bus.on("block", ({ block }) => {
    const transactions = transactionCountOf({ block });
    count.set(transactions);
    total.inc(transactions);
    gas.inc(Number(gasUsedOf(block)));
    if (lastTimeMs !== undefined) interval.observe((block.timeMs - lastTimeMs) / 1000);
    lastTimeMs = block.timeMs;
  });
}

/** Gas of both kinds of transactions; the header tells of the EVM's alone. */
function gasUsedOf({ header, cosmos = [] }: Block): bigint {
  return cosmos.reduce((sum, { result }) => sum + result.gasUsed, header.gasUsed);
}
