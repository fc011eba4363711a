/** A node in this process: JSON-RPC over real HTTP, answers scripted per method, faults on command. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Answer of one method: a value, or a thrown `RpcFault` for an error object. */
export type Method = (params: readonly unknown[]) => unknown;

/** Thrown by a method to answer with a JSON-RPC error. */
export class RpcFault extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** What the node does with one HTTP request instead of answering it. */
export type WireFault =
  | "reset-before"
  | "reset-after"
  | "http-503"
  | "html"
  | "wrong-id"
  | "hang-after";

/** Result or error of one call, answered instead of the method's. */
export type CallOverride =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; data?: unknown } };

/** What a test may put between the wire and the methods. */
export interface NodeHooks {
  /** Asked for every HTTP request with the methods it holds. */
  readonly wireFault?: (methods: readonly string[]) => WireFault | undefined;
  /** Asked for every call. */
  readonly override?: (method: string, params: readonly unknown[]) => CallOverride | undefined;
  /** Other paths than `/`. */
  readonly route?: (
    path: string,
    body: unknown,
  ) => { readonly status: number; readonly answer: unknown } | undefined;
}

export interface FakeNode {
  readonly url: string;
  /** Methods by name; tests replace single ones. */
  readonly methods: Map<string, Method>;
  /** Every call in order of arrival. */
  readonly calls: { method: string; params: readonly unknown[] }[];
  /** Restores the methods of the start and forgets the calls. */
  reset(): void;
  close(): Promise<void>;
}

interface Message {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** Starts a node on a free port of loopback. */
export async function startFakeNode(
  methods: Record<string, Method>,
  hooks: NodeHooks = {},
): Promise<FakeNode> {
  const table = new Map(Object.entries(methods));
  const calls: FakeNode["calls"] = [];
  const answer = ({ id, method, params }: Message) => {
    calls.push({ method, params });
    const given = hooks.override?.(method, params) ?? resultOf(table.get(method), method, params);
    return { jsonrpc: "2.0", id, ...given };
  };
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      const routed = hooks.route?.(request.url ?? "/", body);
      if (routed !== undefined) return send(response, routed.status, routed.answer);
      const messages = (Array.isArray(body) ? body : [body]) as Message[];
      const fault = hooks.wireFault?.(messages.map(({ method }) => method));
      if (fault === "reset-before") return void response.destroy();
      if (fault === "http-503") return void response.writeHead(503).end("busy");
      if (fault === "html") return void response.writeHead(200).end("<html>oops</html>");
      const answers = messages.map(answer);
      if (fault === "reset-after") return void response.destroy();
      if (fault === "hang-after") return;
      if (fault === "wrong-id") for (const each of answers) each.id += 1_000_000;
      send(response, 200, Array.isArray(body) ? answers : answers[0]);
    });
  });
  // There is no WebSocket here; subscriptions are hints that clients live without.
  server.on("upgrade", (request) => request.socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    methods: table,
    calls,
    reset() {
      for (const [name, method] of Object.entries(methods)) table.set(name, method);
      calls.length = 0;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function resultOf(
  handler: Method | undefined,
  method: string,
  params: readonly unknown[],
): CallOverride {
  try {
    if (handler === undefined) throw new RpcFault(-32601, `the method ${method} does not exist`);
    return { result: handler(params) };
  } catch (error) {
    if (!(error instanceof RpcFault)) throw error;
    return { error: { code: error.code, message: error.message, data: error.data } };
  }
}

function send(response: ServerResponse, status: number, answer: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(answer));
}
