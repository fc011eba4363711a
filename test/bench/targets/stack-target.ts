/**
 * The whole kit, its parts under the benchmark's own control: the watcher has to be away while a
 * backlog grows. Blocks come every 100 ms, so that hundreds of them take seconds to make.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Address, parseAddress } from "../../../chain/address.js";
import type { EmbeddedPostgres } from "../../../cli/postgres/embedded-postgres.js";
import type { KitPart } from "../../../cli/supervisor/kit.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { openDatabase, type SqlDatabase } from "../../../runtime/sql/sql.js";
import { until } from "../../helpers/until.js";
import { type BenchHome, createBenchHome, startPart, startPostgres } from "./causeway-target.js";
import { closedLoop } from "../http-load.js";
import { blockNumber, transactionCount } from "../json-rpc.js";
import { type BenchProcess, familyCpuSeconds } from "../processes.js";
import { createSenders, encodeBatch, type Payment, type Sender, signNext } from "../senders.js";

/** Time between blocks where hundreds are to be made. */
export const STACK_INTERVAL_MS = 100;

/** Senders of the blocks' transactions. */
const SENDER_COUNT = 500;

/** Time for anything here that is awaited. */
const WAIT_TIMEOUT_MS = 120_000;

/** Time for a million addresses to be linked. */
const CROWD_TIMEOUT_MS = 900_000;

/** Time between two looks at the watcher's metrics. */
const METRICS_POLL_MS = 250;

/** Rows of one page of the APIs. */
const PAGE_ROWS = 1_000;

/** The command line of this build. */
const CLI_SCRIPT = fileURLToPath(new URL("../../../cli/main.js", import.meta.url));

/** One event of `/v1/events`, as far as it is read here. */
export interface StackEvent {
  readonly seq: number;
  readonly type: string;
  readonly data: { readonly blockNumber?: number };
  /** When it was written, ISO 8601. */
  readonly at: string;
}

/** Batches sent for each block that is wanted before giving up. */
const MAX_BATCHES_PER_BLOCK = 10;

/** Blocks to make. */
export interface BlocksPlan {
  readonly count: number;
  /** Transactions of each batch. */
  readonly size: number;
  readonly payment: (index: number) => Payment;
  /** Return only blocks that hold exactly one batch; else every block that is not empty. */
  readonly isExact: boolean;
}

/** A kit that runs. */
export class Stack {
  private readonly parts = new Map<KitPart, BenchProcess>();
  private turn = 0;

  private constructor(
    readonly home: BenchHome,
    private readonly postgres: EmbeddedPostgres,
    readonly senders: readonly Sender[],
    private readonly profileFolder: string | undefined,
    /** For somebody else's loop, which keeps count of its nonces itself. */
    readonly payer: Sender,
  ) {}

  /** Starts everything but the worker; the network's own time between blocks where none is given. */
  static async start(
    profileFolder: string | undefined,
    { blockIntervalMs }: { readonly blockIntervalMs?: number | undefined } = {
      blockIntervalMs: STACK_INTERVAL_MS,
    },
  ): Promise<Stack> {
    const senders = createSenders(SENDER_COUNT, "stack");
    const [payer] = createSenders(1, "payer");
    if (payer === undefined) throw new Error("no payer");
    const funded = [payer, ...senders].map(({ address }) => address);
    const home = await createBenchHome({ funded, ...(blockIntervalMs && { blockIntervalMs }) });
    const postgres = await startPostgres(home);
    const stack = new Stack(home, postgres, senders, profileFolder, payer);
    try {
      for (const part of ["node", "sidecar-online", "deposit-watcher"] as const) {
        await stack.startPart(part);
      }
      return stack;
    } catch (error) {
      await stack.stop();
      throw error;
    }
  }

  get nodeUrl(): string {
    return this.home.url("jsonRpc");
  }

  /**
   * Starts a part, with settings by variables; the time when it said that it is ready, by
   * `performance.now()`.
   */
  async startPart(part: KitPart, settings?: Readonly<Record<string, string>>): Promise<number> {
    this.parts.set(part, await startPart(this.home, part, this.profileFolder, settings));
    return performance.now();
  }

  async stopPart(part: KitPart): Promise<void> {
    await this.parts.get(part)?.stop();
    this.parts.delete(part);
  }

  /** Processor time of a part so far, seconds; 0 where it cannot be told. */
  cpuSeconds(part: KitPart): number {
    return this.parts.get(part)?.cpuSeconds() ?? 0;
  }

  /** The same of the database's server with all its processes. */
  databaseCpuSeconds(): number {
    return familyCpuSeconds(this.postgres.pid) ?? 0;
  }

  /** Types a command for this kit; rejects with what it said where it failed. */
  async causeway(...args: readonly string[]): Promise<void> {
    const { folder, portOffset } = this.home;
    const place = ["--home", folder, "--port-offset", String(portOffset)];
    await promisify(execFile)(process.execPath, [CLI_SCRIPT, ...args, ...place]);
  }

  /** The wallet that pays. */
  async hotWallet(): Promise<Address> {
    const url = `${this.home.url("withdrawalApi")}/v1/wallets`;
    const response = await fetch(url, { headers: this.authorization() });
    const { wallets } = (await response.json()) as { readonly wallets: { address: string }[] };
    return parseAddress(wallets[0]?.address ?? "");
  }

  private async withDatabase<T>(work: (database: SqlDatabase) => Promise<T>): Promise<T> {
    const database = await openDatabase({
      url: this.postgres.url,
      migrations: [],
      applicationName: "causeway-bench",
      poolSize: 2,
      log: createLogger({ component: "bench", level: "error" }),
      signal: new AbortController().signal,
    });
    try {
      return await work(database);
    } finally {
      await database.close();
    }
  }

  /** Ends everything and deletes the home. */
  async stop(): Promise<void> {
    for (const part of [...this.parts.keys()].toReversed()) await this.stopPart(part);
    await this.postgres.stop();
    this.home.remove();
  }

  /** Headers of a call to the deposit or withdrawal API. */
  authorization(): Record<string, string> {
    return { Authorization: `Bearer ${this.home.secret("api.key")}` };
  }

  /** Registers a deposit address. */
  async createAddress(customerId: string): Promise<Address> {
    const response = await fetch(`${this.home.url("depositApi")}/v1/addresses`, {
      method: "POST",
      headers: { ...this.authorization(), "Content-Type": "application/json" },
      body: JSON.stringify({ customerId }),
    });
    const { address } = (await response.json()) as { address: string };
    return parseAddress(address.toLowerCase());
  }

  /**
   * Registers many addresses that nobody pays, in one statement, and waits until the watcher has
   * linked their rows: one request for each would take longer than all that is measured.
   */
  async createCrowd(count: number): Promise<Address[]> {
    await this.withDatabase(async (database) => {
      await database.query("INSERT INTO customer (id) VALUES ('bench-crowd')");
      await database.query(
        `WITH first AS (UPDATE watch_cursor SET next_address_index = next_address_index + $1
                        RETURNING next_address_index - $1 AS index, height)
         INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
         SELECT first.index + n, '0x' || md5('crowd ' || n) || left(md5(n || ' crowd'), 8),
                'bench-crowd', first.height + 1, true
           FROM first, generate_series(0::bigint, $1::bigint - 1) AS n`,
        [count],
      );
    });
    await this.untilMetric("causeway_chain_links", count, CROWD_TIMEOUT_MS);
    const md5 = (text: string) => createHash("md5").update(text).digest("hex");
    return Array.from({ length: count }, (_, n) =>
      parseAddress(`0x${md5(`crowd ${n}`)}${md5(`${n} crowd`).slice(0, 8)}`),
    );
  }

  /** All deposits with a status. */
  async depositCount(status: string): Promise<number> {
    return (await this.pages<unknown>("depositApi", `deposits?status=${status}&`, "deposits"))
      .length;
  }

  /** All events after one. */
  events(afterSeq: number): Promise<StackEvent[]> {
    return this.pages<StackEvent>("depositApi", "events?", "events", String(afterSeq));
  }

  private async pages<T>(api: "depositApi", path: string, key: string, start = ""): Promise<T[]> {
    const rows: T[] = [];
    for (let after: string | null = start; after !== null; ) {
      const cursor: string = after === "" ? "" : `&after=${after}`;
      const url = `${this.home.url(api)}/v1/${path}limit=${PAGE_ROWS}${cursor}`;
      const response = await fetch(url, { headers: this.authorization() });
      const page = (await response.json()) as Record<string, unknown>;
      if (!response.ok) throw new Error(`${url} answered ${JSON.stringify(page)}`);
      rows.push(...(page[key] as T[]));
      after = page["next"] as string | null;
    }
    return rows;
  }

  /** Waits until the watcher has booked a block. */
  untilWatched(height: number): Promise<void> {
    return this.untilMetric("causeway_watcher_cursor_height", height, WAIT_TIMEOUT_MS);
  }

  private async untilMetric(name: string, least: number, timeoutMs: number): Promise<void> {
    const url = `${this.home.url("depositApi")}/metrics`;
    const deadlineMs = performance.now() + timeoutMs;
    const pattern = new RegExp(`^${name} (\\S+)`, "m");
    for (;;) {
      const page = await (await fetch(url)).text();
      const value = Number(pattern.exec(page)?.[1] ?? "0");
      if (value >= least) return;
      if (performance.now() > deadlineMs)
        throw new Error(`the watcher's ${name} stays at ${value}`);
      // The page costs the watcher's process some milliseconds: more often would slow it.
      await new Promise((resolve) => setTimeout(resolve, METRICS_POLL_MS));
    }
  }

  /** Makes blocks of transfers, one batch after another, and returns their heights. */
  async makeBlocks(plan: BlocksPlan): Promise<number[]> {
    const { count, size, payment } = plan;
    const found: number[] = [];
    let looked = await blockNumber(this.nodeUrl);
    for (let batch = 0; found.length < count; batch += 1) {
      if (batch > count * MAX_BATCHES_PER_BLOCK) throw new Error(`no blocks of ${size} are made`);
      const raws = Array.from({ length: size }, (_, place) =>
        signNext(this.nextSender(), payment(batch * size + place)),
      );
      await this.send(raws);
      const sent = await blockNumber(this.nodeUrl);
      // A block that was being built already may not hold the batch: the one after it does.
      await this.untilHeight(sent + (plan.isExact ? 2 : 1));
      const done = await blockNumber(this.nodeUrl);
      for (; looked < done; looked += 1) {
        const mined = await transactionCount(this.nodeUrl, looked + 1);
        if (plan.isExact ? mined === size : mined > 0) found.push(looked + 1);
      }
    }
    return found;
  }

  private async send(raws: readonly Uint8Array[]): Promise<void> {
    const batches = [encodeBatch(this.nodeUrl, raws)];
    await closedLoop({
      url: this.nodeUrl,
      connections: 1,
      next: () => batches.shift(),
      check: ({ body }) => {
        if (body.includes('"error"')) throw new Error(`the node refused: ${body.toString()}`);
      },
    });
  }

  /** Waits for a block. */
  async untilHeight(height: number): Promise<void> {
    await until(async () => (await blockNumber(this.nodeUrl)) >= height, {
      timeoutMs: WAIT_TIMEOUT_MS,
      what: `block ${height}`,
    });
  }

  private nextSender(): Sender {
    const sender = this.senders[this.turn % this.senders.length];
    if (sender === undefined) throw new Error("no senders");
    this.turn += 1;
    return sender;
  }
}
