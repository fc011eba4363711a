/**
 * The call workers as the servers see them: a bounded queue before a fixed number of threads.
 * Whatever a client asks, the main thread only passes messages, answers small reads, and executes
 * calls of the head that are smaller than that, and payments that run no code.
 */
import type { Address } from "../../../chain/address.js";
import { type BlockOutline, type BlockTransaction, isEvm } from "../../../chain/block.js";
import { inDataOrder } from "../../../chain/cosmos/cosmos-result.js";
import { errorCode } from "../../../chain/errors.js";
import { type Hash32, type Height, ZERO_HASH } from "../../../chain/hex.js";
import { systemClock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { RareLine } from "../../../runtime/process/rare-line.js";
import { Turns } from "../../../runtime/turns/turns.js";
import type { ChainView } from "../../view/chain-view.js";
import { cosmosOf } from "../../view/cosmos-items.js";
import type { ChainParams } from "../../settings/genesis.js";
import type { AccountRecord } from "../../store/account-record.js";
import { HASHES_BELOW_BASE } from "../../store/blocks/block-store.js";
import type { MaybePromise, StateReader } from "../../store/state-reader.js";
import { CallError } from "./call-error.js";
import { callInPlace, estimateInPlace, type JobResults } from "./call-jobs.js";
import type {
  CallOptions,
  CallRequest,
  CallWorkers,
  JobOptions,
  SimulationRequest,
  TraceKind,
  TransactionTrace,
} from "./call-port.js";
import type {
  TracedTransaction,
  BlockFacts,
  Job,
  JobWork,
  ReadRequest,
  WorkerSettings,
} from "./call-protocol.js";
import { CallQueue, type QueuedJob } from "./call-queue.js";
import { ABANDONED_JOB_MS, AT_WORKERS, CallSlot, RESTART_MS } from "./call-slot.js";
import { unpackTraces } from "./packed-traces.js";

/**
 * Compute units of a call that is executed on the main thread: several times a look at a token's
 * balance, and less than half a millisecond. A worker costs more than that in messages alone.
 */
export const IN_PLACE_NS = 400_000;

/** Jobs that may wait: two full JSON-RPC batches. */
const MAX_QUEUED_JOBS = 2_000;

/** Accounts that are asked of the store at a stretch. */
const READ_AT_ONCE = 64;

/** What the pool is made with. */
export interface CallPoolOptions {
  readonly view: Pick<
    ChainView,
    "head" | "outline" | "pages" | "cosmosTransaction" | "blockHash" | "supply"
  >;
  /** Committed state at a height; throws HISTORY_PRUNED. */
  readonly stateReaderAt: (height: Height) => StateReader;
  readonly chainId: bigint;
  readonly params: Pick<
    ChainParams,
    | "maxTransactionGas"
    | "maxTransactionComputeNs"
    | "computeWeights"
    | "feeCollector"
    | "validatorsPool"
    | "locks"
  >;
  /** Threads. */
  readonly workerCount: number;
  /** Most gas of a call or trace, and its gas where the caller names none. */
  readonly gasCap: bigint;
  /** Longest execution of one job. */
  readonly timeoutMs: number;
  /** Time that the job of a warm worker goes on after its caller left. */
  readonly abandonedMs?: number;
  /** Time until a worker that did not come up is tried again. */
  readonly restartMs?: number;
  readonly log: Logger;
  /** Most jobs that wait. */
  readonly maxQueuedJobs?: number;
  /** Compute units of calls that need no worker; 0: every call is a worker's. */
  readonly inPlaceNs?: number;
  /** Entry of the threads, where it does not lie compiled beside this file. */
  readonly workerUrl?: URL;
}

/** Runs calls, estimates, traces and simulations in worker threads. */
export class CallPool implements CallWorkers {
  private readonly slots: readonly CallSlot[];
  private readonly queue: CallQueue;
  /** Traces whose blocks are in memory: as many as there are workers for. */
  private readonly traces: Turns;
  private readonly maxQueuedJobs: number;
  private readonly inPlaceNs: number;
  private readonly settings: WorkerSettings;
  /** Facts of the newest block that was called on: thousands of calls ask for the same. */
  private newest: BlockFacts | undefined;
  private readonly deaths = new RareLine(systemClock);
  private readonly failedStarts = new RareLine(systemClock);
  private nextId = 1;
  private isClosed = false;

  constructor(private readonly options: CallPoolOptions) {
    const { chainId, params, gasCap, workerCount, timeoutMs } = options;
    const { feeCollector, validatorsPool, locks } = params;
    const { maxTransactionGas, maxTransactionComputeNs, computeWeights } = params;
    const bounds = { gasCap, maxTransactionGas, maxTransactionComputeNs, computeWeights };
    const accounts = { feeCollector, validatorsPool, locks };
    const settings: WorkerSettings = { chainId, ...accounts, ...bounds };
    this.settings = settings;
    this.inPlaceNs = options.inPlaceNs ?? IN_PLACE_NS;
    const workerUrl = options.workerUrl ?? new URL("./call-worker.js", import.meta.url);
    this.maxQueuedJobs = options.maxQueuedJobs ?? MAX_QUEUED_JOBS;
    this.queue = new CallQueue(this.maxQueuedJobs);
    this.traces = new Turns({
      maxRunning: workerCount,
      maxWaiting: this.maxQueuedJobs,
      full: () => this.queueFull(),
    });
    const slotOptions = {
      workerUrl,
      settings,
      timeoutMs,
      abandonedMs: options.abandonedMs ?? ABANDONED_JOB_MS,
      restartMs: options.restartMs ?? RESTART_MS,
      onChange: () => this.dispatch(),
      onCrash: (error: unknown, wasReady: boolean) => this.crashed(error, wasReady),
    };
    this.slots = Array.from({ length: workerCount }, () => new CallSlot(slotOptions));
    // Started now, so that the first caller does not wait for the code to be loaded.
    for (const slot of this.slots) slot.start();
  }

  async call(
    request: CallRequest,
    height: Height,
    options: CallOptions,
  ): Promise<JobResults["call"]> {
    const { overrides, blockOverrides } = options;
    const here = this.mayBeHere(options) && (await this.placeFor(height, options));
    const result = here && callInPlace(request, this.newestFacts(), here, this.inPlaceNs);
    if (result) return result;
    const work = { kind: "call", request, overrides, blockOverrides } as const;
    return this.submit(work, height, options);
  }

  /** Whether messages are run on this thread at all, on a state that nobody has changed. */
  private mayBeHere({ overrides, blockOverrides }: CallOptions): boolean {
    return overrides === undefined && blockOverrides === undefined && this.inPlaceNs > 0;
  }

  /** What they are run with, once it is the client's turn; only at the head, whose state is at hand. */
  private async placeFor(height: Height, { client = "" }: CallOptions) {
    // Without the signal: most are answered here, and one is made for who asks.
    await breathe(undefined, { client, isOwn: true });
    const { view, stateReaderAt } = this.options;
    if (this.isClosed || height !== view.head().height) return undefined;
    return {
      settings: this.settings,
      reader: stateReaderAt(height),
      blockHash: (older: Height) => view.blockHash(older) ?? ZERO_HASH,
    };
  }

  private newestFacts(): BlockFacts {
    const { height } = this.options.view.head();
    if (this.newest?.height !== height) this.newest = this.factsAt(height);
    return this.newest;
  }

  async estimateGas(
    request: CallRequest,
    height: Height,
    options: CallOptions,
  ): Promise<JobResults["estimateGas"]> {
    const { overrides, blockOverrides } = options;
    const here = this.mayBeHere(options) && (await this.placeFor(height, options));
    const estimate = here && estimateInPlace(request, () => this.newestFacts(), here);
    if (estimate) return estimate;
    const work = { kind: "estimateGas", request, overrides, blockOverrides } as const;
    return this.submit(work, height, options);
  }

  createAccessList(
    request: CallRequest,
    height: Height,
    { overrides, ...options }: Omit<CallOptions, "blockOverrides">,
  ): Promise<JobResults["createAccessList"]> {
    return this.submit({ kind: "createAccessList", request, overrides }, height, options);
  }

  traceCall(
    request: CallRequest,
    height: Height,
    trace: TraceKind,
    { overrides, blockOverrides, ...options }: CallOptions,
  ): Promise<JobResults["traceCall"]> {
    const work = { kind: "traceCall", request, trace, overrides, blockOverrides } as const;
    return this.submit(work, height, options);
  }

  simulate(
    request: SimulationRequest,
    height: Height,
    options: JobOptions,
  ): Promise<JobResults["simulate"]> {
    return this.submit({ kind: "simulate", request }, height, options);
  }

  async traceBlock(
    height: Height,
    index: number | undefined,
    trace: TraceKind,
    options: JobOptions,
  ): Promise<readonly TransactionTrace[]> {
    const { signal, client } = options;
    if (this.outlineAt(height).transactionCount === 0) return [];
    const traced = async () => {
      if (this.isClosed) throw closed();
      const transactions = await this.tracedTransactions(height, index, signal);
      const work = { kind: "traceBlock", transactions, index, trace } as const;
      return unpackTraces(await this.submit(work, height, options));
    };
    return this.traces.run(signal, traced, client);
  }

  /** From the block's first up to the last that is wanted. */
  private async tracedTransactions(
    height: Height,
    index: number | undefined,
    signal: AbortSignal,
  ): Promise<readonly TracedTransaction[]> {
    const { transactionCount } = this.outlineAt(height);
    const count = index === undefined ? transactionCount : index + 1;
    const transactions: BlockTransaction[] = [];
    for (const page of this.options.view.pages(height)) {
      if (page.first >= count) break;
      transactions.push(...page.transactions());
      await breathe(signal);
    }
    const cosmos = [];
    for await (const { tx, from, index: place } of cosmosOf(this.options.view, height, signal)) {
      cosmos.push({ tx, from, index: place });
    }
    const ordered: TracedTransaction[] = inDataOrder(transactions.slice(0, count), cosmos);
    // Those behind the last traced one do not matter to it.
    return ordered.slice(0, ordered.findLastIndex(isEvm) + 1);
  }

  /** Ends all threads; jobs that run or wait are rejected with CALL_POOL_CLOSED. */
  async close(): Promise<void> {
    this.isClosed = true;
    const error = closed();
    for (const { reject } of this.queue.clear()) reject(error);
    await Promise.all(this.slots.map((slot) => slot.stop(error)));
  }

  private queueFull(): CallError {
    return new CallError("CALL_QUEUE_FULL", "too many calls are waiting", {
      details: { maxQueuedJobs: this.maxQueuedJobs },
      retriable: true,
    });
  }

  private outlineAt(height: Height): BlockOutline {
    const outline = this.options.view.outline(height);
    if (outline !== undefined) return outline;
    throw new CallError("HEADER_NOT_FOUND", "header not found", { details: { height } });
  }

  /** Queues a job; traces of blocks start from the parent's state, all others from the block's. */
  private async submit<Kind extends JobWork["kind"]>(
    work: Extract<JobWork, { kind: Kind }>,
    height: Height,
    { signal, client }: JobOptions,
  ): Promise<JobResults[Kind]> {
    signal.throwIfAborted();
    if (this.isClosed) throw closed();
    const stateHeight = work.kind === "traceBlock" ? height - 1 : height;
    const block = this.factsAt(height, stateHeight);
    const job = { id: this.nextId++, block, work };
    const result = await this.enqueue(job, stateHeight, { signal, client });
    // The worker's answer to a job is of the job's kind: `runJob` and this line are one codec.
    return result as JobResults[Kind];
  }

  /** Facts of a block for code that starts from the state of another, or of the same. */
  private factsAt(height: Height, stateHeight: Height = height): BlockFacts {
    const { header, hash, timeMs } = this.outlineAt(height);
    const { timestampSeconds, coinbase, gasLimit, mixHash } = header;
    const { feeCollector, validatorsPool } = this.options.params;
    const totalSupplyAtoken = this.options.view.supply(stateHeight)?.totalAtoken;
    const native = { timeMs, totalSupplyAtoken, feeCollector, validatorsPool };
    return { height, hash, timestampSeconds, coinbase, gasLimit, mixHash, native };
  }

  private enqueue(
    job: Job,
    stateHeight: Height,
    { signal, client = "" }: JobOptions,
  ): Promise<unknown> {
    const answer = this.answererAt(stateHeight, job.block.height);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.queue.remove(queued);
        reject(signal.reason);
      };
      const settled = () => signal.removeEventListener("abort", onAbort);
      const queued: QueuedJob = {
        job,
        client,
        signal,
        answer,
        resolve: (result) => {
          settled();
          resolve(result);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.queue.add(queued)?.reject(this.queueFull());
      this.dispatch();
    });
  }

  private dispatch(): void {
    if (this.isClosed) return;
    for (const slot of this.slots) {
      if (this.queue.isEmpty) return;
      if (!slot.isStarted()) slot.start();
      if (!slot.isIdle()) continue;
      const next = this.queue.next();
      if (next !== undefined) slot.run(next);
    }
  }

  /** Where no worker comes up, the jobs that wait for one are told; those of others wait for these. */
  private crashed(error: unknown, wasReady: boolean): void {
    const { log } = this.options;
    const line = wasReady ? this.deaths : this.failedStarts;
    line.happened((times) => log.error({ err: error, wasReady, times }, "a call worker died"));
    if (wasReady || this.slots.some((slot) => slot.isStarted())) return;
    const cause = new CallError("CALL_WORKER_FAILED", "the call worker does not start", {
      cause: error,
    });
    for (const { reject } of this.queue.clear()) reject(cause);
  }

  /** Answers a block's reads at the height; one whose state is gone is refused before it is queued. */
  private answererAt(
    height: Height,
    blockHeight: Height,
  ): (request: ReadRequest) => MaybePromise<unknown> {
    const { view, stateReaderAt } = this.options;
    const reader = stateReaderAt(height);
    return (request) =>
      request.kind === "blockHash"
        ? hashSeenFrom(blockHeight, request.height, view)
        : answerRead(request, reader);
  }
}

function closed(): CallError {
  return new CallError("CALL_POOL_CLOSED", "the node is stopping");
}

/**
 * The hash of a height for code that starts from a block. Only a client's number for it reaches further back
 * than its own does: there a hash that is not kept any more is zero, as in geth.
 * @throws HISTORY_PRUNED where it is the block itself that is gone by now
 */
function hashSeenFrom(
  blockHeight: Height,
  height: Height,
  view: Pick<ChainView, "blockHash">,
): Hash32 {
  try {
    return view.blockHash(height) ?? ZERO_HASH;
  } catch (error) {
    const isOwn = height >= blockHeight - HASHES_BELOW_BASE;
    if (isOwn || errorCode(error) !== "HISTORY_PRUNED") throw error;
    return ZERO_HASH;
  }
}

function answerRead(
  request: Exclude<ReadRequest, { kind: "blockHash" }>,
  reader: StateReader,
): MaybePromise<unknown> {
  if (request.kind === "account") return reader.account(request.address);
  if (request.kind === "storage") return reader.storage(request.address, request.slot);
  if (request.kind === "code") return reader.code(request.codeHash);
  return accountsOf(request.addresses, reader);
}

/** Many accounts, read with turns in between. */
async function accountsOf(
  addresses: readonly Address[],
  reader: StateReader,
): Promise<(AccountRecord | undefined)[]> {
  const found: (AccountRecord | undefined)[] = [];
  for (let at = 0; at < addresses.length; at += READ_AT_ONCE) {
    const some = addresses.slice(at, at + READ_AT_ONCE);
    found.push(...(await Promise.all(some.map(async (address) => reader.account(address)))));
    await breathe(undefined, AT_WORKERS);
  }
  return found;
}
