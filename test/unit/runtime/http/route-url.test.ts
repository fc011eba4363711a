/** Servers that are reached below a path, or with a user and a password. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { getText } from "../../../../explorer/sources/json-get.js";
import { routeOf } from "../../../../runtime/http/outgoing/route-url.js";

const asked: string[] = [];
const server = createServer(({ url, headers }, response) => {
  asked.push(`${url} ${headers.authorization ?? "-"}`);
  response.end("{}");
});
let port = 0;

beforeAll(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.close();
});

it.each([
  ["", "/v1/tokens", "/v1/tokens -"],
  ["/indexer", "/v1/tokens?limit=5", "/indexer/v1/tokens?limit=5 -"],
  ["/a/b/?key=k", "/v1/tokens", "/a/b/v1/tokens?key=k -"],
])("a route below %s is asked for there", async (below, route, expected) => {
  const url = routeOf(`http://127.0.0.1:${port}${below}`, route);
  const { signal } = new AbortController();
  expect((await getText(url, { timeoutMs: 5_000, maxBytes: 100, signal })).status).toBe(200);
  expect(asked.at(-1)).toBe(expected);
});

it("a user and a password are told in a header", async () => {
  const url = routeOf(`http://ann:p%40ss%C3%BC@127.0.0.1:${port}/x`, "/ready");
  const { signal } = new AbortController();
  await getText(url, { timeoutMs: 5_000, maxBytes: 100, signal });
  // As curl sends it for -u 'ann:p@ssü'.
  expect(asked.at(-1)).toBe("/x/ready Basic YW5uOnBAc3PDvA==");
});
