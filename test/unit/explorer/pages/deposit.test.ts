/** What a transaction moved for each account, as who looks for a deposit is shown it. */
import { expect, it } from "@jest/globals";
import { toBeHex } from "ethers";
import { parseAddress, toChecksumAddress } from "../../../../chain/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { depositRoutes } from "../../../../explorer/pages/deposit.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const HASH = `0x${"ab".repeat(32)}`;
const PAYER = parseAddress(`0x${"70".repeat(20)}`);
const place = { height: 7, index: 0 };

/** A node in whose block one transaction pays so many accounts an atoken each. */
function contextOf(receivers: readonly string[]): PageContext {
  const changes = receivers.map((to) => ({
    reason: "CALL",
    from: PAYER,
    to,
    amountAtoken: 1n,
    effective: true,
    tracePath: "0",
  }));
  const transaction = { hash: HASH, from: PAYER, to: PAYER, place, input: "0x" };
  const receipt = { hash: HASH, isSuccess: true, gasUsed: 1n, gasPriceAtoken: 1n, logs: [] };
  const block = { height: 7, hash: HASH, timestampSeconds: 1 };
  const journaled = { hash: HASH, changes, gasUsed: 1n, gasPriceAtoken: 1n, cosmos: undefined };
  const answer = (value: unknown) => () => Promise.resolve(value);
  return {
    chain: {
      head: answer({ height: 9 }),
      transaction: answer(transaction),
      receipts: answer([receipt]),
      blocks: answer([block]),
      journal: answer({ transactions: [journaled] }),
    },
    tokens: new Map(),
    publicUrl: "",
  } as unknown as PageContext;
}

async function textFor(receivers: readonly string[]): Promise<string> {
  const [route] = depositRoutes(contextOf(receivers));
  const page = await openPage(route, { query: { tx: HASH } });
  return shownContent(page.content).text;
}

const accounts = (count: number) =>
  Array.from({ length: count }, (_, index) => parseAddress(toBeHex(4_096 + index, 20)));

it("says how many accounts of a large payout are not shown", async () => {
  const few = await textFor(accounts(150));
  expect(few).toContain(toChecksumAddress(accounts(150)[149] ?? PAYER));
  expect(few).not.toContain("are not shown");
  // The payer is one of the accounts whose balance changed.
  expect(await textFor(accounts(250))).toContain("51 more are not shown.");
});
