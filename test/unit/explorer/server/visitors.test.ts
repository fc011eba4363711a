/** Pages that wait for their turn: node and indexer take the explorer's visitors for one client. */
import { get } from "node:http";
import { afterEach, expect, it } from "@jest/globals";
import type { PageRoute } from "../../../../explorer/server/page.js";
import { createPageServer, type PageServer } from "../../../../explorer/server/page-server.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { loadAssets } from "../../../../web/server/assets.js";
import { until } from "../../../helpers/until.js";

let server: PageServer;
/** Requests for pages that have come. */
let asked = 0;
afterEach(() => server.stop());

/** A server that makes one page at a time, each of which waits until it is let go. */
async function open() {
  const making: { readonly page: string; readonly end: () => void }[] = [];
  const route: PageRoute = {
    path: "/page",
    hasParameter: true,
    handle: ({ parameter }) =>
      new Promise((resolve) => {
        const page = { title: parameter, content: undefined };
        making.push({ page: parameter, end: () => resolve(page) });
      }),
  };
  server = createPageServer({
    listen: { host: "127.0.0.1", port: 0 },
    network: "testnet",
    routes: [route],
    assets: loadAssets(),
    cacheBytes: 2 ** 20,
    maxStreams: 1,
    pagesPerMinute: 1_000,
    limitsLoopback: false,
    concurrentPages: 1,
    head: () => undefined,
    readiness: () => Promise.resolve({ ready: true }),
    accounts: () => undefined,
    generation: () => {
      asked += 1;
      return 0;
    },
    clock: systemClock,
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    signal: new AbortController().signal,
  });
  await server.start();
  return making;
}

/** Asks from an address of this machine; resolves with the status. */
function ask(page: string, localAddress: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: server.port, path: `/page/${page}`, localAddress };
    get({ ...options, agent: false }, (reply) => {
      reply.resume();
      reply.once("end", () => resolve(reply.statusCode));
    }).once("error", reject);
  });
}

it("come from visitor to visitor, however many one of them asks for", async () => {
  const making = await open();
  const pages = ["a0", "a1", "a2", "a3"].map((page) => ask(page, "127.0.0.2"));
  const haveCome = () => until(() => asked === pages.length, { timeoutMs: 10_000 });
  await haveCome();
  pages.push(ask("b0", "127.0.0.3"));
  await haveCome();
  for (let done = 0; done < pages.length; done++) {
    await until(() => making.length > done, { timeoutMs: 10_000 });
    making[done]?.end();
  }
  expect(await Promise.all(pages)).toEqual([200, 200, 200, 200, 200]);
  expect(making.map(({ page }) => page).indexOf("b0")).toBeLessThanOrEqual(2);
});
