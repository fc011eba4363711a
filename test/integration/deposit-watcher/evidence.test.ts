/**
 * Evidence of deposits, over a real ledger: it holds books and chain side by side and says when they
 * differ.
 */
import { describe, expect, it } from "@jest/globals";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { present } from "../../../chain/errors.js";
import { consoleConfig } from "../../../console/config.js";
import { CHAIN_BUDGET_MS, collectEvidence } from "../../../deposit-watcher/api/evidence.js";
import { findDeposit } from "../../../ledger/deposits/deposit-queries.js";
import { DataApiError } from "../../../rpc-client/errors.js";
import { STRANGER, WatcherBench } from "../../helpers/services/watcher.js";
import { type DepositApi, depositApiForTests, hashOf } from "./deposit-api.js";

let api: DepositApi;
let bench: WatcherBench;
let alice: Address;

depositApiForTests((opened) => {
  api = opened;
  ({ bench, alice } = opened);
});

describe("GET /v1/deposits/{id}/evidence", () => {
  it("shows the operation, the balances around it and the entry in the books", async () => {
    const payment = bench.chain.payment(STRANGER, alice, 500n);
    const { height, hash } = bench.chain.mine([payment]);
    bench.chain.mine();
    await bench.caughtUp();
    const list = await api.get("/v1/deposits");
    const id = list.body.deposits.at(-1).id as string;
    const { body: found } = await api.get(`/v1/deposits/${id}/evidence`);
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
    const { body: before } = await api.get("/v1/deposits");
    const { id, blockNumber } = before.deposits.at(-1);
    const block = bench.chain.blocks[blockNumber];
    if (block === undefined) throw new Error("no block");
    const changed = { ...block, hash: hashOf("e") };
    bench.chain.blocks[blockNumber] = changed;
    const differing = await api.get(`/v1/deposits/${id}/evidence`);
    bench.chain.blocks[blockNumber] = block;
    expect(differing.body.chain).toMatchObject({ blockHash: changed.hash, agrees: false });
    expect(differing.body.differences).toEqual([
      {
        code: "BLOCK_REPLACED",
        message: `The books have block ${blockNumber} as ${block.hash}, and the node as ${changed.hash}.`,
        nextStep: expect.stringContaining("causeway recover"),
      },
    ]);
    api.isNodeDown = true;
    const alone = await api.get(`/v1/deposits/${id}/evidence`);
    api.isNodeDown = false;
    expect(alone.status).toBe(200);
    expect(alone.body).toMatchObject({ chain: null, chainFault: { code: "NODE_UNREACHABLE" } });
    expect(alone.body.differences).toMatchObject([{ code: "NOT_TOLD" }]);
    expect(alone.body.journal).toHaveLength(1);
    api.isDataApiBehind = true;
    const without = await api.get(`/v1/deposits/${id}/evidence`);
    api.isDataApiBehind = false;
    expect(without.body).toMatchObject({ chain: null, chainFault: { code: "NOT_READY" } });
    expect(without.body.differences).toMatchObject([{ code: "BEHIND" }]);
    expect((await api.get("/v1/deposits/9-9-9/evidence")).status).toBe(404);
  });

  it("has what the books say where nobody tells in time, before the console gives up", async () => {
    const { body: before } = await api.get("/v1/deposits");
    const { id } = before.deposits.at(-1);
    const { database } = bench.ledger;
    const deposit = present(await findDeposit(database, id), "deposit");
    const hangs = (_height: unknown, { signal: asking }: { readonly signal: AbortSignal }) =>
      new Promise<undefined>((_resolve, reject) => {
        if (asking.aborted) reject(asking.reason);
        asking.addEventListener("abort", () => reject(asking.reason));
      });
    const parts = { database, source: bench.source, contractOf: () => undefined };
    const node = { ...api.node(), getBlockHeader: hangs };
    const { signal } = new AbortController();
    const found = await collectEvidence({ ...parts, node }, deposit, { signal, budgetMs: 1 });
    expect(found).toMatchObject({ chain: undefined, chainFault: { code: "NODE_TIMEOUT" } });
    expect(found.differences).toMatchObject([{ code: "NOT_TOLD" }]);
    expect(found.entries).toHaveLength(1);
    const left = AbortSignal.abort(new Error("the client has left"));
    const gone = collectEvidence({ ...parts, node }, deposit, { signal: left, budgetMs: 60_000 });
    await expect(gone).rejects.toThrow("the client has left");
    const console = consoleConfig.sections.api["timeout-ms"].defaultValue;
    expect(CHAIN_BUDGET_MS).toBeLessThan(console - 1_000);
  });
});

describe("evidence against the books", () => {
  /** Credited once; what the chain says of it is spoilt afterwards. */
  async function credited(amountAtoken: bigint) {
    const payment = bench.chain.payment(STRANGER, alice, amountAtoken);
    const block = bench.chain.mine([payment]);
    bench.chain.mine();
    await bench.caughtUp();
    const list = await api.get("/v1/deposits");
    return { block, payment, id: list.body.deposits.at(-1).id as string };
  }
  /** No coins came with the block, whatever the books say. */
  const nothingCame = (height: number, amountAtoken: bigint) =>
    bench.chain.balanceLies.set(`${alice}@${height}`, -amountAtoken);
  const agreesOf = async (id: string) => {
    const { body } = await api.get(`/v1/deposits/${id}/evidence`);
    return body.chain.agrees as boolean;
  };
  const differencesOf = async (id: string) => {
    const { status, body } = await api.get(`/v1/deposits/${id}/evidence`);
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
    api.dataApiRefusal = new DataApiError("DATA_API_ERROR", "/block: block pruned", { details });
    expect(await differencesOf(id)).toEqual(["STATE_DELETED"]);
    api.dataApiRefusal = undefined;
    expect([block.height > 0, await differencesOf(id)]).toEqual([true, []]);
  });
});
