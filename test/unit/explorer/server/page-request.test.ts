/** What the servers of pages read of a request's head. */
import type { IncomingMessage } from "node:http";
import { expect, it } from "@jest/globals";
import { readAsked } from "../../../../web/server/page-request.js";

const request = (
  httpVersion: string,
  hosts: readonly string[],
  url = "/blocks?before=7",
  coding?: string,
) =>
  ({
    url,
    httpVersion,
    headers: { host: hosts[0], "transfer-encoding": coding },
    rawHeaders: ["Accept", "host", ...hosts.flatMap((host) => ["Host", host])],
  }) as unknown as IncomingMessage;

it("wants one Host header, as HTTP does, and none of clients from before it", () => {
  expect(readAsked(request("1.1", ["localhost"])).path).toBe("/blocks");
  expect(readAsked(request("1.0", [])).path).toBe("/blocks");
  expect(readAsked(request("1.1", [], "/health")).path).toBe("/health");
  for (const [version, hosts] of [
    ["1.1", []],
    ["1.1", ["localhost", "evil.example"]],
    ["1.0", ["localhost", "localhost"]],
  ] as const) {
    expect(() => readAsked(request(version, hosts))).toThrow("one Host header is needed");
  }
});

it("takes bodies in chunks, and in no other transfer coding", () => {
  const ask = (coding: string) => readAsked(request("1.1", ["localhost"], "/blocks", coding)).path;
  expect(ask("chunked")).toBe("/blocks");
  expect(() => ask("gzip, chunked")).toThrow("Transfer-Encoding");
});
