/** A receipt of tens of thousands of logs is made in slices, and is the same as one that is made at once. */
import { beforeAll, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { turnsOf } from "../../../helpers/turns.js";
import { ALICE, BOB, createTestNode, signLegacy } from "./fixture.js";

const LOGS = 20_000;
const FEW = 600;
const node = createTestNode();
const hashes: string[] = [];

interface Receipt {
  readonly transactionHash: string;
  readonly logsBloom: string;
  readonly logs: readonly { readonly logIndex: string; readonly transactionHash: string }[];
}

beforeAll(async () => {
  const log = { address: parseAddress(BOB.address), topics: [], data: new Uint8Array(0) };
  const many = [FEW, LOGS, 0, 1].map((count) => Array.from({ length: count }, () => log));
  const raws = [200_000n, 30_000_000n, 21_000n, 1_000_001n].map((gasLimit, nonce) => {
    const fields = { nonce, gasLimit, to: BOB.address };
    return signLegacy(ALICE, fields);
  });
  const signed = await Promise.all(raws);
  const { block } = node.chain.add(signed.map((raw, index) => ({ raw, logs: many[index] ?? [] })));
  for (const { tx } of block.transactions) hashes.push(tx.hash);
});

describe("others get their turns", () => {
  it.each([
    ["eth_getTransactionReceipt", () => hashes[1]],
    ["eth_getTransactionLogs", () => hashes[1]],
    ["eth_getBlockReceipts", () => "0x1"],
  ])("while %s is answered", async (method, param) => {
    expect(await turnsOf(() => node.call(method, param()))).toBeGreaterThan(10);
  });
});

it("the answers are the same, whichever way they are made", async () => {
  const all = await node.call<Receipt[]>("eth_getBlockReceipts", "0x1");
  expect(all.map(({ logs }) => logs.length)).toEqual([FEW, LOGS, 0, 1]);
  const indices = all.flatMap(({ logs }) => logs.map(({ logIndex }) => Number(logIndex)));
  expect(indices).toEqual(Array.from({ length: FEW + LOGS + 1 }, (_, index) => index));
  for (const [index, hash] of hashes.entries()) {
    const receipt = await node.call<Receipt>("eth_getTransactionReceipt", hash);
    expect([index, receipt]).toEqual([index, all[index]]);
    expect(await node.call("eth_getTransactionLogs", hash)).toEqual(receipt.logs);
  }
});
