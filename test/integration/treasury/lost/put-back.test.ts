/** A database that was put back knows a wallet as active whose key is gone since: nothing is swept there. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { toChecksumAddress } from "../../../../chain/address.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { listSweeps } from "../../../../ledger/treasury/sweeps.js";
import { drainWallet, retireWallet } from "../../../../ledger/wallets/wallet-registry.js";
import type { JsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { Sweeper } from "../../../../withdrawal-worker/treasury/sweeper.js";
import { createPatientClient } from "../../../helpers/exchange/patient-node.js";
import { Desk, KEY, TOKEN, WALLET } from "../../recovery/desk.js";
import { treasuryOf } from "../desk-treasury.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet behind a backup"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;
let rpc: JsonRpcClient;

beforeEach(async () => {
  desk = await Desk.open();
  rpc = createPatientClient(desk.chain.url);
  desk.writeKeystore("wallets/second.json", SECOND);
  await desk.restart();
  await desk.watch();
});
afterEach(async () => {
  rpc.close();
  await desk.close();
});

/** Some rounds of a treasury that has just started, with a block after each. */
async function sweep(): Promise<void> {
  const treasury = new Sweeper(await treasuryOf(desk, { rpc, wallets: [WALLET, SECOND] }));
  for (let round = 0; round < 3; round += 1) {
    await treasury.round(desk.signal);
    desk.chain.mine();
    await desk.watch();
  }
}

it("sweeps to the wallet that has its key, and not to the one that was retired behind the backup", async () => {
  const both = [desk.laneOf(KEY), desk.laneOf(SECOND_KEY)];
  await desk.work(1, both);
  const backup = await desk.backup();
  const word = { operator: "ann", reason: "its key has leaked" };
  await drainWallet(desk.database, WALLET, word);
  await retireWallet(desk.database, WALLET, {
    ...word,
    balanceAtoken: 0n,
    tokens: [],
    height: 0,
    dustAtoken: 0n,
    force: true,
  });
  const { address } = await desk.register("alice");
  desk.pay([address, TOKEN]);
  desk.chain.mine();
  await desk.watch();

  // Within the time for which the backup's word of the first one's key would count.
  await desk.useDatabase(backup);
  const plan = await desk.causeway("recover");
  expect(plan.text).toContain("In recovery");
  expect(plan.text).toContain(`once this is applied:\n  ${toChecksumAddress(WALLET)}`);
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  const before = desk.chain.balances.get(WALLET);
  await desk.watch();
  await sweep();
  expect(await listSweeps(desk.database, { afterId: 0, limit: 10 })).toEqual([]);
  const keyless = (await desk.causeway("treasury", "status")).text;
  for (const wallet of [WALLET, SECOND]) {
    expect(keyless).toContain(
      `NO KEY: no worker says that it holds the key of the wallet ${toChecksumAddress(wallet)}`,
    );
  }

  await desk.work(1, [desk.laneOf(KEY, false), desk.laneOf(SECOND_KEY)]);
  await desk.database.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);
  await sweep();
  expect(await listSweeps(desk.database, { afterId: 0, limit: 10 })).toMatchObject([
    { address, wallet: SECOND, state: "settled" },
  ]);
  expect(desk.chain.balances.get(address)).toBe(0n);
  expect(desk.chain.balances.get(WALLET)).toBe(before);
  const { text } = await desk.causeway("treasury", "status");
  expect(text).toContain(`the wallet ${toChecksumAddress(WALLET)}: nothing is swept to it`);
  expect(text).not.toContain(toChecksumAddress(SECOND));
});
