/** A node in this process: JSON-RPC over real HTTP, answers scripted per method. */
import { createServer, type Server } from "node:http";
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

export async function startFakeNode(methods: Record<string, Method>): Promise<FakeNode> {
  const table = new Map(Object.entries(methods));
  const calls: FakeNode["calls"] = [];
  const answer = ({ id, method, params }: Message) => {
    calls.push({ method, params });
    try {
      const handler = table.get(method);
      if (handler === undefined) throw new RpcFault(-32601, `the method ${method} does not exist`);
      return { jsonrpc: "2.0", id, result: handler(params) };
    } catch (error) {
      if (!(error instanceof RpcFault)) throw error;
      return {
        jsonrpc: "2.0",
        id,
        error: { code: error.code, message: error.message, data: error.data },
      };
    }
  };
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      const reply = Array.isArray(body) ? body.map(answer) : answer(body as Message);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(reply));
    });
  });
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
