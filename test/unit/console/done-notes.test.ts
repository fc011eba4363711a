/** What a page says was done: once, to who did it, and by how it stands by then. */
import { expect, it } from "@jest/globals";
import { withdrawalRoutes } from "../../../console/pages/withdrawals.js";
import { doneNote } from "../../../console/pages/context.js";
import { createConsoleServer } from "../../../console/server/console-server.js";
import type { ConsolePage, ConsoleRequest } from "../../../console/server/route.js";
import type { UserService } from "../../../console/users/user-service.js";
import { CATALOGUES } from "../../../console/text/catalogue.js";
import type { ApiQuestion } from "../../../console/sources/exchange-api.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { el } from "../../../web/html/element.js";
import { Browser } from "../../helpers/pages/console.js";
import { shownPage, withdrawalAnswerOf } from "../../helpers/pages/console-page.js";
import { silentLog } from "../../helpers/services/ledger.js";

const { en } = CATALOGUES;

/** The page that every action leads to, with a form for one. */
async function stopped(request: ConsoleRequest): Promise<ConsolePage> {
  const form = { action: "/stop", method: "post" };
  return {
    title: "a page",
    content: [doneNote(request), el("form", form, request.hiddenFields())],
  };
}

it("is said to who did it, once, and not to who brings an address", async () => {
  const admin = { user: "ann", role: "admin", apiKey: "k", mustChange: false } as const;
  const enter = async () => admin;
  const server = createConsoleServer({
    listen: { host: "127.0.0.1", port: 0 },
    network: "test",
    publicUrl: "",
    routes: [
      {
        pages: [
          { path: "/", show: stopped },
          { path: "/policy", query: ["done"], show: stopped },
        ],
        actions: [{ path: "/stop", needs: "operate", act: async () => "/policy?done=raised" }],
      },
    ],
    assets: { path: (name) => `/assets/${name}`, answer: () => undefined },
    home: "/nowhere",
    users: { enter, change: enter } as unknown as UserService,
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
    for (const each of [browser, other]) {
      await each.get("/login");
      await each.submit("/login", { user: "ann", password: "hers" });
    }
    expect((await browser.get("/policy?done=raised")).text).not.toContain(en.doneRaised);
    expect((await browser.submit("/stop")).text).toContain(en.doneRaised);
    expect((await other.get("/policy?done=raised")).text).not.toContain(en.doneRaised);
    expect((await browser.get("/policy?done=raised")).text).not.toContain(en.doneRaised);
    expect((await browser.submit("/stop")).text).toContain(en.doneRaised);
    await browser.get("/account");
    const changed = await browser.submit("/account/password", {
      current: "a",
      new: "b",
      again: "b",
    });
    expect(changed.text).toContain(en.donePassword);
    expect((await browser.get("/account?done=password")).text).not.toContain(en.donePassword);
  } finally {
    await server.stop();
  }
});

/** The page of a withdrawal in a state, to which a cancellation has led. */
async function cancelled(status: string, query = "done=cancelled") {
  const withdrawal = withdrawalAnswerOf({ status });
  const answer = ({ path }: ApiQuestion<unknown>) =>
    path === "/v1/assets" ? { assets: [] } : withdrawal;
  const shown = { role: "operator", params: { id: "wd_1" }, query, answer } as const;
  return (await shownPage(withdrawalRoutes(), "/withdrawals/{id}", shown)).text;
}

it("is said of a cancellation by the state: one that was paid is paid, a frozen one may be", async () => {
  expect(await cancelled("cancelling")).toContain(en.doneCancelled);
  for (const [status, text] of [
    ["settled", en.donePaid],
    ["frozen", en.doneFrozen],
  ] as const) {
    const page = await cancelled(status);
    expect({ status, page }).toEqual({ status, page: expect.stringContaining(text) });
    expect(page).not.toContain(en.doneCancelled);
    expect(await cancelled(status, "")).not.toContain(text);
  }
  // Before it is asked for, too.
  expect(await cancelled("frozen", "")).toContain(en.cancelFrozenText);
  expect(await cancelled("frozen", "")).not.toContain(en.cancelText);
  expect(await cancelled("broadcast", "")).toContain(en.cancelText);
});
