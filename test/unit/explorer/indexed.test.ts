/** What an indexer refuses is told apart from one that does not answer. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { ask } from "../../../explorer/pages/indexed.js";
import type { PageContext } from "../../../explorer/pages/context.js";
import { searchRoutes } from "../../../explorer/pages/search.js";
import type { Page } from "../../../explorer/server/page.js";
import { IndexerSource } from "../../../explorer/sources/indexer-source.js";
import { textsOf } from "../../../explorer/text/catalogue.js";

const TOKEN = parseAddress(`0x${"70".repeat(20)}`);
const { signal } = new AbortController();

let server: Server;
let source: IndexerSource;
let status = 200;
const asked: URL[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(new URL(request.url ?? "/", "http://indexer"));
    response.statusCode = status;
    response.end(JSON.stringify({ meta: { indexedHeight: 9 }, items: [], next: null }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  source = new IndexerSource({ url, timeoutMs: 10_000 });
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

it("is the reader's fault where the place in a list is none, as behind an index that was made anew", async () => {
  for (status of [400, 422]) {
    await expect(ask(source.holders(TOKEN, "stale", signal))).rejects.toMatchObject({
      code: "BAD_REQUEST",
    });
  }
  for (status of [429, 500, 503]) {
    expect(await ask(source.holders(TOKEN, undefined, signal))).toBe("unavailable");
  }
});

it("is never asked for a name that no text of a database can be", async () => {
  status = 200;
  const context = {
    indexer: source,
    staking: { validators: () => Promise.resolve({ items: [], next: undefined }) },
    tokens: new Map(),
  } as unknown as PageContext;
  const page = (await searchRoutes(context)[0]?.handle({
    parameter: "",
    query: new URLSearchParams({ q: "a\0b" }),
    isSent: false,
    language: "en",
    t: textsOf("en"),
    signal,
  })) as Page;
  expect(page.status).toBe(404);
  expect(asked.at(-1)?.searchParams.get("search")).toBe("a b");
});
