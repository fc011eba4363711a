import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { Client } from "pg";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../../cli/postgres/embedded-postgres.js";
import { openSharedFolder, preparePostgresBinaries } from "../../../cli/postgres/binaries.js";
import { createCluster } from "../../../cli/postgres/cluster.js";
import { createLogger } from "../../../runtime/process/logger.js";
import {
  childrenOf,
  identifyProcess,
  isRunning,
  type ProcessIdentity,
} from "../../../runtime/process/process-identity.js";
import { firstWords } from "../../helpers/processes/endings.js";
import { freePort } from "../../helpers/ports.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { itForRoot } from "../../helpers/processes/for-root.js";
import { until } from "../../helpers/until.js";

const log = createLogger({ component: "test", level: "silent" });
const { signal } = new AbortController();
const isRoot = process.getuid?.() === 0;

async function queryOne(url: string, text: string): Promise<unknown> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const result = await client.query<{ value: unknown }>(text);
    return result.rows[0]?.value;
  } finally {
    await client.end();
  }
}

function makeHome(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-pg-"));
  // mkdtemp closes the folder; the server's account must pass through it.
  chmodSync(folder, 0o711);
  return folder;
}

/** Stops a process that a server has made, as a debugger does: it hears of no end. */
async function hangPart(pid: number): Promise<ProcessIdentity> {
  const isCheckpointer = (part: ProcessIdentity) =>
    readFileSync(`/proc/${part.pid}/cmdline`, "utf8").includes("checkpointer");
  let part: ProcessIdentity | undefined;
  // It takes its name some time after it was made; others of the server may end meanwhile.
  await until(() => (part = childrenOf(pid).find(isCheckpointer)) !== undefined, {
    timeoutMs: 30_000,
    what: "the server has a checkpointer",
  });
  if (part === undefined) throw new Error("the server has no checkpointer");
  process.kill(part.pid, "SIGSTOP");
  return part;
}

/** Whether the programs that make the cluster of a home are at work. */
function isBeingMade(home: string): boolean {
  const data = join(home, "data");
  if (!existsSync(data)) return false;
  return readdirSync(data).some((name) => existsSync(join(data, name, "cluster", "base", "1")));
}

/** Command lines of running programs that name a home. */
function programsIn(home: string): string[] {
  const pids = readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
  return pids
    .filter((pid) => identifyProcess(Number(pid)) !== undefined)
    .map((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8"))
    .filter((line) => line.includes(home));
}

describe("embedded PostgreSQL", () => {
  /** Home with a finished cluster, shared by the tests that do not look at its making. */
  let sharedHome: string;
  let home: string;
  let port: number;
  const running: EmbeddedPostgres[] = [];

  async function start(options: { home?: string; notices?: string[] } = {}) {
    const server = await startEmbeddedPostgres({
      home: options.home ?? home,
      port,
      log,
      signal,
      notice: (sentence) => options.notices?.push(sentence),
    });
    running.push(server);
    return server;
  }

  /** Starts the server in a process of its own, which tells the server's id. */
  async function startInKit() {
    const folder = await compiledFolder();
    const script = `
      const { startEmbeddedPostgres } = await import(${JSON.stringify(`${folder}/cli/postgres/embedded-postgres.js`)});
      const { createLogger } = await import(${JSON.stringify(`${folder}/runtime/process/logger.js`)});
      const server = await startEmbeddedPostgres({
        home: ${JSON.stringify(home)}, port: ${port}, signal: new AbortController().signal,
        log: createLogger({ component: "kit", level: "silent" }),
      });
      process.stdout.write(String(server.pid));
    `;
    return spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  beforeAll(() => {
    sharedHome = makeHome();
  });

  afterAll(() => {
    rmSync(sharedHome, { recursive: true, force: true });
  });

  beforeEach(async () => {
    home = sharedHome;
    port = await freePort();
  });

  afterEach(async () => {
    for (const server of running.splice(0)) {
      await server.stop();
    }
    if (home !== sharedHome) {
      rmSync(home, { recursive: true, force: true });
    }
  });

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

  it("redoes an initialisation that was killed half way", async () => {
    home = makeHome();
    const half = join(home, "data", "postgres.init-999999");
    mkdirSync(join(half, "cluster"), { recursive: true });
    writeFileSync(join(half, "cluster", "PG_VERSION"), "18\n");
    const server = await start();
    expect(await queryOne(server.url, "SELECT 1 AS value")).toBe(1);
    expect(readdirSync(join(home, "data"))).toEqual(["postgres"]);
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

  const forRoot = itForRoot();

  forRoot("lies outside a home that nobody can enter, and says so", async () => {
    home = makeHome();
    const closed = join(home, "closed");
    mkdirSync(closed, { mode: 0o700 });
    const notices: string[] = [];
    const server = await start({ home: join(closed, "home"), notices });
    const link = join(closed, "home", "data", "postgres");
    expect(await queryOne(server.url, "SELECT 1 AS value")).toBe(1);
    expect(notices.join(" ")).toContain("/var/lib/causeway/");
    const folder = realpathSync(link);
    expect(folder).toMatch(/^\/var\/lib\/causeway\/[0-9a-f]{16}$/);
    await server.stop();

    // A new home at the same path must not get the old home's money, nor destroy it.
    rmSync(join(closed, "home"), { recursive: true });
    const again = await start({ home: join(closed, "home"), notices });
    await again.stop();
    const kept = /kept in (\S+)\./.exec(notices.join(" "))?.[1] ?? "";
    expect(existsSync(join(kept, "PG_VERSION"))).toBe(true);
    rmSync(kept, { recursive: true });

    const folderAgain = realpathSync(link);
    renameSync(folderAgain, `${folderAgain}.away`);
    await expect(start({ home: join(closed, "home") })).rejects.toMatchObject({
      code: "CLUSTER_MISSING",
    });
    rmSync(`${folderAgain}.away`, { recursive: true });
  });

  forRoot("is reached outside homes, whatever mask made the way", async () => {
    home = makeHome();
    const nobody = { uid: 65_534, gid: 65_534 };
    const folder = join(home, "shared");
    const modeBehind = (mode?: number) => {
      if (mode !== undefined) chmodSync(folder, mode);
      openSharedFolder(nobody, folder);
      return statSync(folder).mode & 0o777;
    };
    const mask = process.umask(0o077);
    try {
      expect(modeBehind()).toBe(0o711);
    } finally {
      process.umask(mask);
    }
    expect([0o700, 0o710, 0o711, 0o755].map(modeBehind)).toEqual([0o711, 0o711, 0o711, 0o755]);
    // A folder of somebody else is not opened to others.
    chownSync(folder, 1_234_567, 1_234_567);
    expect(modeBehind(0o700)).toBe(0o700);
  });

  forRoot("says that its programs cannot be run where they cannot be reached", async () => {
    home = makeHome();
    const closed = join(home, "closed");
    mkdirSync(closed, { mode: 0o700 });
    writeFileSync(join(closed, "initdb"), "#!/bin/sh\n", { mode: 0o755 });
    const binaries = { initdb: join(closed, "initdb"), postgres: closed, majorVersion: 18 };
    const folder = join(home, "postgres");
    const account = { uid: 65_534, gid: 65_534 };
    const place = { folder, isNew: true, link: undefined, account };
    await expect(createCluster({ place, home, binaries, signal })).rejects.toMatchObject({
      code: "START_FAILED",
      message: `initdb could not prepare the database folder ${folder}: it cannot be run (EACCES)`,
    });
  });

  forRoot(
    "outside its home is that of one home: not of a copy, but of one that was moved",
    async () => {
      home = makeHome();
      const closed = join(home, "closed");
      mkdirSync(closed, { mode: 0o700 });
      const [first, copy, aside] = ["first", "copy", "aside"].map((name) => join(closed, name));
      const linkOf = (one = "") => join(one, "data", "postgres");
      const server = await start({ home: first });
      const folder = realpathSync(linkOf(first));
      const mark = async (url: string) => {
        await queryOne(url, "CREATE TABLE mark AS SELECT 7 AS value");
      };
      await mark(server.url);
      spawnSync("cp", ["-a", first ?? "", copy ?? ""]);
      // While the first one's server runs, and after it: the copy may have neither.
      const shared = {
        code: "CLUSTER_SHARED",
        message: expect.stringContaining(`cp -a ${folder} `),
      };
      await expect(start({ home: copy })).rejects.toMatchObject(shared);
      expect(await queryOne(server.url, "SELECT value FROM mark")).toBe(7);
      await server.stop();
      await expect(start({ home: copy })).rejects.toMatchObject(shared);

      // As the message says.
      spawnSync("cp", ["-a", folder, `${folder}-copy`]);
      spawnSync("ln", ["-sfn", `${folder}-copy`, linkOf(copy)]);
      const ofCopy = await start({ home: copy });
      expect(await queryOne(ofCopy.url, "SELECT value FROM mark")).toBe(7);
      await ofCopy.stop();

      // Moved aside for a new one at its place: each has its own.
      renameSync(first ?? "", aside ?? "");
      const fresh = await start({ home: first });
      expect(await queryOne(fresh.url, "SELECT to_regclass('mark') IS NULL AS value")).toBe(true);
      await fresh.stop();
      const moved = await start({ home: aside });
      expect(await queryOne(moved.url, "SELECT value FROM mark")).toBe(7);
      await moved.stop();
      for (const one of [first, copy, aside])
        rmSync(realpathSync(linkOf(one)), { recursive: true });
    },
  );

  forRoot("says what a user without a name can do", async () => {
    home = makeHome();
    const account = { uid: 1_234_567, gid: 1_234_567 };
    const notice = () => undefined;
    const binaries = preparePostgresBinaries({ account, copyFolder: home, notice });
    const folder = join(home, "postgres");
    const place = { folder, isNew: true, link: undefined, account };
    await expect(createCluster({ place, home, binaries, signal })).rejects.toMatchObject({
      code: "START_FAILED",
      message:
        "PostgreSQL makes no database for a user without a name, and /etc/passwd has none for the id " +
        "1234567: add a line for it, start as another user, or set DATABASE_URL to a PostgreSQL of your own",
    });
    expect(readdirSync(home)).toEqual(["config"]);
  });

  forRoot("names folder and cause on a full disk, and works once there is space", async () => {
    home = makeHome();
    const small = join(home, "small");
    mkdirSync(small, { mode: 0o711 });
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=20m,mode=711", "none", small]);
    if (mounted.status !== 0) {
      process.stdout.write("skipped: no tmpfs can be mounted here\n");
      return;
    }
    try {
      await expect(start({ home: small })).rejects.toMatchObject({
        code: "FOLDER_UNUSABLE",
        message: expect.stringMatching(/small\/data\/postgres.*no space left/),
      });
      spawnSync("mount", ["-o", "remount,size=400m", small]);
      const server = await start({ home: small });
      expect(await queryOne(server.url, "SELECT 1 AS value")).toBe(1);
      await server.stop();
      spawnSync("mount", ["-o", "remount,ro", small]);
      await expect(start({ home: small })).rejects.toMatchObject({
        code: "FOLDER_UNUSABLE",
        message: expect.stringContaining("read-only"),
      });
    } finally {
      spawnSync("umount", [small]);
    }
  });
});
