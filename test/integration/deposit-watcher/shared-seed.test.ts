/** A hot wallet that is made of the seed of the deposit addresses, as wallets for people give it out first. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { registerWallets } from "../../../ledger/wallets/wallet-registry.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { derivation, WatcherBench } from "../../helpers/services/watcher.js";

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

const FIRST = derivation.addressAt(0);
const walletOf = (address: typeof FIRST) => ({
  address,
  label: "first",
  operator: "test",
  reason: "its keystore lies in the home",
});

it("is given to no customer as a deposit address: nothing that came there would be theirs", async () => {
  await registerWallets(bench.ledger.database, [walletOf(FIRST)]);
  await expect(bench.register("alice")).rejects.toMatchObject({ code: "OWN_ADDRESS" });
  expect((await readCursor(bench.ledger.database)).nextAddressIndex).toBe(0);
});

it("is no hot wallet where a customer has it as a deposit address", async () => {
  const alice = await bench.register("alice");
  const before = await listWallets(bench.ledger.database);
  await expect(
    registerWallets(bench.ledger.database, [walletOf(alice.address)]),
  ).rejects.toMatchObject({ code: "OWN_ADDRESS" });
  expect(await listWallets(bench.ledger.database)).toEqual(before);
});
