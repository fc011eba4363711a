/** The first page of a chain where little goes on: its newest transactions are older than its newest blocks. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { homeRoutes } from "../../../../explorer/pages/home.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { ChainSource } from "../../../../explorer/sources/chain-source.js";
import { IndexerSource } from "../../../../explorer/sources/indexer-source.js";
import { RpcError } from "../../../../rpc-client/errors.js";
import type { EvmClient } from "../../../../rpc-client/evm-client.js";
import type { RpcCall, RpcOutcome } from "../../../../rpc-client/json-rpc.js";
import { answeredBy, headerAt, WORD } from "../../../helpers/pages/answered-node.js";
import { all, textOf } from "../../../helpers/pages/html.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const { signal } = new AbortController();
const HEAD = 100;

const hashOf = (name: string) => keccak256Hex(Buffer.from(name));
const hashAt = (height: number, index: number) => hashOf(`${height}-${index}`);
const quantity = (value: number) => `0x${value.toString(16)}`;

/** Transactions of the EVM by height; the node has no block below `oldest`. */
let counts: ReadonlyMap<number, number>;
let oldest: number;

function answer({ method, params }: RpcCall): RpcOutcome {
  const height = params[0] === "latest" ? HEAD : Number(params[0]);
  if (height < oldest) {
    const error = new RpcError("pruned history unavailable", { rpcCode: 4444, method });
    return { ok: false, error };
  }
  const count = counts.get(height) ?? 0;
  if (method === "eth_getBlockTransactionCountByNumber") {
    return { ok: true, result: quantity(count) };
  }
  if (method === "eth_getTransactionByBlockNumberAndIndex") {
    const index = Number(params[1]);
    return { ok: true, result: index < count ? transaction(height, index) : null };
  }
  return { ok: true, result: headerAt(height, 1) };
}

function transaction(height: number, index: number) {
  return {
    hash: hashAt(height, index),
    blockHash: hashOf(String(height)),
    blockNumber: quantity(height),
    transactionIndex: quantity(index),
    from: `0x${"11".repeat(20)}`,
    to: `0x${"22".repeat(20)}`,
    value: "0x1",
    nonce: "0x0",
    gas: "0x5208",
    gasPrice: "0x1",
    input: "0x",
    type: "0x0",
    chainId: "0x1b1c",
    v: "0x1",
    r: "0x1",
    s: "0x1",
  };
}

const rpc = answeredBy(answer);

/** What the indexer answers, and how often it was asked. */
let status: number;
let listed: readonly { kind: string; height: number; index: number }[];
let indexedHash: string;
let asked: number;
let isSilent: boolean;

let server: Server;
let indexer: IndexerSource;

beforeAll(async () => {
  server = createServer((_, response) => {
    asked += 1;
    if (isSilent) return;
    const meta = { indexedHeight: HEAD, indexedHash };
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ meta, items: listed, next: null }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  indexer = new IndexerSource({ url: `http://127.0.0.1:${port}`, timeoutMs: 300_000 });
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** Hashes of transactions that the first page links to, and its text. */
async function home(given: {
  counts: Readonly<Record<number, number>>;
  listed?: typeof listed;
  status?: number;
  oldest?: number;
  indexedHash?: string;
  isSilent?: boolean;
}) {
  counts = new Map(Object.entries(given.counts).map(([height, count]) => [Number(height), count]));
  listed = given.listed ?? [];
  status = given.status ?? 200;
  oldest = given.oldest ?? 0;
  indexedHash = given.indexedHash ?? hashOf(String(HEAD));
  asked = 0;
  isSilent = given.isSilent ?? false;
  const away = () => Promise.reject(new Error("no consensus RPC"));
  const context = {
    chain: new ChainSource(rpc, {} as EvmClient),
    consensus: { supplies: away, transactionCounts: away },
    indexer,
    clock: { nowMs: () => 1_000, monotonicMs: () => 1_000 },
    network: { evmChainId: 6940n, cosmosChainId: "chain_6940-1" },
  } as unknown as PageContext;
  const page = await openPage(homeRoutes(context)[0], { query: "", signal });
  const { root } = shownContent(page.content);
  const links = all(root, "a").map(({ attributes }) => attributes.get("href") ?? "");
  const hashes = links.flatMap((link) => /^\/tx\/(.*)$/.exec(link)?.[1] ?? []);
  return { hashes, text: textOf(root) };
}

const evm = (height: number, index: number) => ({ kind: "evm", height, index });

it("shows the last ones where the newest blocks have none", async () => {
  const { hashes, text } = await home({
    counts: { 40: 2, 7: 1 },
    // Of a Cosmos transaction the EVM knows nothing; the node says what stands at a place.
    listed: [
      { kind: "cosmos", height: 60, index: 0 },
      evm(40, 1),
      evm(40, 0),
      evm(7, 0),
      evm(6, 0),
    ],
  });
  expect(hashes).toEqual([hashAt(40, 1), hashAt(40, 0), hashAt(7, 0)]);
  expect(text).not.toContain("The newest blocks have none.");
});

it("shows each once, those of the newest blocks first, and twelve at most", async () => {
  const older = Array.from({ length: 11 }, (_, back) => evm(50 - back, 0));
  const { hashes } = await home({
    counts: Object.fromEntries([[95, 2], ...older.map(({ height }) => [height, 1])]),
    listed: [evm(95, 1), evm(95, 0), ...older],
  });
  const places = [evm(95, 1), evm(95, 0), ...older.slice(0, 10)];
  expect(hashes).toEqual(places.map(({ height, index }) => hashAt(height, index)));
});

it("asks no indexer where the newest blocks have enough", async () => {
  const { hashes } = await home({ counts: { 99: 20 } });
  expect(hashes).toHaveLength(12);
  expect(asked).toBe(0);
});

it("does without an indexer that is away or of another chain, and without blocks that are deleted", async () => {
  const given = { counts: { 98: 1, 40: 1 }, listed: [evm(98, 0), evm(40, 0)] };
  const faults = [{ status: 503 }, { status: 400 }, { isSilent: true }, { indexedHash: WORD }];
  for (const fault of [...faults, { oldest: 80 }]) {
    expect((await home({ ...given, ...fault })).hashes).toEqual([hashAt(98, 0)]);
  }
  expect((await home(given)).hashes).toEqual([hashAt(98, 0), hashAt(40, 0)]);
});
