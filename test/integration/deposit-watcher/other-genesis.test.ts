/** A node of the same chain id and another genesis: by its genesis alone a network of ours tells from others. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseHash32 } from "../../../chain/hex.js";
import { readinessOf } from "../../../deposit-watcher/readiness.js";
import { beginWatch, type WatchStart } from "../../../deposit-watcher/watch-start.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { WatcherBench } from "../../helpers/services/watcher.js";
import { until } from "../../helpers/until.js";

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

const otherGenesis = async () => parseHash32(`0x${"ab".repeat(32)}`);

const cursorHeight = async () => (await readCursor(bench.ledger.database)).height;

it.each(["the node", "the second node"] as const)("as %s books nothing", async (name) => {
  const alice = await bench.register("alice");
  bench.pay([alice.address, 5n]);
  bench.chain.mine();
  const node = { ...bench.node, genesisHash: otherGenesis };
  if (name === "the second node") bench.secondNode = node;
  const own = name === "the node" ? { node } : {};
  const { watcher } = bench.start(undefined, undefined, undefined, own);
  const isRefused = () => watcher.status.problem?.includes("serves another chain") === true;
  await until(() => isRefused() || watcher.status.cursorHeight >= 0, {
    timeoutMs: 10_000,
    what: "it is refused, or a block of it is booked",
  });
  expect(watcher.status.problem).toContain(`${name} serves another chain`);
  expect(readinessOf(watcher.status, 5, performance.now()).ready).toBe(false);
  expect([await cursorHeight(), await bench.deposits()]).toEqual([-1, []]);
  expect(watcher.status.incident).toBeUndefined();
});

it.each<readonly [string, Partial<WatchStart["node"]>]>([
  ["another genesis", { genesisHash: otherGenesis }],
  ["another chain id", { chainId: async () => 6941n }],
])("with %s is no node to begin by", async (_, other) => {
  const { chain, ledger, node } = bench;
  chain.mine();
  let looks = 0;
  const heights: number[] = [];
  // Once it was refused it is asked again, and is the right one then.
  const shown = () => (looks === 1 ? { ...node, ...other } : node);
  const inTurn: WatchStart["node"] = {
    ...node,
    async chainId(options) {
      looks += 1;
      const told = shown();
      heights.push(await cursorHeight());
      return told.chainId(options);
    },
    genesisHash: (options) => shown().genesisHash(options),
  };
  await beginWatch({
    database: ledger.database,
    node: inTurn,
    identity: { genesisHash: chain.genesisHash, chainId: 6940n },
    startHeight: "head",
    log: silentLog,
    signal: new AbortController().signal,
  });
  expect(heights).toEqual([-1, -1]);
  expect(await cursorHeight()).toBe(1);
});
