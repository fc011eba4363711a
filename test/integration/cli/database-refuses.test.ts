/** A database that lets nobody in is told at once, before any process of the kit meets it. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { assertServicesAnswer } from "../../../cli/probe/outside-services.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await database.drop();
});

/** Looks at the database under a URL that differs from the right one. */
function look(change: (url: URL) => void): Promise<void> {
  const url = new URL(database.url);
  change(url);
  const { signal } = new AbortController();
  return assertServicesAnswer({ DATABASE_URL: url.href }, { signal, notice: () => undefined });
}

it("is named with what it refuses, and without the password", async () => {
  const { host } = new URL(database.url);
  const begin = `Cannot start: the database at ${host}, which DATABASE_URL names, refuses: `;
  const cases: readonly (readonly [(url: URL) => void, string])[] = [
    // Whether it is the name or the password that is wrong depends on how a server asks.
    [(url) => Object.assign(url, { username: "stranger", password: "hush" }), '"stranger"'],
    [(url) => (url.pathname = "/nowhere"), 'database "nowhere" does not exist.'],
    [
      (url) => (url.search = "?sslmode=verify-full"),
      "The server does not support SSL connections.",
    ],
  ];
  for (const [change, reason] of cases) {
    const fault = await look(change).catch((error: unknown) => error as Error);
    expect(fault).toMatchObject({ code: "SERVICE_REFUSES" });
    expect(fault?.message).toContain(begin);
    expect(fault?.message).toContain(reason);
    expect(fault?.message).not.toContain("hush");
  }
});

it("is asked for nothing more where it lets the kit in", async () => {
  await expect(look(() => undefined)).resolves.toBeUndefined();
});
