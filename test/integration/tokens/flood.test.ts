/** A block in which strangers log more than any answer may hold: what came in it is credited all the same. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { ERC20_TOPICS } from "../../../chain/evm/erc20.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { customerBalances } from "../../../ledger/deposits/deposit-queries.js";
import { callOf, contractAt, type Message, TokenBench } from "./token-bench.js";

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

/** Moves nothing of a listed token to somebody, so many times, while it is created: anybody may. */
function nothings(count: number): Message {
  const prepare = "63a9059cbb60e01b5f526077600452";
  const transfer = `5f5f60445f5f73${contractAt("PlainToken").slice(2)}5af1`;
  const head = `${prepare}61${count.toString(16).padStart(4, "0")}`;
  const start = (head.length / 2).toString(16).padStart(2, "0");
  return { data: `0x${head}5b${transfer}50600190038060${start}5700`, gasLimit: 30_000_000n };
}

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

it("stops nobody with more of a listed token's logs than a search gives, either", async () => {
  const bob = await bench.register("bob");
  await bench.caughtUp();
  const deposits = [callOf("PlainToken", "mint", [bob, 2_002n]), { to: bob, value: 7n }];
  const flood = Array.from({ length: 11 }, () => FLOOD);
  await bench.mine([nothings(5_200), nothings(5_200), ...flood, ...deposits]);
  const { height } = bench.chain.chain.view.head();
  const contracts = [contractAt("PlainToken")];
  const { signal } = new AbortController();
  const logs = await bench.node.transferLogs({ from: height, to: height }, { signal, contracts });
  expect(logs.length).toBe(10_401);
  await bench.mine([]);
  await bench.caughtUp();
  const balances = await customerBalances(bench.database, parseCustomerId("bob"));
  expect(
    balances?.map(({ asset, availableUnits }) => `${asset} ${availableUnits}`).toSorted(),
  ).toEqual(["PLAIN 2002", "TOKEN 7"]);
});
