/** A client that subscribes and unsubscribes, asks and submits all day leaves nothing behind. */
import { afterAll, afterEach, beforeAll, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { WebSocket } from "ws";
import { Arguments } from "../../../../node/rpc/comet/arguments.js";
import { ResultTexts } from "../../../../node/rpc/comet/json/result-texts.js";
import type { EventReceiver } from "../../../../node/rpc/comet/route.js";
import { CometConnection } from "../../../../node/rpc/comet/socket-connection.js";
import { SubscriptionHub } from "../../../../node/rpc/comet/subscriptions.js";
import { broadcastRoutes } from "../../../../node/rpc/comet/routes/broadcast-routes.js";
import { abciAnswer } from "../../../../node/rpc/cosmos/abci-answer.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { leftBehind } from "../../../helpers/effort/signals.js";
import { until } from "../../../helpers/until.js";
import { ALICE } from "../evm/fixture.js";

let chain: CometTestChain;

beforeAll(async () => {
  chain = await CometTestChain.open(ALICE.address);
});

afterEach(() => {
  jest.restoreAllMocks();
});

afterAll(() => chain.close());

it("hears once of a client's end, and sends it nothing behind that", async () => {
  const texts = new ResultTexts(chain.chain.view);
  const log = createLogger({ component: "test", level: "silent" });
  const hub = new SubscriptionHub(chain.ports, texts, log);
  const routes = new Map(hub.routes());
  const closings: (() => void)[] = [];
  const pushed: Buffer[] = [];
  const connection: EventReceiver = {
    push(text) {
      pushed.push(text);
      return "sent";
    },
    cutOff: () => undefined,
    onClose: (callback) => closings.push(callback),
  };
  const run = (name: string, query: string) => {
    const values = new Arguments({ form: "json", values: new Map([["query", query]]) });
    const { signal } = new AbortController();
    return routes
      .get(name)
      ?.run(values, { signal, clientAddress: "", client: { requestId: 1, connection } });
  };
  for (let round = 0; round < 50; round++) {
    run("subscribe", "tm.event='NewBlockHeader'");
    run("unsubscribe", "tm.event='NewBlockHeader'");
  }
  run("subscribe", "tm.event='NewBlockHeader'");
  expect(closings).toHaveLength(1);
  await chain.mine();
  await until(() => pushed.length === 1, { timeoutMs: 30_000 });
  for (const closing of closings) closing();
  expect(() => run("unsubscribe", "tm.event='NewBlockHeader'")).toThrow("subscription not found");
  await chain.mine();
  expect(pushed).toHaveLength(1);
  hub.close();
});

it("leaves nothing behind at its connection of what it asks and submits", async () => {
  const log = createLogger({ component: "test", level: "silent" });
  const routes = new Map(broadcastRoutes(chain.ports, log));
  const { signal } = new AbortController();
  const tx = new Arguments({ form: "json", values: new Map([["tx", "AQ=="]]) });
  for (let round = 0; round < 20; round++) {
    const query = { path: "/cosmos.bank.v1beta1.Query/Params", data: new Uint8Array(0), height: 0 };
    expect(await abciAnswer(chain.queries, query, { signal, client: "" })).toMatchObject({
      code: 0,
    });
    const sent = await routes
      .get("broadcast_tx_commit")
      ?.run(tx, { signal, clientAddress: "", client: undefined });
    expect(sent).toMatchObject({ height: "0" });
  }
  expect(leftBehind(signal)).toBe(0);
});

async function openClient() {
  const socket = new WebSocket(`${chain.url.replace("http", "ws")}/websocket`);
  await once(socket, "open");
  const subscribe = (kind: string) => {
    const params = { query: `tm.event='${kind}'` };
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: kind, method: "subscribe", params }));
  };
  return { socket, subscribe };
}

it("has no subscriptions that it asks for while it is cut off", async () => {
  const push = jest.spyOn(CometConnection.prototype, "push").mockReturnValueOnce("slow");
  const cutOff = jest.spyOn(CometConnection.prototype, "cutOff");
  const slow = await openClient();
  slow.subscribe("NewBlockHeader");
  await once(slow.socket, "message");
  // It does not read that its connection is closed before it asks on.
  slow.socket.pause();
  await chain.mine();
  await until(() => cutOff.mock.calls.length === 1, { timeoutMs: 30_000 });
  const closed = once(slow.socket, "close");
  slow.subscribe("NewBlock");
  slow.socket.resume();
  await closed;
  const quick = await openClient();
  quick.subscribe("NewBlockEvents");
  await once(quick.socket, "message");
  push.mockClear();
  const told = once(quick.socket, "message");
  await chain.mine();
  await told;
  expect(push).toHaveBeenCalledTimes(1);
  quick.socket.terminate();
});
