/**
 * Lists and the head of a node that has deleted its oldest blocks, as one that joined by a snapshot has none, and
 * of one whose time is not the clock's.
 */
import { expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { blockRoutes } from "../../../../explorer/pages/block.js";
import { homeRoutes } from "../../../../explorer/pages/home.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { createNodeReadiness } from "../../../../explorer/sources/node-readiness.js";
import { ChainSource } from "../../../../explorer/sources/chain-source.js";
import { IndexerSource } from "../../../../explorer/sources/indexer-source.js";
import { HeadTracker } from "../../../../explorer/sources/head-tracker.js";
import { RpcError } from "../../../../rpc-client/errors.js";
import type { EvmClient } from "../../../../rpc-client/evm-client.js";
import type { RpcCall, RpcOutcome } from "../../../../rpc-client/json-rpc.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { answeredBy, headerAt } from "../../../helpers/pages/answered-node.js";
import { all, textOf } from "../../../helpers/pages/html.js";
import { until } from "../../../helpers/until.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const { signal } = new AbortController();

/** A node with the blocks from `oldest` to `newest`, and block 0. */
class PrunedNode {
  oldest = 0;
  newest = 0;
  /** Of the newest block, and of all where nothing lies between them. */
  timestampSeconds = 1;
  intervalSeconds = 0;

  private answer({ method, params }: RpcCall): RpcOutcome {
    const at = params[0] === "latest" ? this.newest : Number(params[0]);
    if (at > this.newest) return { ok: true, result: null };
    if (at > 0 && at < this.oldest) {
      const error = new RpcError("pruned history unavailable", { rpcCode: 4444, method });
      return { ok: false, error };
    }
    if (method === "eth_getBlockTransactionCountByNumber") return { ok: true, result: "0x0" };
    const seconds = this.timestampSeconds - (this.newest - at) * this.intervalSeconds;
    return { ok: true, result: headerAt(at, seconds) };
  }

  readonly rpc = answeredBy((call) => this.answer(call));
}

/** Of its oldest block, which it got by a snapshot, it knows all but what it moved. */
const withoutJournal = {
  blockJournal: () =>
    Promise.reject(new RpcError("pruned", { rpcCode: 4444, method: "causeway_getBlockJournal" })),
} as unknown as EvmClient;

async function shown(
  node: PrunedNode,
  path: "/" | "/blocks" | "/block",
  query = "",
  parameter = "",
) {
  const away = () => Promise.reject(new Error("no consensus RPC"));
  const context = {
    chain: new ChainSource(node.rpc, withoutJournal),
    consensus: { supplies: away, transactionCounts: away, commit: away, validators: away },
    indexer: new IndexerSource({ url: "http://127.0.0.1:1", timeoutMs: 10_000 }),
    clock: { nowMs: () => 1_000, monotonicMs: () => 1_000 },
    network: { evmChainId: 6940n, cosmosChainId: "chain_6940-1" },
  } as unknown as PageContext;
  const routes = [...homeRoutes(context), ...blockRoutes(context)];
  const page = await openPage(
    routes.find((one) => one.path === path),
    { parameter, query, signal },
  );
  const { root } = shownContent(page.content);
  const links = all(root, "a").map(({ attributes }) => attributes.get("href") ?? "");
  return { text: textOf(root), links, isFinal: page.isFinal === true };
}

it("has a first page and a list of the blocks that it has", async () => {
  const node = new PrunedNode();
  node.oldest = 100;
  node.newest = 103;
  const blocks = [103, 102, 101, 100].map((height) => `/block/${height}`);
  const first = await shown(node, "/");
  expect(first.links.filter((href) => blocks.includes(href))).toEqual([blocks[0], ...blocks]);
  expect(first.text).toContain("The newest blocks have none.");
  const list = await shown(node, "/blocks");
  expect(list.links.filter((href) => href.startsWith("/block/"))).toEqual(blocks);
  expect(list.text).toContain("The node has deleted data that is so old.");
  // Nothing is behind it.
  expect(list.links.filter((href) => href.startsWith("/blocks?"))).toEqual([]);
  const before = await shown(node, "/blocks", "before=50");
  expect(before.text).toContain("The node has deleted data that is so old.");
});

it("shows its oldest block, of which it has all but the moves", async () => {
  const node = new PrunedNode();
  node.oldest = 100;
  node.newest = 110;
  const { text, links, isFinal } = await shown(node, "/block", "", "100");
  expect(text).toContain(keccak256Hex(Buffer.from("100")));
  expect(text).toContain("The node has deleted data that is so old.");
  expect(links).toContain("/block/101");
  // Another node may have them.
  expect(isFinal).toBe(false);
});

it("is followed on, where the block that was its head is deleted meanwhile", async () => {
  const node = new PrunedNode();
  node.newest = 10;
  const stopping = new AbortController();
  const heads: number[] = [];
  const tracker = new HeadTracker({
    chain: new ChainSource(node.rpc, {} as EvmClient),
    wsUrl: "ws://127.0.0.1:1",
    log: silentLog,
    signal: stopping.signal,
    onHead: ({ height }) => heads.push(height),
  });
  tracker.start();
  await until(() => heads.includes(10), { timeoutMs: 10_000, what: "the first head" });
  // As after hours without a node, and with one that has synced anew.
  node.oldest = 500;
  node.newest = 510;
  await until(() => heads.includes(510), { timeoutMs: 10_000, what: "the head of now" });
  // Whether it is the same chain cannot be told: no page of before is given as final.
  expect(tracker.generation).toBe(1);
  stopping.abort();
  await tracker.stop().catch(() => undefined);
});

it("judges the age of the newest block by how often the chain has blocks", async () => {
  const node = new PrunedNode();
  [node.newest, node.timestampSeconds] = [3, 121];
  expect((await shown(node, "/")).text).toContain("clocks differ");
  node.intervalSeconds = 30;
  expect((await shown(node, "/")).text).not.toContain("clocks differ");
});

it("tells of a chain whose time is ahead of the clock: its age says nothing then", async () => {
  const node = new PrunedNode();
  const clock = { nowMs: () => 1_000, monotonicMs: () => 1_000 };
  const chainId = () => Promise.resolve(6940n);
  const chain = new ChainSource(node.rpc, { chainId } as unknown as EvmClient);
  const network = { evmChainId: 6940n };
  const ready = createNodeReadiness({ chain, network, clock, maxBlockAgeMs: 60_000, signal });
  node.timestampSeconds = 61;
  expect(await ready()).toEqual({ ready: true });
  expect((await shown(node, "/")).text).toContain("newest block 60 s ahead of this server's clock");
  node.timestampSeconds = 62;
  const reason = "the newest block (0) is 61 s ahead of this machine's clock";
  expect(await ready()).toEqual({ ready: false, reason });
});
