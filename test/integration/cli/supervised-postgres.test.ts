import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Client } from "pg";
import { present } from "../../../chain/errors.js";
import { readPostmasterFile } from "../../../cli/postgres/survivor.js";
import {
  type SupervisedPostgres,
  superviseEmbeddedPostgres,
} from "../../../cli/supervisor/supervised-postgres.js";
import { MAX_QUICK_DEATHS } from "../../../cli/supervisor/supervised-process.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { type Guardian, startGuardian } from "../../../runtime/process/guardian.js";
import { createLogger } from "../../../runtime/process/logger.js";
import {
  childrenOf,
  identifyProcess,
  isRunning,
} from "../../../runtime/process/process-identity.js";
import { itForRoot } from "../../helpers/processes/for-root.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";

const log = createLogger({ component: "test", level: "silent" });

describe("the supervised PostgreSQL", () => {
  let home: string;
  let port: number;
  let guardian: Guardian;
  let supervised: SupervisedPostgres | undefined;
  let notices: string[];
  let faults: string[];

  beforeEach(async () => {
    // mkdtemp closes the folder; the server's account must pass through it.
    home = mkdtempSync(join(tmpdir(), "causeway-supervised-pg-"));
    chmodSync(home, 0o711);
    port = await freePort();
    guardian = startGuardian({ log });
    notices = [];
    faults = [];
  });

  afterEach(async () => {
    await supervised?.stop();
    supervised = undefined;
    guardian.close();
    rmSync(home, { recursive: true, force: true });
  });

  async function supervise(
    ofHome: string,
    startFault?: () => string | undefined,
    lost?: AbortSignal,
  ): Promise<string> {
    supervised = await superviseEmbeddedPostgres(
      {
        startFault,
        lost,
        home: ofHome,
        port,
        guardian,
        log,
        clock: systemClock,
        notice: (sentence) => notices.push(sentence),
        onGaveUp: (error) => faults.push(error.message),
      },
      new AbortController().signal,
    );
    return join(ofHome, "data", "postgres");
  }

  it("is given up with the folder, the cause and the log, not with how it ended first", async () => {
    const folder = await supervise(home);
    chmodSync(join(folder, "global", "pg_control"), 0);
    process.kill(present(readPostmasterFile(folder), "the server").pid, "SIGKILL");
    await until(() => faults.length > 0, { timeoutMs: 30_000 });
    expect(faults).toEqual([
      `postgres died 5 times in a row (the database folder ${folder} cannot be used: permission denied); ` +
        `see ${join(home, "logs", "postgres.log")}.`,
    ]);
  });

  it("is not started, nor again behind its wait, where something came up against it", async () => {
    const fault = "it is another release's by now";
    await expect(supervise(home, () => fault)).rejects.toThrow(`postgres: ${fault}.`);
    const isWaiting = () => notices.some((line) => line.endsWith("; starting it again"));
    const folder = await supervise(home, () => (isWaiting() ? fault : undefined));
    process.kill(present(readPostmasterFile(folder), "the server").pid, "SIGKILL");
    await until(() => faults.length > 0, { timeoutMs: 30_000 });
    expect(faults).toEqual([`postgres: it was ended by SIGKILL, and ${fault}.`]);
  });

  it("is killed with all of its processes, and not started again, where another kit has its home", async () => {
    const losing = new AbortController();
    const fault = "another kit has the home";
    const folder = await supervise(
      home,
      () => (losing.signal.aborted ? fault : undefined),
      losing.signal,
    );
    const { pid } = present(readPostmasterFile(folder), "the server");
    const all = [present(identifyProcess(pid), "the server"), ...childrenOf(pid)];
    losing.abort();
    await until(() => !all.some(isRunning), { timeoutMs: 30_000 });
    await until(() => faults.length > 0, { timeoutMs: 30_000 });
    expect(faults).toEqual([`postgres: it was ended by SIGKILL, and ${fault}.`]);
    await supervised?.stop();
    // By an orderly end it would be gone, and it may be the other kit's.
    expect(readPostmasterFile(folder)?.pid).toBe(pid);
  });

  it("waits for its port, which another program has for a while when it is to be started again", async () => {
    const folder = await supervise(home);
    const holder = createServer();
    process.kill(present(readPostmasterFile(folder), "the server").pid, "SIGKILL");
    await until(() => notices.some((line) => line.endsWith("; starting it again")), {
      timeoutMs: 30_000,
    });
    holder.listen(port, "127.0.0.1");
    await once(holder, "listening");
    const isTold = (line: string) => line.startsWith(`postgres: port ${port} `);
    await until(() => notices.filter(isTold).length > MAX_QUICK_DEATHS || faults.length > 0, {
      timeoutMs: 60_000,
    });
    expect(faults).toEqual([]);
    holder.close();
    await until(() => readPostmasterFile(folder)?.status === "ready", { timeoutMs: 30_000 });
  });

  it("is started from outside when one of its processes has crashed, not by itself", async () => {
    const folder = await supervise(home);
    const { pid: server } = present(readPostmasterFile(folder), "the server");
    process.kill(present(childrenOf(server)[0], "a process of the server").pid, "SIGKILL");
    await until(() => notices.some((line) => line.startsWith("postgres: ")), { timeoutMs: 30_000 });
    expect(notices.filter((line) => line.startsWith("postgres: "))).toEqual([
      "postgres: it ended with code 1; starting it again",
    ]);
    await until(() => readPostmasterFile(folder)?.status === "ready", { timeoutMs: 30_000 });
    expect(readPostmasterFile(folder)?.pid).not.toBe(server);
    expect(faults).toEqual([]);
  });

  const forRoot = itForRoot();

  forRoot(
    "names the full disk that a running server died of, and starts once there is space",
    async () => {
      const small = join(home, "small");
      mkdirSync(small, { mode: 0o711 });
      const mounted = spawnSync("mount", [
        "-t",
        "tmpfs",
        "-o",
        "size=120m,mode=711",
        "none",
        small,
      ]);
      if (mounted.status !== 0) {
        process.stdout.write("skipped: no tmpfs can be mounted here\n");
        return;
      }
      try {
        const folder = await supervise(small);
        const password = readFileSync(join(small, "config", "postgres.password"), "utf8").trim();
        const client = new Client({
          host: "127.0.0.1",
          port,
          user: "postgres",
          password,
          database: "causeway",
        });
        client.on("error", () => undefined);
        await client.connect();
        const filler = join(small, "filler");
        fill(filler);
        const written = client.query(
          "SELECT pg_logical_emit_message(true, 'x', repeat('x', 16000000)) FROM generate_series(1, 8)",
        );
        await expect(written).rejects.toThrow();
        await until(() => notices.some((line) => line.startsWith("postgres: ")), {
          timeoutMs: 30_000,
        });
        rmSync(filler);
        expect(notices.filter((line) => line.startsWith("postgres: "))[0]).toBe(
          `postgres: it ended with code 1: the database folder ${folder} cannot be used: ` +
            "no space left on the device; starting it again",
        );
        await until(() => readPostmasterFile(folder)?.status === "ready", { timeoutMs: 30_000 });
        expect(faults).toEqual([]);
        await supervised?.stop();
      } finally {
        spawnSync("umount", ["-l", small]);
      }
    },
  );
});

/** Writes until there is no space left. */
function fill(path: string): void {
  const file = openSync(path, "w");
  const piece = Buffer.alloc(1_048_576);
  try {
    for (;;) writeSync(file, piece);
  } catch (error) {
    expect(error).toMatchObject({ code: "ENOSPC" });
  } finally {
    closeSync(file);
  }
}
