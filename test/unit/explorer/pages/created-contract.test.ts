/** What the page of a transaction that was to make a contract says of the contract. */
import { expect, it } from "@jest/globals";
import { id, toBeHex, zeroPadValue } from "ethers";
import { parseAddress, toChecksumAddress } from "../../../../chain/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { transactionRoutes } from "../../../../explorer/pages/transaction.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const HASH = `0x${"ab".repeat(32)}`;
const PAYER = parseAddress(`0x${"70".repeat(20)}`);
const MADE = parseAddress(`0x${"c0".repeat(20)}`);

/** The page of a creation; a receipt names the address whether it succeeded or not, as geth's do. */
async function creationPage(isSuccess: boolean, logs: readonly object[] = []): Promise<string> {
  const answer = (value: unknown) => () => Promise.resolve(value);
  const sent = {
    hash: HASH,
    from: PAYER,
    to: undefined,
    input: "0x00",
    valueAtoken: 0n,
    nonce: 0n,
  };
  const price = { gasUsed: 1n, gasPriceAtoken: 1n };
  const context = {
    chain: {
      // Contracts say nothing of balances.
      evm: {
        tokenBalanceAnswers: (queries: readonly object[]) =>
          Promise.resolve(queries.map(() => ({ ok: true, units: undefined }))),
      },
      head: answer({ height: 9 }),
      blocks: answer([{ height: 7, hash: HASH, timestampSeconds: 1 }]),
      transaction: answer({ ...sent, gasLimit: 1n, place: { height: 7, index: 0 } }),
      receipts: answer([{ hash: HASH, isSuccess, ...price, contractAddress: MADE, logs }]),
      journal: answer({ transactions: [{ hash: HASH, changes: [], ...price }] }),
      failure: answer("execution reverted"),
      cosmosHash: answer(HASH),
    },
    consensus: { transaction: answer({ events: [] }) },
    contracts: { store: undefined },
    tokens: new Map(),
  } as unknown as PageContext;
  const page = await openPage(transactionRoutes(context)[0], { parameter: HASH });
  return shownContent(page.content).text;
}

it("names it where it was made, and none where the creation failed", async () => {
  const made = toChecksumAddress(MADE);
  expect(await creationPage(true)).toContain(made);
  expect(await creationPage(false)).not.toContain(made);
});

it("takes no deposit for a token's of a contract that does not say who has how much", async () => {
  const topics = [id("Deposit(address,uint256)"), zeroPadValue(PAYER, 32)];
  const text = await creationPage(true, [
    { logIndex: 0, address: MADE, topics, data: toBeHex(5n, 32) },
  ]);
  expect(text).toContain("No tokens were moved.");
  expect(text).toContain("Deposit");
});
