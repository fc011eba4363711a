/** A signal that is made when it is asked for. */
import { describe, expect, it } from "@jest/globals";
import { LazySignal } from "../../../../runtime/process/lazy-signal.js";

describe("a lazy signal", () => {
  it("fires for those who asked before, once", () => {
    const lazy = new LazySignal();
    const { signal } = lazy;
    let count = 0;
    signal.addEventListener("abort", () => {
      count += 1;
    });
    expect([lazy.isAborted, signal.aborted]).toEqual([false, false]);
    lazy.abort();
    lazy.abort();
    expect([lazy.isAborted, signal.aborted, count]).toEqual([true, true, 1]);
    expect(lazy.signal).toBe(signal);
  });

  it("has fired for those who ask afterwards", () => {
    const lazy = new LazySignal();
    lazy.abort();
    expect(lazy.isAborted).toBe(true);
    expect(lazy.signal.aborted).toBe(true);
  });
});
