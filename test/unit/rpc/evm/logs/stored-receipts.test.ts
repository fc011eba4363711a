/**
 * What is asked of receipts as they are stored, without their logs: a single one may have tens of
 * thousands, and nobody who asks for prices or bytes is to wait for them, nor anybody else.
 */
import { beforeAll, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../../chain/address.js";
import { encodeRlp } from "../../../../../chain/encoding/rlp-writer.js";
import { ZERO_HASH } from "../../../../../chain/hex.js";
import type { Receipt } from "../../../../../chain/receipt.js";
import { packBloom, receiptFields } from "../../../../../chain/records/block-items.js";
import { encodeReceiptPage } from "../../../../../chain/records/pages.js";
import { StoredPage } from "../../../../../node/store/blocks/stored-page.js";
import { turnsOf } from "../../../../helpers/effort/turns.js";
import { ALICE, BOB, createTestNode } from "../fixture.js";

const COUNT = 90;
const node = createTestNode();
let receipts: readonly Receipt[] = [];

beforeAll(async () => {
  const topics = [ZERO_HASH];
  const log = { address: parseAddress(BOB.address), topics, data: Uint8Array.of(1, 2, 3) };
  const transactions = [];
  for (let nonce = 0; nonce < COUNT; nonce++) {
    const fields = { type: nonce % 3, chainId: 6940, nonce, gasLimit: 21_000n, to: BOB.address };
    const price = BigInt(25 + nonce);
    const fees =
      fields.type === 2
        ? { maxFeePerGas: 2n * price, maxPriorityFeePerGas: price }
        : { gasPrice: price };
    const raw = await ALICE.signTransaction({ ...fields, ...fees });
    transactions.push({ raw, status: nonce % 2 === 0 ? (1 as const) : (0 as const) });
  }
  const logs = (index: number) => Array.from({ length: index % 4 }, () => log);
  ({ receipts } = node.chain.add(transactions.map((tx, index) => ({ ...tx, logs: logs(index) }))));
});

/** The node with the block's page as it is stored. */
async function withStored<Result>(page: Uint8Array, work: () => Promise<Result>): Promise<Result> {
  const { pages } = node.chain;
  const read = (space: string) =>
    space === "receiptPage" ? Buffer.from(page) : fail(`a page of ${space} is read`);
  node.chain.pages = function* stored() {
    yield new StoredPage(0, COUNT, read);
  };
  try {
    return await work();
  } finally {
    node.chain.pages = pages;
  }
}

function fail(text: string): never {
  throw new Error(text);
}

const history = () => node.call("eth_feeHistory", "0x1", "latest", [0, 10, 50, 100]);
const raws = () => node.call("debug_getRawReceipts", "latest");

it("gives the same of receipts that are stored as of those in memory", async () => {
  const [paid, encoded] = [await history(), await raws()];
  const page = encodeReceiptPage(receipts, 0);
  expect(await withStored(page, history)).toEqual(paid);
  expect(await withStored(page, raws)).toEqual(encoded);
});

it("decodes no log for the history of fees", async () => {
  const noLogs = [[1]];
  const fields = (receipt: Receipt) => receiptFields(receipt).slice(0, -1);
  const page = encodeRlp([
    0,
    ...receipts.map((receipt) => [...fields(receipt), noLogs, packBloom(receipt)]),
  ]);
  expect(await withStored(page, history)).toEqual(await history());
});

it("gives others their turns between two receipts", async () => {
  expect(await turnsOf(raws)).toBeGreaterThan(10);
});
