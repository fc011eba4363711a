/** A token whose balances of before its first block the node has deleted by the time that they are asked for. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { toQuantity } from "../../../../chain/hex.js";
import { TokenBook } from "../../../../deposit-watcher/tokens/token-book.js";
import { readTokenStates } from "../../../../ledger/assets/token-state.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { registerTestWallets, silentLog } from "../../../helpers/services/ledger.js";
import { derivation, WatcherBench } from "../../../helpers/services/watcher.js";
import { until } from "../../../helpers/until.js";

const CONTRACT = testAddress(0x70c3);
const OLDER = { symbol: "PLAIN", contractAddress: CONTRACT, decimals: 6 };
const YOUNGER = { symbol: "YOUNG", contractAddress: testAddress(0x70c4), decimals: 6 };
const FURTHER_WALLET = testAddress(0x408);

let bench: WatcherBench;

beforeEach(async () => {
  bench = await WatcherBench.open();
  bench.chain.token = CONTRACT;
});
afterEach(() => bench.close());

it("keeps no other past from being booked: of addresses, of wallets, of other tokens", async () => {
  const { chain, node, ledger } = bench;
  const { database } = ledger;
  await bench.register("alice");
  const first = bench.start();
  await bench.caughtUp();
  await first.stop();
  const parts = { database, node, log: silentLog };
  let tokens = await TokenBook.open(parts, [OLDER]);
  // Balances before the token's first block, which is the next one.
  const deleted = toQuantity(chain.head);
  chain.override = (method, [, at]) =>
    method === "eth_call" && at === deleted
      ? { error: { code: -32000, message: "the state of this block is deleted" } }
      : undefined;
  const second = bench.start(undefined, undefined, undefined, { tokens });
  const later = derivation.addressAt(1);
  bench.pay([FURTHER_WALLET, 900n], [later, 5n]);
  await bench.caughtUp();
  await second.stop();
  tokens = await TokenBook.open(parts, [OLDER, YOUNGER]);
  bench.start(undefined, undefined, undefined, { tokens });
  await registerTestWallets(database, FURTHER_WALLET);
  expect((await bench.register("bob")).address).toBe(later);
  chain.mine();
  await bench.caughtUp();
  await bench.backfilled();
  const isOpened = async (symbol: string) =>
    (await readTokenStates(database)).get(symbol)?.isOpened;
  await until(async () => (await isOpened("YOUNG")) === true, {
    timeoutMs: 10_000,
    what: "the younger is opened",
  });
  expect(await isOpened("PLAIN")).toBe(false);
  expect(await bench.deposits()).toEqual(["1-1-3 bob suspense 5"]);
  expect(await bench.accountAtoken(`asset:wallet:${FURTHER_WALLET}`)).toBe(900n);
});
