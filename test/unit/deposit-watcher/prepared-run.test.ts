/** Runs of blocks that are matched while the book of addresses grows. */
import { expect, it } from "@jest/globals";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { CheckedNodes, type CheckedNode } from "../../../deposit-watcher/chain-check.js";
import { prepareRun } from "../../../deposit-watcher/prepared-run.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import type { DataBlock, DataTransaction } from "../../../rpc-client/data-api/data-block.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { blockAt, hashAt } from "./blocks.js";

const { signal } = new AbortController();
const early = testAddress(0xea);
const late = testAddress(0x1a);
const addressOf = (address: typeof early, index: number) => {
  return { address, index, customerId: parseCustomerId(`c${index}`), fromHeight: 0 };
};

/** One coin for an address. */
const paying = (address: typeof early, index: number): DataTransaction => ({
  hash: hashAt(1_000 + index),
  index,
  operations: [
    {
      index: 0,
      type: "CALL",
      status: "SUCCESS",
      address,
      isNative: true,
      contract: undefined,
      amountAtoken: 1n,
      relatedIndexes: [],
    },
  ],
});

it("asks again for what concerns an address that was registered while it was asked", async () => {
  const book = new AddressBook();
  book.add([addressOf(early, 0)]);
  const all = [paying(early, 0), paying(late, 1)];
  let asked = 0;
  const block: DataBlock = {
    ...blockAt(1),
    transactionCount: 2,
    transactions: async (concerns) => {
      const own = all.filter(({ operations }) => operations.some((one) => concerns(one.address)));
      asked += 1;
      if (asked === 1) book.add([addressOf(late, 1)]);
      return own;
    },
  };
  const node = {
    getBlockHeader: async (height: number) => ({ height, hash: hashAt(height) }),
    getBalances: async (queries: readonly { readonly at: number }[]) =>
      queries.map(({ at }) => (at === 1 ? 1n : 0n)),
    transferLogs: async () => [],
    tokenBalances: async () => [],
    tokenCodes: async () => [],
  };
  const parts = {
    nodes: new CheckedNodes(node as unknown as CheckedNode),
    tokenNodes: { first: node, second: undefined },
    book,
    listed: { tokens: [] },
    explained: async () => new Set<string>(),
  };
  const prepared = await prepareRun(parts, [block], { signal });
  await prepared.verified;
  expect(prepared.matched.deposits.map(({ address }) => address)).toEqual([early, late]);
  expect([asked, prepared.nextAddressIndex]).toEqual([2, 2]);
});
