/** The file with the password of the embedded server: lost, wrong, or of another database. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { startEmbeddedPostgres } from "../../../../cli/postgres/embedded-postgres.js";
import { log, programsIn, queryOne, serversForTests } from "./servers.js";

describe("embedded PostgreSQL", () => {
  let home: string;
  let port: number;

  const { start } = serversForTests(
    (place) => {
      ({ home, port } = place);
    },
    () => home,
  );

  it("makes a lost password file anew", async () => {
    const first = await start();
    await first.stop();
    rmSync(join(home, "config", "postgres.password"));
    const second = await start();
    expect(second.url).not.toBe(first.url);
    expect(await queryOne(second.url, "SELECT 1 AS value")).toBe(1);
  });

  it("takes the file's password where a restored database has another one, and says so", async () => {
    const first = await start();
    await queryOne(first.url, "CREATE TABLE kept_10 AS SELECT 10 AS value");
    await first.stop();
    const file = join(home, "config", "postgres.password");
    const former = readFileSync(file, "utf8").trim();
    const restored = "5a".repeat(32);
    writeFileSync(file, `${restored}\n`);
    const notices: string[] = [];
    const second = await start({ notices });
    expect(await queryOne(second.url, "SELECT value FROM kept_10")).toBe(10);
    await expect(
      queryOne(second.url.replace(restored, former), "SELECT 1 AS value"),
    ).rejects.toMatchObject({ code: "28P01" });
    expect(notices).toEqual([expect.stringContaining(`has now the password that ${file} holds`)]);
    expect(notices.join()).not.toContain(restored);
    await second.stop();
    expect(readFileSync(join(home, "logs", "postgres.log"), "utf8")).not.toContain(restored);
    notices.length = 0;
    await start({ notices });
    expect(notices).toEqual([]);
  });

  it("names the password file that is no password of the kit's, and leaves nothing running", async () => {
    const first = await start();
    await first.stop();
    const file = join(home, "config", "postgres.password");
    const password = readFileSync(file);
    writeFileSync(file, "it's; DROP ROLE causeway\n");
    await expect(start()).rejects.toMatchObject({
      code: "START_FAILED",
      message: expect.stringMatching(/postgres\.password must hold 64 hexadecimal digits.*remove/),
    });
    expect(programsIn(home)).toEqual([]);
    writeFileSync(file, password);
    expect(await queryOne((await start()).url, "SELECT 1 AS value")).toBe(1);
  });

  it("leaves no server behind where the password file cannot be used", async () => {
    const first = await start();
    await first.stop();
    const file = join(home, "config", "postgres.password");
    const password = readFileSync(file);
    writeFileSync(file, "");
    await expect(start()).rejects.toMatchObject({ code: "SECRET_FILE_UNREADABLE" });
    expect(programsIn(home)).toEqual([]);
    writeFileSync(file, password);
  });

  it("makes it anew also behind a start that was cut off while it did", async () => {
    const first = await start();
    await first.stop();
    rmSync(join(home, "config", "postgres.password"));
    const controller = new AbortController();
    const starting = startEmbeddedPostgres({ home, port, log, signal: controller.signal });
    controller.abort(new Error("stopping"));
    await expect(starting).rejects.toThrow("stopping");
    const second = await start();
    expect(await queryOne(second.url, "SELECT 1 AS value")).toBe(1);
  });
});
