/** A queue that fails without a pause must not keep the process from everything else. */
import { EventEmitter } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { closeWhenSpinning } from "../../../withdrawal-worker/queue.js";

/** Fails as BullMQ's loop does: again at once, until it is closed. */
class FailingLoop extends EventEmitter {
  faults = 0;
  isForced: boolean | undefined;

  async run(): Promise<void> {
    while (this.isForced === undefined) {
      await Promise.resolve();
      this.faults += 1;
      this.emit("error", new Error("Cannot use a pool after calling end on the pool"));
    }
  }

  async close(isForced = false): Promise<void> {
    this.isForced = isForced;
  }
}

describe("a queue's worker", () => {
  it("is closed when it fails again and again within one turn of the event loop", async () => {
    const loop = new FailingLoop();
    const closed = new Promise<void>((resolve) => closeWhenSpinning(loop, resolve));
    // Never reached otherwise: no timer runs beside such a loop.
    await loop.run();
    await closed;
    expect(loop.isForced).toBe(true);
    expect(loop.faults).toBeLessThanOrEqual(1_000);
  });

  it("goes on when its faults are apart", async () => {
    const loop = new FailingLoop();
    let isClosed = false;
    closeWhenSpinning(loop, () => (isClosed = true));
    for (let fault = 0; fault < 2_500; fault++) {
      loop.emit("error", new Error("the server is gone"));
      if (fault % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(isClosed).toBe(false);
  });
});
