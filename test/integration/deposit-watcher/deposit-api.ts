/** The deposit API over a watcher's bench, with a node and a Data API that say what a test says. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect } from "@jest/globals";
import supertest from "supertest";
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import type { BlockSource } from "../../../deposit-watcher/reading/block-source.js";
import { createDepositRoutes, type DepositApiParts } from "../../../deposit-watcher/api/routes.js";
import { mapDepositError } from "../../../deposit-watcher/api/api-errors.js";
import { DataApiError, NodeFault, RpcError } from "../../../rpc-client/errors.js";
import type { NodeReceipt, NodeTransactionStatus } from "../../../rpc-client/transaction-codec.js";
import { createHttpServer, type HttpServer } from "../../../runtime/http/http-server.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { silentLog } from "../../helpers/services/ledger.js";
import {
  derivation,
  type RunningWatcher,
  STRANGER,
  WatcherBench,
} from "../../helpers/services/watcher.js";

/** The API; its fields say what the node and the Data API tell of the bench's chain. */
export class DepositApi {
  /** What the API knows of addresses. */
  readonly book = new AddressBook();
  /** What the node says of transactions in no block; those in blocks it finds itself. */
  readonly statuses = new Map<string, NodeTransactionStatus>();
  readonly failed = new Set<string>();
  /** Those of the Cosmos side, which have no receipts: the journal of their block says so. */
  readonly failedCosmos = new Set<string>();
  /** Hashes that transactions have in consensus, by which the node finds them, too, but no receipt. */
  readonly consensusHashes = new Map<string, Hash32>();
  /** Transfers of tokens in the logs of transactions that succeeded. */
  readonly logged = new Map<string, NodeReceipt["transfers"]>();
  isNodeDown = false;
  isJournalPruned = false;
  isDataApiBehind = false;
  /** What the Data API refuses blocks with. */
  dataApiRefusal: DataApiError | undefined;
  /** What the node refuses receipts with. */
  receiptRefusal: RpcError | undefined;
  /** The watcher that runs. */
  running: RunningWatcher;
  readonly #server: HttpServer;

  private constructor(
    readonly bench: WatcherBench,
    /** An address of a customer. */
    readonly alice: Address,
  ) {
    this.running = bench.start();
    this.#server = this.#openServer();
  }

  static async open(): Promise<DepositApi> {
    const bench = await WatcherBench.open();
    const entry = await bench.register("alice");
    const api = new DepositApi(bench, entry.address);
    api.book.add([entry]);
    return api;
  }

  #openServer(): HttpServer {
    const { bench } = this;
    const source: BlockSource = {
      block: async (height, options) => {
        if (this.dataApiRefusal !== undefined) throw this.dataApiRefusal;
        return this.isDataApiBehind ? undefined : bench.source.block(height, options);
      },
    };
    const chain = { node: this.node(), source, watched: this.book };
    return createHttpServer({
      name: "deposit-api",
      apiSpecPath: fileURLToPath(new URL("../../../openapi/deposit.yaml", import.meta.url)),
      listen: { host: "127.0.0.1", port: 0 },
      routes: createDepositRoutes({
        database: bench.ledger.database,
        derivation,
        guard: bench.guard,
        tokens: [],
        chain,
        headHeight: () => this.running.watcher.status.headHeight,
        onRegistered: () => this.running.watcher.wakeBackfill(),
      }),
      mapError: mapDepositError,
      readiness: () => ({ ready: true }),
      log: silentLog,
      metrics: createMetrics({ processMetrics: false }),
      bodyLimitBytes: 1_024,
    });
  }

  /** The bench's node, which knows what is in blocks, and what the test says of the rest. */
  node(): DepositApiParts["chain"]["node"] {
    const { node, chain } = this.bench;
    const up = <T>(value: () => T): T => {
      if (this.isNodeDown)
        throw new NodeFault("NODE_UNREACHABLE", "no connection", { retriable: true });
      return value();
    };
    return {
      getBlockHeader: (at, options) => up(() => node.getBlockHeader(at, options)),
      blockJournal: async (hash) => {
        if (this.isJournalPruned) {
          const rpc = { rpcCode: 4444, method: "causeway_getBlockJournal" };
          throw new RpcError("pruned history unavailable", rpc);
        }
        const block = up(() => chain.blocks.find((one) => one.hash === hash));
        if (block === undefined) return undefined;
        const statusOf = (one: Hash32) =>
          this.failed.has(one) || this.failedCosmos.has(one) ? 0 : 1;
        return {
          transactions: block.transactions.map((one, index) => {
            return { ...one, index, status: statusOf(one.hash) };
          }),
        };
      },
      getBalances: (queries, options) => up(() => node.getBalances(queries, options)),
      tokenBalances: (queries, options) => up(() => node.tokenBalances(queries, options)),
      tokenCodes: (queries, options) => up(() => node.tokenCodes(queries, options)),
      transferLogs: (range, options) => up(() => node.transferLogs(range, options)),
      transactionStatus: async (hash) => {
        return up(() => {
          for (const { height, transactions } of chain.blocks) {
            const own = this.consensusHashes.get(hash) ?? hash;
            const index = transactions.findIndex((one) => one.hash === own);
            if (index >= 0) return { status: "included" as const, height, index };
          }
          return this.statuses.get(hash) ?? { status: "unknown" as const };
        });
      },
      getTransactionReceipt: async (hash) => {
        if (this.receiptRefusal !== undefined) throw this.receiptRefusal;
        const transfers = this.logged.get(hash) ?? [];
        if (!this.failed.has(hash) && !this.logged.has(hash)) return undefined;
        return {
          transactionHash: hash,
          blockHash: hash,
          height: 1,
          transactionIndex: 0,
          from: STRANGER,
          to: undefined,
          contractAddress: undefined,
          status: this.failed.has(hash) ? 0 : 1,
          gasUsed: 1n,
          effectiveGasPriceAtoken: 1n,
          transfers,
        };
      },
    };
  }

  async get(path: string) {
    const { status, body } = await supertest(this.#server.app).get(path);
    return { status, body };
  }

  async explain(hash: string) {
    const { status, body } = await this.get(`/v1/deposits/explain?txHash=${hash}`);
    expect(status).toBe(200);
    expect(body.txHash).toBe(hash);
    return body as {
      code: string;
      message: string;
      blockNumber: number | null;
      deposits: { id: string }[];
    };
  }
}

/** A hash that no transaction has. */
export const hashOf = (digit: string) => `0x${digit.repeat(64)}` as Hash32;

/** One for all tests of a file. */
export function depositApiForTests(take: (api: DepositApi) => void): void {
  let api: DepositApi | undefined;
  beforeAll(async () => {
    api = await DepositApi.open();
    take(api);
  });
  afterAll(() => api?.bench.close());
}
