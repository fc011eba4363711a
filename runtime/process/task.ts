/** Waiting, retrying and background loops, all of which end when their AbortSignal fires. */
import { AppError } from "../../chain/errors.js";
import { inheritOwner } from "./work-owner.js";

/** Codes of faults in waiting. */
export type TaskErrorCode = "TIMEOUT";

/** A wait that took too long; always retriable. */
export class TaskError extends AppError<TaskErrorCode> {}

/** Longest delay that Node's timers take; longer ones would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Waits `delayMs`. Rejects at once with the signal's reason when it is or becomes aborted.
 */
export function sleep(delayMs: number, options: { readonly signal: AbortSignal }): Promise<void> {
  const { signal } = options;
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(
      () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      },
      Math.min(Math.max(delayMs, 0), MAX_TIMER_MS),
    );
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** How `retry` behaves. */
export interface RetryOptions {
  readonly signal: AbortSignal;
  /** Tries in all, the first included; without it, for ever until the signal fires. */
  readonly attempts?: number;
  /** Delay after the first failure; doubles with each further one. */
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
  /** Decides which faults are tried again; default: `AppError`s marked retriable. */
  readonly isRetriable?: (error: unknown) => boolean;
  /** Told of each fault that will be tried again. */
  readonly onRetry?: (error: unknown, attempt: number, delayMs: number) => void;
  /** Uniform random number in [0, 1); spreads retries of many callers. Default Math.random. */
  readonly random?: () => number;
}

/**
 * Calls `work` until it succeeds, with exponential back-off and jitter (each delay is between half
 * and the whole of its nominal length). Throws the last fault, or the signal's reason.
 */
export async function retry<T>(
  work: (attempt: number) => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  const isRetriable = options.isRetriable ?? isMarkedRetriable;
  const random = options.random ?? Math.random;
  for (let attempt = 1; ; attempt += 1) {
    options.signal.throwIfAborted();
    try {
      return await work(attempt);
    } catch (error) {
      options.signal.throwIfAborted();
      const isLast = options.attempts !== undefined && attempt >= options.attempts;
      if (isLast || !isRetriable(error)) {
        throw error;
      }
      // The exponent is bounded so that the power cannot overflow in a loop that runs for months.
      const nominalMs = Math.min(
        options.minDelayMs * 2 ** Math.min(attempt - 1, 30),
        options.maxDelayMs,
      );
      const delayMs = nominalMs * (0.5 + random() / 2);
      options.onRetry?.(error, attempt, delayMs);
      await sleep(delayMs, { signal: options.signal });
    }
  }
}

/** Limits of `withTimeout`. */
export interface TimeoutOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** What is waited for, for the error's text; default "operation". */
  readonly what?: string;
}

/**
 * Runs `work` with a signal that fires at the deadline or with the outer signal.
 * @throws TIMEOUT at the deadline (even if `work` ignores its signal), else the outer reason
 */
export async function withTimeout<T>(
  work: (signal: AbortSignal) => Promise<T>,
  options: TimeoutOptions,
): Promise<T> {
  options.signal.throwIfAborted();
  const controller = new AbortController();
  const abortInner = () => controller.abort(options.signal.reason);
  options.signal.addEventListener("abort", abortInner, { once: true });
  const timer = setTimeout(
    () => {
      const what = options.what ?? "operation";
      controller.abort(
        new TaskError("TIMEOUT", `${what} did not finish within ${options.timeoutMs} ms`, {
          details: { timeoutMs: options.timeoutMs, what },
          retriable: true,
        }),
      );
    },
    Math.min(options.timeoutMs, MAX_TIMER_MS),
  );
  const aborted = new Promise<never>((_resolve, reject) => {
    controller.signal.addEventListener("abort", () => reject(controller.signal.reason), {
      once: true,
    });
  });
  try {
    return await Promise.race([work(controller.signal), aborted]);
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", abortInner);
  }
}

/**
 * Runs `work` with a signal that fires with the first of these, or after `timeoutMs` with a `TimeoutError`.
 * Nothing is left behind it: signals that follow a process or a connection outlive many works, and Node
 * remembers for ever what it once made of them by `AbortSignal.any`. Keeps no process up.
 * @throws what the work throws; one that does not listen to its signal is waited for
 */
export async function withLimit<T>(
  signals: readonly AbortSignal[],
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = beginLimit(signals, timeoutMs);
  try {
    return await work(limit.signal);
  } finally {
    limit.release();
  }
}

/**
 * The signal of `withLimit` for what has no end of its own, or a rare one: it is kept for all of its time. It
 * takes the place of `AbortSignal.any` over `AbortSignal.timeout`: Node forgets the timer of that one when
 * garbage is collected, and the signal never fires (nodejs/node#57736). Keeps no process up.
 */
export function limitedSignal(signals: readonly AbortSignal[], timeoutMs: number): AbortSignal {
  return beginLimit(signals, timeoutMs).signal;
}

/**
 * Makes all who ask while a question is on its way share its answer, or its error: it is asked once, however
 * many they are. Who comes later gets an answer of his own.
 */
export function shareUnderway<T>(ask: () => Promise<T>): () => Promise<T> {
  let underway: Promise<T> | undefined;
  return () => {
    underway ??= ask().finally(() => {
      underway = undefined;
    });
    return underway;
  };
}

/** A signal that fires with the first of others, until it is released. */
export interface JoinedSignal {
  readonly signal: AbortSignal;
  /** Fires it now, and releases it. */
  abort(reason?: unknown): void;
  /** Leaves the others: it does not fire any more. */
  release(): void;
}

/**
 * Joins signals for as long as a work lasts that ends by `abort` or `release`: see `withLimit` for why Node's
 * own way is not taken. The work has the owner of the first of them that has one.
 * @param signals of which one may have fired already
 */
export function joinSignals(signals: readonly AbortSignal[]): JoinedSignal {
  const ending = new AbortController();
  const { signal } = ending;
  const over = signals.find(({ aborted }) => aborted);
  if (over !== undefined) ending.abort(over.reason);
  inheritOwner(signal, signals);
  const followed = over === undefined ? signals : [];
  const leave = followed.map((source) => whenAborted(source, () => abort(source.reason)));
  const release = () => {
    for (const one of leave) one();
  };
  const abort = (reason?: unknown) => {
    release();
    ending.abort(reason);
  };
  return { signal, abort, release };
}

/** Joins signals with a time limit. */
function beginLimit(signals: readonly AbortSignal[], timeoutMs: number): JoinedSignal {
  const joined = joinSignals(signals);
  const { signal } = joined;
  if (signal.aborted) return joined;
  const timer = setTimeout(
    () => joined.abort(new DOMException(`nothing came within ${timeoutMs} ms`, "TimeoutError")),
    Math.min(timeoutMs, MAX_TIMER_MS),
  ).unref();
  const release = () => {
    clearTimeout(timer);
    joined.release();
  };
  signal.addEventListener("abort", release, { once: true });
  return { ...joined, release };
}

/** Those who follow one signal. */
interface Followers {
  readonly ends: Set<() => void>;
  readonly onAbort: () => void;
}

/**
 * All followers of a signal have one listener: Node warns of more than ten, and looks through all of them for
 * each that comes or goes.
 */
const followers = new WeakMap<AbortSignal, Followers>();

/** Calls `end` once when a signal fires that has not yet. @returns ends that */
export function whenAborted(signal: AbortSignal, end: () => void): () => void {
  const { ends, onAbort } = followers.get(signal) ?? beginFollowing(signal);
  ends.add(end);
  return () => {
    // Behind an end it is left once more, and the signal may have other followers by then.
    if (!ends.delete(end) || ends.size > 0) return;
    signal.removeEventListener("abort", onAbort);
    followers.delete(signal);
  };
}

function beginFollowing(signal: AbortSignal): Followers {
  const ends = new Set<() => void>();
  const onAbort = () => {
    for (const end of ends) end();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const begun = { ends, onAbort };
  followers.set(signal, begun);
  return begun;
}

/** Wakes a loop that otherwise polls: calls during one round count as one. */
export interface Wakeup {
  /** Ends the present wait, or makes the next one return at once. */
  wake(): void;
  /**
   * Waits to be woken or for `timeoutMs`, whichever is first; true when it was woken. One waiter at a
   * time. Rejects with the signal's reason.
   */
  wait(options: { readonly signal: AbortSignal; readonly timeoutMs: number }): Promise<boolean>;
}

/** Makes one that nobody has woken yet. */
export function createWakeup(): Wakeup {
  let isWoken = false;
  let endWait: (() => void) | undefined;
  return {
    wake() {
      isWoken = true;
      endWait?.();
    },
    async wait({ signal, timeoutMs }) {
      signal.throwIfAborted();
      if (!isWoken) {
        const waitController = new AbortController();
        const onAbort = () => waitController.abort();
        signal.addEventListener("abort", onAbort, { once: true });
        endWait = onAbort;
        await sleep(timeoutMs, { signal: waitController.signal }).catch(() => undefined);
        signal.removeEventListener("abort", onAbort);
        endWait = undefined;
        signal.throwIfAborted();
      }
      const wasWoken = isWoken;
      isWoken = false;
      return wasWoken;
    },
  };
}

/** What a `TaskGroup` is told at its making. */
export interface TaskGroupOptions {
  /** Ends the tasks; `stop()` ends them too. */
  readonly signal: AbortSignal;
  /** Called once per task that failed although nobody asked it to stop. */
  readonly onFault: (name: string, error: unknown) => void;
}

/**
 * Background loops of one part. Each gets a signal that fires at `stop()` or with the outer
 * signal; `stop()` waits until all of them are done. A task that ends by that signal is no fault.
 */
export class TaskGroup {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #options: TaskGroupOptions;
  readonly #onOuterAbort: () => void;

  constructor(options: TaskGroupOptions) {
    this.#options = options;
    this.#onOuterAbort = () => this.#controller.abort(options.signal.reason);
    if (options.signal.aborted) {
      this.#onOuterAbort();
    } else {
      options.signal.addEventListener("abort", this.#onOuterAbort, { once: true });
    }
  }

  /** The signal that all tasks of the group see. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Starts a task; its fault is reported once through `onFault`, never as unhandled rejection. */
  run(name: string, work: (signal: AbortSignal) => Promise<void>): void {
    const task = this.#guard(name, work);
    this.#running.add(task);
    void task.finally(() => this.#running.delete(task));
  }

  /** Ends all tasks and waits for them; may be called again. */
  async stop(): Promise<void> {
    this.#options.signal.removeEventListener("abort", this.#onOuterAbort);
    this.#controller.abort(new DOMException("stopped", "AbortError"));
    await Promise.all(this.#running);
  }

  async #guard(name: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    try {
      await work(this.#controller.signal);
    } catch (error) {
      if (!this.#controller.signal.aborted) {
        this.#options.onFault(name, error);
      }
    }
  }
}

/** Default of `retry`: an `AppError` that says trying again can help. */
export function isMarkedRetriable(error: unknown): boolean {
  return error instanceof AppError && error.retriable;
}

/** Waits until the end of a wait, whatever ends it: a loop looks at its signal by itself. */
export async function quietly(wait: Promise<unknown>): Promise<void> {
  await wait.catch(() => undefined);
}
