import { getEventListeners } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { AppError } from "../../../../chain/errors.js";
import { leftBehind } from "../../../helpers/effort/signals.js";
import {
  TaskGroup,
  createWakeup,
  limitedSignal,
  retry,
  sleep,
  withLimit,
  withTimeout,
} from "../../../../runtime/process/task.js";

const never = new AbortController().signal;

describe("sleep", () => {
  it("rejects with the signal's reason, at once when it is aborted already", async () => {
    const controller = new AbortController();
    const sleeping = sleep(60_000, { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(sleeping).rejects.toThrow("enough");
    await expect(sleep(60_000, { signal: controller.signal })).rejects.toThrow("enough");
  });
});

const transient = () => new AppError("BUSY", "try again", { retriable: true });

describe("retry", () => {
  it("tries again with doubling, jittered and capped delays until it succeeds", async () => {
    const delays: number[] = [];
    let calls = 0;
    const result = await retry(
      async () => {
        calls += 1;
        if (calls < 6) {
          throw transient();
        }
        return "done";
      },
      {
        signal: never,
        minDelayMs: 1,
        maxDelayMs: 4,
        random: () => 0.5,
        onRetry: (_error, _attempt, delayMs) => delays.push(delayMs),
      },
    );
    expect(result).toBe("done");
    expect(delays).toEqual([0.75, 1.5, 3, 3, 3]);
  });

  it("does not repeat what cannot succeed, and stops after the last attempt", async () => {
    const permanent = jest.fn(async () => {
      throw new AppError("WRONG", "never");
    });
    const options = { signal: never, minDelayMs: 1, maxDelayMs: 1, attempts: 3 };
    await expect(retry(permanent, options)).rejects.toMatchObject({ code: "WRONG" });
    expect(permanent).toHaveBeenCalledTimes(1);
    const busy = jest.fn(async () => {
      throw transient();
    });
    await expect(retry(busy, options)).rejects.toMatchObject({ code: "BUSY" });
    expect(busy).toHaveBeenCalledTimes(3);
  });

  it("leaves with the signal's reason while it waits", async () => {
    const controller = new AbortController();
    const retrying = retry(
      async () => {
        throw transient();
      },
      {
        signal: controller.signal,
        minDelayMs: 60_000,
        maxDelayMs: 60_000,
        onRetry: () => controller.abort(new Error("stopping")),
      },
    );
    await expect(retrying).rejects.toThrow("stopping");
  });
});

describe("withTimeout", () => {
  it("ends work that ignores its signal, with a retriable TIMEOUT", async () => {
    const deaf = withTimeout(() => new Promise<never>(() => {}), { timeoutMs: 5, signal: never });
    await expect(deaf).rejects.toMatchObject({ code: "TIMEOUT", retriable: true });
  });

  it("hands the outer reason on and gives results through", async () => {
    const controller = new AbortController();
    const work = withTimeout((signal) => sleep(60_000, { signal }), {
      timeoutMs: 60_000,
      signal: controller.signal,
    });
    controller.abort(new Error("outer"));
    await expect(work).rejects.toThrow("outer");
    await expect(withTimeout(async () => 42, { timeoutMs: 60_000, signal: never })).resolves.toBe(
      42,
    );
  });
});

describe("createWakeup", () => {
  it("remembers a wake-up that came before the wait, once", async () => {
    const wakeup = createWakeup();
    wakeup.wake();
    wakeup.wake();
    expect(await wakeup.wait({ signal: never, timeoutMs: 60_000 })).toBe(true);
    expect(await wakeup.wait({ signal: never, timeoutMs: 1 })).toBe(false);
  });

  it("ends a wait by a wake-up, and by the signal with its reason", async () => {
    const wakeup = createWakeup();
    const waiting = wakeup.wait({ signal: never, timeoutMs: 60_000 });
    wakeup.wake();
    expect(await waiting).toBe(true);
    const controller = new AbortController();
    const aborted = wakeup.wait({ signal: controller.signal, timeoutMs: 60_000 });
    controller.abort(new Error("stopping"));
    await expect(aborted).rejects.toThrow("stopping");
  });
});

describe("limitedSignal", () => {
  // Node's own garbage collection, which tests are not given as a rule.
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const ended = (signal: AbortSignal) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(signal.reason));
    });

  it("fires after its time, also when garbage was collected meanwhile", async () => {
    const waiting = ended(limitedSignal([never], 100));
    for (let round = 0; round < 3; round++) {
      collectGarbage();
      await new Promise((resolve) => setImmediate(resolve));
    }
    // Nothing else may keep the event loop up, as a server does.
    const keepUp = setInterval(() => undefined, 1_000);
    expect(await waiting).toMatchObject({ name: "TimeoutError" });
    clearInterval(keepUp);
  });

  it("fires with the first of its signals", async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const waiting = ended(limitedSignal([one.signal, other.signal], 600_000));
    collectGarbage();
    other.abort(new Error("gone"));
    expect(await waiting).toMatchObject({ message: "gone" });
  });
});

describe("withLimit", () => {
  it("keeps one listener for all, also where a work ends late", async () => {
    const { signal } = new AbortController();
    const held = () => getEventListeners(signal, "abort").length;
    const late = withLimit([signal], 1, () => new Promise((resolve) => setTimeout(resolve, 40)));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const ending = new AbortController();
    const begin = () =>
      withLimit([signal, ending.signal], 60_000, (limited) => sleep(60_000, { signal: limited }));
    const second = begin();
    await late;
    const third = begin();
    expect(held()).toBe(1);
    ending.abort(new Error("over"));
    await Promise.allSettled([second, third]);
    expect(held()).toBe(0);
  });

  afterEach(() => void jest.useRealTimers());

  it("ends with the first of its signals, and after its time", async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const both = [one.signal, other.signal];
    const waiting = withLimit(both, 600_000, (signal) => sleep(600_000, { signal }));
    other.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");
    await expect(withLimit(both, 600_000, async (signal) => signal.aborted)).resolves.toBe(true);
    const late = withLimit([never], 5, (signal) => sleep(60_000, { signal }));
    await expect(late).rejects.toMatchObject({ name: "TimeoutError" });
  });

  it("leaves nothing behind at a signal that lives on, nor a timer", async () => {
    jest.useFakeTimers();
    const { signal } = new AbortController();
    for (let round = 0; round < 100; round++) {
      await withLimit([signal], 10_000, async () => 1);
      const failing = withLimit([signal], 10_000, async () => Promise.reject(new Error("no")));
      await expect(failing).rejects.toThrow("no");
    }
    expect(jest.getTimerCount()).toBe(0);
    expect(leftBehind(signal)).toBe(0);
  });
});

describe("TaskGroup", () => {
  it("waits at stop until every loop has left, and takes their end for no fault", async () => {
    const onFault = jest.fn();
    const group = new TaskGroup({ signal: never, onFault });
    let hasCleanedUp = false;
    group.run("loop", async (signal) => {
      try {
        await sleep(60_000, { signal });
      } finally {
        await new Promise((resolve) => setImmediate(resolve));
        hasCleanedUp = true;
      }
    });
    await group.stop();
    expect(hasCleanedUp).toBe(true);
    expect(onFault).not.toHaveBeenCalled();
  });

  it("reports a loop that fails by itself, and ends the others with the outer signal", async () => {
    const onFault = jest.fn();
    const outer = new AbortController();
    const group = new TaskGroup({ signal: outer.signal, onFault });
    const fault = new Error("broken");
    group.run("bad", async () => {
      throw fault;
    });
    group.run("good", (signal) => sleep(60_000, { signal }));
    outer.abort();
    await group.stop();
    expect(onFault).toHaveBeenCalledTimes(0);
    const second = new TaskGroup({ signal: never, onFault });
    second.run("bad", async () => {
      throw fault;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(onFault).toHaveBeenCalledWith("bad", fault);
    await second.stop();
  });
});
