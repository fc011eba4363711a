/** A random chain, indexed and served over HTTP, and its blocks as clients see them. */
import { afterAll, beforeAll, expect } from "@jest/globals";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import request from "supertest";
import type { Hash32 } from "../../../../../chain/hex.js";
import { NETWORKS } from "../../../../../chain/networks.js";
import type { HttpServer } from "../../../../../runtime/http/http-server.js";
import { type LevelStore, openLevelStore } from "../../../../../runtime/files/level-store.js";
import { createLogger } from "../../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../../runtime/process/metrics.js";
import { createSidecarServer } from "../../../../../sidecar/app.js";
import { encodeBlock } from "../../../../../sidecar/rosetta/encoded-block.js";
import { eventRoutes } from "../../../../../sidecar/data-api/events.js";
import { networkRoutes } from "../../../../../sidecar/data-api/network.js";
import type { RosettaBlock } from "../../../../../sidecar/rosetta/operations.js";
import { searchRoutes } from "../../../../../sidecar/data-api/search.js";
import { unavailable } from "../../../../../sidecar/rosetta/endpoint.js";
import { postingWrites } from "../../../../../sidecar/index/search/search-postings.js";
import { createTransactionSearch } from "../../../../../sidecar/index/search/search-query.js";
import { createRandom } from "../../../../helpers/random.js";
import { randomChain, TOKENS } from "../../index/random-blocks.js";

/** Of the randomness of a file's tests. */
export const SEED = 41;
/** The randomness. */
export const random = createRandom(SEED);
/** The chain's blocks. */
export const chain = randomChain(random, { heights: 120, maxTransactions: 30, accounts: 25 });
/** Height of the newest. */
export const tip = chain.length - 1;
/** Blocks as /block serves them: what is compared is what clients see. */
export const served = chain.map((block) => encodeBlock(block));
/** The same, read. */
export const seen: RosettaBlock[] = served.map(
  ({ body }) => JSON.parse(body.toString("utf8")).block,
);

/** A file of the clone. */
export const path = (relative: string) =>
  fileURLToPath(new URL(`../../../../../${relative}`, import.meta.url));

/** The part of `BlockTransaction` that is looked at. */
export interface Shown {
  readonly block_identifier: RosettaBlock["block_identifier"];
  readonly transaction: RosettaBlock["transactions"][number];
}

/** A reply to a search. */
export interface Page {
  readonly status: number;
  readonly body: {
    readonly transactions: readonly Shown[];
    readonly total_count: number;
    readonly next_offset?: number;
  };
}

/** A reply about events. */
export interface Events {
  readonly max_sequence: number;
  readonly events: readonly {
    readonly sequence: number;
    readonly type: string;
    readonly block_identifier: { readonly index: number; readonly hash: string };
  }[];
}

const SERVED = ["/network/list", "/network/options", "/events/blocks", "/search/transactions"];

/** A server over these blocks, whose index lies in a store. */
export function serverOver(
  store: LevelStore,
  blocks: readonly RosettaBlock[],
  encoded = blocks.map((block) => encodeBlock(block)),
  onRead = () => Promise.resolve(),
): HttpServer {
  const network = NETWORKS.testnet;
  const places = new Map(
    blocks.flatMap(({ transactions }, height) =>
      transactions.map(
        ({ transaction_identifier: { hash } }, position) => [hash, { height, position }] as const,
      ),
    ),
  );
  const index = {
    placeOf: (hash: Hash32) => places.get(hash),
    identifierAt: (height: number) => blocks[height]?.block_identifier,
    async block(height: number) {
      await onRead();
      const block = encoded[height];
      if (block === undefined) throw new Error("no block");
      return block;
    },
  };
  const newest = blocks.at(-1)?.block_identifier;
  if (newest === undefined) throw new Error("a chain has a block");
  const ports = { network, index, tip: () => Promise.resolve(newest) };
  return createSidecarServer({
    name: "search-test",
    listen: { host: "127.0.0.1", port: 0 },
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    readiness: () => ({ ready: true }),
    dataRoutes: [
      ...networkRoutes(network),
      ...eventRoutes(ports),
      ...searchRoutes({ ...ports, registry: TOKENS, search: createTransactionSearch(store) }),
      ...unavailable(pathsBut("data", SERVED), "NOT_AVAILABLE"),
    ],
    constructionRoutes: unavailable(pathsBut("construction", []), "NOT_AVAILABLE"),
  });
}

function pathsBut(name: string, without: readonly string[]): string[] {
  const text = readFileSync(path(`openapi/${name}.yaml`), "utf8");
  const paths = [...text.matchAll(/^ {2}(\/[a-z_/]+):$/gm)].map(([, found = ""]) => found);
  return paths.filter((found) => !without.includes(found));
}

const folder = mkdtempSync(join(tmpdir(), "causeway-search-api-"));
/** The stores that were opened; the first one is the chain's. */
export const stores: LevelStore[] = [];
let server: HttpServer;

/** A store of its own with the postings of these blocks. */
export async function indexed(name: string, blocks: readonly RosettaBlock[]): Promise<LevelStore> {
  const options = { cacheBytes: 1 << 20, writeBufferBytes: 1 << 20 };
  const store = await openLevelStore(join(folder, name), options);
  stores.push(store);
  await store.write(
    postingWrites(blocks, (key) => store.get(key)),
    { durable: false },
  );
  return store;
}

beforeAll(async () => {
  server = serverOver(await indexed("chain", chain), chain, served);
});

afterAll(async () => {
  for (const store of stores) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Asks the chain's server, or another one. */
export const post = (at: string, body: Record<string, unknown>, on = server) =>
  request(on.app)
    .post(at)
    .send({ network_identifier: { blockchain: "token", network: "testnet" }, ...body });
/** A search. */
export const search = (fields: Record<string, unknown>, on = server): Promise<Page> =>
  post("/search/transactions", fields, on);
/** Events of blocks. */
export const events = async (fields: Record<string, unknown>): Promise<Events> => {
  const { status, body } = await post("/events/blocks", fields);
  expect({ fields, status }).toEqual({ fields, status: 200 });
  return body;
};
