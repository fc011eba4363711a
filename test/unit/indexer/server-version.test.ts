/** Servers that the index cannot lie in are refused before anything is indexed. */
import { expect, it } from "@jest/globals";
import { assertServerVersion } from "../../../indexer/store/server-version.js";
import type { Sql } from "../../../runtime/sql/sql.js";

const server = (number: number, version: string): Sql => ({
  query: <Row>() => Promise.resolve([{ number, version }] as Row[]),
});

it("an older one is named, with what to do", async () => {
  await expect(assertServerVersion(server(130_022, "13.22"))).rejects.toMatchObject({
    code: "DATABASE_TOO_OLD",
    message: expect.stringMatching(/needs PostgreSQL 14 or newer, .* is 13\.22: update it/),
  });
});

it("the oldest that knows what is asked of it is taken", async () => {
  await assertServerVersion(server(140_000, "14.0"));
});
