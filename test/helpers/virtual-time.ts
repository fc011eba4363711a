/**
 * Time that passes only while everybody waits: a timer fires when nothing else is left to do, in
 * the order of its time. Minutes take moments, and no machine is too slow. For code that waits for
 * timers, promises and files only, not for the network, threads or processes.
 */
import { jest } from "@jest/globals";

/** Node's own; the tests' one may be replaced. */
const nextTurn = setImmediate;

/** Whether a file is being read or written. */
const isAtFiles = () => process.getActiveResourcesInfo().some((name) => name.startsWith("FSReq"));

/** Runs work in virtual time: timers, `performance.now()` and `Date.now()` are those of it. */
export async function inVirtualTime<T>(work: () => Promise<T>): Promise<T> {
  jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask"] });
  try {
    const state = { isDone: false };
    const done = work().finally(() => (state.isDone = true));
    done.catch(() => undefined);
    while (!state.isDone) {
      await new Promise((resolve) => nextTurn(resolve));
      if (!state.isDone && !isAtFiles()) jest.advanceTimersToNextTimer();
    }
    return await done;
  } finally {
    jest.useRealTimers();
  }
}
