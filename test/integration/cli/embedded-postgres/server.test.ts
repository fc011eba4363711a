/** The embedded server: its data over stops, kills and what hangs of it, and the port that is its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { identifyProcess, isRunning } from "../../../../runtime/process/process-identity.js";
import { firstWords } from "../../../helpers/processes/endings.js";
import { until } from "../../../helpers/until.js";
import { hangPart, isRoot, queryOne, serversForTests } from "./servers.js";

describe("embedded PostgreSQL", () => {
  let home: string;
  let port: number;

  const { start, startInKit } = serversForTests(
    (place) => {
      ({ home, port } = place);
    },
    () => home,
  );

  it("keeps its data over a stop and a start and shows no secret outside its file", async () => {
    const first = await start();
    expect(await queryOne(first.url, "SELECT current_user::text AS value")).toBe("causeway");
    expect(
      await queryOne(first.url, "SELECT rolsuper AS value FROM pg_roles WHERE rolname='causeway'"),
    ).toBe(false);
    const encoding = "SELECT pg_encoding_to_char(encoding) AS value FROM pg_database LIMIT 1";
    expect(await queryOne(first.url, encoding)).toBe("UTF8");
    await queryOne(first.url, "CREATE TABLE kept AS SELECT 42 AS value");
    const passwordPath = join(home, "config", "postgres.password");
    const password = readFileSync(passwordPath, "utf8").trim();
    expect(password).toMatch(/^[0-9a-f]{64}$/);
    expect(statSync(passwordPath).mode & 0o777).toBe(0o600);
    const commandLine = readFileSync(`/proc/${first.pid}/cmdline`, "utf8");
    expect(commandLine).not.toContain(password);
    await first.stop();
    expect(await first.exited).toEqual({ code: 0, signal: null });
    expect(readFileSync(join(home, "logs", "postgres.log"), "utf8")).not.toContain(password);

    const second = await start();
    expect(await queryOne(second.url, "SELECT value FROM kept")).toBe(42);
    const wrong = second.url.replace(password, "0".repeat(64));
    await expect(queryOne(wrong, "SELECT 1 AS value")).rejects.toThrow(/password/);
  });

  it("listens on loopback only and makes no socket files", async () => {
    const server = await start();
    const asSuperuser = server.url.replace("//causeway:", "//postgres:");
    const shown = await queryOne(
      asSuperuser,
      "SELECT string_agg(setting, '|' ORDER BY name) AS value FROM pg_settings " +
        "WHERE name IN ('listen_addresses', 'unix_socket_directories')",
    );
    expect(shown).toBe("127.0.0.1|");
  });

  it("starts again after kill -9 of the server alone, committed rows kept", async () => {
    const first = await start();
    await queryOne(first.url, "CREATE TABLE kept_7 AS SELECT 7 AS value");
    process.kill(first.pid, "SIGKILL");
    await first.exited;
    const second = await start();
    expect(await queryOne(second.url, "SELECT value FROM kept_7")).toBe(7);
  });

  it("stops a server that survived a killed kit and starts anew", async () => {
    const first = await start();
    await queryOne(first.url, "CREATE TABLE kept_8 AS SELECT 8 AS value");
    const survivor = identifyProcess(first.pid);
    const second = await start();
    expect(second.pid).not.toBe(first.pid);
    expect(survivor !== undefined && isRunning(survivor)).toBe(false);
    expect(await queryOne(second.url, "SELECT value FROM kept_8")).toBe(8);
  });

  it("is stopped although a part of it hangs, which goes with it", async () => {
    const server = await start();
    const part = await hangPart(server.pid);
    await server.stop();
    expect(isRunning(part)).toBe(false);
  });

  it("starts again although a part of a killed server hangs", async () => {
    const first = await start();
    await queryOne(first.url, "CREATE TABLE kept_9 AS SELECT 9 AS value");
    const part = await hangPart(first.pid);
    process.kill(first.pid, "SIGKILL");
    const second = await start();
    expect(isRunning(part)).toBe(false);
    expect(await queryOne(second.url, "SELECT value FROM kept_9")).toBe(9);
  });

  it("is not stopped by a stale pid file whose process id now belongs to a stranger", async () => {
    const first = await start();
    await first.stop();
    const stranger = spawn("sleep", ["900"], isRoot ? { uid: 65_534, gid: 65_534, cwd: "/" } : {});
    const file = [stranger.pid, join(home, "data", "postgres"), "1", port, "", "127.0.0.1", "", ""];
    writeFileSync(join(home, "data", "postgres", "postmaster.pid"), file.join("\n"));
    const second = await start();
    expect(await queryOne(second.url, "SELECT 1 AS value")).toBe(1);
    expect(stranger.exitCode).toBeNull();
    stranger.kill("SIGKILL");
  });

  it("is not stopped by a pid file that a lost power left empty, or a killed repair behind", async () => {
    await (await start()).stop();
    const stranger = spawn("sleep", ["900"], isRoot ? { uid: 65_534, gid: 65_534, cwd: "/" } : {});
    const folder = join(home, "data", "postgres");
    for (const text of ["", `-${stranger.pid}\n${folder}\n1\n0\n\n\n`]) {
      writeFileSync(join(folder, "postmaster.pid"), text);
      const server = await start();
      expect(await queryOne(server.url, "SELECT 1 AS value")).toBe(1);
      await server.stop();
    }
    expect(stranger.exitCode).toBeNull();
    stranger.kill("SIGKILL");
  });

  it("names the port that is taken and leaves nothing running", async () => {
    const holder = createServer();
    holder.listen(port, "127.0.0.1");
    await once(holder, "listening");
    await expect(start()).rejects.toMatchObject({
      code: "PORT_TAKEN",
      message: expect.stringContaining(String(port)),
    });
    expect(existsSync(join(home, "data", "postgres", "postmaster.pid"))).toBe(false);
    holder.close();
  });

  it("is gone within 5 s when the kit is killed, also what hangs of it, and its port is free for the next start", async () => {
    const kit = await startInKit();
    const pid = Number(await firstWords(kit));
    const server = identifyProcess(pid);
    expect(server).toBeDefined();
    const part = await hangPart(pid);
    kit.kill("SIGKILL");
    await until(() => server === undefined || !isRunning(server), { timeoutMs: 5_000 });
    await until(() => !isRunning(part), { timeoutMs: 1_000 });
    const next = await start();
    expect(await queryOne(next.url, "SELECT 1 AS value")).toBe(1);
  });
});
