/** Clients of an API that ask for large replies and read nothing: counted, bounded, let go. */
import { createServer, request, type Server } from "node:http";
import { connect } from "node:net";
import { afterEach, expect, it } from "@jest/globals";
import { HeldBytes } from "../../../../runtime/http/held-bytes.js";
import { boundUnsent } from "../../../../runtime/http/connections/unsent.js";
import { until } from "../../../helpers/until.js";
import { TestClock } from "../../p2p/clock.js";

const REPLY = Buffer.alloc(8_000_000, "a reply");
const MAX_BYTES = 20_000_000;
const WAIT = { timeoutMs: 60_000 };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start() {
  const clock = new TestClock();
  const limits = { maxBytes: MAX_BYTES, graceMs: 30_000, minBytesPerSecond: 1_000_000 };
  const unsent = new HeldBytes(limits, clock);
  const server: Server = createServer((_request, response) => response.end(REPLY));
  boundUnsent(server, unsent);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve());
  });
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { clock, unsent, port: address.port };
}

function silent(port: number): void {
  const socket = connect(port, "127.0.0.1");
  cleanups.push(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.pause();
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
}

function read(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({ port, agent: false }, (response) => {
      let sizeBytes = 0;
      response.on("data", ({ length }: Buffer) => (sizeBytes += length));
      response.on("end", () => resolve(sizeBytes));
    });
    asked.on("error", reject);
    asked.end();
  });
}

it("clients that read nothing are let go when there are too many, and after a while", async () => {
  const { clock, unsent, port } = await start();
  for (let count = 0; count < 30; count++) silent(port);
  await until(() => unsent.letGoCount === 28, WAIT);
  expect(unsent.totalBytes).toBeGreaterThan(8_000_000);
  expect(unsent.totalBytes).toBeLessThanOrEqual(MAX_BYTES);
  expect(await read(port)).toBe(REPLY.length);
  clock.timeMs += 60_000;
  unsent.sweep();
  expect(unsent.totalBytes).toBe(0);
});

it("clients that read leave nothing behind", async () => {
  const { unsent, port } = await start();
  for (let count = 0; count < 5; count++) expect(await read(port)).toBe(REPLY.length);
  await until(() => unsent.totalBytes === 0, WAIT);
  expect(unsent.letGoCount).toBe(0);
});
