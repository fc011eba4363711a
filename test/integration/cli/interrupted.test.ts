/**
 * A person who presses Ctrl-C on a command whose database takes the connection and answers nothing, and Ctrl-Z on
 * `npm start`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "@jest/globals";
import { kitOffset } from "../../helpers/kit.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";

/** PostgreSQL's answer to a client that begins: no password is asked for, and it may ask. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);

it("ends by the second one, however long its database is silent", async () => {
  let asked = 0;
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write(WELCOME);
      socket.on("data", () => (asked += 1));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const main = path.join(await compiledFolder(), "cli", "main.js");
  const child = spawn(process.execPath, [main, "ledger", "decisions", "--home", "/nowhere"], {
    env: { DATABASE_URL: `postgres://causeway@127.0.0.1:${port}/causeway` },
    stdio: "ignore",
  });
  const ended = once(child, "exit");
  try {
    await until(() => asked > 0 || child.exitCode !== null, { timeoutMs: 10_000 });
    expect(child.exitCode).toBeNull();
    const again = setInterval(() => child.kill("SIGINT"), 50);
    const [code, signal] = await ended.finally(() => clearInterval(again));
    // One that comes while it ends already may be the system's to obey.
    expect([130, "SIGINT"]).toContain(code ?? signal);
  } finally {
    child.kill("SIGKILL");
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

/** Whether a signal has put a process to sleep; false where there is no /proc. */
function isStopped(pid: number | undefined): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.startsWith("T") === true;
  } catch {
    return false;
  }
}

it("is not put to sleep as a kit, whose parts would stand still behind full pipes", async () => {
  const home = mkdtempSync(path.join(tmpdir(), "causeway-ctrl-z-"));
  const main = path.join(await compiledFolder(), "cli", "kit-main.js");
  // It waits ten seconds for a database that nobody serves.
  const args = [main, "--home", home, "--port-offset", String(kitOffset(0))];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, DATABASE_URL: "postgres://causeway@127.0.0.1:1/causeway" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  try {
    await until(() => said.includes("Causeway, home"), { timeoutMs: 10_000 });
    child.kill("SIGTSTP");
    await until(() => said.includes("Ctrl-Z") || isStopped(child.pid), { timeoutMs: 10_000 });
    expect(isStopped(child.pid)).toBe(false);
    expect(said).toContain("Ctrl-Z does not pause the kit");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  } finally {
    child.kill("SIGKILL");
    rmSync(home, { recursive: true, force: true });
  }
});
