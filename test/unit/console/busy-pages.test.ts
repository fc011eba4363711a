/** What is done while pages wait for an API that does not answer: who stops a payment waits for none. */
import { expect, it } from "@jest/globals";
import { createConsoleServer } from "../../../console/server/console-server.js";
import type { ConsolePage, ConsoleRequest } from "../../../console/server/route.js";
import type { UserDesk } from "../../../console/users/desk.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { el } from "../../../web/html/element.js";
import { createGate } from "../../helpers/gate.js";
import { Browser } from "../../helpers/pages/console.js";
import { silentLog } from "../../helpers/services/ledger.js";

const PAGE: ConsolePage = { title: "a page", content: undefined };

/** A form on the first page, as every action has one. */
async function first({ hiddenFields }: ConsoleRequest): Promise<ConsolePage> {
  const attributes = { action: "/stop", method: "post" };
  return { ...PAGE, content: el("form", attributes, hiddenFields()) };
}

it("is done at once, and waits for other actions alone", async () => {
  const [asked, answered] = [createGate(), createGate()];
  const hang = async () => {
    asked.open();
    await answered.opened;
    return PAGE;
  };
  const done: string[] = [];
  const act = async () => {
    done.push("stopped");
    return "/account";
  };
  const admin = { user: "ann", role: "admin", apiKey: "k", mustChange: false } as const;
  const server = createConsoleServer({
    listen: { host: "127.0.0.1", port: 0 },
    network: "test",
    publicUrl: "",
    routes: [
      {
        pages: [
          { path: "/", show: first },
          { path: "/slow", show: hang },
        ],
        actions: [{ path: "/stop", needs: "operate", act }],
      },
    ],
    assets: { path: (name) => `/assets/${name}`, answer: () => undefined },
    home: "/nowhere",
    desk: { enter: async () => admin } as unknown as UserDesk,
    api: { depositUrl: "http://a.test", withdrawalUrl: "http://b.test", timeoutMs: 1_000 },
    session: { idleMs: 600_000, maxMs: 600_000, maxSessions: 10 },
    triesPerMinute: 1_000,
    concurrentPages: 1,
    clock: systemClock,
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    signal: new AbortController().signal,
  });
  await server.start();
  try {
    const [browser, other] = [new Browser(server.port), new Browser(server.port)];
    await browser.get("/login");
    await browser.submit("/login", { user: "ann", password: "hers" });
    expect(browser.address).toBe("/");
    for (const [name, value] of browser.cookies) other.cookies.set(name, value);
    const slow = other.get("/slow");
    await asked.opened;
    await browser.submit("/stop");
    expect([browser.page.status, browser.address, done]).toEqual([200, "/account", ["stopped"]]);
    answered.open();
    expect((await slow).status).toBe(200);
  } finally {
    answered.open();
    await server.stop();
  }
});
