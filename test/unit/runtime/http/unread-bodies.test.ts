/** Clients of an API that send large bodies and do not end them: counted, bounded, let go. */
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "@jest/globals";
import { CLIENT_PATIENCE, HeldBytes } from "../../../../runtime/http/held-bytes.js";
import { HttpError } from "../../../../runtime/http/http-errors.js";
import { createHttpServer } from "../../../../runtime/http/http-server.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { createGate } from "../../../helpers/gate.js";
import { rawRequest } from "../../../helpers/http/raw-request.js";
import { connectTo } from "../../../helpers/http/sending-client.js";
import { until } from "../../../helpers/until.js";

const BODY_BYTES = 1024 * 1024;
const SENT_BYTES = 900_000;
const MAX_BYTES = 8 * BODY_BYTES;
const LARGE_ANSWER = 16 * BODY_BYTES;
const WAIT = { timeoutMs: 60_000 };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** A server whose handler answers once the gate is open. */
async function start() {
  const unread = new HeldBytes({ maxBytes: MAX_BYTES, ...CLIENT_PATIENCE }, systemClock);
  const unsent = new HeldBytes({ maxBytes: 2 * LARGE_ANSWER, ...CLIENT_PATIENCE }, systemClock);
  const gate = createGate();
  const server = createHttpServer({
    name: "test-api",
    apiSpecPath: fileURLToPath(new URL("../../../fixtures/runtime/api.yaml", import.meta.url)),
    listen: { host: "127.0.0.1", port: 0 },
    routes: [
      {
        method: "post",
        path: "/v1/things",
        handler: async ({ rawBody }) => {
          if (rawBody.length > 1_000) await gate.opened;
          const isLarge = Buffer.from(rawBody).includes("large answer");
          return { status: 201, body: { made: isLarge ? "x".repeat(LARGE_ANSWER) : "x" } };
        },
      },
    ],
    mapError: (error) => ({
      status: error instanceof HttpError ? error.status : 500,
      body: { code: "REFUSED" },
    }),
    readiness: () => ({ ready: true }),
    log: createLogger({ component: "test", destination: { write: () => undefined } }),
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: BODY_BYTES,
    unread,
    unsent,
  });
  await server.start();
  // In the other order: its end waits for its answers.
  cleanups.push(() => server.stop(), gate.open);
  return { unread, unsent, gate, port: server.port };
}

/** Sends most of a body, and nothing more. */
function stalled(port: number) {
  const client = connectTo(port);
  cleanups.push(() => client.socket.destroy());
  client.socket.write(
    "POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
      `Content-Length: ${BODY_BYTES}\r\n\r\n`,
  );
  client.socket.write(Buffer.alloc(SENT_BYTES, " "));
  return client;
}

function post(port: number, note: string) {
  return rawRequest(port, "/v1/things", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ amountAtoken: "1", note }),
  });
}

it("bodies that do not end are held within one bound, and others are answered", async () => {
  const { unread, port } = await start();
  for (let count = 0; count < 200; count++) stalled(port);
  await until(() => unread.letGoCount >= 191, WAIT);
  expect(unread.totalBytes).toBeLessThanOrEqual(MAX_BYTES);
  expect((await post(port, "small")).status).toBe(201);
});

it("whoever is let go is told to try again", async () => {
  const { unread, port } = await start();
  const first = stalled(port);
  await until(() => unread.totalBytes === SENT_BYTES, WAIT);
  for (let count = 0; count < 10; count++) stalled(port);
  expect(await first.answered(1)).toEqual(["HTTP/1.1 429"]);
});

it("a body that has come counts until it is answered, and nobody lets it go", async () => {
  const { unread, gate, port } = await start();
  const answer = post(port, "x".repeat(SENT_BYTES));
  await until(() => unread.totalBytes > SENT_BYTES, WAIT);
  for (let count = 0; count < 10; count++) stalled(port);
  await until(() => unread.letGoCount >= 2, WAIT);
  gate.open();
  expect((await answer).status).toBe(201);
});

it("a body that breaks off, or is too long, leaves nothing behind", async () => {
  const { unread, port } = await start();
  const client = stalled(port);
  await until(() => unread.totalBytes === SENT_BYTES, WAIT);
  client.socket.destroy();
  await until(() => unread.totalBytes === 0, WAIT);
  const long = connectTo(port);
  cleanups.push(() => long.socket.destroy());
  long.socket.write(
    "POST /v1/things HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n",
  );
  long.socket.write(Buffer.alloc(2 * BODY_BYTES, " "));
  expect(await long.answered(1)).toEqual(["HTTP/1.1 413"]);
  expect(unread.totalBytes).toBe(0);
  expect(unread.letGoCount).toBe(0);
});

it("a body takes no room once its answer is made, also where nobody takes that", async () => {
  const { unread, unsent, gate, port } = await start();
  gate.open();
  const socket = connect(port, "127.0.0.1");
  cleanups.push(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.pause();
  const body = JSON.stringify({ amountAtoken: "1", note: `large answer${" ".repeat(SENT_BYTES)}` });
  socket.write(
    "POST /v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  );
  await until(() => unsent.totalBytes > 0, WAIT);
  expect(unread.totalBytes).toBe(0);
  expect(unread.letGoCount + unsent.letGoCount).toBe(0);
});
