/**
 * BullMQ for wake-ups alone: a job only makes a lane look at its tables at once. It holds no truth, so
 * a queue that is down, flushed or restored costs latency and nothing else. With REDIS_URL it lives
 * in Redis, else in the ledger's own PostgreSQL server.
 */
import { createPostgresBackend, Queue, withBackend, Worker } from "bullmq";
import { Redis } from "ioredis";
import { errorMessage } from "../chain/errors.js";
import { systemClock } from "../runtime/process/clock.js";
import type { Service } from "../runtime/process/lifecycle.js";
import type { Logger } from "../runtime/process/logger.js";
import { RareLine } from "../runtime/process/rare-line.js";
import { limitedSignal, sleep, TaskGroup, withTimeout } from "../runtime/process/task.js";
import { surviveLostConnections } from "../runtime/sql/lost-connections.js";

/** A signal to look at the tables, which reaches every worker process. */
export interface WakeQueue extends Service {
  /** Wakes all lanes; returns at once and never throws. Calls close together count as one. */
  wake(): void;
  /** True while wake-ups can be sent, as far as the last one tells; for metrics. */
  isOpen(): boolean;
}

/** What `createWakeQueue` needs. */
export interface WakeQueueOptions {
  /** PostgreSQL URL for the default backend; never logged. */
  readonly databaseUrl: string;
  /** Redis URL; undefined keeps the queue in PostgreSQL. */
  readonly redisUrl: string | undefined;
  /** Called for each wake-up from any process. */
  readonly onWake: () => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Name of the queue; tests use one of their own. */
  readonly name?: string;
}

/** Name of the queue in PostgreSQL and Redis. */
export const QUEUE_NAME = "withdrawal-wake";

/** Key prefix in Redis; the braces keep all keys in one slot of a cluster. */
export const REDIS_PREFIX = "{causeway}";

/** Time for a queue to connect before it is built anew. */
const OPEN_TIMEOUT_MS = 10_000;

/** Wait between two tries to connect. */
const REOPEN_DELAY_MS = 1_000;

/** Time for a queue to close; a server that is gone must not hold up the stop. */
const CLOSE_TIMEOUT_MS = 2_000;

/**
 * Time between two wake-ups: each is a job with commits of its own, and those asked for meanwhile are
 * one. A process wakes its own lanes by itself.
 */
const WAKEUP_PAUSE_MS = 200;

/** Time for Redis to take a wake-up before the connection is made anew. */
const WAKEUP_TIMEOUT_MS = 5_000;

/** Pool of the PostgreSQL backend: one connection for wake-ups, one for the worker's own calls. */
const POSTGRES_POOL_SIZE = 2;

/** Connects in the background and goes on trying until it is stopped. */
export function createWakeQueue(options: WakeQueueOptions): WakeQueue {
  let opened: OpenQueue | undefined;
  let isMute = false;
  let isWaking = false;
  let isWokenAgain = false;
  const unopened = new RareLine(systemClock);
  const tasks = new TaskGroup({
    signal: options.signal,
    onFault: (_name, error) => options.log.warn({ reason: errorMessage(error) }, "queue ended"),
  });
  tasks.run("open the queue", async (signal) => {
    for (;;) {
      const queue = await openUntilDone(options, unopened, signal);
      opened = queue;
      await queue.untilBroken(signal);
      opened = undefined;
      await queue.close();
      options.log.warn(
        {},
        "the queue failed without a pause: it is opened anew; scanning meanwhile",
      );
      await sleep(REOPEN_DELAY_MS, { signal });
    }
  });

  const wakeOthers = async (): Promise<void> => {
    isWaking = true;
    do {
      isWokenAgain = false;
      try {
        await opened?.wakeOthers();
        if (isMute && opened !== undefined) {
          options.log.info({}, "wake-ups are sent again");
          isMute = false;
        }
      } catch (error) {
        const reason = errorMessage(error);
        if (!isMute && !options.signal.aborted)
          options.log.warn({ reason }, "no wake-up can be sent; scanning only");
        isMute = true;
      }
      // A stop ends the pause; who wakes then reaches nobody.
      await sleep(WAKEUP_PAUSE_MS, { signal: options.signal }).catch(() => undefined);
    } while (isWokenAgain && !options.signal.aborted);
    isWaking = false;
  };

  return {
    name: "wake queue",
    isOpen: () => opened?.isConnected() === true && !isMute,
    wake() {
      if (isWaking) isWokenAgain = true;
      else void wakeOthers();
    },
    async stop() {
      await tasks.stop();
      const queue = opened;
      opened = undefined;
      await queue?.close();
    },
  };
}

interface OpenQueue {
  wakeOthers(): Promise<void>;
  /** False while the connection that wakes is known to be lost. */
  isConnected(): boolean;
  /** Resolves when the worker was closed for its faults; rejects when the signal fires. */
  untilBroken(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

async function openUntilDone(
  options: WakeQueueOptions,
  unopened: RareLine,
  signal: AbortSignal,
): Promise<OpenQueue> {
  for (;;) {
    const queue = buildQueue(options);
    try {
      await withTimeout(() => queue.ready(), {
        timeoutMs: OPEN_TIMEOUT_MS,
        signal,
        what: "opening the queue",
      });
      // A wake-up from before the queue was open may have been meant for anyone.
      options.onWake();
      return queue;
    } catch (error) {
      await queue.close();
      signal.throwIfAborted();
      const reason = errorMessage(error);
      unopened.happened((times) =>
        options.log.warn({ reason, times }, "the queue cannot be opened; scanning only"),
      );
      await sleep(REOPEN_DELAY_MS, { signal });
    }
  }
}

/** Both ends of the queue on the backend that the settings choose. */
function buildQueue(options: WakeQueueOptions): OpenQueue & { ready(): Promise<void> } {
  const name = options.name ?? QUEUE_NAME;
  const onWake = async (): Promise<void> => options.onWake();
  // Without listeners a lost connection would end the process.
  const onError = (error: Error) =>
    options.log.debug({ reason: error.message }, "the queue's connection has a fault");
  const { queue, worker, isConnected, disconnect } =
    options.redisUrl === undefined
      ? buildOnPostgres(name, options.databaseUrl, onWake)
      : buildOnRedis(name, connectRedis(options.redisUrl, { log: options.log, onError }), onWake);
  const broken = new AbortController();
  queue.on("error", onError);
  worker.on("error", onError);
  closeWhenSpinning(worker, () => broken.abort());
  return {
    async untilBroken(signal) {
      await aborted(AbortSignal.any([signal, broken.signal]));
      signal.throwIfAborted();
    },
    isConnected,
    async ready() {
      await queue.waitUntilReady();
      await worker.waitUntilReady();
    },
    async wakeOthers() {
      await queue.add("wake", {}, { removeOnComplete: true, removeOnFail: true, attempts: 1 });
    },
    async close() {
      // Forced: a wake-up in progress is worth nothing, the tables are scanned anyway.
      await closeQuietly(() => worker.close(true));
      await closeQuietly(() => queue.close());
      disconnect();
    },
  };
}

/** Faults within one turn of the event loop; a server that is gone makes one for each connection. */
const MAX_FAULTS_A_TURN = 1_000;

/**
 * Closes a worker that repeats a fault without a pause: its loop never lets anything else of the process
 * run then, not even a stop. BullMQ pauses after faults of connections that it knows, and only then.
 */
export function closeWhenSpinning(
  worker: Pick<Worker, "close"> & { on(event: "error", listener: () => void): unknown },
  onClosed: () => void,
): void {
  let faults = 0;
  worker.on("error", () => {
    if (faults === 0) setImmediate(() => (faults = 0));
    faults += 1;
    if (faults !== MAX_FAULTS_A_TURN) return;
    // Its loop ends with this call, before anything is awaited.
    void worker.close(true).catch(() => undefined);
    onClosed();
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function buildOnPostgres(name: string, url: string, onWake: () => Promise<void>) {
  const backend = withBackend(createPostgresBackend);
  // The backend uses connections of its pool without listening to them, and makes one of its own.
  surviveLostConnections();
  const common = { migrate: true, max: POSTGRES_POOL_SIZE };
  const connection = { ...withOwnOptions(url), ...common };
  return {
    queue: new backend.Queue(name, { connection }),
    worker: new backend.Worker(name, onWake, { connection }),
    // A pool connects for each wake-up.
    isConnected: () => true,
    // The backend's pools end with their queue and worker.
    disconnect: () => undefined,
  };
}

/**
 * The URL's `options` beside it: the backend adds its schema to those, and the driver takes what a URL has
 * before anything beside it.
 */
export function withOwnOptions(databaseUrl: string) {
  const url = new URL(databaseUrl);
  const options = url.searchParams.get("options");
  url.searchParams.delete("options");
  return { connectionString: url.href, ...(options === null ? {} : { options }) };
}

/** The two connections of the queue on Redis; the worker makes a third like its own to block on. */
interface RedisConnections {
  readonly waking: Redis;
  readonly working: Redis;
}

/** Name of the connections in `CLIENT LIST`. */
const CONNECTION_NAME = "causeway-withdrawal-worker";

function connectRedis(
  url: string,
  { log, onError }: { readonly log: Logger; readonly onError: (error: Error) => void },
): RedisConnections {
  const common = { connectionName: CONNECTION_NAME, connectTimeout: OPEN_TIMEOUT_MS };
  // A wake-up that cannot be delivered now is worth nothing later: fail at once, do not queue up.
  const waking = new Redis(url, {
    ...common,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    socketTimeout: WAKEUP_TIMEOUT_MS,
  });
  // BullMQ waits for jobs as long as it takes.
  const working = new Redis(url, { ...common, maxRetriesPerRequest: null });
  for (const connection of [waking, working]) connection.on("error", onError);
  working.once("ready", () => void warnOfEviction(working, log));
  return { waking, working };
}

/** Keys of a queue are no cache: a server that may evict them loses wake-ups without a word. */
async function warnOfEviction(connection: Redis, log: Logger): Promise<void> {
  try {
    const answer = await connection.config("GET", "maxmemory-policy");
    const policy = Array.isArray(answer) ? String(answer[1]) : "unknown";
    if (policy === "noeviction") return;
    log.warn({ policy }, "Redis may evict the queue's keys: set maxmemory-policy to noeviction");
  } catch (error) {
    log.debug({ reason: errorMessage(error) }, "Redis does not tell its maxmemory-policy");
  }
}

function buildOnRedis(
  name: string,
  { waking, working }: RedisConnections,
  onWake: () => Promise<void>,
) {
  return {
    queue: new Queue(name, { connection: waking, prefix: REDIS_PREFIX }),
    worker: new Worker(name, onWake, { connection: working, prefix: REDIS_PREFIX }),
    isConnected: () => waking.status === "ready",
    // BullMQ leaves connections alone that it did not make.
    disconnect: () => {
      waking.disconnect();
      working.disconnect();
    },
  };
}

async function closeQuietly(close: () => Promise<void>): Promise<void> {
  const deadline = limitedSignal([], CLOSE_TIMEOUT_MS);
  await Promise.race([
    close().catch(() => undefined),
    new Promise<void>((resolve) =>
      deadline.addEventListener("abort", () => resolve(), { once: true }),
    ),
  ]);
}
