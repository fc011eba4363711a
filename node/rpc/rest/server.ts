/**
 * 1317: the REST interface, in the form of the SDK's grpc-gateway. Routes follow from the methods'
 * descriptors; answers are the registry's as JSON, refusals `{code, message, details}`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { absentModuleText } from "../../../chain/cosmos/absent-modules.js";
import { JsonWriter } from "../../../chain/protobuf/json.js";
import { JsonReader } from "../../../chain/protobuf/json-reader.js";
import type { ListenAddress } from "../../../runtime/config/config-values.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { setOwner } from "../../../runtime/process/work-owner.js";
import { clientOf } from "../../../runtime/turns/client-address.js";
import { readInTurn } from "../../../runtime/turns/resting-lane.js";
import type { ClientMemory } from "../client-memory.js";
import { statusText } from "../cosmos/abci-answer.js";
import { faultOf, GRPC_CODES, QueryFault } from "../cosmos/errors.js";
import type { QueryRegistry } from "../cosmos/registry.js";
import { isAllowedOrigin } from "../../../runtime/http/readers.js";
import {
  type Exchanged,
  listen,
  readBody,
  type RpcServer,
  sendPieces,
  stopServer,
  targetOf,
} from "../http-listener.js";
import { RateLimit, TOO_OFTEN } from "../rate-limit.js";
import { requestOf } from "./request.js";
import { type MatchedRoute, Routes } from "./routes.js";
import { SwaggerPage } from "./swagger.js";

/** What the server needs. */
export interface RestServerOptions {
  readonly listen: ListenAddress;
  readonly queries: QueryRegistry;
  /** Web pages that may call, "*" for all. */
  readonly allowedOrigins: readonly string[];
  readonly isSwaggerServed: boolean;
  readonly maxConnections: number;
  readonly maxBodyBytes: number;
  /** Requests that one address may make a second; 0 sets no bound. */
  readonly requestsPerSecond: number;
  readonly memory: ClientMemory;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Header of the height that a request names and an answer is true for. */
const HEIGHT_HEADER = "x-cosmos-block-height";

/** HTTP status of each gRPC code. Source: grpc-gateway, runtime/errors.go. */
const HTTP_STATUS: Readonly<Record<QueryFault["code"], number>> = {
  CANCELLED: 408,
  UNKNOWN: 500,
  INVALID_ARGUMENT: 400,
  DEADLINE_EXCEEDED: 504,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  FAILED_PRECONDITION: 400,
  UNIMPLEMENTED: 501,
  INTERNAL: 500,
  UNAVAILABLE: 503,
};

/**
 * Starts the server.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startRestServer(options: RestServerOptions): Promise<RpcServer> {
  const rest = new Rest(options);
  const server = createServer((request, response) => rest.answer(request, response));
  server.maxConnections = options.maxConnections;
  const address = await listen(server, { name: "REST", ...options }, (message) =>
    bodyOf(new QueryFault("INVALID_ARGUMENT", message)),
  );
  return { name: "rest", address, stop: () => stopServer(server) };
}

/** A refusal in the form that clients of the SDK's gateway parse. */
function bodyOf({ code, message }: QueryFault) {
  return { code: GRPC_CODES[code], message, details: [] };
}

type Headers = Readonly<Record<string, string>>;

class Rest {
  private readonly routes: Routes;
  private readonly reader: JsonReader;
  private readonly writer: JsonWriter;
  private readonly limit: RateLimit;
  private readonly swagger: SwaggerPage | undefined;

  constructor(private readonly options: RestServerOptions) {
    const { queries, clock, requestsPerSecond } = options;
    this.routes = new Routes(queries);
    this.reader = new JsonReader(queries.types);
    this.writer = new JsonWriter(queries.types);
    this.limit = new RateLimit(requestsPerSecond, clock);
    this.swagger = options.isSwaggerServed ? new SwaggerPage(queries) : undefined;
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const cors = this.corsHeaders(request.headers.origin);
    const exchanged: Exchanged = { request, response, memory: this.options.memory };
    const refuse = (fault: QueryFault) => this.refuse(exchanged, cors, fault);
    const { method: verb = "GET" } = request;
    if (verb === "OPTIONS") {
      response.writeHead(204, { ...cors, ...PREFLIGHT });
      response.end();
      return;
    }
    if (!this.limit.take(request.socket.remoteAddress ?? "")) {
      refuse(new QueryFault("RESOURCE_EXHAUSTED", TOO_OFTEN));
      return;
    }
    const { path, query } = targetOf(request);
    if (this.swagger?.send(exchanged, path) === true) return;
    const match = this.match(verb === "HEAD" ? "GET" : verb, path);
    if (match instanceof QueryFault) {
      refuse(match);
    } else if (!match.hasBody) {
      void this.run(exchanged, cors, match, query, undefined);
    } else {
      this.readPost(exchanged, cors, match, query);
    }
  }

  private match(verb: string, path: string): MatchedRoute | QueryFault {
    let match;
    try {
      match = this.routes.match(verb, path);
    } catch {
      return new QueryFault("INVALID_ARGUMENT", "the URL is not encoded as URLs are");
    }
    // The SDK's gateway says the same of a path that is none and of another verb.
    if (typeof match === "object") return match;
    const absent = absentModuleText(path);
    const text = absent === undefined ? "Not Implemented" : `Not Implemented: ${absent}`;
    return new QueryFault("UNIMPLEMENTED", text);
  }

  private readPost(exchanged: Exchanged, cors: Headers, match: MatchedRoute, query: string): void {
    const { maxBodyBytes } = this.options;
    readBody(
      exchanged,
      () => maxBodyBytes,
      (body) => {
        if (body === "too large") {
          const text = `the body has more than ${maxBodyBytes} bytes`;
          this.refuse(exchanged, cors, new QueryFault("INVALID_ARGUMENT", text), 413);
        } else if (body === "no room") {
          const text = "too many large requests at once, try again";
          this.refuse(exchanged, cors, new QueryFault("UNAVAILABLE", text));
        } else {
          void this.run(exchanged, cors, match, query, body.toString("utf8"));
        }
      },
    );
  }

  private async run(
    exchanged: Exchanged,
    cors: Headers,
    match: MatchedRoute,
    query: string,
    body: string | undefined,
  ): Promise<void> {
    const { request, response } = exchanged;
    const { queries, log } = this.options;
    const owner = { client: clientOf(request.socket.remoteAddress) };
    const whose = { ...owner, signal: goneOf(response) };
    setOwner(whose.signal, owner);
    const { served } = match;
    try {
      await queries.bounded("rest", whose, async (asker) => {
        const height = queries.heightOf(heightNamed(request));
        const message = await readInTurn(query.length + (body?.length ?? 0), asker, () =>
          requestOf(match, this.reader, query, body),
        );
        const { answer, height: told } = await served.run(message, { height, ...asker });
        const pieces = await this.writer.pieces(served.output, answer, () => breathe(asker.signal));
        if (response.destroyed) return;
        sendPieces(exchanged, 200, pieces, {
          ...cors,
          [HEIGHT_HEADER]: told.toString(),
          "Grpc-Metadata-X-Cosmos-Block-Height": told.toString(),
        });
      });
    } catch (error) {
      const fault = faultOf(error);
      if (fault === undefined) log.error({ err: error, url: request.url }, "a query failed");
      const shown = fault ?? new QueryFault("INTERNAL", "internal error");
      this.refuse(exchanged, cors, moduleFault(served.service, shown));
    }
  }

  private refuse(
    exchanged: Exchanged,
    cors: Headers,
    fault: QueryFault,
    status = HTTP_STATUS[fault.code],
  ): void {
    const { response, request } = exchanged;
    if (response.destroyed || response.headersSent) return;
    const headers = status === 429 ? { ...cors, "Retry-After": "1" } : cors;
    // What is left of a body is read and thrown away: the client gets to read the refusal.
    request.resume();
    sendPieces(exchanged, status, [JSON.stringify(bodyOf(fault))], headers);
  }

  private corsHeaders(origin: string | undefined): Headers {
    const { allowedOrigins } = this.options;
    if (origin === undefined || !isAllowedOrigin(origin, allowedOrigins)) return {};
    const exposed = { "Access-Control-Expose-Headers": HEIGHT_HEADER };
    if (allowedOrigins.includes("*")) return { "Access-Control-Allow-Origin": "*", ...exposed };
    return { "Access-Control-Allow-Origin": origin, Vary: "Origin", ...exposed };
  }
}

/** Fires when the client is gone. Made here, where its listener keeps no body. */
function goneOf(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once("close", () => gone.abort(new DOMException("the client is gone", "AbortError")));
  return gone.signal;
}

/** The height in a request's header, with or without the gateway's prefix of metadata. */
function heightNamed({ headers }: IncomingMessage): string | undefined {
  const named = headers[HEIGHT_HEADER] ?? headers[`grpc-metadata-${HEIGHT_HEADER}`];
  return Array.isArray(named) ? named[0] : named;
}

/** What a browser is told before it asks; without an allowed origin it does not go on. */
const PREFLIGHT: Headers = {
  "Access-Control-Allow-Methods": "GET, HEAD, POST, OPTIONS",
  "Access-Control-Allow-Headers": `Content-Type, Accept, ${HEIGHT_HEADER}`,
  "Access-Control-Max-Age": "600",
};

/** What modules do not find the SDK's gateway shows with the code in words; clients match on it. */
function moduleFault(service: string, fault: QueryFault): QueryFault {
  if (fault.code !== "NOT_FOUND" || !service.endsWith(".Query")) return fault;
  return new QueryFault(fault.code, `${statusText(fault)}: key not found`);
}
