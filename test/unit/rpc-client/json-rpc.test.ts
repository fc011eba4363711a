import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import { parseHash32 } from "../../../chain/hex.js";
import { NodeFault, RpcError } from "../../../rpc-client/errors.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";

interface Message {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** Answers to one call and to a batch; a test arranges the one it needs. */
type AnswerOne = (message: Message) => unknown;
type AnswerMany = (messages: readonly [Message, ...Message[]]) => unknown;

type Respond = (
  body: Message & readonly [Message, ...Message[]],
  response: ServerResponse,
  request: IncomingMessage,
) => void;

const signal = new AbortController().signal;
const closers: (() => void)[] = [];

afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function listen(respond: Respond): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () =>
      respond(JSON.parse(Buffer.concat(chunks).toString()), response, request),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** A client of a server that answers each parsed body by a value, sent as JSON. */
async function clientOf(
  answer: (body: Message & readonly [Message, ...Message[]]) => unknown,
  options: { timeoutMs?: number; maxResponseBytes?: number } = {},
): Promise<JsonRpcClient> {
  const { url } = await listen((body, response) => response.end(JSON.stringify(answer(body))));
  return open(url, options);
}

function open(url: string, options: { timeoutMs?: number; maxResponseBytes?: number } = {}) {
  const client = createJsonRpcClient({ url, timeoutMs: 30_000, ...options });
  closers.push(() => client.close());
  return client;
}

const reply = (message: Pick<Message, "id">, result: unknown) => ({
  jsonrpc: "2.0",
  id: message.id,
  result,
});

const codeOf = async (promise: Promise<unknown>): Promise<unknown> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(NodeFault);
  return error instanceof NodeFault ? [error.code, error.retriable] : undefined;
};

describe("one call", () => {
  it("sends method and params and gives the result, null included", async () => {
    const client = await clientOf((body) => reply(body, [body.method, body.params]));
    const result = await client.request("eth_x", [1, "a"], { signal });
    expect(result).toEqual(["eth_x", [1, "a"]]);
    const nothing = await clientOf((body) => reply(body, null));
    expect(await nothing.request("eth_y", [], { signal })).toBeNull();
  });

  it("throws what the node refused, with number, text and data", async () => {
    const error = { code: 3, message: "execution reverted", data: "0x08c379a0" };
    const client = await clientOf(({ id }) => ({ jsonrpc: "2.0", id, error }));
    const thrown = await client.request("eth_call", [], { signal }).catch((reason) => reason);
    expect(thrown).toBeInstanceOf(RpcError);
    expect(thrown).toMatchObject({
      code: "RPC_ERROR",
      retriable: false,
      nodeMessage: "execution reverted",
      details: { rpcCode: 3, method: "eth_call", data: "0x08c379a0" },
    });
  });

  it.each<[string, AnswerOne]>([
    ["another id", ({ id }) => ({ jsonrpc: "2.0", id: id + 1, result: 1 })],
    ["the id as text", ({ id }) => ({ jsonrpc: "2.0", id: String(id), result: 1 })],
    ["no version", ({ id }) => ({ id, result: 1 })],
    ["neither result nor error", ({ id }) => ({ jsonrpc: "2.0", id })],
    ["an error without a number", ({ id }) => ({ jsonrpc: "2.0", id, error: { message: "x" } })],
    ["a list", (body) => [reply(body, 1)]],
    ["a bare value", () => 7],
  ])("does not believe an answer with %s", async (_name, answer) => {
    const client = await clientOf(answer);
    expect(await codeOf(client.request("eth_x", [], { signal }))).toEqual(["BAD_ANSWER", false]);
  });
});

describe("a batch", () => {
  const calls = ["a", "b", "c"].map((method) => ({ method, params: [] }));

  it("gives outcomes in the order of the calls, whatever the order of the answers", async () => {
    const client = await clientOf((body) =>
      body
        .map((message) =>
          message.method === "b"
            ? { jsonrpc: "2.0", id: message.id, error: { code: -32000, message: "no" } }
            : reply(message, message.method),
        )
        .toReversed(),
    );
    const outcomes = await client.batch(calls, { signal });
    expect(
      outcomes.map((outcome) => (outcome.ok ? outcome.result : outcome.error.nodeMessage)),
    ).toEqual(["a", "no", "c"]);
  });

  it("splits what is longer than a node takes, and sends nothing for nothing", async () => {
    const sizes: number[] = [];
    const client = await clientOf((body) => {
      sizes.push(body.length);
      return body.map((message) => reply(message, message.params[0]));
    });
    const many = Array.from({ length: 1_201 }, (_, index) => ({ method: "m", params: [index] }));
    const outcomes = await client.batch(many, { signal });
    expect(sizes).toEqual([500, 500, 201]);
    expect(outcomes.every((outcome, index) => outcome.ok && outcome.result === index)).toBe(true);
    expect(await client.batch([], { signal })).toEqual([]);
    expect(sizes).toHaveLength(3);
  });

  it.each<[string, AnswerMany]>([
    ["one answer missing", (body) => body.slice(1).map((message) => reply(message, 1))],
    ["one answered twice", (body) => [...body, body[0]].map((message) => reply(message, 1))],
    ["a stranger's id", (body) => body.map((message) => reply({ id: message.id + 900 }, 1))],
    ["a single result", (body) => reply(body[0], 1)],
  ])("does not believe %s", async (_name, answer) => {
    const client = await clientOf(answer);
    expect(await codeOf(client.batch(calls, { signal }))).toEqual(["BAD_ANSWER", false]);
  });

  it("reports a batch that was refused as a whole", async () => {
    const error = { code: -32600, message: "batch too large" };
    const answers: AnswerMany[] = [
      () => ({ jsonrpc: "2.0", id: null, error }),
      // As our node and go-ethereum: in the place of all answers that of the first call.
      (body) => [{ jsonrpc: "2.0", id: body[0].id, error }],
      () => [{ jsonrpc: "2.0", id: null, error }],
    ];
    for (const answer of answers) {
      const client = await clientOf(answer);
      const thrown = await client.batch(calls, { signal }).catch((reason) => reason);
      expect(thrown).toMatchObject({ code: "RPC_ERROR", nodeMessage: "batch too large" });
    }
  });
});

describe("the wire", () => {
  it("tells an unreachable, a late, a large, an odd and a broken answer apart", async () => {
    const closed = await listen(() => undefined);
    closed.server.close();
    expect(await codeOf(open(closed.url).request("x", [], { signal }))).toEqual([
      "NODE_UNREACHABLE",
      true,
    ]);

    const silent = await listen(() => undefined);
    const late = open(silent.url, { timeoutMs: 50 });
    expect(await codeOf(late.request("x", [], { signal }))).toEqual(["NODE_TIMEOUT", true]);
    const patient = open(silent.url);
    const brief = patient.request("x", [], { signal, timeoutMs: 50 });
    expect(await codeOf(brief)).toEqual(["NODE_TIMEOUT", true]);
    // A call's own time shortens the client's, and never lengthens it.
    const longer = late.request("x", [], { signal, timeoutMs: 86_400_000 });
    expect(await codeOf(longer)).toEqual(["NODE_TIMEOUT", true]);

    const large = await clientOf((body) => reply(body, "x".repeat(5_000)), {
      maxResponseBytes: 4_096,
    });
    expect(await codeOf(large.request("x", [], { signal }))).toEqual(["ANSWER_TOO_LARGE", false]);

    const busy = await listen((_body, response) => {
      response.statusCode = 503;
      response.end("busy");
    });
    expect(await codeOf(open(busy.url).request("x", [], { signal }))).toEqual([
      "NODE_HTTP_STATUS",
      true,
    ]);

    const html = await listen((_body, response) => response.end("<html>"));
    expect(await codeOf(open(html.url).request("x", [], { signal }))).toEqual([
      "BAD_ANSWER",
      false,
    ]);

    const cut = await listen((_body, response) => {
      response.writeHead(200, { "content-length": 1_000 });
      response.write("{");
      response.destroy();
    });
    expect(await codeOf(open(cut.url).request("x", [], { signal }))).toEqual([
      "NODE_UNREACHABLE",
      true,
    ]);
  });

  it("leaves at once when the signal fires, and before anything is sent when it has", async () => {
    let asked = 0;
    const controller = new AbortController();
    const { url } = await listen(() => {
      asked += 1;
      controller.abort(new Error("stopping"));
    });
    const client = open(url);
    await expect(client.request("x", [], { signal: controller.signal })).rejects.toThrow(
      "stopping",
    );
    await expect(client.request("x", [], { signal: controller.signal })).rejects.toThrow(
      "stopping",
    );
    expect(asked).toBe(1);
  });

  it("sends again when a kept connection turns out to be closed", async () => {
    let exchanges = 0;
    const { url } = await listen((body, response, request) => {
      exchanges += 1;
      // The second request on the first connection finds it cut, as after a server's idle limit.
      if (exchanges === 2) request.socket.destroy();
      else response.end(JSON.stringify(reply(body, exchanges)));
    });
    const client = open(url);
    expect(await client.request("x", [], { signal })).toBe(1);
    expect(await client.request("x", [], { signal })).toBe(3);
  });

  it("sends again over a new connection when all that were kept are closed", async () => {
    const seen = new Set<unknown>();
    const waiting: (() => void)[] = [];
    const { url } = await listen((body, response, request) => {
      const answer = () => void response.end(JSON.stringify(reply(body, 7)));
      // Behind a server's idle limit, or its restart, each of them is cut.
      if (seen.has(request.socket)) request.socket.destroy();
      else if (waiting.push(answer) >= 3) for (const each of waiting) each();
      seen.add(request.socket);
    });
    const client = open(url);
    const ask = () => client.request("x", [], { signal });
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([7, 7, 7]);
    expect(await ask()).toBe(7);
    expect(seen.size).toBe(4);
  });

  it("keeps one connection for calls that follow each other", async () => {
    const ports = new Set<unknown>();
    const { url } = await listen((body, response, request) => {
      ports.add(request.socket.remotePort);
      response.end(JSON.stringify(reply(body, 1)));
    });
    const client = open(url);
    for (let call = 0; call < 10; call++) await client.request("x", [], { signal });
    expect(ports.size).toBe(1);
  });

  it("never shows credentials of the URL", async () => {
    const closed = await listen(() => undefined);
    closed.server.close();
    const client = open(closed.url.replace("http://", "http://user:hunter2@"));
    const thrown: unknown = await client.request("x", [], { signal }).catch((reason) => reason);
    if (!(thrown instanceof NodeFault)) throw new Error("a fault was expected");
    expect(JSON.stringify([thrown.message, thrown.details])).not.toContain("hunter2");
  });
});

describe("a block that whoever answers has to have", () => {
  const hash = parseHash32(`0x${"0a".repeat(32)}`);
  const known = { height: 7, hash };

  it("is asked for in each exchange, and what is answered beside it is taken", async () => {
    const sizes: number[] = [];
    const client = await clientOf((messages) => {
      sizes.push(messages.length);
      return messages.map((message) =>
        reply(message, message.method === "eth_getBlockByNumber" ? { hash } : message.params[0]),
      );
    });
    expect(await client.request("echo", [1], { signal, known })).toBe(1);
    const calls = Array.from({ length: 500 }, (_, index) => ({ method: "echo", params: [index] }));
    const outcomes = await client.batch(calls, { signal, known });
    expect(outcomes.map((outcome) => outcome.ok && outcome.result)).toEqual(
      calls.map((_, index) => index),
    );
    expect(sizes).toEqual([2, 500, 2]);
    expect(await client.batch([], { signal, known })).toEqual([]);
  });

  it("is asked for by its height, and nothing is taken of who has none, or another one", async () => {
    for (const [header, what] of [
      [null, "no block 7 yet"],
      [{ hash: `0x${"0b".repeat(32)}` }, "another block 7"],
    ] as const) {
      const client = await clientOf(([first, second]) => {
        expect(first).toMatchObject({ method: "eth_getBlockByNumber", params: ["0x7", false] });
        return [reply(first, header), reply(second as Message, "0x5")];
      });
      await expect(client.request("eth_getBalance", [], { signal, known })).rejects.toMatchObject({
        code: "BAD_ANSWER",
        message: expect.stringContaining(what),
      });
    }
  });
});
