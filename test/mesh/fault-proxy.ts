/** A server in front of the sidecar that tells lies: one planted fault at a time. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Operation of a reply, as far as the faults look. */
export interface ProxyOperation {
  operation_identifier: { index: number };
  related_operations?: { index: number }[];
  type: string;
  status: string;
  account: { address: string };
  amount: { value: string; currency: Record<string, unknown> };
}

/** Transaction of a reply. */
export interface ProxyTransaction {
  transaction_identifier: { hash: string };
  operations: ProxyOperation[];
}

/** Block of a reply. */
export interface ProxyBlock {
  block_identifier: { index: number; hash: string };
  parent_block_identifier: { index: number; hash: string };
  timestamp: number;
  transactions: ProxyTransaction[];
  metadata: Record<string, string>;
}

/** Request of /account/balance. */
export interface ProxyBalanceRequest {
  account_identifier: { address: string };
  block_identifier?: { index?: number; hash?: string };
}

/** Reply of /account/balance. */
export interface ProxyBalance {
  block_identifier: { index: number; hash: string };
  balances: { value: string; currency: Record<string, unknown> }[];
}

/** What the proxy changes in a reply, in place. */
export interface PlantedFault {
  /** Result of a method of /call. */
  call?(result: Record<string, unknown>): void;
  block?(block: ProxyBlock): void | Promise<void>;
  balance?(
    request: ProxyBalanceRequest,
    reply: ProxyBalance,
    /** The true reply to another request. */
    ask: (block: object) => Promise<ProxyBalance>,
  ): void | Promise<void>;
}

/** A proxy that runs. */
export interface FaultProxy {
  readonly url: string;
  /** From now on this fault and no other; undefined tells the truth. */
  plant(fault: PlantedFault | undefined): void;
  close(): Promise<void>;
}

/** Starts a proxy in front of a server. */
export async function startFaultProxy(upstream: string): Promise<FaultProxy> {
  let fault: PlantedFault | undefined;
  const post = async (path: string, body: unknown) => {
    const reply = await fetch(`${upstream}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: reply.status, text: await reply.text() };
  };
  const answer = async (path: string, body: Record<string, unknown>) => {
    const { status, text } = await post(path, body);
    if (status !== 200) return { status, text };
    if (path === "/block" && fault?.block !== undefined) {
      const reply: { block: ProxyBlock } = JSON.parse(text);
      await fault.block(reply.block);
      return { status, text: JSON.stringify(reply) };
    }
    if (path === "/call" && fault?.call !== undefined) {
      const reply: { result: Record<string, unknown> } = JSON.parse(text);
      fault.call(reply.result);
      return { status, text: JSON.stringify(reply) };
    }
    if (path === "/account/balance" && fault?.balance !== undefined) {
      const reply: ProxyBalance = JSON.parse(text);
      const ask = async (block: object): Promise<ProxyBalance> =>
        JSON.parse((await post(path, { ...body, block_identifier: block })).text);
      await fault.balance(parseBalanceRequest(body), reply, ask);
      return { status, text: JSON.stringify(reply) };
    }
    return { status, text };
  };
  const server = createServer((request, response) => {
    const reply = async (): Promise<void> => {
      const { status, text } = await answer(request.url ?? "", await readBody(request));
      response.writeHead(status, { "content-type": "application/json" });
      response.end(text);
    };
    reply().catch((error: unknown) => {
      response.writeHead(502).end(String(error));
    });
  });
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    plant(next) {
      fault = next;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The client under test wrote the request: its shape is known. */
function parseBalanceRequest(body: Record<string, unknown>): ProxyBalanceRequest {
  return body as unknown as ProxyBalanceRequest;
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address() as AddressInfo;
      resolve(address.port);
    });
  });
}
