/** New blocks are encoded before anybody asks, each once, and a fault is waited out. */
import { describe, expect, it } from "@jest/globals";
import { parseHash32 } from "../../../chain/hex.js";
import { createLogger } from "../../../runtime/logger.js";
import type { BlockSource } from "../../../sidecar/data-api/block-source.js";
import { followHead } from "../../../sidecar/data-api/follow-head.js";
import { until } from "../../helpers/until.js";

const log = createLogger({ component: "test", level: "silent" });
const identifier = (index: number) => ({
  index,
  hash: parseHash32(`0x${index.toString(16).padStart(64, "0")}`),
});

/** A source that only remembers what it was asked to encode. */
function fakeSource(chain: { tip: number; failing: boolean }) {
  const encoded: number[] = [];
  const faults: string[] = [];
  const source = {
    tip: () => {
      if (!chain.failing) return Promise.resolve(identifier(chain.tip));
      faults.push("down");
      return Promise.reject(new Error("down"));
    },
    resolve: ({ index }: { index: number | undefined }) => Promise.resolve(identifier(index ?? -1)),
    block: ({ index }: { index: number }) => {
      encoded.push(index);
      return Promise.resolve(undefined);
    },
  };
  return { encoded, faults, source: source as unknown as BlockSource };
}

describe("following the head", () => {
  it("encodes each new block once, also those that came during a fault", async () => {
    const chain = { tip: 10, failing: false };
    const { encoded, faults, source } = fakeSource(chain);
    const stop = new AbortController();
    const done = followHead({ source, log, signal: stop.signal, lookIntervalMs: 1 });
    await until(() => encoded.includes(10), { timeoutMs: 5_000 });
    chain.tip = 12;
    await until(() => encoded.includes(12), { timeoutMs: 5_000 });
    chain.failing = true;
    chain.tip = 15;
    await until(() => faults.length > 0, { timeoutMs: 5_000 });
    chain.failing = false;
    await until(() => encoded.includes(15), { timeoutMs: 5_000 });
    stop.abort();
    await done;
    expect(encoded).toEqual([10, 11, 12, 13, 14, 15]);
  });

  it("leaves old blocks of a long gap until they are asked for", async () => {
    const chain = { tip: 5, failing: false };
    const { encoded, source } = fakeSource(chain);
    const stop = new AbortController();
    const done = followHead({ source, log, signal: stop.signal, lookIntervalMs: 1 });
    await until(() => encoded.includes(5), { timeoutMs: 5_000 });
    chain.tip = 1_000;
    await until(() => encoded.includes(1_000), { timeoutMs: 5_000 });
    stop.abort();
    await done;
    expect(encoded).toHaveLength(1 + 64);
  });
});
