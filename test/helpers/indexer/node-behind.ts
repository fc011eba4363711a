/** A node at another address, whose answers wait for what a test does before each. */
import { createServer } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { freePort } from "../ports.js";

/** @param before is given the text of each request, and done before it is passed on */
export async function nodeBehind(
  nodeUrl: string,
  before: (request: string) => Promise<void>,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    void (async () => {
      const body = await textOf(request);
      await before(body);
      const headers = { "content-type": "application/json" };
      const answer = await fetch(nodeUrl, { method: "POST", headers, body });
      response.writeHead(answer.status, headers).end(await answer.text());
    })().catch(() => response.destroy());
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
