/**
 * 26657: CometBFT's RPC. Every route by `GET /route?argument=` or as a form, by `POST /` as JSON-RPC
 * (batches too), and over the WebSocket `/websocket`, where alone events can be subscribed to. Shapes and
 * encodings are CometBFT's: 64-bit numbers as strings, hashes in upper case, bytes in base64.
 */
import type { ListenAddress } from "../../../runtime/config/config-values.js";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { systemClock } from "../../../runtime/process/clock.js";
import { LazySignal } from "../../../runtime/process/lazy-signal.js";
import type { Logger } from "../../../runtime/process/logger.js";
import type { WorkOwner } from "../../../runtime/process/work-owner.js";
import { clientOf } from "../../../runtime/turns/client-address.js";
import { isAllowedOrigin } from "../../../runtime/http/readers.js";
import { type ClientMemory, createClientMemory } from "../client-memory.js";
import { USUAL_CONNECTIONS } from "../connection-bounds.js";
import {
  type Exchanged,
  listen,
  readBody,
  type RpcServer,
  sendPieces,
  sendText,
  stopServer,
  targetOf,
} from "../http-listener.js";
import { WebSockets } from "../web-sockets.js";
import { urlArguments } from "./arguments.js";
import { blockRoutes } from "./routes/block-routes.js";
import { broadcastRoutes } from "./routes/broadcast-routes.js";
import {
  type Answer,
  answerBody,
  errorText,
  LargeBatches,
  lostText,
  type RequestId,
  runRoute,
} from "./json-rpc.js";
import { nodeRoutes } from "./routes/node-routes.js";
import type { QueryRegistry } from "../cosmos/registry.js";
import type { RateLimit } from "../rate-limit.js";
import { limitedRoutes } from "./limited-routes.js";
import type { CometChain } from "./ports.js";
import { ResultTexts } from "./json/result-texts.js";
import { type Route, type Routes, route } from "./route.js";
import { CometConnection } from "./socket-connection.js";
import { type CometStatusOptions, cometStatus } from "./routes/status.js";
import { SubscriptionHub } from "./subscriptions.js";
import { transactionRoutes } from "./routes/transaction-routes.js";

/** What the server needs: the status' sources, the chain, and where to listen. */
export interface CometServerOptions extends CometStatusOptions {
  readonly listen: ListenAddress;
  /** Memory for results of blocks as JSON. */
  readonly cacheBytes?: number;
  readonly log: Logger;
  /** Version of the program, shown by `abci_info`. */
  readonly version?: string;
  /** Without it and `queries` only `health` and `status` are served. */
  readonly chain?: CometChain;
  /** What `abci_query` answers; belongs to `chain`. */
  readonly queries?: QueryRegistry;
  /**
   * Web pages that may read answers over HTTP, "*" for all; none by default. Programs send no Origin and
   * are not affected.
   */
  readonly allowedOrigins?: readonly string[];
  /** Connections at once, WebSockets included; by default as many as where files are plenty. */
  readonly maxConnections?: number;
  /** How often one client may search or subscribe; without it as often as it likes. */
  readonly searches?: RateLimit;
  /** What the clients of all servers together may make the node keep; by default its own bounds. */
  readonly memory?: ClientMemory;
}

/** Largest request body: CometBFT's `max_body_bytes`. */
const MAX_BODY_BYTES = 1_000_000;

/** Time between pings. */
const PING_INTERVAL_MS = 20_000;

/** Where events are subscribed to. */
const SOCKET_PATH = "/websocket";

/**
 * Web pages that may connect there: all, as to CometBFT's. It signs nothing and holds no keys, and dapps have
 * no other way to events.
 */
const SOCKET_ORIGINS = ["*"];

/** The id of answers to GET requests. */
const URI_ID = -1;

/**
 * Starts the server.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startCometServer(options: CometServerOptions): Promise<RpcServer> {
  const { chain, log, memory = createClientMemory(systemClock) } = options;
  const texts = new ResultTexts(options.view, options.cacheBytes);
  const hub = chain === undefined ? undefined : new SubscriptionHub(chain, texts, log);
  const routes = routesOf(options, texts, hub);
  const large = new LargeBatches();
  const server = createServer((request, response) => {
    new Exchange({ request, response, memory }, options, { routes, large }).answer();
  });
  server.maxConnections = options.maxConnections ?? USUAL_CONNECTIONS.comet;
  const sockets = new WebSockets(server, {
    maxMessageBytes: MAX_BODY_BYTES,
    pingIntervalMs: PING_INTERVAL_MS,
    allowedOrigins: SOCKET_ORIGINS,
    refusal(request) {
      if (targetOf(request).path !== SOCKET_PATH) return "404 Not Found";
      return chain === undefined ? "503 Service Unavailable" : undefined;
    },
    memory,
    connect: (socket, { socket: peer }) =>
      new CometConnection(socket, { routes, large, log, memory, owner: ownerBehind(peer) }),
  });
  const address = await listen(server, { name: "consensus RPC", ...options }).catch(
    (error: unknown) => {
      hub?.close();
      throw error;
    },
  );
  return {
    name: "comet-rpc",
    address,
    async stop() {
      hub?.close();
      await Promise.all([sockets.close(), stopServer(server)]);
    },
  };
}

function routesOf(
  options: CometServerOptions,
  texts: ResultTexts,
  hub: SubscriptionHub | undefined,
): Routes {
  const { chain, queries, log, searches } = options;
  const always = [
    route("health", [], () => ({})),
    route("status", [], () => cometStatus(options, chain?.consensus)),
  ];
  if (chain === undefined || queries === undefined || hub === undefined) return new Map(always);
  const routes = [
    ...always,
    ...nodeRoutes(chain),
    ...blockRoutes(chain, texts),
    ...transactionRoutes(chain, queries, options.version ?? ""),
    ...broadcastRoutes(chain, log),
    ...hub.routes(),
  ];
  return new Map(searches === undefined ? routes : limitedRoutes(routes, searches));
}

/** Who waits for what is asked on a connection. */
function ownerBehind({ remoteAddress }: { readonly remoteAddress?: string }): WorkOwner {
  return { client: clientOf(remoteAddress) };
}

/** A body of arguments, which is what `curl -d` sends. */
function isForm({ method, headers }: IncomingMessage): boolean {
  const [type = ""] = (headers["content-type"] ?? "").split(";");
  return method === "POST" && type.trim().toLowerCase() === "application/x-www-form-urlencoded";
}

/** One HTTP request and its answer. */
class Exchange {
  private readonly ending: LazySignal;
  private readonly headers: Readonly<Record<string, string>>;
  private readonly request: IncomingMessage;
  private readonly response: ServerResponse;

  constructor(
    private readonly exchanged: Exchanged,
    private readonly options: CometServerOptions,
    private readonly served: { readonly routes: Routes; readonly large: LargeBatches },
  ) {
    const { request, response } = exchanged;
    [this.request, this.response] = [request, response];
    // Read at once: a connection that has ended may not know any more whose it was.
    const owner = ownerBehind(request.socket);
    this.ending = new LazySignal(() => owner);
    response.once("close", () => this.ending.abort());
    const { origin } = request.headers;
    const isAllowed = origin !== undefined && isAllowedOrigin(origin, options.allowedOrigins ?? []);
    this.headers = isAllowed ? { "Access-Control-Allow-Origin": origin, Vary: "Origin" } : {};
  }

  answer(): void {
    const { method } = this.request;
    const { path, query } = targetOf(this.request);
    const name = path.slice(1);
    if (method === "OPTIONS") this.preflight();
    else if (method !== "GET" && method !== "HEAD" && method !== "POST") this.refuseMethod();
    else if (name !== "") this.answerUrl(name, query);
    else if (method === "POST") this.answerPost();
    else this.listRoutes();
  }

  private preflight(): void {
    const isAllowed = "Access-Control-Allow-Origin" in this.headers;
    const permissions = isAllowed
      ? {
          "Access-Control-Allow-Methods": "HEAD, GET, POST, OPTIONS",
          "Access-Control-Allow-Headers": "Content-Type, Accept",
        }
      : {};
    this.response.writeHead(204, { ...this.headers, ...permissions });
    this.response.end();
  }

  private refuseMethod(): void {
    sendText(this.response, 405, "method not allowed\n", { Allow: "GET, HEAD, POST, OPTIONS" });
  }

  private listRoutes(): void {
    const lines = [...this.served.routes].map(([name, { parameters }]) =>
      parameters.length === 0
        ? `/${name}`
        : `/${name}?${parameters.map((parameter) => `${parameter}=_`).join("&")}`,
    );
    const text = `Available endpoints:\n${lines.join("\n")}\n`;
    sendText(this.response, 200, text, this.headers);
  }

  private answerUrl(name: string, query: string): void {
    const found: Route | undefined = this.served.routes.get(name);
    if (name === SOCKET_PATH.slice(1)) {
      // Who comes here has not asked for the upgrade, or for a version that there is not.
      sendText(this.response, 400, "Bad Request\n", this.headers);
      return;
    }
    if (found === undefined) {
      sendText(this.response, 404, "404 page not found\n", this.headers);
      return;
    }
    if (found.isSocketOnly === true) {
      this.send(404, [errorText(URI_ID, "METHOD_NOT_FOUND", "")]);
      return;
    }
    const answer = (texts: string) => {
      const values = () => urlArguments(texts, found.parameters);
      const { ending } = this;
      runRoute(found, URI_ID, values, { ending, client: undefined }, this.options.log)
        .then(({ pieces, isError }) => this.send(isError ? 500 : 200, pieces))
        .catch((err: unknown) => this.loseAnswer(err, URI_ID));
    };
    // As Go reads a form: what stands in the body counts before what the URL has.
    if (isForm(this.request)) this.readPost((body) => answer(`${body.toString("utf8")}&${query}`));
    else answer(query);
  }

  private answerPost(): void {
    this.readPost((body) => {
      if (body.length === 0) {
        this.listRoutes();
        return;
      }
      const { routes, large } = this.served;
      const { ending } = this;
      const scope = { routes, large, log: this.options.log, ending, client: () => undefined };
      answerBody(body, scope)
        .then((answer) => this.sendAnswer(answer))
        .catch((err: unknown) => this.loseAnswer(err, null));
    });
  }

  /** The body, unless it is refused for its size. */
  private readPost(use: (body: Buffer) => void): void {
    readBody(
      this.exchanged,
      () => MAX_BODY_BYTES,
      (body) => {
        if (body === "too large") {
          sendText(this.response, 413, "request body too large\n", this.headers);
        } else if (body === "no room") {
          sendText(this.response, 503, "too many large requests, try again\n", this.headers);
        } else {
          use(body);
        }
      },
    );
  }

  private sendAnswer(answer: Answer | undefined): void {
    if (answer !== undefined) {
      this.send(answer.isUnreadable === true ? 500 : 200, answer.pieces);
    } else if (!this.response.destroyed) {
      this.response.writeHead(204, this.headers);
      this.response.end();
    }
  }

  /** A fault of ours behind the routes costs one answer, and not the process. */
  private loseAnswer(err: unknown, id: RequestId): void {
    this.options.log.error({ err }, "an answer of the consensus RPC was lost");
    if (this.response.headersSent) this.response.destroy();
    else this.send(500, [lostText(id)]);
  }

  private send(status: number, pieces: Answer["pieces"]): void {
    if (this.response.destroyed) return;
    sendPieces(this.exchanged, status, pieces, this.headers);
  }
}
