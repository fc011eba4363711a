/** Sidecars with an index over a scripted node, and what tests ask of both. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import request from "supertest";
import { toQuantity } from "../../../../chain/hex.js";
import { change, hashOf, POOL, startFakeChain } from "../../../helpers/chains/journal-chain.js";
import { type FakeNode, RpcFault } from "../../../helpers/chains/fake-node.js";
import { call, type Online, type OnlineOptions, onlineServer } from "../servers.js";

const closers: (() => Promise<void> | void)[] = [];

/** Ends what a test has started, newest first; for `afterEach`. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).toReversed()) await close();
}

/** A folder that is gone after the test. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-index-"));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A scripted node that is closed after the test. */
export async function startNode(...options: Parameters<typeof startFakeChain>): Promise<FakeNode> {
  const node = await startFakeChain(...options);
  closers.push(() => node.close());
  return node;
}

/** A sidecar over a node; its connections are closed after the test. */
export function start(node: FakeNode, options: OnlineOptions = {}): Online {
  const online = onlineServer(node.url, options);
  closers.push(() => online.rpc.close());
  return online;
}

/** Blocks after the fake chain's own, each with a mint. */
export function extend(blocks: Record<string, unknown>[], count: number, name = "block"): void {
  for (let nth = 0; nth < count; nth++) {
    const height = blocks.length;
    blocks.push({
      blockHash: hashOf(`${name} ${height}`),
      blockNumber: toQuantity(height),
      parentHash: blocks[height - 1]?.["blockHash"],
      timestampMs: 1_790_000_000_000 + height,
      transactions: [],
      blockChanges: [change({ reason: "MINT", to: POOL, amount: 5n })],
      minted: "0x5",
      burned: "0x0",
    });
  }
}

/** `eth_call` as a node answers it: by the state that it is asked for, and only where it has it. */
export const callsOver = (blocks: readonly Record<string, unknown>[]) => ({
  eth_call: ([, at]: readonly unknown[]) => {
    const isHash = typeof at === "object" && at !== null && "blockHash" in at;
    const known = isHash
      ? blocks.some(({ blockHash }) => blockHash === at.blockHash)
      : blocks[Number(at)] !== undefined;
    if (!known) throw new RpcFault(-32_000, "header not found");
    return "0x01";
  },
});

/** How many journals of blocks a node was asked for. */
export const journalReads = (node: FakeNode) =>
  node.calls.filter(({ method }) => method === "causeway_getBlockJournal").length;

/** Asks for a block by its height. */
export const block = (online: Online, index: number) =>
  call(online.server, "/block", { block_identifier: { index } });

/** The reply of /block as the index has it: no server is made for it. */
export const replyOf = async (online: Online, index: number) =>
  (await online.index.blocks.block(index)).body.toString("utf8");

/** What /ready answers. */
export const ready = async (online: Online): Promise<{ ready: boolean; reason?: string }> =>
  (await request(online.server.app).get("/ready")).body;
