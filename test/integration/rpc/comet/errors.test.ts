/**
 * What the consensus RPC refuses, and how: errors of each transport, proxies' targets, batches, web
 * pages.
 */
import { describe, expect, it } from "@jest/globals";
import { connect } from "node:net";
import { toBech32 } from "../../../../chain/address.js";
import { until } from "../../../helpers/until.js";
import { cafe, serverForTests } from "./asked-server.js";

const server = serverForTests();
const { get, post, call } = server;

describe("errors", () => {
  it("have CometBFT's numbers and texts, and HTTP status 500 on GET only", async () => {
    const future = "height 99 must be less than or equal to the current blockchain height 7";
    for (const path of ["block", "header", "commit", "block_results"]) {
      const reply = await get(`${path}?height=99`);
      const expected = { code: -32603, message: "Internal error", data: future };
      expect([path, reply.status, reply.error]).toEqual([path, 500, expected]);
    }
    const reply = await call("block", { height: "0" });
    expect([reply.status, reply.error?.data]).toEqual([
      200,
      "height must be greater than 0, but got 0",
    ]);
    expect((await get("block?height=x")).error?.code).toBe(-32602);
    expect((await get("blockchain?minHeight=6&maxHeight=3")).error?.data).toBe(
      "min height 6 can't be greater than max height 3",
    );
    const unknown = `tx (${"AB".repeat(32)}) not found`;
    expect((await get(`tx?hash=0x${"ab".repeat(32)}`)).error?.data).toBe(unknown);
    expect((await get("tx")).error?.data).toBe("transaction hash cannot be empty");
    expect((await get('tx_search?query="a.b=1"&order_by="up"')).error?.data).toContain("order_by");
    expect((await get('tx_search?query="a.b=="')).error?.data).toContain("offset");
  });

  it("tell malformed requests, unknown methods and routes apart", async () => {
    // CometBFT's http_json_handler.go: what is no request at all is a 500.
    const oddMethod = '{"jsonrpc":"2.0","id":1,"method":5}';
    const oddId = '{"id":{},"method":"health"}';
    for (const body of ["{", "5", '"x"', "null", "[1]", oddId, oddMethod]) {
      const reply = await post(body);
      expect([body, reply.status, reply.error?.code]).toEqual([body, 500, -32700]);
    }
    const inside = await post([{ jsonrpc: "2.0", id: 1, method: "health" }, 7]);
    expect([inside.status, inside.error?.code]).toEqual([500, -32700]);
    expect((await post({ jsonrpc: "2.0", id: 1 })).error).toMatchObject({ code: -32601 });
    expect((await call("no_such", {})).error).toEqual({
      code: -32601,
      message: "Method not found",
    });
    expect((await call("subscribe", { query: "a.b=1" })).error?.code).toBe(-32601);
    expect((await get("subscribe?query=x")).status).toBe(404);
    const plain = await fetch(`${server.chain.url}/websocket`);
    expect([plain.status, await plain.text()]).toEqual([400, "Bad Request\n"]);
    expect((await call("block", ["1", "2"])).error?.code).toBe(-32602);
    expect((await call("block", ["1"])).result).toMatchObject({
      block: { header: { height: "1" } },
    });
    const listed = await fetch(server.chain.url);
    expect(await listed.text()).toContain("/tx_search?query=_&prove=_");
  });

  it("answer clients that would rather have HTTP/2, as Java's would", async () => {
    const { hostname, port } = new URL(server.chain.url);
    const socket = connect(Number(port), hostname);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    const head =
      "HTTP/1.1\r\nHost: here\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" +
      "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n";
    const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "health" });
    socket.write(`POST / ${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    let isEnded = false;
    socket.once("end", () => (isEnded = true));
    await until(() => text.includes("}") || isEnded, { timeoutMs: 10_000 });
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"id":7,"result":\{\}\}$/);
    text = "";
    socket.write(`GET /status ${head}\r\n`);
    await until(() => text.includes("}") || isEnded, { timeoutMs: 10_000 });
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"sync_info"/);
    socket.destroy();
  });

  it("take a target with scheme and host for what it means", async () => {
    const { hostname, port } = new URL(server.chain.url);
    const socket = connect(Number(port), hostname);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.write("GET http://node.example/block?height=2 HTTP/1.1\r\nHost: node.example\r\n\r\n");
    await until(() => /\r\n\r\n./.test(text), { timeoutMs: 10_000 });
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"height":"2"/);
    socket.destroy();
  });

  it("take the arguments of a form, before those of the URL", async () => {
    const type = "application/x-www-form-urlencoded";
    const heightOf = async (path: string, body: string, contentType = type) => {
      const headers = { "Content-Type": contentType };
      const response = await fetch(`${server.chain.url}/${path}`, {
        method: "POST",
        headers,
        body,
      });
      const { result } = (await response.json()) as { result: { block: { header: object } } };
      expect(response.status).toBe(200);
      return Number((result.block.header as { height: string }).height);
    };
    expect(await heightOf("block", "height=2")).toBe(2);
    expect(await heightOf("block", "height=%222%22", `${type}; charset=utf-8`)).toBe(2);
    expect(await heightOf("block?height=3", "height=2")).toBe(2);
    expect(await heightOf("block?height=3", "")).toBe(3);
    expect(await heightOf("block?height=3", "height=2", "text/plain")).toBe(3);
    const search = `query="transfer.recipient='${toBech32(cafe)}'&transfer.amount=7"&page=1`;
    const headers = { "Content-Type": type };
    const found = await fetch(`${server.chain.url}/tx_search`, {
      method: "POST",
      headers,
      body: search,
    });
    expect(await found.json()).toMatchObject({ result: { txs: [{ height: "1", index: 1 }] } });
    const body = `height=${" ".repeat(1_000_001)}`;
    const large = await fetch(`${server.chain.url}/block`, { method: "POST", headers, body });
    expect(large.status).toBe(413);
  });

  it("refuse a proof that they do not have, instead of an answer without one", async () => {
    const path = "/cosmos.bank.v1beta1.Query/TotalSupply";
    const response = async (prove: boolean) => {
      const { result } = await call("abci_query", { path, data: "", prove });
      return (result as { response: Record<string, unknown> }).response;
    };
    expect(await response(false)).toMatchObject({ code: 0, proofOps: null });
    expect(await response(true)).toMatchObject({
      code: 18,
      codespace: "sdk",
      value: null,
      log: expect.stringContaining("eth_getProof"),
    });
  });

  it("answer batches in order, leave notifications out, and bound them", async () => {
    const request = (id: unknown, method: string) => ({ jsonrpc: "2.0", id, method });
    const batch = [request(1, "health"), { jsonrpc: "2.0", method: "health" }, request("b", "x")];
    const response = await fetch(server.chain.url, { method: "POST", body: JSON.stringify(batch) });
    const answers = (await response.json()) as readonly { id: unknown }[];
    expect(answers.map(({ id }) => id)).toEqual([1, "b"]);
    const many = Array.from({ length: 1_001 }, (_, id) => request(id, "health"));
    expect((await post(many)).error?.data).toBe("batch of more than 1000 requests");
    const large = await fetch(server.chain.url, { method: "POST", body: " ".repeat(1_000_001) });
    expect(large.status).toBe(413);
  });

  it("let listed web pages read, and no others", async () => {
    const ask = (origin: string) =>
      fetch(`${server.chain.url}/health`, { headers: { Origin: origin } });
    const allowed = await ask("https://wallet.example");
    const header = "access-control-allow-origin";
    expect(allowed.headers.get(header)).toBe("https://wallet.example");
    expect((await ask("https://other.example")).headers.get(header)).toBeNull();
  });
});
