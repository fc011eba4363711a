/** What Etherscan's clients are answered by the server around `/api`: shares, faults and paths. */
import { request as httpRequest } from "node:http";
import { afterEach, expect, it } from "@jest/globals";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { MAX_FORM_BYTES } from "../../../../explorer/pages/contracts/contract.js";
import { verificationApiRoutes } from "../../../../explorer/pages/contracts/verification-api.js";
import { createPageServer, type PageServer } from "../../../../explorer/server/page-server.js";
import type { VerificationJob } from "../../../../explorer/verification/verifier.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { loadAssets } from "../../../../web/server/assets.js";

const FORM = "application/x-www-form-urlencoded";

let server: PageServer;
/** Who sent the verifications that were taken. */
let clients: unknown[];

afterEach(() => server.stop());

/** A server that verifies for a client so many shares in a minute, of which none passes. */
async function open(pagesPerMinute: number): Promise<void> {
  const waiting: Pick<VerificationJob, "outcome"> = { outcome: { kind: "waiting" } };
  clients = [];
  const submit = (_request: object, client: unknown) => {
    clients.push(client);
    return { id: "2" };
  };
  const contracts = { verifier: { job: () => waiting, submit }, store: undefined };
  const chain = { evm: { getCode: () => Promise.resolve("0x60") } };
  const routes = verificationApiRoutes({ chain, contracts } as unknown as PageContext);
  server = createPageServer({
    listen: { host: "127.0.0.1", port: 0 },
    network: "testnet",
    routes: [...routes, { path: "/blocks", hasParameter: false, handle: blocks }],
    assets: loadAssets(),
    cacheBytes: 2 ** 20,
    maxStreams: 1,
    pagesPerMinute,
    limitsLoopback: true,
    concurrentPages: 1,
    head: () => undefined,
    readiness: () => Promise.resolve({ ready: true }),
    accounts: () => undefined,
    generation: () => 0,
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    signal: new AbortController().signal,
  });
  await server.start();
}

const blocks = () => Promise.resolve({ title: "Blocks", content: undefined });

/** A form as forge sends it; what is answered has to be JSON, whatever it is. */
async function post(fields: Record<string, string>, path = "/api") {
  const body = new URLSearchParams({ module: "contract", ...fields });
  const reply = await fetch(`http://127.0.0.1:${server.port}${path}`, { method: "POST", body });
  const json = (await reply.json()) as { status: string; message: string; result: string };
  return { status: reply.status, retryAfter: reply.headers.get("retry-after"), json };
}

const asked = { action: "checkverifystatus", guid: "1" };
const sent = { action: "verifysourcecode", contractaddress: "x" };

it("asking how a verification goes costs a page, a verification sixty", async () => {
  await open(100);
  for (let count = 0; count < 39; count++) {
    const { status, json } = await post(asked);
    expect({ count, status, result: json.result }).toEqual({
      count,
      status: 200,
      result: "Pending in queue",
    });
  }
  expect((await post(sent)).json.result).toBe("Invalid contractaddress");
  expect((await post(asked)).status).toBe(200);
  expect(await post(asked)).toMatchObject({
    status: 429,
    json: { status: "0", message: "NOTOK", result: expect.stringMatching(/^Max rate limit/) },
  });
});

it("tells the verifier who sent a verification", async () => {
  await open(100);
  const contractaddress = `0x${"ab".repeat(20)}`;
  const fields = { ...sent, contractaddress, codeformat: "solidity-standard-json-input" };
  expect((await post(fields)).json.result).toBe("2");
  expect(clients).toEqual(["127.0.0.1"]);
});

it("a long form costs as much as a verification, whatever is in it", async () => {
  await open(70);
  const long = { ...asked, sourceCode: "x".repeat(20_000) };
  expect((await post(long)).status).toBe(200);
  expect((await post(long)).status).toBe(429);
});

it("a verification is possible where a minute has fewer pages than it costs", async () => {
  await open(6);
  expect((await post(sent)).status).toBe(200);
  const refused = await post(sent);
  expect(refused.status).toBe(429);
  expect(Number(refused.retryAfter)).toBeGreaterThan(0);
});

it("says as JSON that a form is too large", async () => {
  await open(100);
  const answer = await new Promise<{ status: number | undefined; text: string }>(
    (resolve, reject) => {
      const headers = { "content-type": FORM, "content-length": MAX_FORM_BYTES + 1 };
      const { port } = server;
      const request = httpRequest({
        host: "127.0.0.1",
        port,
        path: "/api",
        method: "POST",
        headers,
      });
      request.on("response", (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => {
          text += chunk.toString("utf8");
        });
        response.on("end", () => {
          request.destroy();
          resolve({ status: response.statusCode, text });
        });
      });
      request.on("error", reject);
      request.write("module=contract");
    },
  );
  expect(answer.status).toBe(413);
  expect(JSON.parse(answer.text)).toMatchObject({ status: "0", message: "NOTOK" });
});

it("a path that ends in a slash leads where it leads without", async () => {
  await open(100);
  expect((await post(asked, "/api/")).json.result).toBe("Pending in queue");
  for (const [path, status] of [
    ["/blocks", 200],
    ["/blocks/", 200],
    ["/blocks/7/", 404],
  ] as const) {
    const reply = await fetch(`http://127.0.0.1:${server.port}${path}`);
    expect({ path, status: reply.status }).toEqual({ path, status });
  }
});
