/**
 * The HTTP server of the pages: GET and HEAD, POST where a page takes a form, one frame and one set of
 * headers for all, finished pages from memory, costly ones in turns. What goes wrong becomes a page
 * that says so.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ChainAccounts } from "../../chain/chain-accounts.js";
import { clientOf, isLoopback } from "../../runtime/turns/client-address.js";
import type { Turns } from "../../runtime/turns/turns.js";
import type { ListenAddress } from "../../runtime/config/config-values.js";
import { discardRest } from "../../runtime/http/http-body.js";
import { PipelineBound } from "../../runtime/http/connections/pipeline.js";
import { leavingOf } from "../../runtime/http/http-reply.js";
import { ReplyTimer } from "../../runtime/http/http-timing.js";
import type { Readiness } from "../../runtime/http/http-server.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import { withLimit } from "../../runtime/process/task.js";
import type { Metrics } from "../../runtime/process/metrics.js";
import { badRequest, notFound, PageError, STATUS_OF } from "../../web/errors.js";
import { renderDocument } from "../../web/html/element.js";
import type { Assets } from "../../web/server/assets.js";
import { isForeignForm } from "../../web/server/foreign-form.js";
import {
  etagOf,
  type FinishedAnswer,
  SECURITY_HEADERS,
  sendAnswer,
  setHeaders,
} from "../../web/server/finished-answer.js";
import { answerProbe, isProbePath, PageListener } from "../../web/server/page-listener.js";
import {
  addressOf,
  type Asked,
  ownQuery,
  readAsked,
  sendLanguage,
  UNREADABLE,
} from "../../web/server/page-request.js";
import { createPageTurns, PageRate } from "../../web/server/page-limits.js";
import { layout } from "../html/layout.js";
import { faultPage } from "../pages/fault.js";
import { textsOf } from "../text/catalogue.js";
import { type HeadEvent, LiveStreams } from "./live-streams.js";
import { FormRoom, readForm, sentQuery } from "./form-body.js";
import type { Download, Page, PageRequest, PageRoute } from "./page.js";
import { PageCache } from "./page-cache.js";

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
  /** Those that the chain's genesis names; undefined while they are not known. */
  readonly accounts: () => ChainAccounts | undefined;
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

/** Longest time that a page may be in the making: the node is asked no longer. */
const PAGE_TIMEOUT_MS = 30_000;

/** What a costly page counts, where another one counts one. */
const COSTLY = 5;

/** A day: what is final stays, but the frame around it may be another one after an update. */
const FINAL_CACHING = "public, max-age=86400, immutable";

/**
 * A minute: what is final at a height is of another block when a new chain is made on the same port, or one
 * has lost blocks, and a transaction of those may be mined elsewhere, fail there, or be in no block any more.
 * Who kept its page for long would be shown it as final.
 */
const FINAL_PLACE_CACHING = "public, max-age=60";

/** A client asks whether it still is so. */
const ASKED_AGAIN = "no-cache";

const HASH = /^(0x)?[0-9a-f]{64}$/i;

/** What clients may do with an answer. The hash of a block is of that block for ever. */
function cachingOf(isFinal: boolean, path: string, parameter: string): string {
  if (!isFinal) return ASKED_AGAIN;
  return path === "/block" && HASH.test(parameter) ? FINAL_CACHING : FINAL_PLACE_CACHING;
}

const PAGE_VARY = "Accept-Language, Cookie";

/** Makes the server; it listens after `start()`. */
export function createPageServer(options: PageServerOptions): PageServer {
  return new Pages(options);
}

class Pages implements PageServer {
  readonly name = "explorer";
  readonly app: PageServer["app"];
  private readonly listener: PageListener;
  private readonly cache: PageCache;
  private readonly limit: PageRate;
  private readonly turns: Turns;
  private readonly streams: LiveStreams;
  private readonly forms = new FormRoom();
  private readonly timer: ReplyTimer;
  private readonly pipelines = new PipelineBound();

  constructor(private readonly options: PageServerOptions) {
    this.cache = new PageCache(options.cacheBytes);
    this.limit = new PageRate(options.pagesPerMinute, options.clock);
    this.turns = createPageTurns(options.concurrentPages);
    const { maxStreams: most, limitsLoopback } = options;
    this.streams = new LiveStreams({ most, limitsLoopback });
    this.timer = new ReplyTimer("explorer", options.metrics);
    options.metrics.gauge(
      "causeway_explorer_streams",
      "Pages that are kept up to date now.",
      [],
      (gauge) => gauge.set(this.streams.size),
    );
    this.app = (request, response) => void this.accept(request, response);
    this.listener = new PageListener({
      owner: "the explorer",
      listen: options.listen,
      log: options.log,
      app: this.app,
      pipelines: this.pipelines,
    });
  }

  get port(): number {
    return this.listener.port;
  }

  start(): Promise<void> {
    return this.listener.start();
  }

  async stop(): Promise<void> {
    this.streams.close();
    await this.listener.stop();
  }

  announce(head: HeadEvent): void {
    this.streams.announce(head);
  }

  private async accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.pipelines.count(request, response);
    this.timer.time(response, "other");
    let asked = UNREADABLE;
    try {
      asked = withoutLastSlash(readAsked(request));
      if (request.method === "POST") {
        await this.answerForm(asked, request, response);
        return;
      }
      // Nothing else that is sent to the pages has a meaning, so nothing of it is kept.
      request.resume();
      if (request.method !== "GET" && request.method !== "HEAD") {
        throw new PageError("METHOD_NOT_ALLOWED", "pages are only read");
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
    if (isProbePath(path)) {
      await answerProbe(path, response, this.options);
    } else if (path === "/live") {
      this.timer.time(response, "/live");
      setHeaders(response, SECURITY_HEADERS);
      this.streams.add(response, this.options.head(), request.socket.remoteAddress);
      if (request.method === "HEAD") response.end();
    } else if (path.startsWith("/assets/")) {
      this.timer.time(response, "/assets");
      const found = this.options.assets.answer(path);
      if (found === undefined) throw notFound(`no such file: ${path}`);
      sendAnswer(found, request, response);
    } else {
      await this.answerPage(asked, request, response);
    }
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
      sendAnswer(known, request, response);
      return;
    }
    const client = clientOf(request.socket.remoteAddress);
    this.takeShare(client, route.isCostly === true ? COSTLY : 1);
    const { signal } = leavingOf(response);
    // Others may wait for the same page: the one who asked first going away does not end it.
    const made = await this.cache.make(key, () =>
      this.make({ route, parameter, query, isSent: false }, asked, client),
    );
    if (signal.aborted) return;
    sendLanguage(asked, response);
    sendAnswer(made, request, response);
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
      throw new PageError("METHOD_NOT_ALLOWED", "this page is only read");
    }
    const { route, parameter } = found;
    this.timer.time(response, route.path);
    // Another page could let its readers send work here, from their own machines.
    if (isForeignForm(request)) throw badRequest("sent by another page");
    const isReadFirst = form.costOf !== undefined && isShort(request);
    const client = clientOf(request.socket.remoteAddress);
    this.takeShare(client, isReadFirst ? 1 : form.cost);
    const { signal } = leavingOf(response);
    const made = await this.forms.run(request, form.maxBytes, async () => {
      const sent = await readForm(request, form.maxBytes);
      for (const [name, value] of asked.query) if (!sent.has(name)) sent.set(name, value);
      const query = sentQuery(sent, route.query ?? []);
      if (isReadFirst) {
        const cost = Math.min(form.costOf?.(query) ?? form.cost, this.options.pagesPerMinute);
        this.takeShare(client, Math.max(0, cost - 1));
      }
      const { remoteAddress } = request.socket;
      return this.make({ route, parameter, query, isSent: true, remoteAddress }, asked, client);
    });
    if (signal.aborted) return;
    const headers = { ...made.headers, "cache-control": "no-store" };
    sendAnswer({ ...made, headers, etag: "" }, request, response);
  }

  private takeShare(client: string, cost: number): void {
    if (this.options.limitsLoopback || !isLoopback(client)) this.limit.take(client, cost);
  }

  /** Makes an answer in a turn of the client's: the node and the indexer know the explorer alone. */
  private make(
    {
      route,
      ...found
    }: Pick<PageRequest, "parameter" | "query" | "isSent" | "remoteAddress"> & {
      readonly route: PageRoute;
    },
    asked: Asked,
    client: string,
  ): Promise<FinishedAnswer> {
    const { signal } = this.options;
    const inTime = <T>(work: (time: AbortSignal) => Promise<T>) =>
      withLimit([signal], PAGE_TIMEOUT_MS, work);
    const work = async () => {
      const { language } = asked;
      const t = textsOf(language, this.options.accounts());
      const answer = await inTime((time) => route.handle({ ...found, language, t, signal: time }));
      if ("location" in answer) return redirectAnswer(answer.location, found.isSent);
      const caching = (isFinal: boolean) => cachingOf(isFinal, route.path, found.parameter);
      if ("json" in answer) return downloadAnswer(answer, caching(answer.isFinal));
      // What was sent is not part of the address to which the languages lead.
      const query = found.isSent ? new URLSearchParams() : found.query;
      return this.pageAnswer(answer, { ...asked, query }, caching);
    };
    const isQueued = found.isSent && route.form?.hasOwnQueue === true;
    return isQueued ? work() : inTime((time) => this.turns.run(time, work, client));
  }

  private routeOf(path: string): { route: PageRoute; parameter: string } | undefined {
    for (const route of this.options.routes) {
      if (!route.hasParameter) {
        if (path === route.path) return { route, parameter: "" };
      } else if (path.startsWith(`${route.path}/`)) {
        const rest = path.slice(route.path.length + 1);
        if (rest !== "" && !rest.includes("/")) return { route, parameter: rest };
      }
    }
    return undefined;
  }

  private pageAnswer(
    page: Page,
    asked: Asked,
    caching: (isFinal: boolean) => string = () => ASKED_AGAIN,
  ): FinishedAnswer {
    const { network, assets } = this.options;
    const { query, language } = asked;
    const document = layout({
      title: page.title,
      content: page.content,
      language,
      t: textsOf(language, this.options.accounts()),
      network,
      address: addressOf(asked),
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
        "cache-control": caching(isFinal),
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
    const route = this.routeOf(asked.path)?.route;
    // Programs read English.
    const language = route?.refusal === undefined ? asked.language : "en";
    const fault = faultPage(error, textsOf(language, this.options.accounts()));
    if (fault.isOurs) log.error({ err: error, path: asked.path }, "page failed");
    else log.debug({ err: error, path: asked.path }, "page refused");
    if (response.headersSent || response.writableEnded) {
      response.destroy();
      return;
    }
    const { text, page } = fault;
    const { status } = page;
    const answer =
      route?.refusal === undefined
        ? this.pageAnswer(page, { ...asked, query: new URLSearchParams() })
        : { ...jsonAnswer(route.refusal({ status, text })), status };
    if (status === STATUS_OF.METHOD_NOT_ALLOWED) {
      response.setHeader("allow", route?.form === undefined ? "GET, HEAD" : "GET, HEAD, POST");
    }
    if (fault.retryAfterSeconds !== undefined) {
      response.setHeader("retry-after", String(fault.retryAfterSeconds));
    }
    discardRest(request, response);
    const headers = { ...answer.headers, "cache-control": "no-store" };
    sendAnswer({ ...answer, headers, etag: "" }, request, response);
  }
}

/** A form that costs next to nothing to read. */
const SHORT_FORM_BYTES = 16 * 1024;

function isShort({ headers }: IncomingMessage): boolean {
  return Number(headers["content-length"]) <= SHORT_FORM_BYTES;
}

/** Some clients end every path in a slash: no page is another one with it. */
function withoutLastSlash(asked: Asked): Asked {
  return { ...asked, path: asked.path.replace(/(?<=.)\/$/, "") };
}

function redirectAnswer(location: string, isSent: boolean): FinishedAnswer {
  const headers = { ...SECURITY_HEADERS, location, "cache-control": ASKED_AGAIN };
  return { status: isSent ? 303 : 302, headers, body: Buffer.alloc(0), etag: "", isFinal: false };
}

function downloadAnswer({ json, fileName, isFinal }: Download, caching: string): FinishedAnswer {
  const answer = jsonAnswer(json);
  const headers = {
    ...answer.headers,
    "content-disposition": `inline; filename="${fileName}"`,
    "cache-control": caching,
  };
  return { ...answer, headers, isFinal };
}

function jsonAnswer(json: unknown): FinishedAnswer {
  const body = Buffer.from(JSON.stringify(json, null, 1), "utf8");
  const headers = { ...SECURITY_HEADERS, "content-type": "application/json; charset=utf-8" };
  return { status: 200, headers, body, etag: etagOf(body), isFinal: false };
}
