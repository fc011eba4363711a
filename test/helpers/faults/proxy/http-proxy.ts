/**
 * HTTP between a process and a node or sidecar. For each request rules are asked in their order
 * what goes wrong with it; JSON-RPC calls can be answered, changed or have their replies changed one
 * by one, also inside of batches.
 */
import { Agent, createServer, type IncomingMessage, request, type Server } from "node:http";
import type { ServerResponse } from "node:http";
import { freePort } from "../../ports.js";
import type { Random } from "../../random.js";

/** A call of JSON-RPC. */
export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What a call is answered with. */
export interface Reply {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** One request of a process. */
export interface Exchange {
  readonly path: string;
  /** The body as it came. */
  readonly body: unknown;
  /** Calls in the body; none where it is not JSON-RPC. */
  readonly calls: readonly Call[];
}

/** What is done to one call of a request. */
export type CallEdit =
  /** The server is not asked. */
  | { readonly reply: Reply }
  /** It is asked something else. */
  | { readonly call: Call }
  /** Its reply is changed. */
  | { readonly change: (reply: Reply) => Reply };

/** Something that goes wrong with one request. */
export type WireFault =
  /** The connection is reset; the server has seen nothing, or everything. */
  | { readonly kind: "reset before" | "reset after" }
  /** No answer ever comes; the server has seen nothing, or everything. */
  | { readonly kind: "hang before" | "hang after" }
  /** An answer of a balancer; the server has seen nothing. */
  | { readonly kind: "status"; readonly status: number; readonly text: string }
  /** A body that is not the server's. */
  | { readonly kind: "body"; readonly name: string; readonly change: (body: string) => string }
  /** A body of so many bytes. */
  | { readonly kind: "giant"; readonly sizeBytes: number }
  /** Single calls of it. */
  | { readonly kind: "calls"; readonly name: string; readonly edit: EditCall };

/** Edits a call; may ask the server itself. */
export type EditCall = (
  call: Call,
  ask: (call: Call) => Promise<Reply>,
) => CallEdit | undefined | Promise<CallEdit | undefined>;

/** Decides about a request; undefined leaves it to the next rule. */
export type Rule = (exchange: Exchange, random: Random) => WireFault | undefined;

/** Piece of a giant body. */
const PIECE = Buffer.alloc(1 << 20, " ");

/** A proxy that runs. */
export class HttpProxy {
  /** Rules in force, asked in order. */
  rules: readonly Rule[] = [];
  /** Faults that happened, by name. */
  readonly hits = new Map<string, number>();
  /** Methods that were asked for, ever. */
  readonly methods = new Set<string>();
  readonly #agent = new Agent({ keepAlive: true });
  #server: Server | undefined;

  private constructor(
    private readonly upstream: string,
    private readonly port: number,
    private readonly random: Random,
  ) {}

  /** Starts one in front of a server; the generator decides whatever is left to chance. */
  static async start(upstream: string, random: Random): Promise<HttpProxy> {
    const proxy = new HttpProxy(upstream, await freePort(), random);
    const server = createServer((incoming, response) => {
      proxy.#serve(incoming, response).catch(() => response.destroy());
    });
    proxy.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(proxy.port, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** How often a fault happened; all of them without a name. */
  hitsOf(name?: string): number {
    const counts = [...this.hits].filter(([each]) => name === undefined || each === name);
    return counts.reduce((sum, [, count]) => sum + count, 0);
  }

  /** No fault any more. */
  heal(): void {
    this.rules = [];
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readText(incoming);
    const exchange = readExchange(incoming.url ?? "/", text);
    for (const { method } of exchange.calls) this.methods.add(method);
    const fault = this.#decide(exchange);
    if (fault === undefined) return send(response, await this.#forward(exchange.path, text));
    if (fault.kind !== "calls") this.#note("name" in fault ? fault.name : fault.kind);
    switch (fault.kind) {
      case "reset before":
      case "reset after":
        if (fault.kind === "reset after") await this.#forward(exchange.path, text);
        incoming.socket.resetAndDestroy();
        return;
      case "hang before":
        return;
      case "hang after":
        await this.#forward(exchange.path, text);
        return;
      case "status":
        return send(response, { status: fault.status, text: fault.text });
      case "body": {
        const answer = await this.#forward(exchange.path, text);
        return send(response, { ...answer, text: fault.change(answer.text) });
      }
      case "giant":
        return sendGiant(response, fault.sizeBytes);
      case "calls":
        return send(response, await this.#edited(exchange, text, fault));
    }
  }

  /** The first fault of the wire; edits of calls add up, the first one of a call counts. */
  #decide(exchange: Exchange): WireFault | undefined {
    const edits: EditCall[] = [];
    for (const rule of this.rules) {
      const fault = rule(exchange, this.random);
      if (fault === undefined) continue;
      if (fault.kind !== "calls") return fault;
      edits.push(this.#noted(fault));
    }
    if (edits.length === 0) return undefined;
    const edit: EditCall = async (call, ask) => {
      for (const each of edits) {
        const found = await each(call, ask);
        if (found !== undefined) return found;
      }
      return undefined;
    };
    return { kind: "calls", name: "calls", edit };
  }

  #noted({ name, edit }: { readonly name: string; readonly edit: EditCall }): EditCall {
    return async (call, ask) => {
      const found = await edit(call, ask);
      if (found !== undefined) this.#note(name);
      return found;
    };
  }

  #note(name: string): void {
    this.hits.set(name, (this.hits.get(name) ?? 0) + 1);
  }

  /** Each call by itself: the server is asked for those that are left to it, one by one. */
  async #edited(
    exchange: Exchange,
    text: string,
    { edit }: { readonly edit: EditCall },
  ): Promise<Answer> {
    const { body, path } = exchange;
    const messages = (Array.isArray(body) ? body : [body]) as (Call & { id: unknown })[];
    const ask = async ({ method, params }: Call): Promise<Reply> => {
      const message = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      return JSON.parse((await this.#forward(path, message)).text) as Reply;
    };
    const edits: (CallEdit | undefined)[] = [];
    for (const message of messages) edits.push(await edit(message, ask));
    if (edits.every((each) => each === undefined)) return this.#forward(path, text);
    const replies: unknown[] = [];
    for (const [index, message] of messages.entries()) {
      const given = edits[index];
      const reply = await replyTo(message, given, ask);
      const { result, error } = reply;
      const content = error === undefined ? { result: result ?? null } : { error };
      replies.push({ jsonrpc: "2.0", id: message.id, ...content });
    }
    return { status: 200, text: JSON.stringify(Array.isArray(body) ? replies : replies[0]) };
  }

  #forward(path: string, text: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const url = new URL(path, this.upstream);
      const headers = { "content-type": "application/json" };
      const outgoing = request(url, { method: "POST", agent: this.#agent, headers }, (answer) => {
        readText(answer).then(
          (body) => resolve({ status: answer.statusCode ?? 502, text: body }),
          reject,
        );
      });
      outgoing.once("error", reject);
      outgoing.end(text);
    });
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function replyTo(
  call: Call,
  edit: CallEdit | undefined,
  ask: (call: Call) => Promise<Reply>,
): Promise<Reply> {
  if (edit === undefined) return ask(call);
  if ("reply" in edit) return edit.reply;
  if ("call" in edit) return ask(edit.call);
  return edit.change(await ask(call));
}

function readExchange(path: string, text: string): Exchange {
  const body: unknown = JSON.parse(text);
  const entries: unknown[] = Array.isArray(body) ? body : [body];
  return { path, body, calls: entries.filter(isCall) };
}

function isCall(value: unknown): value is Call {
  return typeof value === "object" && value !== null && "method" in value;
}

function send(response: ServerResponse, { status, text }: Answer): void {
  response.writeHead(status, { "content-type": "application/json" }).end(text);
}

function sendGiant(response: ServerResponse, sizeBytes: number): void {
  response.writeHead(200, { "content-type": "application/json" });
  let leftBytes = sizeBytes;
  const more = (): void => {
    while (leftBytes > 0 && !response.destroyed) {
      leftBytes -= PIECE.length;
      if (!response.write(PIECE)) return;
    }
    response.end();
  };
  response.on("drain", more);
  response.on("error", () => undefined);
  more();
}

async function readText(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString("utf8");
}
