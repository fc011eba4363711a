/** Requests to the consensus RPC that are made to end the node, or to make it keep much. */
import { expect, it, jest } from "@jest/globals";
import { EventEmitter } from "node:events";
import type { WebSocket } from "ws";
import { createClientMemory } from "../../../../node/rpc/client-memory.js";
import { JsonPieces } from "../../../../node/rpc/comet/json/json-pieces.js";
import { answerBody, LargeBatches } from "../../../../node/rpc/comet/json-rpc.js";
import { route } from "../../../../node/rpc/comet/route.js";
import { type CometServerOptions, startCometServer } from "../../../../node/rpc/comet/server.js";
import { CometConnection } from "../../../../node/rpc/comet/socket-connection.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { LazySignal } from "../../../../runtime/process/lazy-signal.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { OWN_WORK } from "../../../../runtime/process/work-owner.js";
import { until } from "../../../helpers/until.js";

const quiet = createLogger({ component: "test", level: "silent" });
const WAIT = { timeoutMs: 10_000 };

async function ask(body: unknown, routes = new Map([route("health", [], () => ({}))])) {
  const scope = { routes, log: quiet, ending: new LazySignal(), large: new LargeBatches() };
  const bytes = Buffer.from(JSON.stringify(body));
  const answer = await answerBody(bytes, { ...scope, client: () => undefined });
  return answer?.pieces.map(String).join("");
}

it("answers a batch whose answer lies in more pieces than a function takes arguments", async () => {
  const pieces = ["[0", ...Array.from({ length: 200_000 }, () => ",0"), "]"];
  const routes = new Map([route("many", [], () => new JsonPieces(pieces))]);
  const text = await ask([{ jsonrpc: "2.0", id: 1, method: "many" }], routes);
  expect(text).toHaveLength('[{"jsonrpc":"2.0","id":1,"result":[0]}]'.length + 400_000);
});

it("takes no id that is longer than any client's, alone or in a batch", async () => {
  const request = (id: string) => ({ jsonrpc: "2.0", id, method: "health" });
  const refusal = JSON.stringify({
    jsonrpc: "2.0",
    id: null,
    error: {
      code: -32_600,
      message: "Invalid Request",
      data: "the id has more than 256 characters: use a shorter one",
    },
  });
  const answer = (id: string) => `{"jsonrpc":"2.0","id":"${id}","result":{}}`;
  const [long, longest] = ["x".repeat(257), "x".repeat(256)];
  expect(await ask(request(long))).toBe(refusal);
  expect(await ask(request(longest))).toBe(answer(longest));
  expect(await ask([request("a"), request(long)])).toBe(`[${answer("a")},${refusal}]`);
});

/** A log of which the first entry is lost with whatever had to be told. */
function brokenLog() {
  const log = createLogger({ component: "test", level: "silent" });
  const error = jest.spyOn(log, "error").mockImplementationOnce(() => {
    throw new RangeError("no log");
  });
  return { log, error };
}

const broken = () => {
  throw new RangeError("broken");
};

it.each(["GET", "POST"])(
  "ends a %s that cannot be answered, and answers the next",
  async (method) => {
    const { log, error } = brokenLog();
    const options = { isCatchingUp: broken, listen: { host: "127.0.0.1", port: 0 }, log };
    // Whatever else `status` wants to know is not looked at.
    const server = await startCometServer(options as unknown as CometServerOptions);
    try {
      const origin = `http://127.0.0.1:${server.address.port}`;
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "status" });
      const posted = { method: "POST", body };
      const reply = await (method === "GET" ? fetch(`${origin}/status`) : fetch(origin, posted));
      expect([reply.status, await reply.json()]).toEqual([
        500,
        {
          jsonrpc: "2.0",
          id: method === "GET" ? -1 : null,
          error: {
            code: -32_603,
            message: "Internal error",
            data: "the request could not be answered",
          },
        },
      ]);
      expect(error).toHaveBeenCalledTimes(2);
      expect((await fetch(`${origin}/health`)).status).toBe(200);
    } finally {
      await server.stop();
    }
  },
);

it("ends a connection with a request that cannot be answered, and counts nothing of it", async () => {
  const sent: unknown[] = [];
  const close = jest.fn();
  const socket = Object.assign(new EventEmitter(), {
    bufferedAmount: 0,
    isPaused: false,
    send: (text: unknown) => sent.push(text),
    close,
    resume: () => undefined,
    terminate: () => undefined,
  });
  const memory = createClientMemory(systemClock);
  const routes = new Map([route("broken", [], broken)]);
  const options = {
    routes,
    large: new LargeBatches(),
    log: brokenLog().log,
    memory,
    owner: OWN_WORK,
  };
  const connection = new CometConnection(socket as unknown as WebSocket, options);
  socket.emit("message", Buffer.from('{"jsonrpc":"2.0","id":1,"method":"broken"}'));
  await until(() => close.mock.calls.length > 0, WAIT);
  expect(close).toHaveBeenCalledWith(1011, "internal error");
  expect(sent.map(String)).toEqual([expect.stringContaining("the request could not be answered")]);
  expect(memory.unread.totalBytes).toBe(0);
  expect(connection.push(Buffer.from("event"))).toBe("closed");
  socket.emit("close");
});
