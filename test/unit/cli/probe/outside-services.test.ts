import { afterEach, describe, expect, it } from "@jest/globals";
import { type AddressInfo, createServer, type Server } from "node:net";
import {
  assertDatabaseAnswers,
  assertServicesAnswer,
} from "../../../../cli/probe/outside-services.js";

const { signal } = new AbortController();
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});

async function listen(port = 0): Promise<number> {
  const server = createServer((socket) => socket.resume().end());
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
  const notices: string[] = [];
  const options = (patienceMs: number) => ({
    signal,
    patienceMs,
    notice: (sentence: string) => void notices.push(sentence),
  });

  it("are not asked for where the environment names none, a socket file or several hosts", async () => {
    await assertServicesAnswer({}, options(0));
    await assertServicesAnswer({ DATABASE_URL: "postgres:///db?host=/run/pg" }, options(0));
    await assertServicesAnswer({ DATABASE_URL: "postgres://a:1,b:2/db" }, options(0));
    expect(notices).toEqual([]);
  });

  it("end the start when the database does not answer, without user and password", async () => {
    const port = await freePort();
    const env = { DATABASE_URL: `postgres://user:hush@127.0.0.1:${port}/db` };
    await expect(assertServicesAnswer(env, options(0))).rejects.toMatchObject({
      code: "SERVICE_UNREACHABLE",
      message:
        `Cannot start: nothing answers at 127.0.0.1:${port}, which DATABASE_URL names ` +
        "(ECONNREFUSED).",
    });
  });

  it("are only told of when Redis does not answer", async () => {
    const port = await freePort();
    await assertServicesAnswer({ REDIS_URL: `redis://:hush@127.0.0.1:${port}` }, options(0));
    expect(notices).toEqual([
      `nothing answers at 127.0.0.1:${port}, which REDIS_URL names (ECONNREFUSED): ` +
        "withdrawals are paid, but later than with a queue.",
    ]);
  });

  it("are refused at once by a command that needs the database now", async () => {
    const port = await freePort();
    const url = `postgres://user:hush@127.0.0.1:${port}/db`;
    await expect(assertDatabaseAnswers(url, "start it")).rejects.toMatchObject({
      message: `No database answers at 127.0.0.1:${port} (ECONNREFUSED): start it.`,
    });
    await listen(port);
    await expect(assertDatabaseAnswers(url, "start it")).resolves.toBeUndefined();
  });

  it("get some time to come up", async () => {
    const port = await freePort();
    const env = { DATABASE_URL: `postgres://127.0.0.1:${port}/db` };
    const waiting = assertServicesAnswer(env, options(10_000));
    await listen(port);
    await expect(waiting).resolves.toBeUndefined();
  });
});
