import { afterEach, describe, expect, it } from "@jest/globals";
import { type AddressInfo, createServer, type Server } from "node:net";
import { assertServicesAnswer } from "../../../cli/outside-services.js";

const { signal } = new AbortController();
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});

async function listen(port = 0): Promise<number> {
  const server = createServer((socket) => socket.end());
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", () => resolve()));
  return (server.address() as AddressInfo).port;
}

async function freePort(): Promise<number> {
  const port = await listen();
  await new Promise<void>((resolve) => servers.pop()?.close(() => resolve()));
  return port;
}

describe("servers of the operator's own", () => {
  it("are not asked for where the environment names none, a socket file or several hosts", async () => {
    const options = { signal, patienceMs: 0 };
    await assertServicesAnswer({}, options);
    await assertServicesAnswer({ DATABASE_URL: "postgres:///db?host=/run/pg" }, options);
    await assertServicesAnswer({ DATABASE_URL: "postgres://a:1,b:2/db" }, options);
  });

  it("are all named when they do not answer, without user and password", async () => {
    const [first, second] = [await freePort(), await freePort()];
    const env = {
      DATABASE_URL: `postgres://user:hush@127.0.0.1:${first}/db`,
      REDIS_URL: `redis://:hush@127.0.0.1:${second}`,
    };
    const failure = assertServicesAnswer(env, { signal, patienceMs: 0 });
    await expect(failure).rejects.toMatchObject({
      code: "SERVICE_UNREACHABLE",
      message:
        `Cannot start: nothing answers at 127.0.0.1:${first}, which DATABASE_URL names ` +
        `(ECONNREFUSED); nothing answers at 127.0.0.1:${second}, which REDIS_URL names ` +
        "(ECONNREFUSED).",
    });
  });

  it("get some time to come up", async () => {
    const port = await freePort();
    const env = { REDIS_URL: `redis://127.0.0.1:${port}` };
    const waiting = assertServicesAnswer(env, { signal, patienceMs: 10_000 });
    await listen(port);
    await expect(waiting).resolves.toBeUndefined();
  });
});
