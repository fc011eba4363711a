/** Connections that a client leaves open when it was refused: the server lets go of them. */
import { connect, createServer } from "node:net";
import { expect, it } from "@jest/globals";
import { endSocket } from "../../../../runtime/http/http-reply.js";
import { until } from "../../../helpers/until.js";

const WAIT = { timeoutMs: 60_000 };

it("behind what cannot be read", async () => {
  // As servers of HTTP have it: the client's end is not the server's.
  const server = createServer({ allowHalfOpen: true }, (socket) => endSocket(socket, 400, {}));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve());
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const { port } = address;
  const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  try {
    let text = "";
    let isEnded = false;
    client.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    client.once("end", () => (isEnded = true));
    await until(() => isEnded, WAIT);
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*\{\}$/);
    const held = () =>
      new Promise<number>((resolve, reject) => {
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
      });
    await until(async () => (await held()) === 0, WAIT);
  } finally {
    client.destroy();
    server.close();
  }
});
