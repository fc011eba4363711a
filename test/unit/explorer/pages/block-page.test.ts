/** A block's page where its transactions logged more than a node gives in one answer. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { blockRoutes } from "../../../../explorer/pages/block.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { RpcError } from "../../../../rpc-client/errors.js";
import { all, textOf } from "../../../helpers/pages/html.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const hashOf = (index: number) => `0x${index.toString(16).padStart(64, "0")}`;
const PAYER = parseAddress(`0x${"70".repeat(20)}`);
const COUNT = 52;

/** A node whose receipts of a page are too much for it; all transactions failed but every seventh. */
function contextOf(journal: "there" | "too large"): PageContext {
  const answer = (value: unknown) => () => Promise.resolve(value);
  const header = {
    height: 7,
    hash: hashOf(0xb10c),
    parentHash: hashOf(0),
    timestampSeconds: 1,
    stateRoot: hashOf(1),
    transactionsRoot: hashOf(2),
    receiptsRoot: hashOf(3),
    proposer: PAYER,
    gasUsed: 1n,
    gasLimit: 9n,
    transactionCount: COUNT,
  };
  const transactions = Array.from({ length: COUNT }, (_, index) => ({
    hash: hashOf(index),
    status: index % 7 === 0 ? 1 : 0,
    changes: [],
  }));
  const told = { transactions, blockChanges: [], mintedAtoken: 0n, burnedAtoken: 0n };
  const tooMuch = new RpcError("response too large", {
    rpcCode: -32003,
    method: "eth_getTransactionReceipt",
  });
  return {
    chain: {
      head: answer({ height: 9 }),
      blocks: answer([header]),
      transactionsAt: (places: readonly { readonly index: number }[]) =>
        Promise.resolve(
          places.map(({ index }) => ({
            hash: hashOf(index),
            from: PAYER,
            to: PAYER,
            valueAtoken: 0n,
          })),
        ),
      journal: answer(journal === "there" ? told : journal),
      receipts: () => Promise.reject(tooMuch),
    },
    consensus: { commit: answer(undefined), validators: answer([]) },
  } as unknown as PageContext;
}

/** What a page of the block says became of its transactions. */
async function outcomes(journal: "there" | "too large", page: string) {
  const [route] = blockRoutes(contextOf(journal));
  const shown = await openPage(route, { parameter: "7", query: { page } });
  const [table] = all(shownContent(shown.content).root, "tbody");
  if (table === undefined) throw new Error("no table");
  return all(table, "tr").map((row) => {
    const [, outcome] = all(row, "td");
    return outcome === undefined ? "" : textOf(outcome);
  });
}

it("says by the journal what became of each, and asks for no logs", async () => {
  const expected = Array.from({ length: COUNT }, (_, index) =>
    index % 7 === 0 ? "success" : "failed",
  );
  expect(await outcomes("there", "1")).toEqual(expected.slice(0, 50));
  expect(await outcomes("there", "2")).toEqual(expected.slice(50));
});

it("is there without a journal, too, and leaves open what it does not know", async () => {
  expect(await outcomes("too large", "2")).toEqual(["—", "—"]);
});
