/** What the indexer's routes read from, where a test has a database and no node. */
import { BURN_ADDRESS } from "../../../chain/address.js";
import type { ApiContext } from "../../../indexer/api/reads.js";
import type { Sql } from "../../../runtime/sql/sql.js";

/** Answers of an index that follows at a height; whatever asks the node fails. */
export function contextWithoutNode(sql: Sql, height: number): ApiContext {
  const noNode = () => Promise.reject(new Error("no node here"));
  return {
    database: { ...sql, snapshot: (work) => work(sql) },
    node: {
      getCode: noNode,
      getTransactionCount: noNode,
      transactionStatus: noNode,
      accountStates: noNode,
      tokenBalanceAnswers: noNode,
    },
    chainId: 6940n,
    burnAddress: () => BURN_ADDRESS,
    status: () => ({
      state: "following",
      reason: undefined,
      indexedHeight: height,
      nodeHeight: height,
    }),
  };
}
