/** Blocks with more transfers of a listed token to our addresses than are held at once. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { TokenBook } from "../../../deposit-watcher/tokens/token-book.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { STRANGER, WatcherBench } from "../../helpers/services/watcher.js";

const CONTRACT = testAddress(0x70c3);

let bench: WatcherBench;

beforeEach(async () => {
  bench = await WatcherBench.open();
  bench.chain.token = CONTRACT;
});
afterEach(() => bench.close());

it("are booked in parts: each transfer is one deposit, credited once", async () => {
  const { chain, node, ledger } = bench;
  const tokens = await TokenBook.open({ database: ledger.database, node, log: silentLog }, [
    { symbol: "GOLD", contractAddress: CONTRACT, decimals: 6 },
  ]);
  const { address: to } = await bench.register("alice");
  // The second block alone has more than are held at once.
  const counts = [2, 5, 1, 3, 0, 2, 1];
  let units = 0n;
  for (const count of counts) {
    const moves = Array.from({ length: count }, () => ({
      from: STRANGER,
      to,
      units: (units += 1n),
    }));
    chain.mine(moves.map((move) => chain.tokenPayment(STRANGER, move)));
  }
  chain.mine();
  const book = new AddressBook(tokens.assets());
  const { faults } = bench.start(undefined, undefined, undefined, { tokens, book, mostListed: 3 });
  await bench.caughtUp();
  const expected = counts.flatMap((count, block) => Array.from({ length: count }, () => block + 1));
  expect(
    (await bench.deposits()).map((row) => [Number(row.split("-")[0]), row.split(" ")[3]]),
  ).toEqual(expected.map((height, place) => [height, String(place + 1)]));
  expect(await bench.accountAtoken("liability:customer:alice")).toBe(-(units * (units + 1n)) / 2n);
  expect(faults).toEqual([]);
});
