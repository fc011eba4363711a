/**
 * Where root's cluster lies: outside homes that nobody can enter, of one home alone, and on a disk
 * with room.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { openSharedFolder, preparePostgresBinaries } from "../../../../cli/postgres/binaries.js";
import { createCluster } from "../../../../cli/postgres/cluster.js";
import { itForRoot } from "../../../helpers/processes/for-root.js";
import { makeHome, queryOne, serversForTests, signal } from "./servers.js";

describe("embedded PostgreSQL", () => {
  let home: string;

  const { start } = serversForTests(
    (place) => {
      ({ home } = place);
    },
    () => home,
  );

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
