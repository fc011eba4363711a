import { afterEach, describe, expect, it } from "@jest/globals";
import { spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import {
  createChildRecord,
  findOrphans,
  waitForOrphans,
} from "../../../../cli/supervisor/orphans.js";
import { assertPortsFree, findBlockedPorts } from "../../../../cli/home/ports.js";
import { recordProcess, isStillRunning } from "../../../../runtime/process/process-identity.js";

const folders: string[] = [];
const signal = new AbortController().signal;

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-orphans-"));
  folders.push(folder);
  return join(folder, "children.json");
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Connects nobody: only what `fetch` refuses before it connects ends otherwise. */
const NOWHERE: object = {
  dispatcher: {
    dispatch(): never {
      throw new Error("nowhere");
    },
  },
};

function rootOf(error: unknown): string {
  const { cause = error } = error as Error;
  return (cause as Error).message;
}

describe("the port check", () => {
  it("names every taken port with who wants it", async () => {
    const servers = [createServer(), createServer()];
    const ports: number[] = [];
    for (const server of servers) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
      ports.push((server.address() as AddressInfo).port);
    }
    const wanted = ports.map((port, index) => ({ part: `part ${index}`, host: "127.0.0.1", port }));
    const fault = assertPortsFree(wanted);
    await expect(fault).rejects.toMatchObject({ code: "PORT_TAKEN" });
    for (const [index, port] of ports.entries()) {
      await expect(fault).rejects.toThrow(`port ${port} (wanted by part ${index}) is taken`);
    }
    for (const server of servers) {
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
    await assertPortsFree(wanted);
  });

  it("reports two parts that want the same port", async () => {
    const wanted = ["a", "b"].map((part) => ({ part, host: "127.0.0.1", port: 65_431 }));
    await expect(assertPortsFree(wanted)).rejects.toThrow("65431 is wanted by both a and b");
  });

  it("knows the ports to which fetch opens no connection", async () => {
    const ports = Array.from({ length: 20_000 }, (_, index) => 1_024 + index);
    const refused: number[] = [];
    for (const port of ports) {
      const why = await fetch(`http://127.0.0.1:${port}`, NOWHERE).catch(rootOf);
      if (why === "bad port") refused.push(port);
      else expect(why).toBe("nowhere");
    }
    expect(findBlockedPorts(ports.map((port) => ({ port }))).map(({ port }) => port)).toEqual(
      refused,
    );
  });
});

function startChild(): { pid: number; ended: Promise<unknown> } {
  const script = "setInterval(() => undefined, 1000)";
  const child = spawn(process.execPath, ["-e", script], { stdio: "ignore" });
  return {
    pid: child.pid ?? 0,
    ended: new Promise((resolve) => child.once("exit", resolve)),
  };
}

describe("orphans of a killed kit", () => {
  it("are waited for, and a stuck one is killed", async () => {
    const file = newFile();
    const child = startChild();
    const record = createChildRecord(file, signal);
    record.add("node", child.pid);
    await record.settled();
    expect((await findOrphans(file)).map(({ name }) => name)).toEqual(["node"]);
    const waited: string[] = [];
    const onWait = (orphans: readonly { name: string }[]): void => {
      waited.push(...orphans.map(({ name }) => name));
    };
    await waitForOrphans(file, { signal, onWait, timeoutMs: 100 });
    await child.ended;
    expect(waited).toEqual(["node"]);
  });

  it("are never confused with a foreign process of the same pid", async () => {
    const file = newFile();
    const child = startChild();
    const identity = recordProcess(child.pid);
    const startedAt = "another boot:1";
    const foreign = [{ name: "node", pid: child.pid, startedAt, folder: dirname(file) }];
    writeFileSync(file, JSON.stringify(foreign));
    await waitForOrphans(file, { signal, onWait: () => undefined, timeoutMs: 100 });
    expect(isStillRunning(identity)).toBe(true);
    process.kill(child.pid, "SIGKILL");
    await child.ended;
  });

  it("are not those of a home whose copy is started while its kit runs", async () => {
    const file = newFile();
    const child = startChild();
    const record = createChildRecord(file, signal);
    record.add("node", child.pid);
    await record.settled();
    const copy = newFile();
    copyFileSync(file, copy);
    const waited: string[] = [];
    const onWait = (): void => void waited.push("orphans");
    await waitForOrphans(copy, { signal, onWait, timeoutMs: 100 });
    expect({ waited, isAlive: isStillRunning(recordProcess(child.pid)) }).toEqual({
      waited: [],
      isAlive: true,
    });
    const link = `${dirname(newFile())}-link`;
    folders.push(link);
    symlinkSync(dirname(file), link);
    const found = await findOrphans(join(link, basename(file)));
    expect(found.map(({ name }) => name)).toEqual(["node"]);
    process.kill(child.pid, "SIGKILL");
    await child.ended;
  });

  it("are none when the record is absent or cut off", async () => {
    const file = newFile();
    expect(await findOrphans(file)).toEqual([]);
    writeFileSync(file, '[{"name":"no');
    expect(await findOrphans(file)).toEqual([]);
  });
});
