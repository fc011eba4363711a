/**
 * The HTTP server of the pages: GET and HEAD, POST where a page takes a form, one frame and one set of headers for all, finished
 * pages from memory, costly ones in turns. What goes wrong becomes a page that says so.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { errorCode } from "../../chain/errors.js";
import { clientOf, isLoopback } from "../../runtime/http/client-address.js";
import type { ListenAddress } from "../../runtime/config/config-values.js";
import { PipelineBound } from "../../runtime/http/http-pipeline.js";
import { endSocket, signalOf } from "../../runtime/http/http-reply.js";
import { ReplyTimer } from "../../runtime/http/http-timing.js";
import { boundUnsent } from "../../runtime/http/http-unsent.js";
import type { Readiness } from "../../runtime/http/http-server.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import { limitedSignal } from "../../runtime/process/task.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import { ExplorerError, notFound, STATUS_OF } from "../errors.js";
import { renderDocument } from "../html/element.js";
import { layout } from "../html/layout.js";
import { faultPage } from "../pages/fault.js";
import { type Language, parseLanguage, preferredLanguage, textsOf } from "../text/catalogue.js";
import { type Assets } from "./assets.js";
import { type HeadEvent, LiveStreams } from "./live-streams.js";
import { readForm, sentQuery } from "./form-body.js";
import type { Download, Page, PageRequest, PageRoute } from "./page.js";
import { etagOf, type FinishedAnswer, isKnown, PageCache } from "./page-cache.js";
import { RateLimit, Turns } from "./rate-limit.js";

/** What the server is made of. */
export interface PageServerOptions {
  readonly listen: ListenAddress;
  readonly network: string;
  readonly routes: readonly PageRoute[];
  readonly assets: Assets;
  readonly cacheBytes: number;
  readonly maxStreams: number;
  readonly pagesPerMinute: number;
  /** True counts clients of this machine, too. */
  readonly limitsLoopback: boolean;
  readonly concurrentPages: number;
  /** The newest block, as far as it is known. */
  readonly head: () => HeadEvent | undefined;
  readonly readiness: () => Promise<Readiness>;
  /** Changes when what finished pages were made of is no longer all that there is. */
  readonly generation: () => number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The process's signal: pages in the making end with it. */
  readonly signal: AbortSignal;
}

/** Pages that can be started and stopped. */
export interface PageServer extends Service {
  /** The request listener, also usable without a port. */
  readonly app: (request: IncomingMessage, response: ServerResponse) => void;
  readonly port: number;
  /** Listens. @throws PORT_TAKEN, LISTEN_FAILED */
  start(): Promise<void>;
  /** Tells open pages of a new head. */
  announce(head: HeadEvent): void;
}

/** Longest path and query: a hash, an address, a cursor. */
const MAX_URL_CHARACTERS = 1_024;

/** Connections at once; beyond it new ones are refused instead of starving the rest. */
const MAX_CONNECTIONS = 2_048;

const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/** Time for pages in the making when stopping. */
const DRAIN_TIMEOUT_MS = 1_000;

/** Longest time that a page may be in the making: the node is asked no longer. */
const PAGE_TIMEOUT_MS = 30_000;

/** What a costly page counts, where another one counts one. */
const COSTLY = 5;

/** Nothing of strangers, nothing inline, no frames, no forms that lead away. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
};

/** A day: what is final stays, but the frame around it may be another one after an update. */
const FINAL_CACHING = "public, max-age=86400, immutable";

const PAGE_VARY = "Accept-Language, Cookie";

/** A year; the choice of a language is no secret and of no use to anybody else. */
const LANGUAGE_COOKIE = "; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly";

/** Makes the server; it listens after `start()`. */
export function createPageServer(options: PageServerOptions): PageServer {
  return new Pages(options);
}

/** What was asked for. */
interface Asked {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly language: Language;
  /** True where the query chose the language: it is remembered. */
  readonly isChosen: boolean;
}

class Pages implements PageServer {
  readonly name = "explorer";
  readonly app: PageServer["app"];
  private readonly server: Server;
  private readonly cache: PageCache;
  private readonly limit: RateLimit;
  private readonly turns: Turns;
  private readonly streams: LiveStreams;
  private readonly timer: ReplyTimer;
  private readonly pipelines = new PipelineBound();

  constructor(private readonly options: PageServerOptions) {
    this.cache = new PageCache(options.cacheBytes);
    this.limit = new RateLimit(options.pagesPerMinute, options.clock);
    this.turns = new Turns(options.concurrentPages);
    this.streams = new LiveStreams(options.maxStreams);
    this.timer = new ReplyTimer("explorer", options.metrics);
    options.metrics.gauge(
      "causeway_explorer_streams",
      "Pages that are kept up to date now.",
      [],
      (gauge) => gauge.set(this.streams.size),
    );
    this.app = (request, response) => void this.accept(request, response);
    const limits = { requestTimeout: REQUEST_TIMEOUT_MS, requireHostHeader: false };
    this.server = createServer(limits, this.app);
    this.server.on("checkExpectation", this.app);
    this.server.on("clientError", (_error, socket) => {
      endSocket(socket, 400, { code: "BAD_REQUEST", message: "the request cannot be read" });
    });
    this.server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
    this.server.maxConnections = MAX_CONNECTIONS;
    boundUnsent(this.server);
  }

  get port(): number {
    const address = this.server.address();
    return typeof address === "object" && address !== null
      ? address.port
      : this.options.listen.port;
  }

  async start(): Promise<void> {
    const { host, port } = this.options.listen;
    await new Promise<void>((resolve, reject) => {
      this.server.once("error", (cause) => {
        const isTaken = errorCode(cause) === "EADDRINUSE";
        const message = isTaken
          ? `port ${port} on ${host}, wanted by the explorer, is taken`
          : `the explorer cannot listen on ${host}:${port} (${errorCode(cause)})`;
        reject(new ExplorerError(isTaken ? "PORT_TAKEN" : "LISTEN_FAILED", message, { cause }));
      });
      this.server.listen({ host, port, backlog: 1_024 }, () => resolve());
    });
  }

  async stop(): Promise<void> {
    this.streams.close();
    if (!this.server.listening) return;
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeIdleConnections();
    const force = setTimeout(() => this.server.closeAllConnections(), DRAIN_TIMEOUT_MS);
    await closed;
    clearTimeout(force);
  }

  announce(head: HeadEvent): void {
    this.streams.announce(head);
  }

  private async accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.pipelines.count(request, response);
    this.timer.time(response, "other");
    let asked: Asked = { path: "/", query: new URLSearchParams(), language: "en", isChosen: false };
    try {
      asked = readRequest(request);
      if (request.method === "POST") {
        await this.answerForm(asked, request, response);
        return;
      }
      // Nothing else that is sent to the pages has a meaning, so nothing of it is kept.
      request.resume();
      if (request.method !== "GET" && request.method !== "HEAD") {
        throw new ExplorerError("METHOD_NOT_ALLOWED", "pages are only read");
      }
      await this.answer(asked, request, response);
    } catch (error) {
      this.refuse(error, asked, request, response);
    }
  }

  private async answer(
    asked: Asked,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { path } = asked;
    if (path === "/health" || path === "/ready" || path === "/metrics") {
      await this.probe(path, response);
    } else if (path === "/live") {
      this.timer.time(response, "/live");
      setHeaders(response, SECURITY_HEADERS);
      this.streams.add(response, this.options.head());
      if (request.method === "HEAD") response.end();
    } else if (path.startsWith("/assets/")) {
      this.timer.time(response, "/assets");
      const found = this.options.assets.answer(path);
      if (found === undefined) throw notFound(`no such file: ${path}`);
      send(found, request, response);
    } else {
      await this.answerPage(asked, request, response);
    }
  }

  private async probe(path: string, response: ServerResponse): Promise<void> {
    const { metrics, readiness } = this.options;
    if (path === "/metrics") {
      const page = await metrics.page();
      response.setHeader("content-type", metrics.registry.contentType);
      response.end(page);
      return;
    }
    const found = path === "/health" ? { status: "ok" } : await readiness();
    const status = "ready" in found && !found.ready ? 503 : 200;
    const text = JSON.stringify(found);
    response.writeHead(status, {
      "content-type": "application/json; charset=utf-8",
      "content-length": Buffer.byteLength(text),
    });
    response.end(text);
  }

  private async answerPage(
    asked: Asked,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const found = this.routeOf(asked.path);
    if (found === undefined) throw notFound(`no page ${asked.path}`);
    const { route, parameter } = found;
    this.timer.time(response, route.path);
    const query = ownQuery(asked.query, route.query ?? []);
    const key = `${this.options.generation()} ${asked.language} ${asked.path}?${query.toString()}`;
    const known = this.cache.get(key);
    if (known !== undefined) {
      sendLanguage(asked, response);
      send(known, request, response);
      return;
    }
    this.takeShare(request, route.isCostly === true ? COSTLY : 1);
    const signal = signalOf(response);
    // Others may wait for the same page: the one who asked first going away does not end it.
    const made = await this.cache.make(key, () =>
      this.make({ route, parameter, query, isSent: false }, asked),
    );
    if (signal.aborted) return;
    sendLanguage(asked, response);
    send(made, request, response);
  }

  /** A form's page; its outcome is the sender's alone. */
  private async answerForm(
    asked: Asked,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const found = this.routeOf(asked.path);
    const form = found?.route.form;
    if (found === undefined || form === undefined) {
      request.resume();
      throw new ExplorerError("METHOD_NOT_ALLOWED", "this page is only read");
    }
    const { route, parameter } = found;
    this.timer.time(response, route.path);
    this.takeShare(request, form.cost);
    const signal = signalOf(response);
    const sent = await readForm(request, form.maxBytes);
    for (const [name, value] of asked.query) if (!sent.has(name)) sent.set(name, value);
    const query = sentQuery(sent, route.query ?? []);
    const made = await this.make({ route, parameter, query, isSent: true }, asked);
    if (signal.aborted) return;
    const headers = { ...made.headers, "cache-control": "no-store" };
    send({ ...made, headers, etag: "" }, request, response);
  }

  private takeShare(request: IncomingMessage, cost: number): void {
    const client = clientOf(request.socket.remoteAddress);
    if (this.options.limitsLoopback || !isLoopback(client)) this.limit.take(client, cost);
  }

  /** Makes an answer in its turn. */
  private make(
    {
      route,
      ...found
    }: Pick<PageRequest, "parameter" | "query" | "isSent"> & { readonly route: PageRoute },
    asked: Asked,
  ): Promise<FinishedAnswer> {
    const { signal } = this.options;
    return this.turns.run(limitedSignal([signal], PAGE_TIMEOUT_MS), async () => {
      const { language } = asked;
      const t = textsOf(language);
      const time = limitedSignal([signal], PAGE_TIMEOUT_MS);
      const answer = await route.handle({ ...found, language, t, signal: time });
      if ("location" in answer) return redirectAnswer(answer.location, found.isSent);
      if ("json" in answer) return downloadAnswer(answer);
      // What was sent is not part of the address to which the languages lead.
      const query = found.isSent ? new URLSearchParams() : found.query;
      return this.pageAnswer(answer, { ...asked, query });
    });
  }

  private routeOf(path: string): { route: PageRoute; parameter: string } | undefined {
    for (const route of this.options.routes) {
      if (!route.hasParameter) {
        if (path === route.path) return { route, parameter: "" };
      } else if (path.startsWith(`${route.path}/`)) {
        const rest = path.slice(route.path.length + 1).replace(/\/$/, "");
        if (rest !== "" && !rest.includes("/")) return { route, parameter: rest };
      }
    }
    return undefined;
  }

  private pageAnswer(page: Page, asked: Asked): FinishedAnswer {
    const { network, assets } = this.options;
    const { path, query, language } = asked;
    const text = query.toString();
    const document = layout({
      title: page.title,
      content: page.content,
      language,
      t: textsOf(language),
      network,
      address: text === "" ? encodeURI(path) : `${encodeURI(path)}?${text}`,
      searched: query.get("q") ?? undefined,
      asset: (name) => assets.path(name),
      scripts: (page.scripts ?? []).map((name) => `${name}.mjs`),
    });
    const body = Buffer.from(renderDocument(document), "utf8");
    const isFinal = page.isFinal === true && (page.status ?? 200) === 200;
    return {
      status: page.status ?? 200,
      headers: {
        ...SECURITY_HEADERS,
        "content-type": "text/html; charset=utf-8",
        "content-language": language,
        vary: PAGE_VARY,
        "cache-control": isFinal ? FINAL_CACHING : "no-cache",
      },
      body,
      etag: etagOf(body),
      isFinal,
    };
  }

  /** Never throws: one request must not end the process. */
  private refuse(
    error: unknown,
    asked: Asked,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    try {
      this.sendFault(error, asked, request, response);
    } catch (fault) {
      this.options.log.error({ err: fault, path: asked.path }, "page of a fault failed");
      response.destroy();
    }
  }

  private sendFault(
    error: unknown,
    asked: Asked,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const { log } = this.options;
    const fault = faultPage(error, textsOf(asked.language));
    if (fault.isOurs) log.error({ err: error, path: asked.path }, "page failed");
    else log.debug({ err: error, path: asked.path }, "page refused");
    if (response.headersSent || response.writableEnded) {
      response.destroy();
      return;
    }
    const answer = this.pageAnswer(fault.page, { ...asked, query: new URLSearchParams() });
    const status = answer.status;
    if (status === STATUS_OF.METHOD_NOT_ALLOWED) response.setHeader("allow", "GET, HEAD");
    if (fault.retryAfterSeconds !== undefined) {
      response.setHeader("retry-after", String(fault.retryAfterSeconds));
    }
    if (!request.complete) response.setHeader("connection", "close");
    const headers = { ...answer.headers, "cache-control": "no-store" };
    send({ ...answer, headers, etag: "" }, request, response);
  }
}

/** @throws BAD_REQUEST */
function readRequest(request: IncomingMessage): Asked {
  const target = request.url ?? "/";
  if (target.length > MAX_URL_CHARACTERS || !target.startsWith("/")) {
    throw new ExplorerError("BAD_REQUEST", "the address is too long or not a path");
  }
  const [rawPath = "/", ...rest] = target.split("?");
  let path: string;
  try {
    path = decodeURIComponent(rawPath);
  } catch (cause) {
    throw new ExplorerError("BAD_REQUEST", "the address is not encoded rightly", { cause });
  }
  // Browsers take "//host" in a link for another origin.
  if (/^\/[/\\]/.test(path)) throw new ExplorerError("BAD_REQUEST", "the path has no beginning");
  if (/\p{Cc}/u.test(path)) throw new ExplorerError("BAD_REQUEST", "control characters");
  const query = new URLSearchParams(rest.join("?"));
  const chosen = parseLanguage(query.get("lang") ?? undefined);
  const remembered = parseLanguage(/(?:^|;\s*)lang=(\w+)/.exec(request.headers.cookie ?? "")?.[1]);
  const language = chosen ?? remembered ?? preferredLanguage(request.headers["accept-language"]);
  return { path, query, language, isChosen: chosen !== undefined };
}

/** The part of a query that a page knows, in the page's order: one page, one key. */
function ownQuery(given: URLSearchParams, names: readonly string[]): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of names) {
    const value = given.get(name)?.trim();
    if (value !== undefined && value !== "") query.set(name, value);
  }
  return query;
}

function sendLanguage({ language, isChosen }: Asked, response: ServerResponse): void {
  if (isChosen) response.setHeader("set-cookie", `lang=${language}${LANGUAGE_COOKIE}`);
}

function redirectAnswer(location: string, isSent: boolean): FinishedAnswer {
  const headers = { ...SECURITY_HEADERS, location, "cache-control": "no-cache" };
  return { status: isSent ? 303 : 302, headers, body: Buffer.alloc(0), etag: "", isFinal: false };
}

function downloadAnswer({ json, fileName, isFinal }: Download): FinishedAnswer {
  const body = Buffer.from(JSON.stringify(json, null, 1), "utf8");
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": "application/json; charset=utf-8",
    "content-disposition": `inline; filename="${fileName}"`,
    "cache-control": isFinal ? FINAL_CACHING : "no-cache",
  };
  return { status: 200, headers, body, etag: etagOf(body), isFinal };
}

function setHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

function send(answer: FinishedAnswer, request: IncomingMessage, response: ServerResponse): void {
  setHeaders(response, { "x-content-type-options": "nosniff", ...answer.headers });
  if (answer.etag !== "") response.setHeader("etag", answer.etag);
  if (answer.etag !== "" && isKnown(request.headers["if-none-match"], answer.etag)) {
    response.writeHead(304).end();
    return;
  }
  response.writeHead(answer.status, { "content-length": answer.body.length });
  response.end(answer.body);
}
