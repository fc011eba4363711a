import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { discardRest } from "../../../../runtime/http/http-body.js";
import { HttpError } from "../../../../runtime/http/http-errors.js";
import { type HttpServer, createHttpServer } from "../../../../runtime/http/http-server.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { connectTo } from "../../../helpers/http/sending-client.js";
import { singleKeyAccess } from "../../../helpers/services/single-key.js";

const KEY = "k".repeat(64);

/** A request whose body the server has not seen whole when it answers. */
const BODY = Buffer.alloc(10_000_000, "x");

const head = (key: string, framing: string) =>
  "POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
  `Authorization: Bearer ${key}\r\n${framing}\r\n\r\n`;

describe("bodies of requests that are refused", () => {
  let server: HttpServer;

  beforeAll(async () => {
    server = createHttpServer({
      name: "test-api",
      apiSpecPath: fileURLToPath(new URL("../../../fixtures/runtime/api.yaml", import.meta.url)),
      listen: { host: "127.0.0.1", port: 0 },
      routes: [
        {
          method: "post",
          path: "/v1/things",
          scope: "things:write",
          handler: async () => ({ status: 201, body: {} }),
        },
      ],
      access: singleKeyAccess(KEY),
      mapError: (error) => ({
        status: error instanceof HttpError ? error.status : 500,
        body: { code: "REFUSED" },
      }),
      readiness: () => ({ ready: true }),
      log: createLogger({ component: "test", destination: { write: () => undefined } }),
      metrics: createMetrics({ processMetrics: false }),
      bodyLimitBytes: 1_000,
    });
    await server.start();
  });

  afterAll(async () => {
    await server.stop();
  });

  it.each([
    ["413 to one whose length is told", KEY, `Content-Length: ${BODY.length}`, "", "", 413],
    [
      "413 to one without a length",
      KEY,
      "Transfer-Encoding: chunked",
      "989680\r\n",
      "\r\n0\r\n\r\n",
      413,
    ],
    ["401 to one of a stranger", "other", `Content-Length: ${BODY.length}`, "", "", 401],
  ])(
    "does not reset a client that still sends: %s",
    async (_name, key, framing, open, end, status) => {
      const client = connectTo(server.port);
      client.socket.write(head(key, framing) + open);
      client.socket.write(BODY.subarray(0, 100_000));
      await client.answered(1);
      client.socket.write(BODY.subarray(100_000));
      client.socket.write(`${end}${head("other", "Content-Length: 2")}{}`);
      expect(await client.answered(2)).toEqual([`HTTP/1.1 ${status}`, "HTTP/1.1 401"]);
      client.socket.destroy();
    },
  );

  it("closes behind the last byte for a client that wants it closed", async () => {
    const client = connectTo(server.port);
    client.socket.write(head(KEY, `Connection: close\r\nContent-Length: ${BODY.length}`));
    client.socket.write(BODY.subarray(0, 100_000));
    expect(await client.answered(1)).toEqual(["HTTP/1.1 413"]);
    client.socket.write(BODY.subarray(100_000));
    await client.closed;
    expect(client.faults).toEqual([]);
    expect(client.socket.bytesWritten).toBeGreaterThan(BODY.length);
  });

  it("ends the connection of a client that sends without end", async () => {
    const other = createServer((request, response) => {
      discardRest(request, response, 1_000_000);
      response.writeHead(413).end();
    });
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const client = connectTo(port);
    client.socket.write(head(KEY, `Content-Length: ${BODY.length}`));
    client.socket.write(BODY);
    await client.closed;
    other.closeAllConnections();
    other.close();
  });
});
