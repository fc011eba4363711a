/** A console over the real APIs, a real watcher and a real database; browsers without scripts. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import {
  type ConsoleUserOptions,
  runAddConsoleUser,
  runRemoveConsoleUser,
  runResetConsoleUser,
} from "../../../cli/commands/console-users.js";
import type { LedgerCommand } from "../../../cli/ledger/ledger-tools.js";
import { createConsole, type OperatorConsole } from "../../../console/app.js";
import { consoleConfig } from "../../../console/config.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { mapDepositError } from "../../../deposit-watcher/api/api-errors.js";
import { createOperatorRoutes } from "../../../deposit-watcher/api/operator-routes.js";
import { createDepositRoutes } from "../../../deposit-watcher/api/routes.js";
import { createWebhookRoutes } from "../../../deposit-watcher/webhooks/routes.js";
import { KeyRing } from "../../../ledger/access/key-ring.js";
import { type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import { killSwitchPath } from "../../../ledger/policy/policy-paths.js";
import type { HashedPolicy } from "../../../ledger/policy/policy.js";
import { loadConfig } from "../../../runtime/config/config.js";
import { createHttpServer, type HttpServer } from "../../../runtime/http/http-server.js";
import { type Clock, systemClock } from "../../../runtime/process/clock.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { AcceptQueue } from "../../../withdrawal-worker/api/accept-queue.js";
import { mapWithdrawalError } from "../../../withdrawal-worker/api/api-errors.js";
import { ensureKillSwitchFile } from "../../../withdrawal-worker/kill-switch.js";
import { createPolicyRoutes } from "../../../withdrawal-worker/api/policy-routes.js";
import { createTreasuryRoutes } from "../../../withdrawal-worker/api/treasury-routes.js";
import { createWithdrawalRoutes } from "../../../withdrawal-worker/api/routes.js";
import { createWalletRoutes } from "../../../withdrawal-worker/api/wallet-routes.js";
import { FAKE_CHAIN_ID } from "../chains/fake-chain.js";
import { all, elements, type HtmlElement, parseHtml, textOf } from "./html.js";
import { rawRequest } from "../http/raw-request.js";
import { PERMISSIVE } from "../keys/signing.js";
import { roleUrl, silentLog } from "../services/ledger.js";
import { derivation, HOT, WatcherBench } from "../services/watcher.js";

/** The key of the home's file in these tests. */
export const FILE_KEY = "the-key-of-the-home";

/** What hashing a password costs in these tests. */
const CHEAP = { n: 16, r: 1, p: 1 };

/** A page as a browser has it. */
export interface SeenPage {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly root: HtmlElement;
  /** What stands in `main`. */
  readonly text: string;
}

/** A browser without scripts: it keeps cookies, follows redirects and sends forms. */
export class Browser {
  readonly cookies = new Map<string, string>();
  private at = "/";
  private seen: SeenPage | undefined;

  constructor(
    readonly port: number,
    private readonly extra: Readonly<Record<string, string>> = {},
    /** Address of this machine that it comes from. */
    private readonly from?: string,
  ) {}

  get page(): SeenPage {
    if (this.seen === undefined) throw new Error("no page is open");
    return this.seen;
  }

  /** Path and query of the page. */
  get address(): string {
    return this.at;
  }

  async get(target: string): Promise<SeenPage> {
    return this.follow("GET", target);
  }

  /** Fills in and sends a form of the page; `button` is one with a name. */
  async submit(action: string, values: Readonly<Record<string, string>> = {}): Promise<SeenPage> {
    const form = all(this.page.root, "form").find(
      ({ attributes }) => attributes.get("action") === action,
    );
    if (form === undefined) throw new Error(`no form for ${action} on ${this.at}`);
    const fields = new URLSearchParams(formValues(form));
    for (const [name, value] of Object.entries(values)) fields.set(name, value);
    return this.send(action, fields.toString());
  }

  /** Sends a body as a form of the page would be. */
  send(action: string, body: string, headers: Readonly<Record<string, string>> = {}) {
    return this.follow("POST", action, body, headers);
  }

  private async follow(
    method: string,
    target: string,
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<SeenPage> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const reply = await rawRequest(this.port, target, {
      method,
      body,
      from: this.from,
      headers: {
        ...(cookie === "" ? {} : { cookie }),
        ...(body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
        ...this.extra,
        ...headers,
      },
    });
    for (const line of [reply.headers["set-cookie"] ?? []].flat()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const { location } = reply.headers;
    if (reply.status === 303 && typeof location === "string") return this.follow("GET", location);
    const root = parseHtml(reply.text);
    const [main] = all(root, "main");
    if (main === undefined) throw new Error("no main");
    this.at = target;
    this.seen = { status: reply.status, headers: reply.headers, root, text: textOf(main) };
    return this.seen;
  }
}

/** What a form sends as it stands. */
export function formValues(form: HtmlElement): [string, string][] {
  return elements(form).flatMap((element): [string, string][] => {
    const name = element.attributes.get("name");
    if (name === undefined || element.name === "button") return [];
    if (element.name === "input") return [[name, element.attributes.get("value") ?? ""]];
    if (element.name === "textarea") return [[name, textOf(element)]];
    if (element.name !== "select") return [];
    const options = all(element, "option");
    const chosen = options.find(({ attributes }) => attributes.has("selected")) ?? options[0];
    return [[name, chosen?.attributes.get("value") ?? ""]];
  });
}

/** The first hidden field of a name on a browser's page. */
export function hiddenField(browser: Browser, name: string): string {
  const found = all(browser.page.root, "input").find(
    ({ attributes }) => attributes.get("name") === name,
  );
  return found?.attributes.get("value") ?? "";
}

/** Everything of one test file. */
export class ConsoleStage {
  /** The policy in force. */
  policy: HashedPolicy = PERMISSIVE;
  readonly log: string[] = [];
  private readonly printed: string[] = [];
  private readonly servers: HttpServer[] = [];

  private constructor(
    readonly bench: WatcherBench,
    readonly worker: LedgerDatabase,
    readonly home: string,
  ) {}

  console!: OperatorConsole;

  static async open() {
    const bench = await WatcherBench.open();
    const identity = { genesisHash: bench.chain.genesisHash, chainId: FAKE_CHAIN_ID };
    const { signal } = new AbortController();
    const url = roleUrl(bench.ledger.ownerUrl, "worker");
    const worker = await openLedger({ url, log: silentLog, signal, identity });
    const home = mkdtempSync(join(tmpdir(), "causeway-console-"));
    mkdirSync(join(home, "config"));
    writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: HOT }));
    await ensureKillSwitchFile(killSwitchPath(home), worker);
    const stage = new ConsoleStage(bench, worker, home);
    bench.start();
    await stage.startApis();
    stage.console = await stage.openConsole();
    return stage;
  }

  get port(): number {
    return this.console.server.port;
  }

  browser(extra: Readonly<Record<string, string>> = {}): Browser {
    return new Browser(this.port, extra);
  }

  /** Adds a user and lets it choose a password. */
  async login(name: string, role: string): Promise<Browser> {
    const password = await this.add(name, role);
    const browser = this.browser();
    await this.enter(browser, name, password);
    const chosen = `chosen by them ${role}`;
    await browser.submit("/account/password", { current: password, new: chosen, again: chosen });
    return browser;
  }

  /** Fills in the login's form. */
  async enter(browser: Browser, user: string, password: string): Promise<SeenPage> {
    await browser.get("/login");
    return browser.submit("/login", { user, password });
  }

  /** `causeway console user add`. @returns the password that it shows */
  async add(name: string, role: string): Promise<string> {
    await runAddConsoleUser(this.command(), { name, role, cost: CHEAP });
    return this.shownPassword();
  }

  /** `causeway console user reset`. */
  async reset(name: string, options: ConsoleUserOptions = {}): Promise<string> {
    await runResetConsoleUser(this.command(), { ...options, name, cost: CHEAP });
    return this.shownPassword();
  }

  /** `causeway console user remove`. */
  async remove(name: string): Promise<void> {
    await runRemoveConsoleUser(this.command(), { name });
  }

  /** Somebody at the command line, in the operator's role. */
  command(): LedgerCommand {
    return {
      home: this.home,
      portOffset: 0,
      json: true,
      env: { DATABASE_URL: roleUrl(this.bench.ledger.ownerUrl, "operator") },
      signal: new AbortController().signal,
      print: (text) => void this.printed.push(text),
    };
  }

  /** Calls the withdrawal API with the home's key. */
  async call(
    path: string,
    body: object,
    key: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Record<string, unknown>> {
    const answer = await fetch(`http://127.0.0.1:${this.servers[1]?.port ?? 0}${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: {
        authorization: `Bearer ${FILE_KEY}`,
        "content-type": "application/json",
        "idempotency-key": key,
        ...headers,
      },
    });
    return { httpStatus: answer.status, ...((await answer.json()) as Record<string, unknown>) };
  }

  /** Reads the deposit API with the home's key. */
  async read(path: string): Promise<Record<string, unknown>> {
    const answer = await fetch(`http://127.0.0.1:${this.servers[0]?.port ?? 0}${path}`, {
      headers: { authorization: `Bearer ${FILE_KEY}` },
    });
    return (await answer.json()) as Record<string, unknown>;
  }

  async close(): Promise<void> {
    for (const service of this.console.services.toReversed()) await service.stop();
    for (const server of this.servers) await server.stop();
    await this.worker.close();
    await this.bench.close();
    rmSync(this.home, { recursive: true, force: true });
  }

  private shownPassword(): string {
    return (JSON.parse(this.printed.at(-1) ?? "") as { password: string }).password;
  }

  /** A further console over the same APIs and users; who opens it stops its services. */
  async openConsole(
    env: Readonly<Record<string, string>> = {},
    clock: Clock = systemClock,
  ): Promise<OperatorConsole> {
    const { home, bench } = this;
    const [deposit = "", withdrawal = ""] = this.servers.map(
      ({ port }) => `http://127.0.0.1:${port}`,
    );
    const settings = {
      CAUSEWAY_CONSOLE_SERVER_LISTEN: "127.0.0.1:0",
      CAUSEWAY_CONSOLE_API_DEPOSIT_URL: deposit,
      CAUSEWAY_CONSOLE_API_WITHDRAWAL_URL: withdrawal,
      CAUSEWAY_CONSOLE_PARTS_NODE_URL: bench.chain.url,
      CAUSEWAY_CONSOLE_LOGIN_TRIES_PER_MINUTE: "1000",
      ...env,
    };
    const made = createConsole({
      config: loadConfig({ home, env: settings, portOffset: 0 }, consoleConfig),
      home,
      clock,
      log: silentLog,
      metrics: createMetrics({ processMetrics: false }),
      signal: new AbortController().signal,
      passwordCost: CHEAP,
    });
    await made.server.start();
    return made;
  }

  private async startApis(): Promise<void> {
    const { bench, worker, home } = this;
    const policy = { current: async () => this.policy };
    const database = bench.ledger.database;
    const common = {
      listen: { host: "127.0.0.1", port: 0 },
      readiness: () => ({ ready: true }),
      log: silentLog,
      bodyLimitBytes: 65_536,
    };
    const ring = (sql: LedgerDatabase, service: string) =>
      new KeyRing({ database: sql, fileKey: FILE_KEY, service, clock: systemClock });
    const deposit = createHttpServer({
      ...common,
      name: "deposit-api",
      apiSpecPath: resolve("openapi/deposit.yaml"),
      routes: [
        ...createDepositRoutes({
          database,
          derivation,
          guard: bench.guard,
          tokens: [],
          chain: { node: bench.node, source: bench.source, watched: new AddressBook() },
          headHeight: () => bench.chain.head,
          onRegistered: () => undefined,
        }),
        ...createWebhookRoutes({ database, allowLocal: true, onChanged: () => undefined }),
        ...createOperatorRoutes({ database, clock: systemClock }),
      ],
      access: ring(database, "deposit-api"),
      mapError: mapDepositError,
      metrics: createMetrics({ processMetrics: false }),
    });
    const withdrawal = createHttpServer({
      ...common,
      name: "withdrawal-api",
      apiSpecPath: resolve("openapi/withdrawal.yaml"),
      routes: [
        ...createWithdrawalRoutes({
          database: worker,
          accept: new AcceptQueue(worker, {
            onAccepted: () => undefined,
            minimumAtoken: 0n,
            policy,
            isStopped: () => false,
            clock: systemClock,
            signal: new AbortController().signal,
          }),
          policy,
          chainId: FAKE_CHAIN_ID,
          tokens: [],
          onCancelled: () => undefined,
        }),
        ...createWalletRoutes(worker),
        ...createTreasuryRoutes(worker),
        ...createPolicyRoutes({
          database: worker,
          policy,
          chainId: FAKE_CHAIN_ID,
          switchFile: killSwitchPath(home),
          clock: systemClock,
          log: silentLog,
        }),
      ],
      access: ring(worker, "withdrawal-api"),
      mapError: mapWithdrawalError,
      metrics: createMetrics({ processMetrics: false }),
    });
    this.servers.push(deposit, withdrawal);
    for (const server of this.servers) await server.start();
  }
}
