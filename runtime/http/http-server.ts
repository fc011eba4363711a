/** HTTP APIs that follow an OpenAPI file: Express 5 routes behind authentication and validation. */
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer,
} from "node:http";
import express, { type NextFunction, type Request, type RequestHandler } from "express";
import type { Response } from "express";
import * as OpenApiValidator from "express-openapi-validator";
import type { ListenAddress } from "../config/config-values.js";
import { type Caller, type HttpAccess, HttpGate } from "./http-access.js";
import { createAllowedMethods } from "./allowed-methods.js";
import { expressPath, pathPattern, readApiFile } from "./api-schema.js";
import { discardRest, isJsonType, parseJsonBody, readBody } from "./http-body.js";
import { boundConnections } from "./connections/client-connections.js";
import { endServer } from "./connections/ending.js";
import { beginListening, mostConnections } from "./connections/listening.js";
import { HttpError, normaliseHttpError, requestError, unreadableRequest } from "./http-errors.js";
import {
  createDirectLane,
  type DirectCall,
  type DirectLane,
  isDirect,
  isPlainJson,
} from "./http-lane.js";
import { CLIENT_PATIENCE, HeldBytes } from "./held-bytes.js";
import { PipelineBound } from "./connections/pipeline.js";
import { createReaders } from "./readers.js";
import {
  checkHeaders,
  checkQuery,
  checkUrl,
  foldTypes,
  headerCheck,
  takeOriginForm,
} from "./request-checks.js";
import { boundUnsent } from "./connections/unsent.js";
import { endSocket, sendBytes, sendJson, sendReply, leavingOf } from "./http-reply.js";
import { ReplyTimer } from "./http-timing.js";
import type { HttpRoute } from "./http-route.js";
import { systemClock } from "../process/clock.js";
import type { LazySignal } from "../process/lazy-signal.js";
import type { Service } from "../process/lifecycle.js";
import type { Logger } from "../process/logger.js";
import type { Metrics } from "../process/metrics.js";

/** An API file, as the validator takes it. */
type ApiDocument = Exclude<Parameters<typeof OpenApiValidator.middleware>[0]["apiSpec"], string>;

/** Whether the part behind the API can do its work, and if not why. */
export interface Readiness {
  readonly ready: boolean;
  /** One sentence when not ready. */
  readonly reason?: string;
}

/** How an error is shown to the client. */
export interface ErrorReply {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** True for a 5xx that nobody has to act on. */
  readonly isExpected?: boolean;
}

/** An API file with the handlers of its operations. */
export interface ApiDescription {
  /** Absolute path of the OpenAPI 3 file (YAML or JSON). */
  readonly apiSpecPath: string;
  readonly routes: readonly HttpRoute[];
}

/** What `createHttpServer` needs. */
export interface HttpServerOptions extends ApiDescription {
  readonly name: string;
  readonly listen: ListenAddress;
  /** Further API files on the same port, with paths of their own. */
  readonly moreApis?: readonly ApiDescription[];
  /** Origins of pages that may read an open API; "*" for all. Default none. */
  readonly corsOrigins?: readonly string[];
  /** Looks at every request but the probes first: sets headers of its answer, or throws a refusal. */
  readonly pace?: (request: IncomingMessage, response: ServerResponse) => void;
  /** When given, every request but the probes needs `Authorization: Bearer <key>`, every route a scope. */
  readonly access?: HttpAccess;
  /**
   * Turns any error into the API's error body. The server's own are `HttpError`: INVALID_REQUEST
   * (`status` 400, 401, 403, 404, 405, 413, 415, 429; `errors`) and INVALID_RESPONSE (500).
   */
  readonly mapError: (error: unknown) => ErrorReply;
  /** Asked by `GET /ready`. */
  readonly readiness: () => Readiness | Promise<Readiness>;
  readonly log: Logger;
  /** Another bound of what clients do not take than the usual one. */
  readonly unsent?: HeldBytes;
  /** Another bound of bodies that have not come whole, or are being answered, than the usual one. */
  readonly unread?: HeldBytes;
  readonly metrics: Metrics;
  /** Figures that `/metrics` adds for those who show the key: what business goes on here. */
  readonly keyedMetrics?: Metrics;
  readonly bodyLimitBytes: number;
  /** Check JSON replies against the API file; default true. */
  readonly validateResponses?: boolean;
  /**
   * Answers from finished bytes before the body is even parsed (immutable replies); undefined
   * sends the request on to its handler. Runs after authentication, and only for requests without
   * a query whose body, if any, is plain JSON.
   */
  readonly cachedReply?: (request: {
    readonly method: string;
    readonly path: string;
    readonly rawBody: Uint8Array;
  }) => Uint8Array | undefined;
}

/** An HTTP API that can be started and stopped. */
export interface HttpServer extends Service {
  /** The server's request listener, also usable without a port (supertest). */
  readonly app: (request: IncomingMessage, response: ServerResponse) => void;
  /** Port in use after `start`, also where port 0 was asked for. */
  readonly port: number;
  /** Listens. @throws PORT_TAKEN, LISTEN_FAILED */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Longest time from the first byte of a request to its last. */
const REQUEST_TIMEOUT_MS = 30_000;

/** Idle time before an open connection is closed; longer than common balancers' 60 s. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/** Time for requests in flight when stopping; the contract's 10 s cover all services together. */
const DRAIN_TIMEOUT_MS = 2_000;

/** Connections at once; beyond it new ones are refused instead of starving the rest. */
const MAX_CONNECTIONS = 4_096;

/** Bodies of all connections: some of the largest, or a thousand of the usual bound. */
const USUAL_UNREAD_BYTES = 64 * 1024 * 1024;

const NO_BODY = Buffer.alloc(0);

/** Seconds behind every 429: too many calls (`HttpAccess`), or no room for large bodies. */
const PACE_SECONDS = "1";

/** Paths outside the API file, open without a key. */
const PROBE_PATHS = new Set(["/health", "/ready", "/metrics"]);

/** Body read and request start, kept beside Express' own request object. */
interface RequestState {
  rawBody: Buffer;
  /** Undefined where the API is open. */
  caller: Caller | undefined;
  /** Fires when the client goes away; few handlers ask. */
  readonly leaving: LazySignal;
}

/**
 * Makes the server of one API. `/health` (the process lives), `/ready` (503 with the reason) and
 * `/metrics` are added; everything else must be in the API file.
 * @throws LISTEN_FAILED when an API file cannot be read, or a route behind keys names no scope
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  return new OpenApiServer(options);
}

/** The one implementation of `HttpServer`. */
class OpenApiServer implements HttpServer {
  readonly name: string;
  readonly app: (request: IncomingMessage, response: ServerResponse) => void;
  readonly #options: HttpServerOptions;
  readonly #server: Server;
  /** The handlers of each API file's validator. */
  readonly #validators: RequestHandler[][] = [];
  readonly #express: express.Express;
  readonly #states = new WeakMap<IncomingMessage, RequestState>();
  readonly #timer: ReplyTimer;
  readonly #pipelines = new PipelineBound();
  readonly #unread: HeldBytes;
  /** Undefined where the API is open. */
  readonly #gate: HttpGate | undefined;
  readonly #lane: DirectLane<HttpRoute>;
  readonly #isAnswered: ReturnType<typeof createReaders>;
  readonly #allow: ReturnType<typeof createAllowedMethods>;

  constructor(options: HttpServerOptions) {
    this.name = options.name;
    this.#options = options;
    const unreadLimits = { maxBytes: USUAL_UNREAD_BYTES, ...CLIENT_PATIENCE };
    this.#unread = options.unread ?? new HeldBytes(unreadLimits, systemClock);
    this.#isAnswered = createReaders(options.corsOrigins ?? []);
    this.#timer = new ReplyTimer(options.name, options.metrics);
    const apis = [options, ...(options.moreApis ?? [])];
    const gated = apis.flatMap((api) => api.routes);
    this.#allow = createAllowedMethods(gated, options.access === undefined);
    this.#gate =
      options.access === undefined
        ? undefined
        : new HttpGate(
            options.access,
            gated.map((route) => ({ ...route, pattern: pathPattern(route.path) })),
          );
    this.#express = this.#buildApp(apis);
    this.#lane = createDirectLane(
      apis.map(({ apiSpecPath, routes }) => ({ apiSpecPath, routes: routes.filter(isDirect) })),
      { validateResponses: options.validateResponses ?? true },
    );
    this.app = (request, response) => void this.#accept(request, response);
    // Node would answer these by itself, in words and statuses that no API describes.
    const limits = { requestTimeout: REQUEST_TIMEOUT_MS, requireHostHeader: false };
    this.#server = createServer(limits, this.app);
    this.#server.on("checkExpectation", this.app);
    this.#server.on("clientError", (error, socket) => {
      const { status, body, headers } = options.mapError(unreadableRequest(error));
      const type = headers?.["content-type"];
      this.#pipelines.refuseUnread(socket, () => endSocket(socket, status, body, type));
    });
    this.#server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
    const isOpen = options.access === undefined;
    boundConnections(this.#server, { most: mostConnections(MAX_CONNECTIONS), isOpen });
    boundUnsent(this.#server, options.unsent);
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null
      ? address.port
      : this.#options.listen.port;
  }

  async start(): Promise<void> {
    const { listen, log } = this.#options;
    await Promise.all(this.#validators.map((validator) => this.#loaded(validator)));
    await beginListening(this.#server, {
      owner: this.name,
      listen,
      log,
      faultOf: (code, message, cause) =>
        new HttpError(code, message, { details: { ...listen }, cause }),
    });
  }

  /**
   * Resolves when a validator has read its API file. It does so behind the first call of its first
   * handler, which passes a request on untouched: without this the first client would wait for it.
   */
  #loaded([first]: readonly RequestHandler[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const request: Request = Object.create(this.#express.request, {
        app: { value: this.#express },
      });
      const pass = (error?: unknown) => (error === undefined ? resolve() : reject(error));
      void first?.(request, Object.create(this.#express.response), pass);
    });
  }

  stop(): Promise<void> {
    return endServer(this.#server, DRAIN_TIMEOUT_MS);
  }

  /** First contact: probes, authentication, the body's bytes, cached replies, lane; Express. */
  async #accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
    takeOriginForm(request);
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    const state: RequestState = {
      rawBody: NO_BODY,
      caller: undefined,
      leaving: leavingOf(response),
    };
    this.#states.set(request, state);
    this.#pipelines.count(request, response);
    if (this.#gate === undefined && this.#isAnswered(request, response)) return;
    try {
      if (PROBE_PATHS.has(path)) {
        await this.#probe(path, request, response);
        return;
      }
      this.#timer.time(response, "other");
      this.#options.pace?.(request, response);
      checkHeaders(request);
      const method = request.method ?? "GET";
      if (this.#gate !== undefined) {
        state.caller = await this.#gate.admit({ method, path, headers: request.headers });
      }
      const { bodyLimitBytes } = this.#options;
      const forget = () => {
        state.rawBody = NO_BODY;
        Object.assign(request, { body: undefined });
      };
      const room = { unread: this.#unread, response, forget };
      state.rawBody = await readBody(request, bodyLimitBytes, room);
      if (state.caller !== undefined) {
        const { rawBody, caller } = state;
        this.#gate?.authenticate(caller, { ...readRequest(request, rawBody), path });
      }
      // A query or another type of body is for the validator to judge, also around known bytes.
      const isPlain = request.url === path && (state.rawBody.length === 0 || isPlainJson(request));
      const { rawBody } = state;
      const cached = isPlain ? this.#options.cachedReply?.({ method, path, rawBody }) : undefined;
      if (cached !== undefined) {
        sendBytes(response, 200, cached);
        return;
      }
      const call = this.#lane.accept(request, state.rawBody);
      if (call === undefined) {
        foldTypes(request);
        // Express tells of a target that it can make no path of to nobody but this.
        const unread = requestError(400, "the request's target cannot be read");
        const refuse = (error: unknown = unread) => this.#sendError(error, response);
        this.#express(request as Request, response as Response, refuse);
      } else {
        await this.#handleDirect(call, { headers: request.headers, state, response });
      }
    } catch (error) {
      this.#sendError(error, response);
    }
  }

  /** Handler and reply of a request that the lane took. */
  async #handleDirect(
    { route, body, checkReply }: DirectCall<HttpRoute>,
    { headers, state, response }: DirectContext,
  ): Promise<void> {
    const { path } = route;
    this.#timer.time(response, path);
    const { rawBody, caller, leaving } = state;
    // The lane takes no queries.
    const told = { method: "POST", path, headers, rawBody };
    const unwritten = caller && (await this.#gate?.enter(route, caller, { ...told, target: path }));
    const reply = await route.handler({
      ...told,
      params: {},
      query: {},
      body,
      caller,
      unwritten,
      remoteAddress: response.req.socket.remoteAddress,
      get signal() {
        return leaving.signal;
      },
    });
    if (reply.bytes === undefined && reply.body !== undefined) {
      checkReply(reply.body, reply.status ?? 200);
    }
    await sendReply(reply, response, (status) => sendJson(response, status, reply.body));
  }

  async #probe(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    if (path === "/metrics") {
      const { metrics, keyedMetrics } = this.#options;
      const isKeyed =
        keyedMetrics !== undefined &&
        (this.#gate === undefined || (await this.#gate.opens(request.headers, "metrics:read")));
      const keyed = isKeyed ? await keyedMetrics.page() : undefined;
      const page = `${await metrics.page()}${keyed ?? ""}`;
      response.setHeader("content-type", this.#options.metrics.registry.contentType);
      response.end(page);
      return;
    }
    if (path === "/health") {
      sendJson(response, 200, { status: "ok" });
      return;
    }
    const readiness = await this.#options.readiness();
    sendJson(response, readiness.ready ? 200 : 503, readiness);
  }

  #buildApp(apis: readonly ApiDescription[]): express.Express {
    const app = express();
    app.disable("etag");
    app.disable("x-powered-by");
    app.enable("case sensitive routing");
    app.enable("strict routing");
    app.set("query parser", "simple");
    // Before the body is parsed: what is wrong with the head is told, whatever the body is.
    for (const route of apis.flatMap(({ routes }) => routes)) {
      if (route.checkHead) app[route.method](expressPath(route.path), headerCheck(route));
    }
    app.use((request, _response, next) => {
      const { rawBody } = this.#stateOf(request);
      const isJson = rawBody.length > 0 && isJsonType(request.headers["content-type"]);
      request.body = isJson ? parseJsonBody(rawBody) : undefined;
      checkUrl(request);
      next();
    });
    for (const api of apis) this.#mount(app, api, apis.length > 1);
    app.use((request) => {
      throw requestError(404, "no such path", { path: request.path });
    });
    // Express tells error handlers from others by their four parameters.
    app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
      this.#sendError(error, response);
    });
    return app;
  }

  /** Adds the validator and the routes of one API file. */
  #mount(app: express.Express, api: ApiDescription, isOneOfMany: boolean): void {
    const ownPaths = api.routes.map((route) => pathPattern(route.path));
    const validator = OpenApiValidator.middleware({
      // The validator changes what it is given.
      apiSpec: structuredClone(readApiFile(api.apiSpecPath)) as ApiDocument,
      // The files are the build's own. A test holds them against OpenAPI's rules; doing so at every
      // start was a third of a process's start.
      validateApiSpec: false,
      validateRequests: { allErrors: false, allowUnknownQueryParameters: false },
      validateResponses: this.#options.validateResponses ?? true,
      // The key is checked before the body is read; the API file only documents it.
      validateSecurity: false,
      fileUploader: false,
      formats: { int32: true, int64: true },
      ...(isOneOfMany
        ? { ignorePaths: (path: string) => !ownPaths.some((pattern) => pattern.test(path)) }
        : {}),
    });
    this.#validators.push(validator);
    app.use(...validator);
    for (const route of api.routes) {
      app[route.method](expressPath(route.path), async (request: Request, response: Response) => {
        this.#timer.time(response, route.path);
        await this.#handle(route, request, response);
      });
    }
  }

  async #handle(route: HttpRoute, request: Request, response: Response): Promise<void> {
    checkQuery(request);
    const { rawBody, caller, leaving } = this.#stateOf(request);
    const known = { method: request.method, path: request.path, headers: request.headers, rawBody };
    const target = request.originalUrl;
    const unwritten = caller && (await this.#gate?.enter(route, caller, { ...known, target }));
    const reply = await route.handler({
      ...known,
      params: request.params as Readonly<Record<string, string>>,
      query: request.query,
      body: request.body,
      caller,
      unwritten,
      remoteAddress: request.socket.remoteAddress,
      get signal() {
        return leaving.signal;
      },
    });
    // Express' own json(): the validator checks what goes through it.
    await sendReply(reply, response, (status) => response.status(status).json(reply.body));
  }

  #sendError(error: unknown, response: ServerResponse): void {
    const normalised = normaliseHttpError(error);
    const reply = this.#options.mapError(normalised);
    const isOurs = !(normalised instanceof HttpError) || normalised.status >= 500;
    if (reply.status >= 500 && isOurs && reply.isExpected !== true) {
      this.#options.log.error({ err: normalised, server: this.name }, "request failed");
    } else {
      this.#options.log.debug({ err: normalised, status: reply.status }, "request refused");
    }
    if (response.headersSent || response.writableEnded) {
      response.destroy();
      return;
    }
    for (const [name, value] of Object.entries(reply.headers ?? {})) {
      response.setHeader(name, value);
    }
    if (normalised instanceof HttpError && normalised.status === 401) {
      response.setHeader("www-authenticate", "Bearer");
    }
    if (normalised instanceof HttpError && normalised.status === 405) this.#allow(response);
    if (normalised instanceof HttpError && normalised.status === 429) {
      response.setHeader("retry-after", PACE_SECONDS);
    }
    discardRest(response.req, response);
    sendJson(response, reply.status, reply.body);
  }

  #stateOf(request: IncomingMessage): RequestState {
    const state = this.#states.get(request);
    if (state === undefined) {
      throw new HttpError("INVALID_RESPONSE", "request without state", {
        details: { status: 500 },
      });
    }
    return state;
  }
}

/** The signed parts of a request. */
function readRequest({ method, url, headers }: IncomingMessage, rawBody: Uint8Array) {
  return { method: method ?? "GET", target: url ?? "/", headers, rawBody };
}

/** What `#handleDirect` needs beside the call. */
interface DirectContext {
  readonly headers: IncomingHttpHeaders;
  readonly state: RequestState;
  readonly response: ServerResponse;
}
