/** A block in which strangers log more than any answer may hold: what came in it is credited all the same. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { ERC20_TOPICS } from "../../../chain/erc20.js";
import { parseCustomerId } from "../../../ledger/books/accounts.js";
import { customerBalances } from "../../../ledger/deposits/deposit-queries.js";
import { callOf, type Message, TokenBench } from "./token-bench.js";

let bench: TokenBench;

beforeAll(async () => {
  bench = await TokenBench.open();
  await bench.deploy();
  await bench.watch();
});
afterAll(() => bench?.close());

/**
 * Logs 256 KiB under the name of a token's transfer, thirteen times, while it is created: all that its
 * gas can pay. The price of eleven of them is that of a few plain payments.
 */
const FLOOD: Message = {
  data: `0x7f${ERC20_TOPICS.transfer.slice(2)}600d5b81620400006000a1600190038060235700`,
  gasLimit: 30_000_000n,
};

it("does not stop the sidecar, nor the watcher", async () => {
  const alice = await bench.register("alice");
  await bench.caughtUp();
  const deposits = [callOf("PlainToken", "mint", [alice, 2_001n]), { to: alice, value: 5n }];
  await bench.mine([...Array.from({ length: 11 }, () => FLOOD), ...deposits]);
  const { height } = bench.chain.chain.view.head();
  const { signal } = new AbortController();
  // Nobody is told all of it: that is what this is about.
  const all = bench.node.transferLogs({ from: height, to: height }, { signal });
  await expect(all).rejects.toMatchObject({ code: "RPC_ERROR" });
  await bench.mine([{ to: alice, value: 6n }]);
  await bench.mine([]);
  await bench.caughtUp();
  const balances = await customerBalances(bench.database, parseCustomerId("alice"));
  expect(
    balances?.map(({ asset, availableUnits }) => `${asset} ${availableUnits}`).toSorted(),
  ).toEqual(["PLAIN 2001", "TOKEN 11"]);
});
