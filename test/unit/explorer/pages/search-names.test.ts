/** Searching by name on a chain that has more validators than the node tells at once, and more tokens. */
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

/** What the indexer finds by look, and where it was asked to go on. */
let looks: (readonly { readonly contract: string; readonly name: string }[])[];
let looked: unknown[];

beforeEach(() => {
  asked = [];
  looks = [];
  looked = [];
  pages = [];
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
    indexer: {
      async tokens(cursor: string | undefined) {
        looked.push(cursor);
        const look = Number(cursor ?? 0);
        const next = look + 1 < looks.length ? `${look + 1}` : undefined;
        return { items: looks[look] ?? [], next };
      },
    },
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

it("goes on where the indexer has found no token yet and has more of them", async () => {
  looks = [[], [], [{ contract: `0x${"c1".repeat(20)}`, name: "Rarely moved" }], []];
  const { status, text } = await search("rarely");
  expect(status).toBe(200);
  expect(text).toContain("Rarely moved");
  expect(looked).toEqual([undefined, "1", "2"]);
});

it("does not go on for ever", async () => {
  looks = Array.from({ length: 100 }, () => []);
  expect((await search("nothing")).status).toBe(404);
  expect(looked).toHaveLength(5);
});
