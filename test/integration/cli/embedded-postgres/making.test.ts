/** The making of a cluster: what is left of it where it is cut off, and that it is made anew. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { startEmbeddedPostgres } from "../../../../cli/postgres/embedded-postgres.js";
import { until } from "../../../helpers/until.js";
import { isBeingMade, log, makeHome, programsIn, queryOne, serversForTests } from "./servers.js";

describe("embedded PostgreSQL", () => {
  let home: string;
  let port: number;

  const { start, startInKit } = serversForTests(
    (place) => {
      ({ home, port } = place);
    },
    () => home,
  );

  it("redoes an initialisation that was killed half way", async () => {
    home = makeHome();
    const half = join(home, "data", "postgres.init-999999");
    mkdirSync(join(half, "cluster"), { recursive: true });
    writeFileSync(join(half, "cluster", "PG_VERSION"), "18\n");
    const server = await start();
    expect(await queryOne(server.url, "SELECT 1 AS value")).toBe(1);
    expect(readdirSync(join(home, "data"))).toEqual(["postgres"]);
  });

  it("leaves at once when told to stop during the start", async () => {
    home = makeHome();
    const controller = new AbortController();
    const starting = startEmbeddedPostgres({ home, port, log, signal: controller.signal });
    controller.abort(new Error("stopping"));
    await expect(starting).rejects.toThrow("stopping");
    expect(readdirSync(join(home, "data"))).toEqual([]);
  });

  it("leaves no program and no draft when it is told to stop in the middle of its making", async () => {
    home = makeHome();
    const controller = new AbortController();
    const starting = startEmbeddedPostgres({ home, port, log, signal: controller.signal });
    const ended = expect(starting).rejects.toThrow("stopping");
    await until(() => isBeingMade(home), { timeoutMs: 30_000 });
    controller.abort(new Error("stopping"));
    await ended;
    expect(programsIn(home)).toEqual([]);
    expect(readdirSync(join(home, "data"))).toEqual([]);
  });

  it("is made anew at once where the kit was killed in the middle of its making", async () => {
    home = makeHome();
    const kit = await startInKit();
    await until(() => isBeingMade(home), { timeoutMs: 30_000 });
    kit.kill("SIGKILL");
    const server = await start();
    expect(await queryOne(server.url, "SELECT 1 AS value")).toBe(1);
    expect(readdirSync(join(home, "data"))).toEqual(["postgres"]);
  });
});
