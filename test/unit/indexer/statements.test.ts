/** Lines of statements, each held against the state that the node still has. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import type { HttpRequest } from "../../../runtime/http/http-route.js";
import type { ApiContext } from "../../../indexer/api/reads.js";
import { StateBalances } from "../../../indexer/api/state-balances.js";
import { statementReply } from "../../../indexer/api/statement.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import type { JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { contextWithoutNode } from "../../helpers/indexer/read-context.js";

const ACCOUNT = `0x${"a1".repeat(20)}`;
const TOKEN = `0x${"70".repeat(20)}`;
const [DELETED, KEPT] = [3, 9];

/** A node that has deleted the state after the first block. */
const node: JsonRpcClient = {
  request: () => Promise.reject(new Error("not used")),
  batch: (calls) =>
    Promise.resolve(
      calls.map(({ method, params }) =>
        params.at(-1) === `0x${DELETED}`
          ? {
              ok: false,
              error: new RpcError("pruned history unavailable", { rpcCode: 4444, method }),
            }
          : { ok: true, result: `0x${"7".padStart(64, "0")}` },
      ),
    ),
  close: () => undefined,
};

/** An index that has a line in each of the two blocks. */
const index = {
  query: (text: string) => {
    const hash = Buffer.alloc(32);
    const time = new Date(0);
    const nothing = { credit: "0", debit: "0", fee: "0", derived: null, observed: null };
    const line = (height: number) => ({ height, time, opening: "7", amount: "7", ...nothing });
    const progress = { height: KEPT, hash, time, chain_id: "6940", genesis_hash: hash };
    if (text.includes("AS ids")) return [{ ids: false }];
    return text.includes("balance_history") ? [DELETED, KEPT].map(line) : [progress];
  },
};

it("are reconciled as far as there is state, of tokens as of coins", async () => {
  const context = {
    ...contextWithoutNode({ query: (text) => Promise.resolve(index.query(text) as never) }, KEPT),
    node: createEvmClient(node),
  };
  const states = new StateBalances(context.node, systemClock);
  for (const asset of ["TOKEN", TOKEN]) {
    const { signal } = new AbortController();
    const request = { params: { address: ACCOUNT }, query: { asset, limit: 10 }, signal };
    const { body } = await statementReply(context, request as unknown as HttpRequest, states);
    expect({ asset, body }).toMatchObject({
      asset,
      body: {
        items: [
          { height: DELETED, stateBalance: null, reconciled: false },
          { height: KEPT, stateBalance: "7", reconciled: true },
        ],
      },
    });
  }
});

describe("of a token whose contract takes long", () => {
  const EXCHANGE_MS = 25 * 61;

  /** A thousand lines, and a node that takes 61 ms for each question, as a contract can make it. */
  function slowIndex() {
    const time = { nowMs: 0 };
    const seen = { asked: 0, running: 0, most: 0 };
    const [line] = index.query("balance_history");
    const rows = Array.from({ length: 1_000 }, (_, at) => ({ ...line, height: at + 1 }));
    const sql = {
      query: (text: string) =>
        Promise.resolve(text.includes("balance_history") ? rows : index.query(text)) as never,
    };
    const context = contextWithoutNode(sql, 1_000);
    const asking: ApiContext = {
      ...context,
      node: {
        ...context.node,
        async tokenBalanceAnswers(queries) {
          seen.running += 1;
          seen.most = Math.max(seen.most, seen.running);
          await nextTurn();
          seen.running -= 1;
          seen.asked += queries.length;
          time.nowMs += queries.length * 61;
          return queries.map(() => ({ ok: true, units: 7n }));
        },
      },
    };
    const clock = { monotonicMs: () => time.nowMs };
    return { time, seen, context: asking, states: new StateBalances(asking.node, clock) };
  }

  function askFor({ context, states }: ReturnType<typeof slowIndex>, query = {}) {
    const { signal } = new AbortController();
    const request = {
      params: { address: ACCOUNT },
      query: { asset: TOKEN, limit: 1_000, ...query },
      signal,
    };
    return statementReply(context, request as unknown as HttpRequest, states);
  }

  it("the node is asked for two seconds, and what it was not asked is null", async () => {
    const slow = slowIndex();
    const { body } = await askFor(slow);
    expect(slow.time.nowMs).toBeLessThanOrEqual(2_000 + EXCHANGE_MS);
    const { items } = body as { items: { stateBalance: string | null; reconciled: boolean }[] };
    expect(items).toHaveLength(1_000);
    const told = items.filter(({ stateBalance }) => stateBalance !== null);
    expect(told).toHaveLength(slow.seen.asked);
    expect(told).toEqual(items.slice(0, told.length));
    expect(told.length).toBeGreaterThan(0);
    expect(items.at(-1)).toMatchObject({ stateBalance: null, reconciled: false });
  });

  it("the node is asked for one statement at a time, and not at all for very many", async () => {
    const slow = slowIndex();
    const replies = await Promise.all(Array.from({ length: 80 }, () => askFor(slow)));
    expect(replies).toHaveLength(80);
    expect(slow.seen.most).toBe(1);
    expect(slow.time.nowMs).toBeLessThanOrEqual(9 * (2_000 + EXCHANGE_MS));
  });
});
