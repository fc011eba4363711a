/** One connection that asks and asks: it waits for its answers, and so does not hold up others. */
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { errorCode } from "../../../../chain/errors.js";
import { HttpError } from "../../../../runtime/http/http-errors.js";
import { createHttpServer, type HttpServer } from "../../../../runtime/http/http-server.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { until } from "../../../helpers/until.js";

const waiting: (() => void)[] = [];
const sockets: Socket[] = [];
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
        handler: async ({ body }) => {
          const { amountAtoken } = body as { amountAtoken: string };
          await new Promise<void>((resolve) => waiting.push(resolve));
          return { status: 201, body: { made: amountAtoken } };
        },
      },
      { method: "get", path: "/v1/things/{id}", handler: async () => ({ body: { id: "here" } }) },
    ],
    mapError: (error) => ({
      status: error instanceof HttpError ? error.status : 500,
      body: { code: errorCode(error) },
    }),
    readiness: async () => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return { ready: true };
    },
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 100_000,
  });
  await server.start();
});

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

afterAll(() => server.stop());

function open(): { socket: Socket; text: () => string } {
  const socket = connect(server.port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  sockets.push(socket);
  return { socket, text: () => text };
}

/** About 20 KB each, so that few arrive in one piece. */
function post(amountAtoken: string): string {
  const body = JSON.stringify({ amountAtoken }) + " ".repeat(20_000);
  return (
    "POST /v1/things HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n" +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  );
}

const madeIn = (text: string) =>
  [...text.matchAll(/"made":"([^"]+)"/g)].map(([, amount]) => amount);

describe("a connection that does not wait for its answers", () => {
  it("is read no further until they are sent, and gets all of them in order", async () => {
    const amounts = Array.from({ length: 1_000 }, (_, nth) => String(nth + 1));
    const { socket, text } = open();
    let written = false;
    socket.write(amounts.map(post).join(""), () => {
      written = true;
    });
    await until(() => waiting.length >= 24, { timeoutMs: 10_000 });
    // Others are served meanwhile; by then everything that is ever read has been.
    for (let nth = 0; nth < 20; nth += 1) {
      const other = open();
      other.socket.write("GET /v1/things/1 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
      await until(() => other.text().includes('"here"'), { timeoutMs: 10_000 });
    }
    expect(waiting.length).toBeLessThan(64);
    expect(written).toBe(false);
    const answerAll = () => {
      for (const answer of waiting.splice(0)) answer();
      return madeIn(text()).length === amounts.length;
    };
    await until(answerAll, { timeoutMs: 20_000 });
    expect(madeIn(text())).toEqual(amounts);
  });

  it("is told what cannot be read behind the answers to what it asked before", async () => {
    for (const unread of ["\0", "}", "no request\r\n\r\n"]) {
      const { socket, text } = open();
      let isEnded = false;
      socket.once("end", () => (isEnded = true));
      socket.write(post("1") + post("2") + unread);
      await until(() => waiting.length === 2, { timeoutMs: 10_000 });
      // Others are served meanwhile; by then what cannot be read was met.
      const other = open();
      other.socket.write("GET /v1/things/1 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
      await until(() => other.text().includes('"here"'), { timeoutMs: 10_000 });
      expect([unread, text()]).toEqual([unread, ""]);
      for (const answer of waiting.splice(0)) answer();
      await until(() => isEnded, { timeoutMs: 10_000 });
      const statuses = [...text().matchAll(/HTTP\/1\.1 ([0-9]+)/g)].map(([, status]) => status);
      expect([unread, statuses, madeIn(text())]).toEqual([
        unread,
        ["201", "201", "400"],
        ["1", "2"],
      ]);
    }
  });

  it("is told at once that a body cannot be read, which nobody waits for", async () => {
    const { socket, text } = open();
    socket.write(
      "POST /v1/things HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n" +
        "Transfer-Encoding: chunked\r\n\r\nno chunk\r\n",
    );
    await until(() => text().includes("HTTP/1.1 400"), { timeoutMs: 10_000 });
  });

  it("is read no further while its probes have no answer", async () => {
    const { socket, text } = open();
    const probe = `GET /ready HTTP/1.1\r\nHost: here\r\nX-Pad: ${"x".repeat(8_000)}\r\n\r\n`;
    socket.write(probe.repeat(2_000));
    await until(() => waiting.length >= 24, { timeoutMs: 10_000 });
    const other = open();
    other.socket.write("GET /v1/things/1 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    await until(() => other.text().includes('"here"'), { timeoutMs: 10_000 });
    expect(waiting.length).toBeLessThan(64);
    const answerAll = () => {
      for (const answer of waiting.splice(0)) answer();
      return text().split('"ready":true').length === 2_001;
    };
    await until(answerAll, { timeoutMs: 20_000 });
  });
});
