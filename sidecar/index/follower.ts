/**
 * Keeps the index at the node's head: one loop that looks when it is woken or a little later,
 * and tells those who wait for a block. A node that contradicts the index halts it with a reason;
 * nothing is ever overwritten.
 */
import { errorMessage } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Network } from "../../chain/networks.js";
import type { EvmClient, NodeBlockHeader } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { isMethodMissing, isPruned, WHOLE_NODE } from "../../rpc-client/errors.js";
import type { Clock } from "../../runtime/process/clock.js";
import { LevelStoreError } from "../../runtime/files/level-store.js";
import type { Logger } from "../../runtime/process/logger.js";
import { createWakeup, sleep } from "../../runtime/process/task.js";
import {
  severityOf,
  SidecarError,
  type SidecarErrorCode,
  toSidecarError,
} from "../rosetta/errors.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import { HeadTicker, LIGHT_READ_TIMEOUT_MS } from "./head-ticker.js";
import { IndexError, type IndexErrorCode, type IndexStore } from "./index-store.js";
import type { Indexer } from "./indexer.js";
import { oldestOf } from "./missing-block.js";
import { contractsToIndexAnew, registryText, registryWrite } from "./tokens/registry-change.js";
import type { TokenLedger } from "./tokens/token-ledger.js";
import { Waiters } from "./waiters.js";

/** What following works with. */
export interface FollowerOptions {
  /** The network that is served: of a node with another chain id nothing is indexed. */
  readonly network: Network;
  readonly store: IndexStore;
  readonly ledger: TokenLedger;
  readonly indexer: Pick<Indexer, "indexTo">;
  readonly client: EvmClient;
  readonly registry: TokenRegistry;
  readonly log: Logger;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** A request waits at most so long for a block that the node has and the index not yet. */
  readonly maxWaitMs?: number;
}

/** Between two looks when nobody wakes it: well below the block interval of 2 seconds. */
const LOOK_INTERVAL_MS = 400;

/** After a fault: at least this long, so that requests cannot make it ask in a tight loop. */
const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 4_000;

/** Usual `maxWaitMs`: one block interval. */
const MAX_WAIT_MS = 2_000;

/** With more blocks missing than this nobody waits: it takes longer than a request may. */
const MAX_BLOCKS_TO_WAIT_FOR = 256;

/** Blocks indexed at a stretch before the node's head is looked at again and progress is told. */
const STRETCH_BLOCKS = 5_000;

/** Of what the node says nothing is of the chain that is indexed. */
const OTHER_CHAIN: ReadonlySet<IndexErrorCode> = new Set([
  "INDEX_WRONG_NETWORK",
  "INDEX_FOREIGN",
  "INDEX_CONTRADICTED",
]);

/** What a halt is told as, where it is not that the node cannot be believed. */
const TOLD_AS: Partial<Record<IndexErrorCode, SidecarErrorCode>> = {
  INDEX_WRONG_NETWORK: "NODE_WRONG_CHAIN",
  INDEX_NODE_PRUNED: "BLOCK_PRUNED",
};

/** The loop, and what requests ask of it. */
export class IndexFollower {
  private readonly wakeup = createWakeup();
  private readonly waiters: Waiters;
  private readonly ticker: HeadTicker;
  private readonly rpc: RpcOptions;
  private nodeHeight: Height | undefined;
  private toldVersion: string | undefined;
  private isServing = false;
  private isNodeKnown = false;
  /** Since the node last failed to answer it was compared with the index. */
  private isMet = false;
  private haltReason: string | undefined;
  private isWrongNetwork = false;
  private isOtherChain = false;
  private faults = 0;
  /** Codes of the faults that the log has since all was well. */
  private readonly toldCodes = new Set<string>();
  private lastFault: string | undefined;

  constructor(private readonly options: FollowerOptions) {
    this.rpc = { signal: options.signal };
    this.ticker = new HeadTicker(options.client, this.rpc);
    this.waiters = new Waiters(options.maxWaitMs ?? MAX_WAIT_MS);
  }

  /**
   * Opens the index and, where it is of this registry, serves it before the node was asked.
   * @throws INDEX_LOCKED, INDEX_UNUSABLE, INDEX_CORRUPT, INDEX_NEWER
   */
  async open(): Promise<void> {
    const { store, ledger, registry } = this.options;
    await store.open();
    if (store.outdated() !== undefined) return;
    await ledger.load();
    if (store.tip() === undefined) await store.commit([registryWrite(registry)]);
    this.isServing = store.meta("registry") === registryText(registry);
    this.waiters.check();
  }

  /** Follows until the signal fires; the index stays open, for the requests that are still answered. */
  async run(): Promise<void> {
    const { signal } = this.options;
    while (!signal.aborted) {
      try {
        await this.look();
        this.faults = 0;
        this.toldCodes.clear();
        this.lastFault = undefined;
        this.haltReason = undefined;
        this.isWrongNetwork = false;
        this.isOtherChain = false;
        await this.wakeup.wait({ signal, timeoutMs: LOOK_INTERVAL_MS });
      } catch (error) {
        if (signal.aborted) break;
        await this.afterFault(error);
      }
    }
    this.waiters.rejectAll(new SidecarError("INDEX_BEHIND", { reason: "stopping" }));
  }

  /** Looks at once; a hint, for example a new head that was announced. */
  wake(): void {
    this.wakeup.wake();
  }

  /** Why the index stands still until somebody acts; undefined while it does not. */
  halted(): string | undefined {
    return this.haltReason;
  }

  /** What went wrong when the index was last to go on; undefined when nothing did. */
  fault(): string | undefined {
    return this.lastFault;
  }

  /** The newest height of the node that was seen. */
  nodeHead(): Height | undefined {
    return this.nodeHeight;
  }

  /** The release that the node said it is of when it was last met; undefined where it did not. */
  nodeVersion(): string | undefined {
    return this.toldVersion;
  }

  /**
   * The newest height of a node that was compared with the index, asked now: behind an outage, or
   * before this process met it, another one may be there. Throws what the client throws.
   * @throws INDEX_BEHIND, NODE_FAULT
   */
  async freshHead(): Promise<Height> {
    const head = await this.ticker.get();
    if (!this.isMet) {
      this.assertNotHalted();
      this.wake();
      await this.waiters.wait(() => this.isMet, { state: "comparing with the node" });
    }
    return head;
  }

  /** Whether the index may be read: not while it is of another chain, or of another list of tokens. */
  serves(): boolean {
    return this.isServing;
  }

  /** Returns when the index may be read. @throws INDEX_BEHIND, or why it cannot be */
  async whenServing(): Promise<void> {
    if (this.isServing) return;
    this.assertNotHalted();
    this.wake();
    await this.waiters.wait(() => this.isServing, { state: "comparing with the node" });
  }

  /**
   * Returns when the block of a height is indexed, for a height that the node has.
   * @throws INDEX_BEHIND when that takes too long, or the fault that is in the way
   */
  async whenIndexed(height: Height): Promise<void> {
    await this.whenServing();
    if (this.tipHeight() >= height) return;
    this.assertNotHalted();
    const progress = { index_tip: this.tipHeight(), wanted: height };
    if (height - this.tipHeight() > MAX_BLOCKS_TO_WAIT_FOR) {
      throw new SidecarError("INDEX_BEHIND", progress);
    }
    this.wake();
    await this.waiters.wait(() => this.tipHeight() >= height, progress);
  }

  /** @throws NODE_WRONG_CHAIN, and NODE_FAULT while index and node contradict each other */
  assertNotHalted(): void {
    if (this.haltReason === undefined) return;
    const code = this.isWrongNetwork ? "NODE_WRONG_CHAIN" : "NODE_FAULT";
    throw new SidecarError(code, { reason: this.haltReason });
  }

  /**
   * For what is asked of the node under no block's hash: nonces, its pool, receipts.
   * @throws NODE_WRONG_CHAIN or NODE_FAULT while the node is known to be of another chain than the
   *   network or the index, NODE_SYNCING where it lacks blocks that are indexed
   */
  async assertCurrent(): Promise<void> {
    if (this.isOtherChain) this.assertNotHalted();
    const tip = this.tipHeight();
    const head = await this.freshHead();
    if (head < tip) throw new SidecarError("NODE_SYNCING", { node: head, index_tip: tip });
  }

  /** One round: what is the node's head, and everything up to it. */
  private async look(): Promise<void> {
    const { client, indexer, store } = this.options;
    const damage = store.damage();
    if (damage !== undefined) throw damage;
    if (!this.isNodeKnown) await this.meetNode().catch((error) => this.rethrow(error));
    for (;;) {
      const head = await client.getBlockHeader("latest", this.rpc);
      if (head === undefined) throw new SidecarError("NODE_FAULT", { reason: "no latest block" });
      this.nodeHeight = head.height;
      if (head.height <= this.tipHeight()) {
        this.assertSame(head);
        return;
      }
      const startedMs = this.options.clock.monotonicMs();
      const before = this.tipHeight();
      const target = await this.stretchOf(head).catch((error) => this.rethrow(error));
      await indexer.indexTo(target, this.rpc).catch((error) => this.rethrow(error));
      this.tellProgress(before, head.height, startedMs);
      if (target === head) return;
    }
  }

  /**
   * @throws INDEX_NODE_PRUNED for what the node has deleted, INDEX_NODE_UNFIT for what it was never
   *   able to tell, else what was caught
   */
  private rethrow(error: unknown): never {
    if (isMethodMissing(error)) {
      throw new IndexError(
        "INDEX_NODE_UNFIT",
        `the node behind node.url has no ${error.rpc.method}: operations are made from the journal ` +
          "of balances that a Causeway node keeps; connect one",
        { cause: error },
      );
    }
    // The state before a block tells what it did to claims: without it there is a journal, and no block.
    const isStateGone = error instanceof SidecarError && error.code === "BLOCK_PRUNED";
    if (!isStateGone && !isPruned(error)) throw error;
    // Every node has block 0.
    const next = Math.max(1, this.tipHeight() + 1);
    throw new IndexError(
      "INDEX_NODE_PRUNED",
      `block ${next} is the next that the index in ${this.options.store.folder} needs, and the ` +
        `node has deleted it or its state: connect ${WHOLE_NODE}, or stop this process and take ` +
        "the data folder of a sidecar that is further on",
      { details: { height: next }, cause: error },
    );
  }

  /** The head, or a block on the way to a far one. */
  private async stretchOf(head: NodeBlockHeader): Promise<NodeBlockHeader> {
    const last = this.tipHeight() + STRETCH_BLOCKS;
    if (head.height <= last) return head;
    const header = await this.options.client.getBlockHeader(last, this.rpc);
    if (header?.height === last) return header;
    throw new SidecarError("NODE_FAULT", { reason: "no block below its newest", index: last });
  }

  /** First contact, and again after each fault: is it the chain and the state that are indexed? */
  private async meetNode(): Promise<void> {
    const { client, store } = this.options;
    await this.assertNetwork();
    const [genesis, version] = await Promise.all([client.genesisHash(this.rpc), this.askVersion()]);
    const ours = store.meta("genesisHash");
    if (ours !== undefined && ours !== genesis) {
      this.isServing = false;
      throw new IndexError(
        "INDEX_FOREIGN",
        `the index in ${store.folder} belongs to another chain (genesis ${ours}, the node's is ` +
          `${genesis}): connect the node of that chain, or stop this process and delete the folder`,
      );
    }
    const tip = store.tip();
    if (tip !== undefined) {
      // Where the node has deleted it, the next block's parent hash tells as much.
      const header = await client.getBlockHeader(tip.index, this.rpc).catch((error) => {
        if (!isPruned(error)) throw error;
        return undefined;
      });
      if (header !== undefined) this.assertSame(header);
    }
    await this.replaceOutdated();
    await this.meetRegistry();
    this.toldVersion = version;
    this.isNodeKnown = true;
    this.isMet = true;
    this.waiters.check();
  }

  /** Undefined where the node does not say: it is followed all the same. */
  private async askVersion(): Promise<string | undefined> {
    const { client, log } = this.options;
    try {
      return await client.nodeVersion({ ...this.rpc, timeoutMs: LIGHT_READ_TIMEOUT_MS });
    } catch (error) {
      log.debug({ reason: errorMessage(error) }, "the node does not tell its release");
      return undefined;
    }
  }

  /** Also an index that is empty takes nothing of another chain. @throws INDEX_WRONG_NETWORK */
  private async assertNetwork(): Promise<void> {
    const { client, network } = this.options;
    const chainId = await client.chainId(this.rpc);
    if (chainId === network.evmChainId) return;
    this.isServing = false;
    throw new IndexError(
      "INDEX_WRONG_NETWORK",
      `the node behind node.url serves chain ${chainId}, and the network ${network.name} of ` +
        `sidecar.toml is ${network.evmChainId}: connect a node of that network, or name the node's`,
    );
  }

  /**
   * Begins anew an index that an older program made.
   * @throws INDEX_NODE_PRUNED where the node has not what it would be made of: it would be thrown away for
   *   none, and the older program can still serve it
   */
  private async replaceOutdated(): Promise<void> {
    const { store, client, log } = this.options;
    const format = store.outdated();
    if (format === undefined) return;
    // Block 0 is there always; the next one has to be, with the state before it.
    if ((await oldestOf(client, this.rpc)) > 1) {
      throw new IndexError(
        "INDEX_NODE_PRUNED",
        `the index in ${store.folder} has format ${format} of an older program, and the node has deleted ` +
          "blocks or states of which it would be made anew; nothing of it was changed: connect " +
          `${WHOLE_NODE}, or start the older program`,
        { details: { format } },
      );
    }
    log.info({ format }, "the index is of an older program: it is built anew");
    await store.startOver();
  }

  /** Keeps the index for another registry, or begins it anew where it would be wrong. */
  private async meetRegistry(): Promise<void> {
    const { store, ledger, registry, client, log } = this.options;
    const before = store.meta("registry");
    const tip = store.tip()?.index ?? -1;
    if (before !== registryText(registry)) {
      const change = { before: before ?? "[]", now: registry, tip, folder: store.folder };
      const contracts = tip < 0 ? [] : await contractsToIndexAnew(client, change, this.rpc);
      if (contracts.length > 0) {
        log.info({ contracts, tip }, "the token registry changed: the index is built anew");
        await store.startOver();
      }
      await store.commit([registryWrite(registry)]);
      await ledger.load();
    }
    this.isServing = true;
    this.waiters.check();
  }

  /** @throws INDEX_CONTRADICTED when a height that is indexed has another hash now */
  private assertSame({ height, hash }: NodeBlockHeader): void {
    const { store } = this.options;
    const ours = store.hashAt(height);
    if (ours === hash) return;
    throw new IndexError(
      "INDEX_CONTRADICTED",
      `block ${height} is ${hash} at the node and ${ours} in the index in ${store.folder}: ` +
        "blocks are final, so one of the two is not of this chain; connect the right node, or " +
        "stop this process and delete the folder",
    );
  }

  /** Blocks were written: whoever waits for them goes on. */
  onIndexed(): void {
    this.waiters.check();
  }

  /** Tells the fault, rejects those who wait, and pauses: longer each time, or until woken. */
  private async afterFault(error: unknown): Promise<void> {
    const { signal, store, ledger, log } = this.options;
    const isWrite = error instanceof LevelStoreError;
    const told = this.toTold(error);
    this.logFault(error, told);
    this.lastFault = isWrite ? told.message : faultText(error);
    this.waiters.rejectAll(told);
    // A look at what halts the index ends before the head: how far it stays behind is told all the same.
    if (error instanceof IndexError) await this.noteHead();
    this.isNodeKnown = false;
    // A full disk says nothing about the node, and what halts the index says all of it.
    if (!isWrite && !(error instanceof IndexError)) this.isMet = false;
    this.faults += 1;
    const pauseMs = Math.min(MIN_PAUSE_MS * 2 ** Math.min(this.faults, 10), MAX_PAUSE_MS);
    try {
      await sleep(MIN_PAUSE_MS, { signal });
      await this.wakeup.wait({ signal, timeoutMs: pauseMs });
      if (isWrite || !store.isOpen()) {
        await store.recover();
        if (store.outdated() === undefined) await ledger.load();
      }
    } catch (next) {
      log.debug({ reason: errorMessage(next) }, "the index cannot be written yet");
    }
  }

  /** Takes the node's head for what is told of it; a node that does not answer leaves what was seen. */
  private async noteHead(): Promise<void> {
    const { log } = this.options;
    try {
      this.nodeHeight = await this.ticker.get();
    } catch (error) {
      log.debug({ reason: errorMessage(error) }, "the node does not tell its head");
    }
  }

  /**
   * Logs the first fault, and behind it each other kind, once, that somebody has to act on: a node that is
   * away for a moment may come back as another one.
   */
  private logFault(error: unknown, told: SidecarError): void {
    const { store, log } = this.options;
    const code = error instanceof IndexError ? error.code : told.code;
    // What does not pass by itself is for people, however the node has worded it.
    const isForPeople =
      error instanceof IndexError || severityOf(told) === "error" || !told.retriable;
    if (this.toldCodes.has(code) || (this.toldCodes.size > 0 && !isForPeople)) return;
    this.toldCodes.add(code);
    if (error instanceof LevelStoreError) {
      log.error(
        { folder: store.folder, reason: errorMessage(error) },
        "the index cannot be written: what is indexed is served, the rest waits for disk space",
      );
      return;
    }
    const fields = { reason: faultText(error), code };
    log[isForPeople ? "error" : "warn"](fields, "the index does not go on");
  }

  /** The fault as requests are told it. */
  private toTold(error: unknown): SidecarError {
    if (error instanceof LevelStoreError) return new SidecarError("INDEX_WRITE_FAILED", {}, error);
    if (!(error instanceof IndexError)) return toSidecarError(error);
    this.haltReason = error.message;
    this.isWrongNetwork = error.code === "INDEX_WRONG_NETWORK";
    this.isOtherChain = OTHER_CHAIN.has(error.code);
    return new SidecarError(TOLD_AS[error.code] ?? "NODE_FAULT", { reason: error.message }, error);
  }

  private tellProgress(before: Height, head: Height, startedMs: number): void {
    const tip = this.tipHeight();
    if (tip - before < MAX_BLOCKS_TO_WAIT_FOR) return;
    const seconds = (this.options.clock.monotonicMs() - startedMs) / 1_000;
    const blocksPerSecond = Math.round((tip - before) / Math.max(seconds, 0.001));
    this.options.log.info({ tip, head, blocksPerSecond }, "indexing");
  }

  private tipHeight(): Height {
    return this.options.store.tip()?.index ?? -1;
  }
}

/** The messages of Rosetta's table are fixed: what happened lies in the details. */
function faultText(error: unknown): string {
  const reason = error instanceof SidecarError ? error.details["reason"] : undefined;
  return typeof reason === "string" ? reason : errorMessage(error);
}
