/**
 * What support and auditors ask about deposits, over a real ledger: evidence holds books and chain
 * side by side and says when they differ; every way in which a transaction makes no credit has a code.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import supertest from "supertest";
import { type Address, parseAddress, toChecksumAddress } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import type { BlockSource } from "../../../deposit-watcher/reading/block-source.js";
import { explainTransaction } from "../../../deposit-watcher/api/explanation.js";
import { createDepositRoutes, type DepositApiParts } from "../../../deposit-watcher/api/routes.js";
import { mapDepositError } from "../../../deposit-watcher/api/api-errors.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { resumeCrediting } from "../../../ledger/incidents.js";
import { DataApiError, NodeFault, RpcError } from "../../../rpc-client/errors.js";
import type { NodeReceipt, NodeTransactionStatus } from "../../../rpc-client/transaction-codec.js";
import { createHttpServer, type HttpServer } from "../../../runtime/http/http-server.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { change } from "../../helpers/chains/fake-chain.js";
import { silentLog, recordIncident } from "../../helpers/services/ledger.js";
import {
  derivation,
  HOT,
  type RunningWatcher,
  STRANGER,
  WatcherBench,
} from "../../helpers/services/watcher.js";

let bench: WatcherBench;
let running: RunningWatcher;
let server: HttpServer;
let alice: Address;
/** What the API knows of addresses. */
const book = new AddressBook();
/** What the node says of transactions in no block; those in blocks it finds itself. */
const statuses = new Map<string, NodeTransactionStatus>();
const failed = new Set<string>();
/** Those of the Cosmos side, which have no receipts: the journal of their block says so. */
const failedCosmos = new Set<string>();
/** Hashes that transactions have in consensus, by which the node finds them, too, but no receipt. */
const consensusHashes = new Map<string, Hash32>();
/** Transfers of tokens in the logs of transactions that succeeded. */
const logged = new Map<string, NodeReceipt["transfers"]>();
let isNodeDown = false;
let isJournalPruned = false;
let isDataApiBehind = false;
/** What the Data API refuses blocks with. */
let dataApiRefusal: DataApiError | undefined;
/** What the node refuses receipts with. */
let receiptRefusal: RpcError | undefined;

beforeAll(async () => {
  bench = await WatcherBench.open();
  const entry = await bench.register("alice");
  alice = entry.address;
  running = bench.start();
  book.add([entry]);
  const source: BlockSource = {
    async block(height, options) {
      if (dataApiRefusal !== undefined) throw dataApiRefusal;
      return isDataApiBehind ? undefined : bench.source.block(height, options);
    },
  };
  const chain = { node: nodeOf(bench), source, watched: book };
  server = createHttpServer({
    name: "deposit-api",
    apiSpecPath: fileURLToPath(new URL("../../../openapi/deposit.yaml", import.meta.url)),
    listen: { host: "127.0.0.1", port: 0 },
    routes: createDepositRoutes({
      database: bench.ledger.database,
      derivation,
      guard: bench.guard,
      tokens: [],
      chain,
      headHeight: () => running.watcher.status.headHeight,
      onRegistered: () => running.watcher.wakeBackfill(),
    }),
    mapError: mapDepositError,
    readiness: () => ({ ready: true }),
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 1_024,
  });
});
afterAll(() => bench.close());

/** The bench's node, which knows what is in blocks, and what the test says of the rest. */
function nodeOf({ node, chain }: WatcherBench): DepositApiParts["chain"]["node"] {
  const up = <T>(value: () => T): T => {
    if (isNodeDown) throw new NodeFault("NODE_UNREACHABLE", "no connection", { retriable: true });
    return value();
  };
  return {
    getBlockHeader: (at, options) => up(() => node.getBlockHeader(at, options)),
    async blockJournal(hash) {
      if (isJournalPruned) {
        const rpc = { rpcCode: 4444, method: "causeway_getBlockJournal" };
        throw new RpcError("pruned history unavailable", rpc);
      }
      const block = up(() => chain.blocks.find((one) => one.hash === hash));
      if (block === undefined) return undefined;
      const statusOf = (one: Hash32) => (failed.has(one) || failedCosmos.has(one) ? 0 : 1);
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
    async transactionStatus(hash) {
      return up(() => {
        for (const { height, transactions } of chain.blocks) {
          const own = consensusHashes.get(hash) ?? hash;
          const index = transactions.findIndex((one) => one.hash === own);
          if (index >= 0) return { status: "included" as const, height, index };
        }
        return statuses.get(hash) ?? { status: "unknown" as const };
      });
    },
    async getTransactionReceipt(hash) {
      if (receiptRefusal !== undefined) throw receiptRefusal;
      const transfers = logged.get(hash) ?? [];
      if (!failed.has(hash) && !logged.has(hash)) return undefined;
      return {
        transactionHash: hash,
        blockHash: hash,
        height: 1,
        transactionIndex: 0,
        from: STRANGER,
        to: undefined,
        contractAddress: undefined,
        status: failed.has(hash) ? 0 : 1,
        gasUsed: 1n,
        effectiveGasPriceAtoken: 1n,
        transfers,
      };
    },
  };
}

const get = async (path: string) => {
  const { status, body } = await supertest(server.app).get(path);
  return { status, body };
};
const explain = async (hash: string) => {
  const { status, body } = await get(`/v1/deposits/explain?txHash=${hash}`);
  expect(status).toBe(200);
  expect(body.txHash).toBe(hash);
  return body as {
    code: string;
    message: string;
    blockNumber: number | null;
    deposits: { id: string }[];
  };
};
const hashOf = (digit: string) => `0x${digit.repeat(64)}` as Hash32;

describe("GET /v1/deposits/{id}/evidence", () => {
  it("shows the operation, the balances around it and the entry in the books", async () => {
    const payment = bench.chain.payment(STRANGER, alice, 500n);
    const { height, hash } = bench.chain.mine([payment]);
    bench.chain.mine();
    await bench.caughtUp();
    const list = await get("/v1/deposits");
    const id = list.body.deposits.at(-1).id as string;
    const { body: found } = await get(`/v1/deposits/${id}/evidence`);
    expect(found.deposit).toMatchObject({ id, status: "credited", amountAtoken: "500" });
    expect(found.chain).toMatchObject({
      blockHash: hash,
      operation: {
        type: "CALL",
        status: "SUCCESS",
        address: toChecksumAddress(alice),
        amountAtoken: "500",
      },
      balanceBeforeAtoken: "0",
      balanceAfterAtoken: "500",
      operationsAtoken: "500",
      agrees: true,
    });
    expect([found.chainFault, found.differences]).toEqual([null, []]);
    expect(found.journal).toMatchObject([
      {
        kind: "deposit.credit",
        key: `deposit:${id}`,
        effectiveHeight: height,
        postings: [
          {
            debit: "asset:deposit_addresses",
            credit: "liability:customer:alice",
            amountAtoken: "500",
          },
        ],
      },
    ]);
    expect(found.balanceProof).toContain(`--height ${height}`);
  });

  it("says that the chain has another block now, and that a node does not answer", async () => {
    const { body: before } = await get("/v1/deposits");
    const { id, blockNumber } = before.deposits.at(-1);
    const block = bench.chain.blocks[blockNumber];
    if (block === undefined) throw new Error("no block");
    const changed = { ...block, hash: hashOf("e") };
    bench.chain.blocks[blockNumber] = changed;
    const differing = await get(`/v1/deposits/${id}/evidence`);
    bench.chain.blocks[blockNumber] = block;
    expect(differing.body.chain).toMatchObject({ blockHash: changed.hash, agrees: false });
    expect(differing.body.differences).toEqual([
      {
        code: "BLOCK_REPLACED",
        message: `The books have block ${blockNumber} as ${block.hash}, and the node as ${changed.hash}.`,
        nextStep: expect.stringContaining("causeway recover"),
      },
    ]);
    isNodeDown = true;
    const alone = await get(`/v1/deposits/${id}/evidence`);
    isNodeDown = false;
    expect(alone.status).toBe(200);
    expect(alone.body).toMatchObject({ chain: null, chainFault: { code: "NODE_UNREACHABLE" } });
    expect(alone.body.differences).toMatchObject([{ code: "NOT_TOLD" }]);
    expect(alone.body.journal).toHaveLength(1);
    isDataApiBehind = true;
    const without = await get(`/v1/deposits/${id}/evidence`);
    isDataApiBehind = false;
    expect(without.body).toMatchObject({ chain: null, chainFault: { code: "NOT_READY" } });
    expect(without.body.differences).toMatchObject([{ code: "BEHIND" }]);
    expect((await get("/v1/deposits/9-9-9/evidence")).status).toBe(404);
  });
});

describe("evidence against the books", () => {
  /** Credited once; what the chain says of it is spoilt afterwards. */
  async function credited(amountAtoken: bigint) {
    const payment = bench.chain.payment(STRANGER, alice, amountAtoken);
    const block = bench.chain.mine([payment]);
    bench.chain.mine();
    await bench.caughtUp();
    const list = await get("/v1/deposits");
    return { block, payment, id: list.body.deposits.at(-1).id as string };
  }
  /** No coins came with the block, whatever the books say. */
  const nothingCame = (height: number, amountAtoken: bigint) =>
    bench.chain.balanceLies.set(`${alice}@${height}`, -amountAtoken);
  const agreesOf = async (id: string) => {
    const { body } = await get(`/v1/deposits/${id}/evidence`);
    return body.chain.agrees as boolean;
  };
  const differencesOf = async (id: string) => {
    const { status, body } = await get(`/v1/deposits/${id}/evidence`);
    expect(status).toBe(200);
    const found = body.differences as { code: string; message: string; nextStep: string }[];
    for (const { message, nextStep } of found) expect([message, nextStep]).not.toContain("");
    return found.map(({ code }) => code);
  };

  it("does not agree where the operation of the deposit failed", async () => {
    const { block, payment, id } = await credited(500n);
    expect(await agreesOf(id)).toBe(true);
    const changes = payment.changes.map((one) => ({ ...one, effective: false }));
    bench.chain.dataApiBlocks.set(block.height, {
      ...block,
      transactions: [{ ...payment, changes }],
    });
    nothingCame(block.height, 500n);
    expect(await agreesOf(id)).toBe(false);
    expect(await differencesOf(id)).toEqual(["OPERATION_FAILED"]);
  });

  it("does not agree where the operation of the deposit moved another asset", async () => {
    const { block, id } = await credited(600n);
    bench.chain.dataApiTokens.set(block.height, alice);
    nothingCame(block.height, 600n);
    expect(await agreesOf(id)).toBe(false);
    expect(await differencesOf(id)).toEqual(["OPERATION_GONE"]);
  });

  it("names other amounts, other balances, what is gone and a Data API of another chain", async () => {
    const { block, payment, id } = await credited(700n);
    const { dataApiBlocks, balanceLies } = bench.chain;
    const changes = payment.changes.map((one) => ({ ...one, amountAtoken: one.amountAtoken + 1n }));
    dataApiBlocks.set(block.height, { ...block, transactions: [{ ...payment, changes }] });
    expect(await differencesOf(id)).toEqual(["AMOUNT_DIFFERS", "BALANCE_DIFFERS"]);
    dataApiBlocks.set(block.height, { ...block, transactions: [] });
    nothingCame(block.height, 700n);
    expect(await differencesOf(id)).toEqual(["OPERATION_GONE"]);
    dataApiBlocks.delete(block.height);
    expect(await differencesOf(id)).toEqual(["BALANCE_DIFFERS"]);
    balanceLies.delete(`${alice}@${block.height}`);
    dataApiBlocks.set(block.height, { ...block, hash: hashOf("d") });
    expect(await differencesOf(id)).toEqual(["SOURCES_DISAGREE"]);
    dataApiBlocks.delete(block.height);
    expect(await differencesOf(id)).toEqual([]);
  });

  it("contradicts nothing where the node has deleted the state, or lacks the block", async () => {
    const { block, id } = await credited(800n);
    const missing = (wanted: string, answer: ReturnType<typeof bench.chain.override>) => {
      bench.chain.override = (method) => (method === wanted ? answer : undefined);
      return differencesOf(id).finally(() => (bench.chain.override = () => undefined));
    };
    const pruned = { code: 4444, message: "pruned history unavailable" };
    expect(await missing("eth_getBalance", { error: pruned })).toEqual(["STATE_DELETED"]);
    const unknown = { code: -32000, message: "header not found" };
    expect(await missing("eth_getBalance", { error: unknown })).toEqual(["BEHIND"]);
    expect(await missing("eth_getBlockByNumber", { result: null })).toEqual(["BEHIND"]);
    const details = { rosettaCode: 204 };
    dataApiRefusal = new DataApiError("DATA_API_ERROR", "/block: block pruned", { details });
    expect(await differencesOf(id)).toEqual(["STATE_DELETED"]);
    dataApiRefusal = undefined;
    expect([block.height > 0, await differencesOf(id)]).toEqual([true, []]);
  });
});

describe("GET /v1/deposits/explain", () => {
  it("names the state of deposits", async () => {
    const payment = bench.chain.payment(STRANGER, alice, 7n);
    bench.chain.mine([payment]);
    await bench.caughtUp();
    const waiting = await explain(payment.hash);
    expect(waiting).toMatchObject({ code: "CONFIRMING" });
    expect(waiting.deposits).toHaveLength(1);
    bench.chain.mine();
    await bench.caughtUp();
    expect(await explain(payment.hash)).toMatchObject({ code: "CREDITED" });
    const reward = bench.chain.mine([], [change({ reason: "MINT", to: alice, amountAtoken: 3n })]);
    await bench.caughtUp();
    expect(await explain(reward.hash)).toMatchObject({ code: "SUSPENSE" });
  });

  it("says so where a transaction made more deposits than are listed", async () => {
    const { chain } = bench;
    const paying = (count: number) => {
      const changes = Array.from({ length: count }, () => ({ to: alice, amountAtoken: 1n }));
      return chain.transaction(...changes.map((one) => change({ ...one, from: STRANGER })));
    };
    const [full, fuller] = [paying(100), paying(101)];
    chain.mine([full, fuller]);
    chain.mine();
    await bench.caughtUp();
    const message = "Its deposits are credited.";
    const all = await explain(full.hash);
    expect([all.code, all.message, all.deposits.length]).toEqual(["CREDITED", message, 100]);
    const some = await explain(fuller.hash);
    expect([some.code, some.deposits.length]).toEqual(["CREDITED", 100]);
    expect(some.message).toBe(
      `${message} It made more deposits than the 100 that are listed here.`,
    );
  });

  it("says the same by the hash that consensus has of a transaction", async () => {
    const { chain } = bench;
    const payment = chain.payment(STRANGER, alice, 7n);
    const empty = chain.payment(STRANGER, alice, 0n);
    const reverted = chain.payment(STRANGER, HOT, 1n);
    failed.add(reverted.hash);
    const { height: blockNumber } = chain.mine([payment, empty, reverted]);
    chain.mine();
    await bench.caughtUp();
    consensusHashes.set(hashOf("a"), payment.hash);
    consensusHashes.set(hashOf("b"), empty.hash);
    consensusHashes.set(hashOf("c"), reverted.hash);
    const { deposits } = await explain(payment.hash);
    expect(deposits).toHaveLength(1);
    expect(await explain(hashOf("a"))).toMatchObject({ code: "CREDITED", blockNumber, deposits });
    expect(await explain(hashOf("b"))).toMatchObject({ code: "NOTHING_ARRIVED", blockNumber });
    expect(await explain(hashOf("c"))).toMatchObject({ code: "FAILED", blockNumber });
    // The journal of an old block is deleted; the block itself has the transaction's own hash.
    isJournalPruned = true;
    const pruned = await Promise.all(["a", "b", "c"].map((digit) => explain(hashOf(digit))));
    isJournalPruned = false;
    expect(pruned.map(({ code }) => code)).toEqual(["CREDITED", "NOTHING_ARRIVED", "FAILED"]);
    expect(pruned[0]).toMatchObject({ blockNumber, deposits });
  });

  it("says of coins from before an address was registered that they are being booked", async () => {
    const payment = bench.chain.payment(STRANGER, derivation.addressAt(1), 7n);
    bench.chain.mine([payment]);
    bench.chain.mine();
    await bench.caughtUp();
    await running.stop();
    const late = await bench.register("bob");
    book.add([late]);
    const waiting = await explain(payment.hash);
    expect(waiting.code).toBe("NOT_READ_YET");
    expect(waiting.message).toContain("before the address was registered");
    running = bench.start();
    await bench.backfilled();
    expect(await explain(payment.hash)).toMatchObject({ code: "SUSPENSE" });
  });

  it("never says that nothing arrived where coins did", async () => {
    const payment = bench.chain.payment(STRANGER, derivation.addressAt(7), 7n);
    bench.chain.mine([payment]);
    await bench.caughtUp();
    // An address that only this book knows: the ledger has no deposit of it.
    const customerId = parseCustomerId("carol");
    const address = derivation.addressAt(7);
    const others = new AddressBook();
    others.add([{ index: 7, address, customerId, fromHeight: 0 }]);
    const { source, ledger } = bench;
    const parts = { database: ledger.database, node: nodeOf(bench), source, watched: others };
    const { signal } = new AbortController();
    const { code, message } = await explainTransaction(parts, payment.hash, { signal });
    expect(code).toBe("NOT_READ_YET");
    expect(message).toContain("brought coins");
  });

  it("names what keeps a transaction from a block", async () => {
    statuses.set(hashOf("1"), { status: "pending" });
    statuses.set(hashOf("2"), { status: "queued", missingNonce: 41n });
    statuses.set(hashOf("3"), { status: "replaced", by: hashOf("4") });
    statuses.set(hashOf("5"), { status: "dropped", reason: "underpriced" });
    expect(await explain(hashOf("1"))).toMatchObject({ code: "PENDING", blockNumber: null });
    expect((await explain(hashOf("2"))).message).toContain("41");
    const reason = "insufficient funds for gas * price + value";
    statuses.set(hashOf("7"), { status: "queued", missingNonce: 42n, reason });
    const { code, message } = await explain(hashOf("7"));
    expect([code, message]).toEqual([
      "QUEUED",
      `It is the sender's next one, and no block can have it yet: ${reason}.`,
    ]);
    expect((await explain(hashOf("3"))).message).toContain(hashOf("4"));
    expect((await explain(hashOf("5"))).message).toContain("underpriced");
    expect(await explain(hashOf("6"))).toMatchObject({ code: "UNKNOWN_TRANSACTION", deposits: [] });
  });

  it("names why a transaction of a block made no deposit", async () => {
    const { chain } = bench;
    const elsewhere = chain.payment(STRANGER, HOT, 5n);
    const empty = chain.payment(STRANGER, alice, 0n);
    const itself = chain.transaction(change({ from: alice, to: alice, amountAtoken: 2n }));
    const undone = chain.transaction(
      change({ from: STRANGER, to: alice, amountAtoken: 2n, effective: false }),
    );
    const reverted = chain.payment(STRANGER, HOT, 1n);
    failed.add(reverted.hash);
    // A message that failed leaves its fee, and nothing at the address that it was for.
    const ofCosmos = chain.payment(STRANGER, HOT, 1n);
    failedCosmos.add(ofCosmos.hash);
    const { height } = chain.mine([elsewhere, empty, itself, undone, reverted, ofCosmos]);
    await bench.caughtUp();
    expect(await explain(elsewhere.hash)).toMatchObject({ code: "NOT_OURS", blockNumber: height });
    for (const { hash } of [empty, itself, undone]) {
      expect([hash, (await explain(hash)).code]).toEqual([hash, "NOTHING_ARRIVED"]);
    }
    expect(await explain(reverted.hash)).toMatchObject({ code: "FAILED" });
    expect(await explain(ofCosmos.hash)).toMatchObject({ code: "FAILED", blockNumber: height });
    // A node keeps blocks for longer than their journals: the rest is told without.
    isJournalPruned = true;
    expect(await explain(ofCosmos.hash)).toMatchObject({ code: "NOT_OURS", blockNumber: height });
    expect(await explain(empty.hash)).toMatchObject({ code: "NOTHING_ARRIVED" });
    isJournalPruned = false;
    // Who does not have the block does not say that it is nobody's of ours.
    isDataApiBehind = true;
    expect(await explain(empty.hash)).toMatchObject({ code: "NOT_READ_YET", blockNumber: height });
    isDataApiBehind = false;
  });

  it("names a token that nobody listed also where its block had too many to record each", async () => {
    const { chain } = bench;
    const contract = parseAddress(`0x${"7c".repeat(20)}`);
    const sent = { contract, from: STRANGER, units: 5n };
    const [arrived, nothing, elsewhere] = [1, 2, 3].map(() => chain.payment(STRANGER, HOT, 1n));
    logged.set(arrived?.hash ?? "", [
      { ...sent, to: HOT },
      { ...sent, to: alice },
    ]);
    logged.set(nothing?.hash ?? "", [{ ...sent, to: alice, units: 0n }]);
    logged.set(elsewhere?.hash ?? "", [{ ...sent, to: HOT }]);
    chain.mine([arrived, nothing, elsewhere].flatMap((one) => one ?? []));
    await bench.caughtUp();
    const told = await explain(arrived?.hash ?? "");
    expect(told.code).toBe("TOKEN_NOT_CREDITED");
    expect(told.message).toContain(contract);
    expect((await explain(nothing?.hash ?? "")).code).toBe("NOT_OURS");
    expect((await explain(elsewhere?.hash ?? "")).code).toBe("NOT_OURS");
  });

  it("names what holds the watcher up", async () => {
    await running.stop();
    const payment = bench.chain.payment(STRANGER, alice, 9n);
    bench.chain.mine([payment]);
    expect(await explain(payment.hash)).toMatchObject({ code: "NOT_READ_YET" });
    await recordIncident(bench.ledger.database, {
      kind: "PARENT_MISMATCH",
      height: 5,
      message: "block 5 does not follow",
      details: {},
    });
    const halted = await explain(payment.hash);
    expect(halted.code).toBe("HALTED");
    expect(halted.message).toContain("block 5 does not follow");
    await resumeCrediting(bench.ledger.database, "test");
    running = bench.start();
    await bench.caughtUp();
    expect(await explain(payment.hash)).toMatchObject({ code: "CONFIRMING" });
  });

  it("blames the node where the node does not answer", async () => {
    isNodeDown = true;
    const { status, body } = await get(`/v1/deposits/explain?txHash=${hashOf("7")}`);
    isNodeDown = false;
    const message = "the node or the Data API cannot be asked at the moment";
    expect([status, body]).toEqual([503, { code: "UNAVAILABLE", message, details: {} }]);
  });

  describe("passes on what the node or the Data API says of itself", () => {
    const message = "the node or the Data API does not tell at the moment: ";
    /** Asked of a transaction that made no deposit. */
    async function refusalOf(refuse: () => void) {
      const { hash } = bench.chain.mine([bench.chain.payment(STRANGER, HOT, 1n)]);
      await bench.caughtUp();
      const txHash = bench.chain.blocks.find((one) => one.hash === hash)?.transactions[0]?.hash;
      refuse();
      const { status, body } = await get(`/v1/deposits/explain?txHash=${txHash}`);
      [dataApiRefusal, receiptRefusal] = [undefined, undefined];
      return [status, body.code, body.message];
    }

    it.each([
      [-32002, "request timed out"],
      [-32003, "response too large"],
      [-32005, "too many large answers are asked for at once"],
    ])("%i", async (rpcCode, words) => {
      const method = "eth_getTransactionReceipt";
      const refusal = new RpcError(words, { rpcCode, method });
      expect(await refusalOf(() => (receiptRefusal = refusal))).toEqual([
        503,
        "UNAVAILABLE",
        `${message}${method}: ${words}`,
      ]);
    });

    it.each([
      [105, 503],
      [110, 503],
      [209, 503],
      // It is of this program's own question.
      [200, 500],
    ])("number %i", async (rosettaCode, status) => {
      const words = "/block: as the list of errors has it";
      const told = await refusalOf(() => {
        dataApiRefusal = new DataApiError("DATA_API_ERROR", words, { details: { rosettaCode } });
      });
      const [code, said] = status === 503 ? ["UNAVAILABLE", `${message}${words}`] : ["INTERNAL"];
      expect(told).toEqual([status, code, said ?? "an unexpected fault; see the log"]);
    });
  });

  it("does not say whose a transaction was of a block that the Data API has no more", async () => {
    const { chain } = bench;
    const contract = parseAddress(`0x${"7d".repeat(20)}`);
    const [plain, claiming] = [chain.payment(STRANGER, HOT, 1n), chain.payment(STRANGER, HOT, 1n)];
    logged.set(claiming.hash, [{ contract, from: STRANGER, to: alice, units: 5n }]);
    const { height: blockNumber } = chain.mine([plain, claiming]);
    await bench.caughtUp();
    const details = { rosettaCode: 204 };
    dataApiRefusal = new DataApiError("DATA_API_ERROR", "/block: block pruned", { details });
    const found = await Promise.all([plain, claiming].map(({ hash }) => explain(hash)));
    dataApiRefusal = undefined;
    expect(found[0]).toMatchObject({ code: "BLOCK_DELETED", blockNumber });
    // The node has its logs.
    expect(found[1]).toMatchObject({ code: "TOKEN_NOT_CREDITED", blockNumber });
  });

  it("refuses what is no hash", async () => {
    for (const query of ["", "?txHash=", "?txHash=0x12", `?txHash=${hashOf("g")}`]) {
      const { status, body } = await get(`/v1/deposits/explain${query}`);
      expect([query, status, body.code]).toEqual([query, 422, "INVALID_FIELD"]);
    }
  });
});
