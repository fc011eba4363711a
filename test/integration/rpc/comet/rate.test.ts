/** How often one client may search or subscribe at the consensus RPC, where the operator bounds it. */
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { Server, type Socket } from "node:net";
import { WebSocket } from "ws";
import { startCometServer } from "../../../../node/rpc/comet/server.js";
import type { RpcServer } from "../../../../node/rpc/http-listener.js";
import { searchRate } from "../../../../node/rpc/rate-limit.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { NETWORKS } from "../../../../chain/networks.js";
import { ALICE } from "../../../unit/rpc/evm/fixture.js";

const SEARCH = { query: "tx.height>0" };
const TOO_OFTEN = { error: { code: -32603, data: expect.stringMatching(/^limit exceeded/) } };

let chain: CometTestChain;
let server: RpcServer;
/** Whom the server takes for the other end of a new connection. */
let remoteAddress = "";
let nowMs = 0;

beforeAll(async () => {
  chain = await CometTestChain.open(ALICE.address);
  const listening = jest.spyOn(Server.prototype, "listen");
  server = await startCometServer({
    view: chain.chain.view,
    network: NETWORKS.testnet,
    isCatchingUp: () => false,
    moniker: "bounded",
    nodeId: "ab".repeat(20),
    p2pListenAddress: "",
    rpcListenAddress: "",
    validator: { publicKey: new Uint8Array(32), votingPower: 0n },
    listen: { host: "127.0.0.1", port: 0 },
    log: createLogger({ component: "test", level: "silent" }),
    chain: chain.ports,
    queries: chain.queries,
    searches: searchRate(1, { nowMs: () => nowMs, monotonicMs: () => nowMs }),
  });
  const [listener] = listening.mock.contexts as Server[];
  listening.mockRestore();
  listener?.prependListener("connection", (socket: Socket) => {
    Object.defineProperty(socket, "remoteAddress", { value: remoteAddress });
  });
});

afterAll(async () => {
  await server.stop();
  await chain.close();
});

const urlOf = (scheme: string) => `${scheme}://127.0.0.1:${server.address.port}`;

/** Each on a connection of its own. */
async function post(method: string, params: unknown = {}): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "Content-Type": "application/json", Connection: "close" };
  return (await fetch(urlOf("http"), { method: "POST", headers, body })).json();
}

describe("a client of the consensus RPC", () => {
  it("that searches more often than it may is told so, and may again a second later", async () => {
    remoteAddress = "203.0.113.1";
    const found = { result: { total_count: "0" } };
    expect(await post("tx_search", SEARCH)).toMatchObject(found);
    expect(await post("block_search", { query: "block.height>0" })).toMatchObject(found);
    expect(await post("tx_search", SEARCH)).toMatchObject(TOO_OFTEN);
    expect(await post("block_search", { query: "block.height>0" })).toMatchObject(TOO_OFTEN);
    const url = `${urlOf("http")}/tx_search?query="tx.height>0"`;
    const byUrl = await fetch(url, { headers: { Connection: "close" } });
    expect([byUrl.status, await byUrl.json()]).toMatchObject([500, TOO_OFTEN]);
    expect(await post("status")).toHaveProperty("result");
    nowMs += 1_000;
    expect(await post("tx_search", SEARCH)).toMatchObject(found);
    expect(await post("tx_search", SEARCH)).toMatchObject(TOO_OFTEN);
  });

  it("that subscribes in a loop is told so", async () => {
    remoteAddress = "203.0.113.2";
    const socket = new WebSocket(`${urlOf("ws")}/websocket`);
    await once(socket, "open");
    const call = async (id: number, method: string) => {
      const params = { query: "tm.event='NewBlock'" };
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
      const [answer] = await once(socket, "message");
      return JSON.parse(String(answer));
    };
    expect(await call(1, "subscribe")).toMatchObject({ id: 1, result: {} });
    expect(await call(2, "unsubscribe")).toMatchObject({ id: 2, result: {} });
    expect(await call(3, "subscribe")).toMatchObject({ id: 3, result: {} });
    expect(await call(4, "unsubscribe")).toMatchObject({ id: 4, result: {} });
    expect(await call(5, "subscribe")).toMatchObject({ id: 5, ...TOO_OFTEN });
    socket.terminate();
  });

  it("of this machine is not bounded", async () => {
    remoteAddress = "127.0.0.1";
    for (let count = 0; count < 10; count++) {
      expect(await post("tx_search", SEARCH)).toHaveProperty("result");
    }
  });
});
