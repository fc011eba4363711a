/**
 * The HTTP server of the console: pages for who is logged in, and forms that become calls of the APIs.
 * Every form carries the session's token and a key of its own, and is carried out once.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { errorCode } from "../../chain/errors.js";
import { clientOf } from "../../runtime/turns/client-address.js";
import type { ListenAddress } from "../../runtime/config/config-values.js";
import { discardRest } from "../../runtime/http/http-body.js";
import { PipelineBound } from "../../runtime/http/connections/pipeline.js";
import { leavingOf } from "../../runtime/http/http-reply.js";
import { ReplyTimer } from "../../runtime/http/http-timing.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { MetricCounter, Metrics } from "../../runtime/process/metrics.js";
import { limitedSignal } from "../../runtime/process/task.js";
import { notFound, PageError } from "../../web/errors.js";
import { el, renderDocument } from "../../web/html/element.js";
import type { Assets } from "../../web/server/assets.js";
import { SECURITY_HEADERS, sendAnswer } from "../../web/server/finished-answer.js";
import { answerProbe, isProbePath, PageListener } from "../../web/server/page-listener.js";
import {
  addressOf,
  type Asked,
  ownQuery,
  readAsked,
  sendLanguage,
  UNREADABLE,
} from "../../web/server/page-request.js";
import { CONSOLE_STATUS, ConsoleError } from "../errors.js";
import { hiddenFields } from "../html/forms.js";
import { layout } from "../html/layout.js";
import { DONE_QUERY, doneNote } from "../pages/context.js";
import { faultPage } from "../pages/fault.js";
import { accountPage, loginPage, type LoginNote } from "../pages/login.js";
import { ExchangeApi, type ExchangeApiOptions } from "../sources/exchange-api.js";
import { textsOf } from "../text/catalogue.js";
import { isAble } from "../users/roles.js";
import type { UserService } from "../users/user-service.js";
import { isUserName } from "../users/user-files.js";
import { ConsoleCookies } from "./cookies.js";
import { contentOf, type FormFields, readForm } from "./form-body.js";
import { KNOWN_SECONDS, KnownBrowsers } from "./known-browsers.js";
import { LoginTries } from "./login-tries.js";
import { PageTurns } from "./page-turns.js";
import { checkHost, checkOrigin, formPath } from "./request-guards.js";
import type { ConsolePage, ConsoleRequest, ConsoleRoutes } from "./route.js";
import { RouteTable } from "./route-table.js";
import { isSameToken, newToken, type Session, SessionStore } from "./session-store.js";

/** What the server is made of. */
export interface ConsoleServerOptions {
  readonly listen: ListenAddress;
  readonly network: string;
  /** Origin under which people reach it; "" for this machine alone. */
  readonly publicUrl: string;
  readonly routes: readonly ConsoleRoutes[];
  readonly assets: Assets;
  /** Where the users' files lie. */
  readonly home: string;
  readonly users: UserService;
  readonly api: ExchangeApiOptions;
  readonly session: {
    readonly idleMs: number;
    readonly maxMs: number;
    readonly maxSessions: number;
  };
  readonly triesPerMinute: number;
  readonly concurrentPages: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The process's signal. */
  readonly signal: AbortSignal;
}

/** The console's pages, that can be started and stopped. */
export interface ConsoleServer extends Service {
  readonly port: number;
  /** Listens. @throws PORT_TAKEN, LISTEN_FAILED */
  start(): Promise<void>;
}

/** Longest time that a page or an action may take. */
const PAGE_TIMEOUT_MS = 30_000;

const FIRST_PAGE = "/";
const LOGIN = "/login";
const ACCOUNT = "/account";

/** Makes the server; it listens after `start()`. */
export function createConsoleServer(options: ConsoleServerOptions): ConsoleServer {
  return new Pages(options);
}

/** A request on its way. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly asked: Asked;
  readonly session: Session | undefined;
}

class Pages implements ConsoleServer {
  readonly name = "console";
  private readonly listener: PageListener;
  private readonly table: RouteTable;
  private readonly sessions: SessionStore;
  private readonly turns: PageTurns;
  private readonly tries: LoginTries;
  private readonly browsers: KnownBrowsers;
  private readonly timer: ReplyTimer;
  private readonly pipelines = new PipelineBound();
  private readonly logins: MetricCounter;
  private readonly cookies: ConsoleCookies;
  private readonly publicHost: string | undefined;

  constructor(private readonly options: ConsoleServerOptions) {
    const { home, publicUrl, clock, metrics, concurrentPages: most } = options;
    const isSecure = publicUrl.startsWith("https:");
    this.cookies = new ConsoleCookies(isSecure);
    this.publicHost = publicUrl === "" ? undefined : new URL(publicUrl).host.toLowerCase();
    this.table = new RouteTable(options.routes);
    this.sessions = new SessionStore(options.session, clock);
    this.turns = new PageTurns(most);
    const perMinute = options.triesPerMinute;
    this.tries = new LoginTries({ home, perMinute, isProxied: isSecure, clock });
    this.browsers = new KnownBrowsers(home, options.log);
    this.timer = new ReplyTimer("console", metrics);
    this.logins = metrics.counter("causeway_console_logins_total", "Tries to log in.", ["outcome"]);
    metrics.gauge("causeway_console_sessions", "Sessions in memory.", [], (gauge) =>
      gauge.set(this.sessions.size),
    );
    this.listener = new PageListener({
      ...options,
      owner: "the console",
      app: (request, response) => void this.accept(request, response),
      pipelines: this.pipelines,
    });
  }

  get port(): number {
    return this.listener.port;
  }

  start(): Promise<void> {
    return this.listener.start();
  }

  stop(): Promise<void> {
    return this.listener.stop();
  }

  private async accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.pipelines.count(request, response);
    this.timer.time(response, "other");
    let exchange: Exchange = { request, response, asked: UNREADABLE, session: undefined };
    try {
      const asked = readAsked(request);
      exchange = { ...exchange, asked };
      if (isProbePath(asked.path)) {
        request.resume();
        // It needs nothing to be ready: where an API is away, pages say so.
        const readiness = () => Promise.resolve({ ready: true });
        await answerProbe(asked.path, response, { metrics: this.options.metrics, readiness });
        return;
      }
      checkHost(request, this.publicHost);
      const session = this.sessions.use(this.cookies.read("session", request));
      exchange = { ...exchange, session };
      await this.answer(exchange);
    } catch (error) {
      this.refuse(error, exchange);
    }
  }

  private async answer(exchange: Exchange): Promise<void> {
    const { request, response, asked } = exchange;
    const { path } = asked;
    if (request.method === "POST") {
      checkOrigin(request);
      const form = await readForm(request);
      // What was written is shown where it was not carried out: nobody writes it a second time.
      await this.take(exchange, form).catch((error: unknown) => this.refuse(error, exchange, form));
      return;
    }
    request.resume();
    if (request.method !== "GET" && request.method !== "HEAD") {
      throw new PageError("METHOD_NOT_ALLOWED", "neither read nor sent");
    }
    if (path.startsWith("/assets/")) {
      this.timer.time(response, "/assets");
      const found = this.options.assets.answer(path);
      if (found === undefined) throw notFound(`no such file: ${path}`);
      sendAnswer(found, request, response);
    } else if (path === LOGIN) {
      this.timer.time(response, LOGIN);
      if (exchange.session !== undefined) this.redirect(exchange, FIRST_PAGE);
      else this.sendLogin(exchange, { note: undefined, status: 200 });
    } else {
      await this.answerPage(exchange);
    }
  }

  private async answerPage(exchange: Exchange): Promise<void> {
    const { response, asked, session } = exchange;
    const found = this.table.page(asked.path);
    if (session === undefined) {
      this.redirect(exchange, LOGIN);
      return;
    }
    if (asked.path === ACCOUNT) {
      this.timer.time(response, ACCOUNT);
      this.sendPage(exchange, this.account(exchange, session));
      return;
    }
    if (session.mustChange) {
      this.redirect(exchange, ACCOUNT);
      return;
    }
    if (found === undefined) throw notFound(`no page ${asked.path}`);
    const { route, params } = found;
    this.timer.time(response, route.path);
    const query = ownQuery(asked.query, route.query ?? []);
    const signal = this.timeOfOne(leavingOf(response).signal);
    const request = this.requestOf(exchange, session, { params, query, signal });
    const page = await this.turns.show(route, request);
    this.sendPage({ ...exchange, asked: { ...asked, query } }, page);
  }

  /** A form that was sent. */
  private async take(exchange: Exchange, form: FormFields): Promise<void> {
    const { asked, session, response, request } = exchange;
    const { path } = asked;
    if (path === LOGIN) {
      this.timer.time(response, LOGIN);
      await this.login(exchange, form);
      return;
    }
    if (session === undefined) throw new ConsoleError("NOT_LOGGED_IN", "no session");
    if (!isSameToken(form.get("token") ?? "", session.formToken)) {
      throw new ConsoleError("FORM_REFUSED", "not this session's token");
    }
    if (path === "/logout") {
      this.sessions.end(this.cookies.read("session", request));
      this.cookies.give("session", exchange, { value: "", seconds: 0 });
      this.redirect(exchange, LOGIN);
    } else if (path === "/account/password") {
      await this.changePassword(exchange, session, form);
    } else {
      await this.act(exchange, session, form);
    }
  }

  /** Carries an action out, once for each form: who sends the same again gets the first answer. */
  private async act(exchange: Exchange, session: Session, form: FormFields): Promise<void> {
    const { response, asked } = exchange;
    const found = this.table.action(asked.path);
    if (found === undefined) throw notFound(`no action ${asked.path}`);
    const { route, params } = found;
    this.timer.time(response, route.path);
    if (session.mustChange || !isAble(session.role, route.needs)) {
      throw new ConsoleError("FORBIDDEN", `the role ${session.role} may not`);
    }
    const formKey = form.get("formKey") ?? "";
    if (!/^[0-9a-f-]{36}$/.test(formKey)) throw new ConsoleError("FORM_REFUSED", "no form's key");
    const signal = this.timeOfOne();
    const common = this.requestOf(exchange, session, {
      params,
      query: new URLSearchParams(),
      signal,
    });
    const content = contentOf(asked.path, form);
    let sent = session.sentForms.get(formKey);
    if (sent === undefined) {
      const act = () => route.act({ ...common, form, formKey });
      const answer = this.turns.act(common, act);
      sent = { content, answer };
      session.sentForms.set(formKey, sent);
      // What was refused, or may not have arrived, may be sent again under the same key.
      answer.catch(() => session.sentForms.delete(formKey));
    } else if (sent.content !== content) {
      // A page that a browser kept, filled in anew: the first answer would be no answer to this.
      throw new ConsoleError("FORM_REFUSED", "the form was sent with other words before");
    }
    const location = await sent.answer;
    this.options.log.info({ user: session.user, action: asked.path, formKey }, "done for a user");
    session.untold.set(location, true);
    this.redirect(exchange, location);
  }

  private async login(exchange: Exchange, form: FormFields): Promise<void> {
    const { request } = exchange;
    const cookie = this.cookies.read("login", request);
    const expected = cookie === undefined ? undefined : this.sessions.loginToken(cookie);
    if (expected === undefined || !isSameToken(form.get("token") ?? "", expected)) {
      // Opened before the console was started anew, for one: what is shown now is of this browser.
      this.sendLogin(exchange, { note: "formRefusedText", status: CONSOLE_STATUS.FORM_REFUSED });
      return;
    }
    const name = (form.get("user") ?? "").trim().toLowerCase();
    const { remoteAddress } = request.socket;
    const tried = { remoteAddress, name, knownBrowser: this.knownBrowser(name, request) };
    try {
      const known = await this.tries.enter(tried, this.timeOfOne(), () =>
        this.options.users.enter(name, form.get("password") ?? ""),
      );
      this.beginSession(exchange, known);
      this.logins.inc({ outcome: "right" });
      this.options.log.info({ user: name }, "logged in");
      this.redirect(exchange, known.mustChange ? ACCOUNT : FIRST_PAGE);
    } catch (error) {
      if (errorCode(error) !== "WRONG_LOGIN") throw error;
      // Without the name: what is typed there may be a password.
      this.logins.inc({ outcome: "wrong" });
      this.options.log.warn({ client: clientOf(remoteAddress) }, "login refused");
      this.sendLogin(exchange, { note: "loginWrong", status: 401 });
    }
  }

  private async changePassword(
    exchange: Exchange,
    session: Session,
    form: FormFields,
  ): Promise<void> {
    const { user } = session;
    this.timer.time(exchange.response, "/account/password");
    const [current = "", next = "", again = ""] = ["current", "new", "again"].map((name) =>
      form.get(name),
    );
    try {
      const known = await this.tries.change(session.formToken, this.timeOfOne(), () =>
        this.options.users.change(user, { current, next, again }),
      );
      const location = `${ACCOUNT}?${DONE_QUERY}=password`;
      this.sessions.endAllOf(user);
      this.beginSession(exchange, known, location);
      this.options.log.info({ user }, "password changed");
      this.redirect(exchange, location);
    } catch (error) {
      const code = errorCode(error);
      if (code !== "WRONG_LOGIN" && code !== "PASSWORD_UNFIT") throw error;
      // The page's own path: a change of language asks for it.
      const shown = { ...exchange, asked: { ...exchange.asked, path: ACCOUNT } };
      this.sendPage(shown, this.account(shown, session, "passwordUnfit"));
    }
  }

  /** The signal of one page or action. @param others fire it, too */
  private timeOfOne(...others: readonly AbortSignal[]): AbortSignal {
    return limitedSignal([this.options.signal, ...others], PAGE_TIMEOUT_MS);
  }

  private knownBrowser(user: string, request: IncomingMessage): string | undefined {
    if (!isUserName(user)) return undefined;
    return this.browsers.idOf(user, this.cookies.read(`known-${user}`, request));
  }

  private beginSession(
    exchange: Exchange,
    known: Parameters<SessionStore["begin"]>[0],
    ledTo?: string,
  ): void {
    const value = this.sessions.begin(known, ledTo);
    const seconds = Math.floor(this.options.session.maxMs / 1_000);
    this.cookies.give("session", exchange, { value, seconds });
    const browser = this.knownBrowser(known.user, exchange.request);
    const cookie = this.browsers.cookieOf(known.user, browser);
    if (cookie === undefined) return;
    const kept = { value: cookie, seconds: KNOWN_SECONDS };
    this.cookies.give(`known-${known.user}`, exchange, kept);
  }

  private sendLogin(
    exchange: Exchange,
    given: { readonly note: LoginNote; readonly status: number },
  ): void {
    const { request, asked } = exchange;
    const before = this.cookies.read("login", request);
    const cookie = before ?? newToken();
    if (before === undefined) this.cookies.give("login", exchange, { value: cookie });
    const token = this.sessions.loginToken(cookie);
    const hidden = el("input", { type: "hidden", name: "token", value: token });
    this.sendPage(exchange, loginPage(textsOf(asked.language), { hidden, ...given }));
  }

  private account(exchange: Exchange, session: Session, fault?: "passwordUnfit"): ConsolePage {
    const given = { params: {}, query: exchange.asked.query, signal: this.options.signal };
    const request = this.requestOf(exchange, session, given);
    const { user, role, mustChange } = session;
    const [hidden, done] = [request.hiddenFields(), doneNote(request)];
    return accountPage(request.t, { hidden, user, role, mustChange, done, fault });
  }

  private requestOf(
    { asked, request }: Exchange,
    session: Session,
    given: Pick<ConsoleRequest, "params" | "query" | "signal">,
  ): ConsoleRequest {
    const { user, role, apiKey } = session;
    return {
      ...given,
      user,
      role,
      api: new ExchangeApi(this.options.api, { user, apiKey }),
      takeDone: () =>
        session.untold.delete(request.url ?? "") ? (given.query.get(DONE_QUERY) ?? "") : undefined,
      hiddenFields: () => hiddenFields(session),
      language: asked.language,
      t: textsOf(asked.language),
    };
  }

  private redirect({ asked, request, response }: Exchange, location: string): void {
    sendLanguage(asked, response);
    const headers = { ...SECURITY_HEADERS, location, "cache-control": "no-store" };
    const answer = { status: 303, headers, body: Buffer.alloc(0), etag: "", isFinal: false };
    sendAnswer(answer, request, response);
  }

  private sendPage({ asked, request, response, session }: Exchange, page: ConsolePage): void {
    const { network, assets } = this.options;
    const { language } = asked;
    const document = layout({
      title: page.title,
      content: page.content,
      language,
      t: textsOf(language),
      network,
      address: addressOf(asked),
      asset: (name) => assets.path(name),
      who:
        session === undefined
          ? undefined
          : { user: session.user, role: session.role, hiddenFields: () => hiddenFields(session) },
    });
    const body = Buffer.from(renderDocument(document), "utf8");
    const headers = {
      ...SECURITY_HEADERS,
      "content-type": "text/html; charset=utf-8",
      "content-language": language,
      // A page is made for one person, at one moment.
      "cache-control": "no-store",
    };
    sendLanguage(asked, response);
    const status = page.status ?? 200;
    sendAnswer({ status, headers, body, etag: "", isFinal: false }, request, response);
  }

  /** Never throws: one request must not end the process. */
  private refuse(error: unknown, exchange: Exchange, form?: FormFields): void {
    const { request, response, asked } = exchange;
    try {
      const { log } = this.options;
      let { session } = exchange;
      if (errorCode(error) === "NOT_LOGGED_IN" && session !== undefined) {
        // The session's key opens nothing any more: the user is removed, or has another one.
        this.sessions.endAllWith(session.apiKey);
        session = undefined;
      }
      const fault = faultPage(error, textsOf(asked.language), {
        role: exchange.session?.role,
        form,
        formPath: formPath(request),
      });
      const isOurs = fault.isOurs && !response.destroyed;
      if (isOurs) log.error({ err: error, path: asked.path }, "page failed");
      else log.debug({ err: error, path: asked.path }, "page refused");
      if (response.headersSent || response.writableEnded) {
        response.destroy();
        return;
      }
      if (fault.page.status === 405) response.setHeader("allow", "GET, HEAD, POST");
      if (fault.retryAfterSeconds !== undefined) {
        response.setHeader("retry-after", String(fault.retryAfterSeconds));
      }
      discardRest(request, response);
      const shown = { ...asked, query: new URLSearchParams() };
      this.sendPage({ request, response, asked: shown, session }, fault.page);
    } catch (fault) {
      this.options.log.error({ err: fault, path: asked.path }, "page of a fault failed");
      response.destroy();
    }
  }
}
