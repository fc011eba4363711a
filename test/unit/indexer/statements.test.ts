/** Lines of statements, each held against the state that the node still has. */
import { expect, it } from "@jest/globals";
import type { HttpRequest } from "../../../runtime/http/http-route.js";
import { statementReply } from "../../../indexer/api/statement.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import type { JsonRpcClient } from "../../../rpc-client/json-rpc.js";
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
  for (const asset of ["TOKEN", TOKEN]) {
    const request = { params: { address: ACCOUNT }, query: { asset, limit: 10 } };
    const { signal } = new AbortController();
    const { body } = await statementReply(context, {
      ...request,
      signal,
    } as unknown as HttpRequest);
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
