/** What is done while pages wait for an API that does not answer: who stops a payment waits for none. */
import { request } from "node:http";
import { afterEach, expect, it } from "@jest/globals";
import { type ConsoleServer, createConsoleServer } from "../../../console/server/console-server.js";
import type { ConsolePage, ConsoleRequest, PageRoute } from "../../../console/server/route.js";
import type { UserService } from "../../../console/users/user-service.js";
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

/** The form where no turn came. */
function bare({ hiddenFields }: ConsoleRequest): ConsolePage {
  const attributes = { action: "/stop", method: "post" };
  return { ...PAGE, status: 503, content: el("form", attributes, hiddenFields()) };
}

let server: ConsoleServer | undefined;
afterEach(() => server?.stop());

/** A console whose `/slow` waits until its signal fires, and says that it was asked. */
async function open(
  concurrentPages: number,
  given: { readonly pages?: readonly PageRoute[]; readonly stop?: () => void },
): Promise<{
  readonly port: number;
  readonly asked: string[];
  readonly onAsked: () => Promise<void>;
}> {
  const asked: string[] = [];
  let gate = createGate();
  const slow = ({ user, signal }: ConsoleRequest) => {
    asked.push(user);
    gate.open();
    return new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  };
  const act = async () => {
    given.stop?.();
    return "/account";
  };
  const who = { role: "admin", apiKey: "k", mustChange: false } as const;
  server = createConsoleServer({
    listen: { host: "127.0.0.1", port: 0 },
    network: "test",
    publicUrl: "",
    routes: [
      {
        pages: [{ path: "/", show: first }, { path: "/slow", show: slow }, ...(given.pages ?? [])],
        actions: [{ path: "/stop", needs: "operate", act }],
      },
    ],
    assets: { path: (name) => `/assets/${name}`, answer: () => undefined },
    home: "/nowhere",
    users: { enter: async (user: string) => ({ ...who, user }) } as unknown as UserService,
    api: { depositUrl: "http://a.test", withdrawalUrl: "http://b.test", timeoutMs: 1_000 },
    session: { idleMs: 600_000, maxMs: 600_000, maxSessions: 10 },
    triesPerMinute: 1_000,
    concurrentPages,
    clock: systemClock,
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    signal: new AbortController().signal,
  });
  await server.start();
  const onAsked = async () => {
    await gate.opened;
    gate = createGate();
  };
  return { port: server.port, asked, onAsked };
}

async function enter(port: number, user: string): Promise<Browser> {
  const browser = new Browser(port);
  await browser.get("/login");
  await browser.submit("/login", { user, password: "hers" });
  expect(browser.address).toBe("/");
  return browser;
}

/** Opens a page whose answer nobody waits for. @returns closes its connection */
function begin(browser: Browser, path: string): () => void {
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const asked = request({ port: browser.port, path, headers: { cookie }, agent: false });
  asked.on("error", () => undefined).end();
  return () => void asked.destroy();
}

it("is done at once, and waits for other actions alone", async () => {
  const done: string[] = [];
  const { port, onAsked } = await open(1, { stop: () => void done.push("stopped") });
  const browser = await enter(port, "ann");
  const leave = begin(browser, "/slow");
  await onAsked();
  await browser.submit("/stop");
  expect([browser.page.status, browser.address, done]).toEqual([200, "/account", ["stopped"]]);
  leave();
});

it("has the turn of a page that its reader left, and the place of one that waited", async () => {
  const { port, asked, onAsked } = await open(1, {});
  const browser = await enter(port, "ann");
  const leave = begin(browser, "/slow");
  await onAsked();
  const waiting = [begin(browser, "/slow"), begin(browser, "/slow")];
  const next = browser.get("/");
  for (const end of waiting) end();
  leave();
  expect((await next).status).toBe(200);
  expect(asked.length).toBeLessThanOrEqual(3);
});

it("finds turns that no other user can take, however many pages he asks for", async () => {
  const { port, asked, onAsked } = await open(4, {});
  const [eve, ann] = [await enter(port, "eve"), await enter(port, "ann")];
  const leave = Array.from({ length: 20 }, () => begin(eve, "/slow"));
  await onAsked();
  const statuses: number[] = [];
  for (let at = 0; at < 10; at += 1) statuses.push((await ann.get("/")).status);
  expect(statuses).toEqual(Array(10).fill(200));
  expect(asked.length).toBeLessThanOrEqual(2);
  for (const end of leave) end();
});

it("is shown without what the API would say where no turn comes soon", async () => {
  const done: string[] = [];
  const route: PageRoute = { path: "/policy", show: first, showBusy: bare };
  const { port, onAsked } = await open(1, {
    pages: [route],
    stop: () => void done.push("stopped"),
  });
  const [eve, ann] = [await enter(port, "eve"), await enter(port, "ann")];
  const leave = begin(eve, "/slow");
  await onAsked();
  expect((await ann.get("/policy")).status).toBe(503);
  await ann.submit("/stop");
  expect(done).toEqual(["stopped"]);
  leave();
  expect((await ann.get("/policy")).status).toBe(200);
});
