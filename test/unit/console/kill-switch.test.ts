/** Raising the kill switch: whoever does it is told where it counts. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "@jest/globals";
import { coinRoutes } from "../../../console/pages/coins.js";
import { faultPage } from "../../../console/pages/fault.js";
import { policyRoutes } from "../../../console/pages/policy.js";
import type { ConsolePost } from "../../../console/server/route.js";
import { type ApiQuestion, ExchangeApi } from "../../../console/sources/exchange-api.js";
import { CATALOGUES, textsOf } from "../../../console/text/catalogue.js";
import { PageError } from "../../../web/errors.js";
import { el, renderDocument } from "../../../web/html/element.js";
import { all, parseHtml, textOf } from "../../helpers/pages/html.js";
import { shownPage } from "../../helpers/pages/console-page.js";

const NONE = { level: "none", reason: "", by: "", at: null };
const RAISED = { level: "stop-sign", reason: "drill", by: "ann", at: "2026-01-01T00:00:00Z" };
const POLICY = { hash: "ab", chainId: "6940", terms: {} };

/** Where somebody is sent who raised it, and what is said there. */
async function raised(homeFault: string | null) {
  const home = homeFault === null ? RAISED : NONE;
  const stop = { level: "stop-sign", home, ledger: RAISED, homeFault };
  const api = {
    post: async (question: ApiQuestion<unknown>) => question.schema.parse(stop),
  };
  const post = {
    form: new URLSearchParams({ level: "stop-sign", reason: "drill" }),
    formKey: "key",
    api,
    signal: new AbortController().signal,
  } as unknown as ConsolePost;
  const routes = policyRoutes();
  const location = (await routes.actions?.[0]?.act(post)) ?? "";
  const page = await shownPage(routes, "/policy", {
    role: "operator",
    query: location.split("?")[1] ?? "",
    answer: ({ path }) => (path === "/v1/policy" ? POLICY : stop),
  });
  return { location, page };
}

it("says that it counts in the ledger alone where the home's file was not written", async () => {
  const { location, page } = await raised("config/kill-switch.json: EROFS");
  expect(location).toBe("/policy?done=raised-in-ledger");
  expect(page.text).toContain(CATALOGUES.en.doneRaisedInLedger);
  expect(all(page.root, "p").map(({ attributes }) => attributes.get("class"))).toContain(
    "note warning",
  );
});

it("says that it is set where both places have it", async () => {
  const { location, page } = await raised(null);
  expect(location).toBe("/policy?done=raised");
  expect(page.text).toContain(CATALOGUES.en.doneRaised);
  expect(page.text).not.toContain(CATALOGUES.en.doneRaisedInLedger);
});

/** Answers of the APIs but for the policy, as while its file is wrong, or longer than an answer may be. */
function withoutPolicy({ path }: ApiQuestion<unknown>): unknown {
  if (path === "/v1/policy") throw new PageError("UNAVAILABLE", "the policy cannot be used");
  const answers: Readonly<Record<string, unknown>> = {
    "/v1/kill-switch": { level: "none", home: NONE, ledger: NONE },
    "/v1/treasury": { assets: [] },
    "/v1/sweeps": { sweeps: [], next: null },
    "/v1/assets": { assets: [] },
  };
  return answers[path];
}

it("can be raised while there is no policy to be shown, which the page says", async () => {
  const shown = { role: "operator", answer: withoutPolicy } as const;
  const { text, root } = await shownPage(policyRoutes(), "/policy", shown);
  const actions = all(root, "form").map(({ attributes }) => attributes.get("action"));
  expect(actions).toEqual(["/policy/kill-switch"]);
  expect(text).toContain(CATALOGUES.en.policyAway);
  const treasury = await shownPage(coinRoutes(), "/treasury", shown);
  expect(treasury.text).toContain(CATALOGUES.en.policyAway);
  expect(treasury.text).not.toContain(CATALOGUES.en.noBands);
  const fault = new PageError("NOT_FOUND", "another fault");
  const broken = (question: ApiQuestion<unknown>) => {
    if (question.path === "/v1/policy") throw fault;
    return withoutPolicy(question);
  };
  await expect(
    shownPage(policyRoutes(), "/policy", { role: "operator", answer: broken }),
  ).rejects.toBe(fault);
});

it("can be raised to any level while the API does not say what is stopped, which the page says", async () => {
  const answer = (question: ApiQuestion<unknown>) => {
    if (question.path !== "/v1/kill-switch") return withoutPolicy(question);
    throw new PageError("UNAVAILABLE", "the ledger cannot be asked");
  };
  const { text, root } = await shownPage(policyRoutes(), "/policy", { role: "operator", answer });
  const actions = all(root, "form").map(({ attributes }) => attributes.get("action"));
  expect(actions).toEqual(["/policy/kill-switch"]);
  const levels = all(root, "option").map(({ attributes }) => attributes.get("value"));
  expect(levels).toEqual(["stop-new", "stop-sign", "stop-broadcast"]);
  expect(text).toContain(CATALOGUES.en.killSwitchAway);
  expect(text).not.toContain(CATALOGUES.en.levelNone);
  const shown = await shownPage(policyRoutes(), "/policy", { role: "viewer", answer });
  expect(all(shown.root, "form")).toEqual([]);
});

it("can be raised while all turns of pages are taken, without a question to an API", async () => {
  const answer = (question: ApiQuestion<unknown>) => {
    throw new Error(`asked for ${question.path}`);
  };
  const busy = { role: "operator", isBusy: true, answer } as const;
  const { text, root } = await shownPage(policyRoutes(), "/policy", busy);
  expect(all(root, "form").map(({ attributes }) => attributes.get("action"))).toEqual([
    "/policy/kill-switch",
  ]);
  expect(all(root, "option")).toHaveLength(3);
  expect(text).toContain(CATALOGUES.en.busyText);
  const viewer = await shownPage(policyRoutes(), "/policy", { ...busy, role: "viewer" });
  expect(all(viewer.root, "form")).toEqual([]);
});

it("is told of in the words of the API where that could do a half of it alone", () => {
  const said = "this home is at stop-sign and obeys; the ledger could not be told: set it again";
  const details = { code: "UNAVAILABLE", message: said };
  const fault = new PageError("UNAVAILABLE", "answered 503", { details });
  const { page } = faultPage(fault, textsOf("en"), {});
  expect(page.status).toBe(503);
  expect(renderDocument(el("main", {}, page.content))).toContain(said);
});

/** The page that is shown to who raises it, where the API answers so. */
async function refusedPage(status: number, code: string, message: string) {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ code, message }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const urls = { depositUrl: url, withdrawalUrl: url, timeoutMs: 10_000 };
    const form = new Map([
      ["level", "stop-sign"],
      ["reason", "drill"],
    ]);
    const post = {
      form,
      formKey: "key",
      api: new ExchangeApi(urls, { user: "bob", apiKey: "k" }),
      signal: new AbortController().signal,
    } as unknown as ConsolePost;
    const fault = await policyRoutes()
      .actions?.[0]?.act(post)
      .catch((error: unknown) => error);
    const { page } = faultPage(fault, textsOf("en"), { form });
    return {
      status: page.status,
      text: textOf(parseHtml(renderDocument(el("main", {}, page.content)))),
    };
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

it("is not told to be undone where the API refuses it and has stopped its own home", async () => {
  const lowered =
    "the kill switch is at stop-broadcast; this home's own file is at stop-sign as of now";
  const conflict = await refusedPage(409, "SWITCH_LOWERED", lowered);
  expect(conflict).toEqual({ status: 409, text: expect.stringContaining(lowered) });
  expect(conflict.text).not.toContain("Nothing was done");
  for (const [status, words] of [
    [401, "the API key is revoked"],
    [429, "too many requests"],
  ] as const) {
    const told = `${words}; this home is at stop-sign all the same`;
    const page = await refusedPage(status, "REFUSED", told);
    expect({ status, text: page.text }).toEqual({ status, text: expect.stringContaining(told) });
    expect(page.text).not.toContain("Nothing was done");
  }
});
