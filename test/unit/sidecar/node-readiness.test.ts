/** What `/ready` of the online server says of the node's newest block, and how often it asks the node. */
import { expect, it } from "@jest/globals";
import { NETWORKS } from "../../../chain/networks.js";
import type { EvmClient } from "../../../rpc-client/evm-client.js";
import { createNodeReadiness } from "../../../sidecar/node-readiness.js";

const { signal } = new AbortController();
const NOW_MS = Date.parse("2026-01-01T00:00:00Z");

/** The check over a node whose newest block is so old; `calls` counts the questions for it. */
function readinessOver(ageSeconds: number) {
  const node = { calls: 0 };
  const client = {
    chainId: () => Promise.resolve(NETWORKS.testnet.evmChainId),
    isSyncing: () => Promise.resolve(false),
    getBlockHeader: () => {
      node.calls += 1;
      return Promise.resolve({ height: 7, timestampSeconds: NOW_MS / 1_000 - ageSeconds });
    },
  } as unknown as EvmClient;
  const ready = createNodeReadiness({
    network: NETWORKS.testnet,
    client,
    index: { tip: () => ({ index: 7, hash: `0x${"ab".repeat(32)}` }) as never },
    follower: { halted: () => undefined, fault: () => undefined },
    maxBlockAgeMs: 60_000,
    clock: { nowMs: () => NOW_MS, monotonicMs: () => 0 },
    signal,
  });
  return { ready, node };
}

it.each([
  [60, undefined],
  [61, "the newest block (7) is 61 s old"],
  [-60, undefined],
  [-61, "the newest block (7) is 61 s ahead of this machine's clock"],
])("is held against the clock to both sides: %i s", async (ageSeconds, reason) => {
  const expected = reason === undefined ? { ready: true } : { ready: false, reason };
  expect(await readinessOver(ageSeconds).ready()).toEqual(expected);
});

it("asks the node once for all who ask at the same time, and anew for who comes later", async () => {
  const { ready, node } = readinessOver(1);
  const answers = await Promise.all(Array.from({ length: 1_000 }, () => ready()));
  expect(answers.every((answer) => answer.ready)).toBe(true);
  expect(node.calls).toBe(1);
  await ready();
  expect(node.calls).toBe(2);
});
