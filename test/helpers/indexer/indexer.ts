/** An indexer's process over a real chain in this process and a database of its own, in its own role. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { getCreateAddress, type Interface, Wallet } from "ethers";
import { Client } from "pg";
import { grantIndexerRole, indexerRole } from "../../../ledger/roles.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { openDatabase } from "../../../runtime/sql/sql.js";
import { testGenesis } from "../chains/execution-chain.js";
import { ServedChain } from "../chains/served-chain.js";
import { createTestDatabase, type TestDatabase } from "../services/postgres.js";
import { compiledFolder } from "../services/services.js";
import { PATIENCE_MS, until } from "../until.js";

/** Whatever JSON came. */
export type Json = ReturnType<typeof JSON.parse>;

/** A call of a contract, or a payment. */
export interface Message {
  readonly to?: string;
  readonly data?: string;
  readonly value?: bigint;
  readonly gasLimit?: bigint;
}

/** Gas of a message that names none. */
const DEFAULT_GAS = 3_900_000n;

/** The message of a contract's method. */
export function call(to: string, abi: Interface, method: string, ...values: unknown[]): Message {
  return { to, data: abi.encodeFunctionData(method, values) };
}

/** A database of its own, and its URL as an indexer opens it, in its own role. */
export async function createIndexerDatabase(): Promise<{
  readonly database: TestDatabase;
  readonly url: string;
}> {
  const database = await createTestDatabase();
  const url = new URL(database.url);
  const owner = await openDatabase({
    url: database.url,
    migrations: [],
    applicationName: "test",
    poolSize: 2,
    log: createLogger({ component: "test", level: "silent" }),
    signal: new AbortController().signal,
  });
  await grantIndexerRole(owner, "in dex");
  await owner.close();
  url.username = indexerRole(url.pathname.slice(1));
  url.password = encodeURIComponent("in dex");
  return { database, url: url.href };
}

/** Chain, database and indexers of one test file. */
export class IndexerStage {
  readonly faucet = new Wallet(`0x${"11".repeat(32)}`);
  readonly home = mkdtempSync(path.join(tmpdir(), "causeway-indexer-"));
  /** Of the indexer that answers. */
  url = "";
  /** Newest block. */
  height = 0;
  private nonce = 0;
  private readonly children = new Set<ChildProcess>();

  private constructor(
    private served: ServedChain,
    private readonly database: TestDatabase,
    /** As the indexer opens it. */
    readonly databaseUrl: string,
    /** As the owner. */
    readonly sql: Client,
    private readonly script: string,
  ) {}

  /** @param genesisOf the chain's, of the one that tests usually have */
  static async open(
    genesisOf: (usual: Genesis) => Genesis = (usual) => usual,
  ): Promise<IndexerStage> {
    const faucet = new Wallet(`0x${"11".repeat(32)}`);
    const [{ database, url }, chain, folder] = await Promise.all([
      createIndexerDatabase(),
      ServedChain.open(genesisOf(testGenesis(faucet.address))),
      compiledFolder(),
    ]);
    const sql = new Client({ connectionString: database.url });
    await sql.connect();
    const script = path.join(folder, "indexer", "main.js");
    return new IndexerStage(chain, database, url, sql, script);
  }

  get chain(): ServedChain {
    return this.served;
  }

  /** The node ends; `work` is done without it, and it is there again at the same place. */
  async withoutNode(work: () => Promise<void>): Promise<void> {
    const { port, chain } = this.served;
    const { genesis, folder } = chain;
    await this.served.close({ keep: true });
    try {
      await work();
    } finally {
      this.served = await ServedChain.open(genesis, { folder, port });
    }
  }

  /** The database ends every session and takes no new one while `work` is done. */
  async withoutDatabase(work: () => Promise<void>): Promise<void> {
    const allow = async (isAllowed: boolean) => {
      await this.sql.query(
        "UPDATE pg_database SET datallowconn = $1 WHERE datname = current_database()",
        [isAllowed],
      );
    };
    await allow(false);
    try {
      await this.sql.query(
        `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
      await work();
    } finally {
      await allow(true);
    }
  }

  /** Mines these of the faucet's as one block; the receipts' statuses. */
  async mine(...messages: readonly Message[]): Promise<number[]> {
    return this.mineWith([], ...messages);
  }

  /** The same with Cosmos transactions behind them. */
  async mineWith(
    cosmos: readonly Uint8Array[],
    ...messages: readonly Message[]
  ): Promise<number[]> {
    const raws: string[] = [];
    for (const message of messages) {
      const common = { type: 0, chainId: 6940, gasPrice: 25_000_000n, gasLimit: DEFAULT_GAS };
      raws.push(await this.faucet.signTransaction({ ...common, nonce: this.nonce++, ...message }));
    }
    const { committed } = await this.served.mine(raws, cosmos);
    this.height = committed.block.header.height;
    return committed.receipts.map(({ status }) => status);
  }

  /** Mines a contract; its address. */
  async deploy(bytecode: string, gasLimit = DEFAULT_GAS): Promise<string> {
    const address = getCreateAddress({ from: this.faucet.address, nonce: this.nonce });
    const [status] = await this.mine({ data: bytecode, gasLimit });
    if (status !== 1) throw new Error("the contract was not made");
    return address.toLowerCase();
  }

  /** A process of the indexer; `exit` resolves with its code or signal. */
  launch(
    port: number,
    { failpoint, nodeUrl = this.served.url }: { failpoint?: string; nodeUrl?: string } = {},
  ): { child: ChildProcess; exit: Promise<unknown> } {
    const child = spawn(process.execPath, [this.script, "--home", this.home], {
      stdio: ["ignore", "inherit", "inherit"],
      env: {
        PATH: process.env["PATH"],
        DATABASE_URL: this.databaseUrl,
        CAUSEWAY_LOG_LEVEL: "error",
        CAUSEWAY_INDEXER_API_LISTEN: `127.0.0.1:${port}`,
        CAUSEWAY_INDEXER_NODE_JSON_RPC_URL: nodeUrl,
        CAUSEWAY_INDEXER_NODE_WEB_SOCKET_URL: "ws://127.0.0.1:1",
        CAUSEWAY_INDEXER_INDEXER_POLL_INTERVAL_MS: "50",
        ...(failpoint === undefined ? {} : { CAUSEWAY_FAILPOINT: failpoint }),
      },
    });
    this.children.add(child);
    const exit = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.children.delete(child);
        resolve(signal ?? code);
      });
    });
    return { child, exit };
  }

  /** What a command over the index is given. */
  commandOptions(nodeUrl = this.served.url) {
    const { databaseUrl } = this;
    const { signal } = new AbortController();
    const bounds = { timeoutMs: PATIENCE_MS, batchBytes: 2 ** 20, signal };
    return { databaseUrl, nodeUrl, evmChainId: 6940n, ...bounds };
  }

  /** A body below `/v1`; throws unless it is answered 200. */
  async get(pathname: string, base = this.url): Promise<Json> {
    const reply = await fetch(`${base}/v1${pathname}`);
    const body: Json = await reply.json();
    if (reply.status !== 200) {
      throw new Error(`${pathname}: ${reply.status} ${JSON.stringify(body)}`);
    }
    return body;
  }

  /** What is answered to any request. */
  async refusal(pathname: string) {
    const reply = await fetch(`${this.url}/v1${pathname}`);
    const body: Json = await reply.json();
    const type = reply.headers.get("content-type");
    return { status: reply.status, type, code: body.code, body };
  }

  /** All items of a list, page by page. */
  async all(pathname: string, limit = 7): Promise<Json[]> {
    const items: Json[] = [];
    const bare = pathname.split("?")[0];
    let next = `${pathname}${pathname.includes("?") ? "&" : "?"}limit=${limit}`;
    for (;;) {
      const page = await this.get(next);
      items.push(...page.items);
      if (page.next === null) return items;
      next = `${bare}?limit=${limit}&cursor=${page.next}`;
    }
  }

  /** Everything up to the head is there, and nothing is left to check. */
  indexed(): Promise<void> {
    return until(
      async () => {
        const answer = await this.get("/status").catch(() => undefined);
        const isThere = answer?.meta.indexedHeight === this.height;
        return isThere && answer.status.unverifiedBalances === 0;
      },
      { timeoutMs: 60_000, what: `block ${this.height} is indexed and checked` },
    );
  }

  /** Stops the processes as their supervisor does, and waits for their end. */
  async stopIndexers(): Promise<void> {
    for (const child of this.children) child.kill("SIGTERM");
    await until(() => this.children.size === 0, { timeoutMs: 30_000 });
  }

  async close(): Promise<void> {
    for (const child of this.children) child.kill("SIGKILL");
    await this.sql.end();
    await this.served.close();
    await this.database.drop();
    rmSync(this.home, { recursive: true, force: true });
  }
}
