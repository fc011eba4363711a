/**
 * One exchange on the shared chain: a ledger, keys and customers of its own, and the real processes,
 * each behind proxies of its own to node, Data API, database and queue.
 */
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { encryptKeystoreJsonSync, HDNodeWallet, Mnemonic, Wallet } from "ethers";
import { Client } from "pg";
import type { PortName } from "../../../../chain/networks.js";
import { runCauseway } from "../../kit.js";
import { freePort } from "../../ports.js";
import { createRandom, type Random } from "../../random.js";
import { createTestDatabase } from "../../services/postgres.js";
import { BlockWitness } from "../chain.js";
import { FaultExchange } from "../exchange.js";
import { LAB_TOKEN } from "../promises.js";
import { HttpProxy } from "../proxy/http-proxy.js";
import { TcpProxy } from "../proxy/tcp-proxy.js";
import type { LabChain } from "./lab-chain.js";
import { LabProcess } from "./lab-process.js";
import { OwnPostgres } from "./own-postgres.js";
import { OwnRedis, redisProgram } from "./own-redis.js";

const QUICK_TREASURY = {
  CAUSEWAY_WORKER_TREASURY_SCAN_INTERVAL_MS: "150",
  CAUSEWAY_WORKER_WORKER_REBROADCAST_INTERVAL_MS: "600",
  CAUSEWAY_WORKER_NODE_REQUEST_TIMEOUT_MS: "1000",
};

/** Where the queue lives. */
export type Backend = "postgres" | "redis";

/** What the hot wallet, and the one who pays customers, begin with. */
const FUNDS_ATOKEN = 1_000n * 10n ** 18n;

/** Units of the token that the hot wallet begins with, where it is listed. */
export const HOT_UNITS = 10n ** 12n;

/** Cheap on purpose: the tests' keys guard nothing. */
const SCRYPT = { N: 1_024, r: 8, p: 1 };

const PASSPHRASE = "lab";

/** Short waits, so that a fault of some seconds has met every one of them. */
const QUICK_WORKER = {
  CAUSEWAY_WORKER_WORKER_LEASE_MS: "1000",
  CAUSEWAY_WORKER_WORKER_SCAN_INTERVAL_MS: "200",
  CAUSEWAY_WORKER_WORKER_POLL_INTERVAL_MS: "150",
  CAUSEWAY_WORKER_WORKER_REBROADCAST_INTERVAL_MS: "600",
  CAUSEWAY_WORKER_WORKER_RETRY_DELAY_MS: "300",
  CAUSEWAY_WORKER_NODE_REQUEST_TIMEOUT_MS: "1000",
};

const QUICK_WATCHER = {
  CAUSEWAY_WATCHER_WATCHER_POLL_INTERVAL_MS: "150",
  CAUSEWAY_WATCHER_WATCHER_START_HEIGHT: "head",
  CAUSEWAY_WATCHER_NODE_REQUEST_TIMEOUT_MS: "1000",
};

/** A worker or watcher with its ways to everything else. */
export interface Member {
  readonly process: LabProcess;
  readonly url: string;
  readonly database: TcpProxy;
  /** JSON-RPC. */
  readonly node: HttpProxy;
  /** The Data API; of a watcher only. */
  readonly blocks: HttpProxy;
  /** The queue in Redis; of a worker only, and only with that backend. */
  readonly redis: TcpProxy | undefined;
}

/** How an exchange is opened. */
export interface LabExchangeOptions {
  readonly chain: LabChain;
  readonly backend: Backend;
  readonly seed: number;
  /** Further variables of the processes. */
  readonly workerEnv?: Readonly<Record<string, string>>;
  readonly watcherEnv?: Readonly<Record<string, string>>;
  /** True gives it a durable PostgreSQL of its own that can be killed. */
  readonly hasOwnPostgres?: boolean;
  /** True lists the chain's token. */
  readonly hasToken?: boolean;
  /** True gives it a treasury, which its policy allows nothing yet. */
  readonly hasTreasury?: boolean;
}

/** A running exchange with its customers. */
export class LabExchange {
  readonly random: Random;
  readonly customers: FaultExchange;
  readonly witness: BlockWitness;
  readonly home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-exchange-"));
  /** Sweeps that are mined, and of which a ledger that came back older knows nothing. */
  readonly lostSweeps = new Set<string>();
  /** Every process that was started, in order. */
  readonly members: Member[] = [];
  #worker: Member | undefined;
  #watcher: Member | undefined;
  #treasury: Member | undefined;
  redis: OwnRedis | undefined;
  postgres: OwnPostgres | undefined;
  databaseUrl = "";
  /** Blocks up to here were mined before this exchange had its first coin. */
  startHeight = 0;
  #dropDatabase: () => Promise<void> = async () => undefined;
  #watching: { readonly ending: AbortController; readonly end: Promise<void> } | undefined;
  #watchFault: unknown;

  private constructor(readonly options: LabExchangeOptions) {
    this.random = createRandom(options.seed);
    const place = {
      home: this.home,
      url: this.#url,
      key: (file: string) => this.key(file),
      token: options.hasToken === true ? options.chain.token : undefined,
    };
    this.customers = new FaultExchange(() => place, this.random);
    this.witness = new BlockWitness(this.customers.chain);
  }

  /** Opens it and gives customers coins to withdraw. */
  static async open(options: LabExchangeOptions): Promise<LabExchange> {
    const lab = new LabExchange(options);
    try {
      await lab.#prepare();
      lab.#worker = await lab.addWorker();
      lab.#watcher = await lab.addWatcher();
      if (options.hasTreasury === true) lab.#treasury = await lab.#addTreasury();
      await Promise.all(lab.members.map(({ process }) => process.untilReady()));
      lab.beginWatch();
      await lab.customers.open(["alice", "bob"]);
      return lab;
    } catch (error) {
      const said = lab.members.map(({ process }) => process.output.slice(-1_500)).join("\n");
      await lab.close();
      throw new Error(`the exchange does not open: ${String(error)}\n${said}`, { cause: error });
    }
  }

  /** The first worker. */
  get worker(): Member {
    if (this.#worker === undefined) throw new Error("no worker was started");
    return this.#worker;
  }

  /** The first watcher. */
  get watcher(): Member {
    if (this.#watcher === undefined) throw new Error("no watcher was started");
    return this.#watcher;
  }

  /** The treasury, where the exchange has one. */
  get treasury(): Member {
    if (this.#treasury === undefined) throw new Error("no treasury was started");
    return this.#treasury;
  }

  /** All but the treasury, which has no API. */
  get served(): readonly Member[] {
    return this.members.filter((member) => member !== this.#treasury);
  }

  /** Text of a file in the home's `config`. */
  key(file: string): string {
    return fs.readFileSync(path.join(this.home, "config", file), "utf8").trim();
  }

  /** Begins a worker of this exchange's wallet. */
  async addWorker(env: Readonly<Record<string, string>> = {}): Promise<Member> {
    const { chain, workerEnv } = this.options;
    const port = await freePort();
    const common = await this.#ways();
    const redis =
      this.redis === undefined
        ? undefined
        : await TcpProxy.start({ host: "127.0.0.1", port: this.redis.port });
    const member = {
      ...common,
      redis,
      url: `http://127.0.0.1:${port}`,
      process: this.#program("withdrawal-worker", {
        ...QUICK_WORKER,
        DATABASE_URL: common.database.through(this.databaseUrl),
        CAUSEWAY_WORKER_API_LISTEN: `127.0.0.1:${port}`,
        CAUSEWAY_WORKER_NODE_JSON_RPC_URL: common.node.url,
        ...(redis === undefined ? {} : { REDIS_URL: redis.through(this.redis?.url ?? "") }),
        ...workerEnv,
        ...env,
      }),
    };
    this.members.push(member);
    this.startHeight ||= await chain.chain.height();
    await member.process.begin();
    return member;
  }

  /** Begins a watcher of this exchange's ledger. */
  async addWatcher(env: Readonly<Record<string, string>> = {}): Promise<Member> {
    const { chain, watcherEnv } = this.options;
    const port = await freePort();
    const common = await this.#ways();
    const member = {
      ...common,
      redis: undefined,
      url: `http://127.0.0.1:${port}`,
      process: this.#program("deposit-watcher", {
        ...QUICK_WATCHER,
        DATABASE_URL: common.database.through(this.databaseUrl),
        CAUSEWAY_WATCHER_API_LISTEN: `127.0.0.1:${port}`,
        CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: common.node.url,
        CAUSEWAY_WATCHER_NODE_DATA_API_URL: common.blocks.url,
        CAUSEWAY_WATCHER_NODE_WEB_SOCKET_URL: chain.webSocketUrl,
        ...watcherEnv,
        ...env,
      }),
    };
    this.members.push(member);
    await member.process.begin();
    return member;
  }

  /** It has no API: its URL answers nobody. */
  async #addTreasury(): Promise<Member> {
    const common = await this.#ways();
    const member = {
      ...common,
      redis: undefined,
      url: `http://127.0.0.1:${await freePort()}`,
      process: this.#program("withdrawal-worker/treasury", {
        ...QUICK_TREASURY,
        DATABASE_URL: common.database.through(this.databaseUrl),
        CAUSEWAY_WORKER_NODE_JSON_RPC_URL: common.node.url,
      }),
    };
    this.members.push(member);
    await member.process.begin();
    return member;
  }

  /** From now on every block that the node shows is written down. */
  beginWatch(): void {
    const ending = new AbortController();
    const end = this.witness.run(ending.signal).catch((error: unknown) => {
      this.#watchFault = error;
    });
    this.#watching = { ending, end };
  }

  /** Ends that: what the node shows now is not looked at. */
  async endWatch(): Promise<void> {
    this.#watching?.ending.abort();
    await this.#watching?.end;
    this.#watching = undefined;
  }

  /** @throws where nothing was written down, or something kept the witness from it */
  assertWatched(): void {
    if (this.#watchFault !== undefined) throw this.#watchFault;
    if (this.witness.count === 0) throw new Error("no block was written down");
  }

  /** The same customers ask another worker. */
  askAt(worker: Member): void {
    this.customers.withdrawalUrl = worker.url;
  }

  /**
   * Some of everything: payments in, payouts to strangers, to own addresses, a refusal, and one that is
   * taken back; of the token as well, where it is listed.
   */
  work(rounds = 1): Promise<void> {
    const working = this.#work(rounds);
    // Whoever fails meanwhile does not wait for it: it must not fail the scenario that comes next.
    working.catch(() => undefined);
    return working;
  }

  async #work(rounds: number): Promise<void> {
    const { customers, random } = this;
    for (let round = 0; round < rounds; round += 1) {
      const kinds = ["fresh", "fresh", "own", "fresh", "refusing"] as const;
      await Promise.all([
        customers.pay(2 + random.integer(3)),
        ...kinds.map((kind) => customers.withdraw(kind)),
        customers.withdrawUnwanted(random.pick(customers.assets)),
        ...(customers.token === undefined ? [] : this.#workInToken()),
      ]);
    }
  }

  #workInToken(): Promise<void>[] {
    const { customers, random } = this;
    const kinds = ["fresh", "own"] as const;
    return [
      customers.payToken(random.pick(customers.customers)),
      ...kinds.map((kind) => customers.withdraw(kind, LAB_TOKEN)),
    ];
  }

  /** Every proxy passes everything again. */
  async heal(): Promise<void> {
    for (const { database, node, blocks, redis } of this.members) {
      node.heal();
      blocks.heal();
      await database.heal();
      await redis?.heal();
    }
  }

  /** The database's standby takes over; everybody reaches it where the former one was. */
  async failOver(): Promise<void> {
    const { postgres } = this;
    if (postgres === undefined) throw new Error("no PostgreSQL of its own");
    await postgres.failOver();
    this.databaseUrl = postgres.urlOf("causeway");
    this.leadDatabaseTo(postgres.port);
  }

  /** What the processes take for their database is this one from now on. */
  leadDatabaseTo(port: number): void {
    for (const { database } of this.members) database.redirect(port);
  }

  /** Runs a command of the kit on this exchange. */
  command(...words: readonly string[]) {
    const { chain } = this.options;
    return runCauseway(this, words, {
      DATABASE_URL: this.databaseUrl,
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: chain.nodeUrl,
      CAUSEWAY_WATCHER_NODE_DATA_API_URL: chain.dataUrl,
      CAUSEWAY_WORKER_NODE_JSON_RPC_URL: chain.nodeUrl,
      CAUSEWAY_WATCHER_WATCHER_POLL_INTERVAL_MS: "150",
    });
  }

  /** Asks the database itself, past every proxy. */
  async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const client = new Client({ connectionString: this.databaseUrl });
    await client.connect();
    try {
      return (await client.query<Row>(text, [...values])).rows;
    } finally {
      await client.end();
    }
  }

  /** The body of `/ready`, with its status before it. */
  async readiness(member: Member): Promise<string> {
    try {
      const answer = await fetch(`${member.url}/ready`);
      return `${answer.status} ${await answer.text()}`;
    } catch {
      return "down";
    }
  }

  async close(): Promise<void> {
    // Not awaited: of a node that is gone it waits for an answer.
    this.#watching?.ending.abort();
    for (const { process } of this.members) await process.stop();
    for (const { database, node, blocks, redis } of this.members) {
      await Promise.all([database.close(), node.close(), blocks.close(), redis?.close()]);
    }
    await this.redis?.remove();
    if (this.postgres === undefined) await this.#dropDatabase();
    await this.postgres?.remove();
    fs.rmSync(this.home, { recursive: true, force: true });
  }

  readonly #url = (name: PortName): string => {
    if (name === "depositApi") return this.watcher.url;
    if (name === "withdrawalApi") return this.worker.url;
    return this.options.chain.nodeUrl;
  };

  async #prepare(): Promise<void> {
    const { chain, backend, hasOwnPostgres, hasToken } = this.options;
    const [hot, payer] = this.#writeHome();
    const redis = redisProgram();
    if (backend === "redis") {
      if (redis === undefined) throw new Error("there is no redis-server on this machine");
      this.redis = await OwnRedis.start(redis);
    }
    if (hasOwnPostgres === true) {
      this.postgres = await OwnPostgres.start();
      this.databaseUrl = this.postgres.urlOf("causeway");
    } else {
      const { url, drop } = await createTestDatabase();
      this.databaseUrl = url;
      this.#dropDatabase = drop;
    }
    await chain.fund([hot, payer], FUNDS_ATOKEN);
    if (hasToken === true) await chain.mint(hot, HOT_UNITS);
  }

  /** Keys of this exchange alone. @returns addresses of the hot wallet and of who pays customers */
  #writeHome(): readonly [string, string] {
    const { hasToken, hasTreasury, chain } = this.options;
    const folder = path.join(this.home, "config");
    fs.mkdirSync(folder);
    const key = () => new Wallet(`0x${Buffer.from(this.random.bytes(32)).toString("hex")}`);
    const [hot, payer] = [key(), key()];
    const phrase = Mnemonic.fromEntropy(this.random.bytes(16));
    const deposits = HDNodeWallet.fromMnemonic(phrase, "m/44'/60'/0'/0");
    const { address, privateKey } = hot;
    const keystore = encryptKeystoreJsonSync({ address, privateKey }, PASSPHRASE, {
      scrypt: SCRYPT,
    });
    const files = {
      "hot-wallet.json": keystore,
      "hot-wallet.passphrase": PASSPHRASE,
      "deposit.xpub": deposits.neuter().extendedKey,
      "api.key": randomUUID(),
      "faucet.key": payer.privateKey,
      ...(hasToken === true && { "tokens.json": chain.tokenFile ?? "[]" }),
      ...(hasTreasury === true && { "deposit.seed": phrase.phrase }),
    };
    for (const [name, text] of Object.entries(files)) {
      fs.writeFileSync(path.join(folder, name), `${text}\n`, { mode: 0o600 });
    }
    return [hot.address, payer.address];
  }

  async #ways() {
    const { chain } = this.options;
    const { hostname: host, port } = new URL(this.databaseUrl);
    // A generator each: what one process asks must not change what befalls another.
    const own = () => createRandom(this.random.integer(2 ** 31));
    return {
      database: await TcpProxy.start({ host, port: Number(port) }),
      node: await HttpProxy.start(chain.nodeUrl, own()),
      blocks: await HttpProxy.start(chain.dataUrl, own()),
    };
  }

  #program(name: string, env: Readonly<Record<string, string>>): LabProcess {
    const args = ["--home", this.home];
    return new LabProcess({ name, script: `${name}/main.js`, args, env });
  }
}
