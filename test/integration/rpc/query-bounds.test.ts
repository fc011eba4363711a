/** Queries of all faces together are bounded in number and in time. */
import { afterEach, expect, it } from "@jest/globals";
import * as grpc from "@grpc/grpc-js";
import { createClientMemory } from "../../../node/rpc/client-memory.js";
import { abciAnswer } from "../../../node/rpc/cosmos/abci-answer.js";
import { type QueryHandler, QueryRegistry } from "../../../node/rpc/cosmos/registry.js";
import { startGrpcServer } from "../../../node/rpc/grpc/server.js";
import { startRestServer } from "../../../node/rpc/rest/server.js";
import { loadDescriptors } from "../../../runtime/files/descriptor-set.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { ownerOf } from "../../../runtime/process/work-owner.js";
import { createGate, type Gate } from "../../helpers/gate.js";
import { until } from "../../helpers/until.js";
import { inVirtualTime } from "../../helpers/virtual-time.js";

const PATH = "/cosmos.bank.v1beta1.Query/Params";
const URL_PATH = "/cosmos/bank/v1beta1/params";
const MOST = 256;
const LISTEN = { host: "127.0.0.1", port: 0 };
const NOTHING = new Uint8Array(0);
const types = loadDescriptors();

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** A registry whose one method answers when the gate opens, or not at all when its time is over. */
function slowQueries({ opened }: Gate) {
  const state = { running: 0, clients: new Set<string>() };
  const answer: QueryHandler = async (_request, { signal, client }) => {
    state.running += 1;
    state.clients.add(client);
    const over = new Promise((resolve) => signal.addEventListener("abort", resolve));
    await Promise.race([opened, over]);
    state.running -= 1;
    signal.throwIfAborted();
    return {};
  };
  const queries = new QueryRegistry(types, { [PATH]: answer }, () => 1, 20_000);
  const ask = (signal = new AbortController().signal) =>
    abciAnswer(queries, { path: PATH, data: NOTHING, height: 1 }, { signal, client: "" });
  return { queries, state, ask };
}

/** REST and gRPC over a registry, and a client of the latter. */
async function serve(queries: QueryRegistry) {
  const log = createLogger({ component: "test", level: "silent" });
  const shared = {
    listen: LISTEN,
    queries,
    maxConnections: 10,
    requestsPerSecond: 0,
    memory: createClientMemory(systemClock),
    clock: systemClock,
    log,
  };
  const own = { allowedOrigins: [], isSwaggerServed: false, maxBodyBytes: 1_000 };
  const rest = await startRestServer({ ...shared, ...own });
  const server = await startGrpcServer(shared);
  const client = new grpc.Client(
    `127.0.0.1:${server.address.port}`,
    grpc.credentials.createInsecure(),
  );
  cleanups.push(
    () => rest.stop(),
    () => server.stop(),
    () => client.close(),
  );
  return { rest, client };
}

const same = (bytes: Buffer) => bytes;

function askGrpc(client: grpc.Client): Promise<string> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(PATH, same, same, Buffer.alloc(0), (error) =>
      error === null ? resolve("answered") : reject(error),
    );
  });
}

it("no more of one way run at once, and the other ways have their own places", async () => {
  const gate = createGate();
  const { queries, state, ask } = slowQueries(gate);
  const { rest, client } = await serve(queries);
  const held = Array.from({ length: MOST }, () => ask());
  const late = ask();
  await until(() => state.running === MOST, { timeoutMs: 10_000, what: "as many as there may be" });
  expect([...state.clients]).toEqual([""]);
  state.clients.clear();
  expect(await late).toMatchObject({
    code: 6,
    codespace: "sdk",
    log: "rpc error: code = Unavailable desc = too many queries at once, try again: unknown request",
  });
  const url = `http://127.0.0.1:${rest.address.port}${URL_PATH}`;
  const others = [fetch(url).then(({ status }) => status), askGrpc(client)];
  // Before the servers end, which wait for their answers.
  cleanups.push(async () => {
    gate.open();
    await Promise.allSettled(others);
  });
  await until(() => state.running === MOST + others.length, { timeoutMs: 10_000 });
  gate.open();
  expect(await Promise.all(others)).toEqual([200, "answered"]);
  expect([...state.clients]).toEqual(["127.0.0.1"]);
  expect((await Promise.all(held)).map(({ code }) => code)).toEqual(Array(MOST).fill(0));
});

it("the work of a query is its client's", async () => {
  const owners: unknown[] = [];
  const answer = async (_request: unknown, { signal }: { readonly signal: AbortSignal }) => {
    owners.push(ownerOf(signal));
    return {};
  };
  const queries = new QueryRegistry(types, { [PATH]: answer }, () => 1, 20_000);
  const { rest, client } = await serve(queries);
  await fetch(`http://127.0.0.1:${rest.address.port}${URL_PATH}`);
  await askGrpc(client);
  expect(owners).toEqual([{ client: "127.0.0.1" }, { client: "127.0.0.1" }]);
});

it("over abci_query, too, one that takes too long is given up", () =>
  inVirtualTime(async () => {
    const { state, ask } = slowQueries(createGate());
    const gone = new AbortController();
    setTimeout(() => gone.abort(), 60_000);
    const { code, log } = await ask(gone.signal);
    expect([code, log]).toEqual([
      6,
      "rpc error: code = DeadlineExceeded desc = the query took too long: unknown request",
    ]);
    expect(state.running).toBe(0);
  }));
