/**
 * The place of one worker thread, seen from the main thread: starts it, gives it one job at a
 * time, answers its reads, and ends it when a job takes too long.
 */
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { errorMessage } from "../../../chain/errors.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import type { WorkOwner } from "../../../runtime/process/work-owner.js";
import type { MaybePromise } from "../../store/state-reader.js";
import { CallError } from "./call-error.js";
import type {
  Job,
  ReadRequest,
  WorkerMessage,
  WorkerRequest,
  WorkerSettings,
  WorkerStart,
} from "./call-protocol.js";

/** Heap of a worker; a job that needs more dies with its worker instead of the node. */
const WORKER_HEAP_MEGABYTES = 512;
/** Its young generation; without this it would be as large as the node's own. */
const WORKER_YOUNG_MEGABYTES = 24;
/** Time that a job goes on after its caller left: most end by themselves, a new worker is dear. */
export const ABANDONED_JOB_MS = 250;

/** Time until a worker that did not come up is tried again: what it lacked may be there by then. */
export const RESTART_MS = 1_000;

/** Transactions that are copied for a worker at a stretch: a millisecond. A full block takes a hundred. */
const SENT_AT_ONCE = 128;

/**
 * Whose a worker's job is on the main thread. The job's time runs and the worker does nothing else until it
 * is served: payments' estimates wait for that, whoever asked for the job. It is in line with nothing that
 * its client asks for besides, and as many jobs are as there are workers.
 */
export const AT_WORKERS: WorkOwner = { client: "call workers", isOwn: true };

/** Answers a worker's reads at the height of its job. */
export type ReadAnswerer = (request: ReadRequest) => MaybePromise<unknown>;

/** A job with what it needs from the main thread. */
export interface SlotJob {
  readonly job: Job;
  readonly answer: ReadAnswerer;
  readonly signal: AbortSignal;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** What a slot is made with. */
export interface SlotOptions {
  /** The compiled entry of the worker thread. */
  readonly workerUrl: URL;
  readonly settings: WorkerSettings;
  readonly timeoutMs: number;
  /** Time that a job goes on after its caller left. */
  readonly abandonedMs: number;
  /** Time in which no other worker is started where one did not come up. */
  readonly restartMs: number;
  /** The slot can take a job, has lost its worker, or may start one again. */
  readonly onChange: () => void;
  /** The worker died by itself; `wasReady` is false when it never came up, or could not be made. */
  readonly onCrash: (error: unknown, wasReady: boolean) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly reads: MessagePort;
  readonly counter: Int32Array;
  isReady: boolean;
  /** It has come to the end of a job: its code is warm. */
  isWarm: boolean;
  /** Why it ended, if it said so. */
  fault: unknown;
}

interface Current extends SlotJob {
  timer: NodeJS.Timeout;
  readonly onAbort: () => void;
}

/** One worker thread after the other. */
export class CallSlot {
  private thread: Thread | undefined;
  private current: Current | undefined;
  /** Runs while no worker is started, because the last one did not come up. */
  private rest: NodeJS.Timeout | undefined;

  constructor(private readonly options: SlotOptions) {}

  /** True when it can take a job now. */
  isIdle(): boolean {
    return this.thread?.isReady === true && this.current === undefined;
  }

  /** True while it has a worker, ready or not. */
  isStarted(): boolean {
    return this.thread !== undefined;
  }

  /** Starts a worker where there is none, and where the last one came up or is a while ago. */
  start(): void {
    if (this.thread !== undefined || this.rest !== undefined) return;
    const { port1: reads, port2 } = new MessageChannel();
    const answered = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const workerStart: WorkerStart = { settings: this.options.settings, reads: port2, answered };
    let worker: Worker;
    try {
      worker = new Worker(this.options.workerUrl, {
        workerData: workerStart,
        transferList: [port2],
        resourceLimits: {
          maxOldGenerationSizeMb: WORKER_HEAP_MEGABYTES,
          maxYoungGenerationSizeMb: WORKER_YOUNG_MEGABYTES,
        },
      });
    } catch (error) {
      // The system gives no more threads. Told in a turn of its own, as the end of one that did not come up.
      reads.close();
      this.startRest();
      setImmediate(() => {
        this.options.onCrash(error, false);
        this.options.onChange();
      });
      return;
    }
    const counter = new Int32Array(answered);
    const thread: Thread = {
      worker,
      reads,
      counter,
      isReady: false,
      isWarm: false,
      fault: undefined,
    };
    this.thread = thread;
    worker.on("message", (message: WorkerMessage) => this.received(thread, message));
    worker.on("error", (error) => {
      thread.fault = error;
    });
    worker.on("exit", () => this.exited(thread));
    reads.on("message", (request: ReadRequest) => void this.read(thread, request));
  }

  /** Gives the idle worker a job. */
  run(slotJob: SlotJob): void {
    const { thread } = this;
    if (thread === undefined || !this.isIdle()) throw new TypeError("the worker is not idle");
    const timer = setTimeout(() => this.timedOut(), this.options.timeoutMs);
    const onAbort = () => this.abandoned();
    this.current = { ...slotJob, timer, onAbort };
    slotJob.signal.addEventListener("abort", onAbort, { once: true });
    void this.send(thread, slotJob.job);
  }

  /** The job; ahead of it, with turns in between, the transactions that it repeats. */
  private async send(thread: Thread, job: Job): Promise<void> {
    const post = (request: WorkerRequest) => thread.worker.postMessage(request, []);
    const { work } = job;
    if (work.kind !== "traceBlock") {
      post(job);
      return;
    }
    const { transactions } = work;
    for (let at = 0; at < transactions.length; at += SENT_AT_ONCE) {
      post({ transactions: transactions.slice(at, at + SENT_AT_ONCE) });
      await breathe(undefined, AT_WORKERS);
      // The job was given up, and its worker with it.
      if (thread !== this.thread) return;
    }
    post({ ...job, work: { ...work, transactions: [] } });
  }

  /** Ends the worker; a job that it has is rejected. */
  async stop(error: Error): Promise<void> {
    const { thread } = this;
    this.settle((current) => current.reject(error));
    this.drop();
    clearTimeout(this.rest);
    await thread?.worker.terminate();
  }

  private timedOut(): void {
    const { timeoutMs } = this.options;
    const error = new CallError("CALL_TIMEOUT", `execution aborted (timeout = ${timeoutMs}ms)`, {
      details: { timeoutMs },
    });
    this.giveUp(error);
  }

  /**
   * The caller left: it is told at once, the worker has a moment to come to its end. One that has not come
   * to any has the time that a job may take: on a busy machine its first one takes seconds, and callers that
   * come again with less patience would be given a cold worker each time.
   */
  private abandoned(): void {
    const { current } = this;
    if (current === undefined) return;
    current.reject(current.signal.reason);
    if (this.thread?.isWarm !== true) return;
    clearTimeout(current.timer);
    const { abandonedMs } = this.options;
    current.timer = setTimeout(() => this.giveUp(current.signal.reason), abandonedMs);
  }

  /** Rejects the job and replaces its worker. */
  private giveUp(error: unknown): void {
    this.settle((current) => current.reject(error));
    const { thread } = this;
    this.drop();
    void thread?.worker.terminate();
    this.start();
  }

  private received(thread: Thread, message: WorkerMessage): void {
    if (thread !== this.thread) return;
    if (message.type === "ready") thread.isReady = true;
    else if (message.id === this.current?.job.id) {
      thread.isWarm = true;
      this.settle((current) => {
        if (message.type === "done") current.resolve(message.result);
        else current.reject(new CallError(message.code, message.message, message));
      });
    }
    this.options.onChange();
  }

  private async read(thread: Thread, request: ReadRequest): Promise<void> {
    const { current } = this;
    if (thread !== this.thread || current === undefined) return;
    try {
      const found = current.answer(request);
      const answer = found instanceof Promise ? await found : found;
      thread.reads.postMessage(answer, []);
      Atomics.add(thread.counter, 0, 1);
      Atomics.notify(thread.counter, 0);
    } catch (error) {
      // The worker sleeps until it is answered, and there is no answer.
      if (current === this.current) this.giveUp(error);
    }
  }

  private exited(thread: Thread): void {
    thread.reads.close();
    if (thread !== this.thread) return;
    this.drop();
    if (!thread.isReady) this.startRest();
    const cause = thread.fault;
    const message = `the call worker died: ${cause === undefined ? "exit" : errorMessage(cause)}`;
    this.settle(({ reject }) => reject(new CallError("CALL_WORKER_FAILED", message, { cause })));
    this.options.onCrash(cause, thread.isReady);
    this.options.onChange();
  }

  private startRest(): void {
    this.rest = setTimeout(() => {
      this.rest = undefined;
      this.options.onChange();
    }, this.options.restartMs);
  }

  private settle(end: (current: Current) => void): void {
    const { current } = this;
    if (current === undefined) return;
    this.current = undefined;
    clearTimeout(current.timer);
    current.signal.removeEventListener("abort", current.onAbort);
    end(current);
  }

  private drop(): void {
    this.thread?.reads.close();
    this.thread = undefined;
  }
}
