/** Which accounts a block's transactions name, of blocks of any size. */
import { expect, it } from "@jest/globals";
import { parseHash32 } from "../../../../chain/hex.js";
import {
  type BlockAccounts,
  encodeBlockAccounts,
} from "../../../../sidecar/rosetta/block-accounts.js";
import { tokenAmount } from "../../../../sidecar/rosetta/identifiers.js";
import type { RosettaBlock } from "../../../../sidecar/rosetta/operations.js";

it("tells those of a genesis with more accounts than a call may have arguments", () => {
  const count = 200_000;
  const hash = parseHash32(`0x${"00".repeat(32)}`);
  const identifier = { index: 0, hash };
  const operations = Array.from({ length: count }, (_, index) => ({
    operation_identifier: { index },
    related_operations: undefined,
    type: "GENESIS",
    status: "SUCCESS",
    account: { address: `0x${index.toString(16).padStart(40, "0")}` },
    amount: tokenAmount(1n),
    metadata: undefined,
  }));
  const block = {
    block_identifier: identifier,
    parent_block_identifier: identifier,
    timestamp: 0,
    transactions: [{ transaction_identifier: { hash }, operations }],
  };
  const text = encodeBlockAccounts(block as unknown as RosettaBlock).toString("utf8");
  const record = JSON.parse(text) as BlockAccounts;
  const accounts = Buffer.from(record.accounts, "base64");
  const numbers = Buffer.from(record.transactions, "base64");
  expect([accounts.length, numbers.length]).toEqual([20 * count, 4 * (count + 1)]);
  expect([numbers.readUInt32BE(0), numbers.readUInt32BE(4 * count)]).toEqual([count, count - 1]);
  expect(`0x${accounts.subarray(-20).toString("hex")}`).toBe(
    operations[count - 1]?.account.address,
  );
});
