/** An EVM transaction by its hash of the Cosmos side, in a block that has Cosmos transactions before it. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { depositRoutes } from "../../../../explorer/pages/deposit.js";
import { transactionRoutes } from "../../../../explorer/pages/transaction.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const [EVM, SDK] = ["ab", "cd"].map((byte) => `0x${byte.repeat(32)}`);
const [PAYER, RECEIVER] = ["70", "71"].map((byte) => parseAddress(`0x${byte.repeat(20)}`));
const answer = (value: unknown) => () => Promise.resolve(value);

/** A node whose block 7 has a Cosmos transaction first, and then one of the EVM. */
function contextOf(eventHash = EVM): PageContext {
  const sent = { hash: EVM, from: PAYER, to: RECEIVER, input: "0x", valueAtoken: 5n, nonce: 0n };
  const transaction = { ...sent, gasLimit: 21_000n, place: { height: 7, index: 0 } };
  const receipt = { hash: EVM, isSuccess: true, gasUsed: 21_000n, gasPriceAtoken: 1n, logs: [] };
  const moved = { reason: "CALL", from: PAYER, to: RECEIVER, amountAtoken: 5n, tracePath: "" };
  const changes = [{ ...moved, effective: true }];
  const journaled = { hash: EVM, changes, gasUsed: 21_000n, gasPriceAtoken: 1n };
  const attributes = [{ key: "ethereumTxHash", value: eventHash }];
  const events = [
    { type: "tx", attributes: [] },
    { type: "ethereum_tx", attributes },
  ];
  const told = { height: 7, index: 1, code: 0n, log: "", gasUsed: 21_000n, events };
  return {
    chain: {
      head: answer({ height: 9 }),
      transaction: (hash: string) => Promise.resolve(hash === EVM ? transaction : undefined),
      transactionsAt: answer([]),
      cosmosHash: answer(SDK),
      headerByHash: answer(undefined),
      receipts: answer([receipt]),
      blocks: answer([{ height: 7, hash: EVM, timestampSeconds: 1 }]),
      journal: answer({ transactions: [journaled] }),
      evm: { transactionStatus: answer({ status: "unknown" }) },
    },
    consensus: { transaction: answer(told) },
    contracts: { store: undefined, verifier: undefined },
    tokens: new Map(),
    publicUrl: "",
  } as unknown as PageContext;
}

async function textOfPage(context: PageContext, path: "/tx" | "/deposit"): Promise<string> {
  const routes = [...transactionRoutes(context), ...depositRoutes(context)];
  const page = await openPage(
    routes.find((one) => one.path === path),
    { parameter: SDK ?? "", query: { tx: SDK ?? "" } },
  );
  return shownContent(page.content).text;
}

it("is found with both of its sides, and all that it moved", async () => {
  for (const path of ["/tx", "/deposit"] as const) {
    const text = await textOfPage(contextOf(), path);
    expect(text).toContain(EVM);
    expect(text).toContain("0.000000000000000005 TOKEN");
    expect(text).not.toContain("too large");
  }
});

it("is not taken from an event that names another one", async () => {
  const other = { ...contextOf(`0x${"ef".repeat(32)}`) };
  expect(await textOfPage(other, "/tx")).not.toContain(EVM);
});
