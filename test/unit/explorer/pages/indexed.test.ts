/** What an indexer refuses is told apart from one that does not answer, and from one of other blocks. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { NodeFault } from "../../../../rpc-client/errors.js";
import { ask, indexedNote } from "../../../../explorer/pages/indexed.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { searchRoutes } from "../../../../explorer/pages/search.js";
import { IndexerSource } from "../../../../explorer/sources/indexer-source.js";
import { textsOf } from "../../../../explorer/text/catalogue.js";
import { openPage } from "../../../helpers/pages/explorer-page.js";

const TOKEN = parseAddress(`0x${"70".repeat(20)}`);
const { signal } = new AbortController();

let server: Server;
let source: IndexerSource;
let status = 200;
const INDEXED = `0x${"9a".repeat(32)}`;

/** What the node says of the index's newest block. */
let hashAt: () => Promise<unknown> = () => Promise.resolve(INDEXED);
const node = { chain: { hashAt: () => hashAt() } } as unknown as PageContext;
const asked: URL[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(new URL(request.url ?? "/", "http://indexer"));
    response.statusCode = status;
    const meta = { indexedHeight: 9, indexedHash: INDEXED };
    response.end(JSON.stringify({ meta, items: [], next: null }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  source = new IndexerSource({ url, timeoutMs: 10_000 });
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const holders = () => ask(node, source.holders(TOKEN, undefined, signal), signal);

it("shows nothing of an index whose newest block is another one at the node", async () => {
  const t = textsOf("en");
  hashAt = () => Promise.resolve(INDEXED);
  expect(await holders()).toMatchObject({ items: [], indexedHeight: 9, isAhead: false });
  hashAt = () => Promise.resolve(`0x${"0b".repeat(32)}`);
  expect(await holders()).toBe("foreign");
  expect(JSON.stringify(indexedNote("foreign", t))).toContain("other blocks than the node");
});

it("says of an index that is ahead of the node that its blocks may be lost", async () => {
  hashAt = () => Promise.resolve(undefined);
  const found = await holders();
  expect(found).toMatchObject({ isAhead: true });
  expect(JSON.stringify(indexedNote(found, textsOf("en")))).toContain("does not have that block");
});

it("shows what the index has where the node cannot tell", async () => {
  hashAt = () => Promise.reject(new NodeFault("NODE_UNREACHABLE", "no answer"));
  expect(await holders()).toMatchObject({ indexedHeight: 9, isAhead: false });
});

it("is the reader's fault where the place in a list is none, as behind an index that was made anew", async () => {
  for (status of [400, 422]) {
    await expect(ask(node, source.holders(TOKEN, "stale", signal), signal)).rejects.toMatchObject({
      code: "BAD_REQUEST",
    });
  }
  for (status of [429, 500, 503]) {
    expect(await holders()).toBe("unavailable");
  }
});

it("is never asked for a name that no text of a database can be", async () => {
  status = 200;
  const context = {
    ...node,
    indexer: source,
    staking: { find: () => Promise.resolve([]) },
    tokens: new Map(),
  } as unknown as PageContext;
  const page = await openPage(searchRoutes(context)[0], { query: { q: "a\0b" }, signal });
  expect(page.status).toBe(404);
  expect(asked.at(-1)?.searchParams.get("search")).toBe("a b");
});
