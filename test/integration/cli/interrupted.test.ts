/** A command whose database takes the connection and answers nothing, and a person who presses Ctrl-C. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import path from "node:path";
import { expect, it } from "@jest/globals";
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
