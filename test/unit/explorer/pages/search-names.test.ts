/** Searching validators by name on a chain that has more of them than the node tells at once. */
import fs from "node:fs";
import { beforeEach, expect, it } from "@jest/globals";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { searchRoutes } from "../../../../explorer/pages/search.js";
import type { RestClient } from "../../../../explorer/sources/modules/rest-client.js";
import { StakingSource } from "../../../../explorer/sources/modules/staking-source.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

interface Answer {
  readonly path: string;
  readonly body: { readonly validators: readonly { readonly description: object }[] };
}

const recorded: Readonly<Record<string, Answer>> = JSON.parse(
  fs.readFileSync("test/fixtures/explorer/module-answers.json", "utf8"),
);
const PATH = "/cosmos/staking/v1beta1/validators";
const { signal } = new AbortController();

/** Monikers by page. */
let pages: (readonly string[])[];
let asked: unknown[];

beforeEach(() => {
  asked = [];
});

async function search(q: string) {
  const [row] = Object.values(recorded).find(({ path }) => path === PATH)?.body.validators ?? [];
  const rest = {
    async get(_path: string, query: Readonly<Record<string, unknown>>) {
      const place = query["pagination.key"];
      asked.push(place);
      const page = Number(place ?? 0);
      const validators = pages[page]?.map((moniker) => ({
        ...row,
        description: { ...row?.description, moniker },
      }));
      const next = page + 1 < pages.length ? `${page + 1}` : null;
      return { validators, pagination: { next_key: next, total: "0" } };
    },
  } as unknown as RestClient;
  const context = {
    staking: new StakingSource(rest),
    indexer: { tokens: () => Promise.resolve({ items: [], next: undefined }) },
    tokens: new Map(),
  } as unknown as PageContext;
  const { status, content } = await openPage(searchRoutes(context)[0], { query: { q }, signal });
  return { status, text: shownContent(content).text };
}

it("finds those of later pages", async () => {
  pages = [["first", "second"], ["third"], ["The Fourth"]];
  const { status, text } = await search("fourth");
  expect(status).toBe(200);
  expect(text).toContain("The Fourth");
  expect(text).not.toContain("third");
  expect(asked).toEqual([undefined, "1", "2"]);
});

it("shows no more than a page has, and asks for no more than it shows", async () => {
  const many = Array.from({ length: 40 }, (_, place) => `node ${place + 100}`);
  pages = [many, many.map((name) => `${name} again`), many];
  const { text } = await search("node");
  expect(text.match(/node 1\d\d/g)).toHaveLength(50);
  expect(asked).toEqual([undefined, "1"]);
});

it("ends where a node tells of page behind page", async () => {
  pages = Array.from({ length: 100 }, () => ["somebody"]);
  expect((await search("nobody")).status).toBe(404);
  expect(asked).toHaveLength(5);
});
