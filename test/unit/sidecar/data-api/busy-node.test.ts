/** What strangers ask of a node that is slow to answer them, and what the exchange asks meanwhile. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { ALICE, BOB, journals, startFakeChain } from "../../../helpers/chains/journal-chain.js";
import { type FakeNode, startFakeNode, type WireFault } from "../../../helpers/chains/fake-node.js";
import { until } from "../../../helpers/until.js";
import { CURRENCY } from "../../../helpers/chains/known-tokens.js";
import { ClientTurns } from "../../../../sidecar/rosetta/client-turns.js";
import { NETWORK, type Online, type OnlineOptions, onlineServer } from "../servers.js";

/** Connections of one client to its node. */
const CONNECTIONS = 64;

/** Questions of one kind that run or wait at most. */
const MOST_AT_ONCE = 24 + 128;

/** An endless loop that is its own contract. */
const ENDLESS = { data: "0x5b600056", index: 1 };

let leaving = new AbortController();
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  leaving.abort();
  leaving = new AbortController();
  for (const end of ends.splice(0).toReversed()) await end();
});

/** A server that listens, over a node that never answers these methods. */
async function open(hanging: readonly string[], options: OnlineOptions = {}) {
  const blocks = journals();
  const newest = blocks.pop();
  const wireFault = (methods: readonly string[]): WireFault | undefined =>
    methods.some((method) => hanging.includes(method)) ? "hang-after" : undefined;
  const node = await startFakeChain(
    { txpool_contentFrom: () => ({ pending: {}, queued: {} }) },
    blocks,
    { wireFault },
  );
  ends.push(() => node.close());
  const online = onlineServer(node.url, options);
  ends.push(() => online.rpc.close());
  await online.server.start();
  ends.push(() => online.server.stop());
  await online.indexed(1);
  const makeBlock = () => {
    if (newest !== undefined) blocks.push(newest);
  };
  return { node, online, makeBlock };
}

const asked = (node: FakeNode, method: string) =>
  node.calls.filter((made) => made.method === method).length;

/** Status and body of a reply over a connection of its own. */
async function post(online: Online, path: string, fields: Record<string, unknown>) {
  const reply = await fetch(`http://127.0.0.1:${online.server.port}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ network_identifier: NETWORK, ...fields }),
    signal: leaving.signal,
  });
  return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
}

const ready = (online: Online) => fetch(`http://127.0.0.1:${online.server.port}/ready`);

/** So many requests at once; ends with the first that is answered, the others wait on. */
function first(online: Online, many: number, path: string, fields: Record<string, unknown>) {
  const requests = Array.from({ length: many }, () => post(online, path, fields));
  for (const request of requests) request.catch(() => undefined);
  return Promise.race(requests);
}

describe("a node that strangers keep busy", () => {
  it.each([
    ["eth_call", ["eth_call"], "/call", { method: "eth_call", parameters: ENDLESS }],
    [
      "eth_estimateGas",
      ["eth_estimateGas"],
      "/construction/metadata",
      { options: { from: ALICE, to: BOB, value: "1", currency: CURRENCY, data: "0x" } },
    ],
  ])("is asked by few of them at once: %s", async (method, hanging, path, fields) => {
    const { node, online, makeBlock } = await open(hanging);
    const refused = await first(online, MOST_AT_ONCE + 1, path, fields);
    expect(refused).toMatchObject({ status: 500, body: { code: 8, retriable: true } });
    await until(() => asked(node, method) > 0, { timeoutMs: 10_000 });
    // The watcher's own questions, and the probe, are answered as ever.
    expect((await ready(online)).status).toBe(200);
    makeBlock();
    await online.indexed(2);
    const accounts = { method: "block_accounts", parameters: { from_index: 2, to_index: 2 } };
    expect((await post(online, "/call", accounts)).status).toBe(200);
    const balance = await post(online, "/account/balance", {
      account_identifier: { address: ALICE },
      block_identifier: { index: 2 },
    });
    expect(balance.status).toBe(200);
    expect(asked(node, method)).toBeLessThan(CONNECTIONS / 2);
  });

  it("is not waited for by metadata that need no estimate", async () => {
    const { node, online } = await open(["eth_estimateGas"]);
    const transfer = { from: ALICE, to: BOB, value: "1", currency: CURRENCY };
    const endless = { options: { ...transfer, data: "0x" } };
    const path = "/construction/metadata";
    for (let many = 0; many < 12; many += 1) post(online, path, endless).catch(() => undefined);
    await until(() => asked(node, "eth_estimateGas") >= 12, { timeoutMs: 10_000 });
    const chosen = { ...transfer, gas_limit: "21000", nonce: "7" };
    expect((await post(online, path, { options: chosen })).status).toBe(200);
  });

  it("gives clients turns one after the other, whoever asks most", async () => {
    const turns = new ClientTurns("questions", 1);
    const { signal } = leaving;
    const order: string[] = [];
    const ask = (remoteAddress: string) =>
      turns.run({ signal, remoteAddress }, async () => void order.push(remoteAddress));
    const [many, one] = ["192.0.2.1", "192.0.2.2"];
    const questions = Array.from({ length: 129 }, () => ask(many));
    const refused = expect(questions.at(-1)).rejects.toMatchObject({ code: "SERVER_BUSY" });
    questions.push(ask(one));
    await Promise.allSettled(questions);
    await refused;
    expect(order.slice(0, 3)).toEqual([many, many, one]);
  });

  it("has other connections for the index and the probes than for strangers", async () => {
    const silent = await startFakeNode({}, { wireFault: () => "hang-after" });
    ends.push(() => silent.close());
    const { online, makeBlock } = await open([], { strangersUrl: silent.url });
    expect((await ready(online)).status).toBe(200);
    expect((await post(online, "/network/status", {})).status).toBe(200);
    makeBlock();
    await online.indexed(2);
    expect((await post(online, "/block", { block_identifier: { index: 2 } })).status).toBe(200);
    expect(silent.calls).toEqual([]);
    post(online, "/mempool", {}).catch(() => undefined);
    await until(() => silent.calls.length > 0, { timeoutMs: 10_000 });
  });
});
