import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "../../../runtime/process/logger.js";
import { openDatabase } from "../../../runtime/sql/sql.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";

/** docker-compose.yml gives the password as a file of libpq's form, never inside DATABASE_URL. */
describe("a database URL without a password", () => {
  let database: TestDatabase;
  let folder: string;
  const log = createLogger({ component: "test", level: "silent" });
  const before = process.env["PGPASSFILE"];

  beforeAll(async () => {
    database = await createTestDatabase();
    folder = mkdtempSync(join(tmpdir(), "causeway-pgpass-"));
  });

  afterAll(async () => {
    if (before === undefined) delete process.env["PGPASSFILE"];
    else process.env["PGPASSFILE"] = before;
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  });

  it("takes the password from the file that PGPASSFILE names", async () => {
    const url = new URL(database.url);
    const { username, password } = url;
    url.password = "";
    const file = join(folder, "pgpass");
    writeFileSync(file, `*:*:*:${username}:${decodeURIComponent(password)}\n`, { mode: 0o600 });
    process.env["PGPASSFILE"] = file;
    const opened = await openDatabase({
      url: url.href,
      migrations: [],
      applicationName: "test",
      poolSize: 2,
      log,
      signal: new AbortController().signal,
    });
    const rows = await opened.query<{ one: number }>("SELECT 1 AS one");
    await opened.close();
    expect(rows).toEqual([{ one: 1 }]);
  });
});
