/**
 * A wallet whose key has leaked, as docs/rotation.md has it: once it is retired, its switch, which nobody
 * lifts, alarms nobody any more. What its thief takes is named by `reconcile`.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../recovery/desk.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet beside the leaked key"));
const SECOND = privateKeyToAddress(SECOND_KEY);
const REASON = ["--reason", "the key has leaked", "--operator", "ann"];

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

it("is nobody's alarm, while its keystore lies in the home and behind another theft", async () => {
  await desk.causeway("withdrawals", "freeze", "--wallet", WALLET, "--reason", "leaked");
  desk.writeKeystore("wallets/second.json", SECOND);
  await desk.restart();
  desk.pay([SECOND, 50n * TOKEN]);
  await desk.watch();
  const lanes = [desk.laneOf(KEY), desk.laneOf(SECOND_KEY)];
  await desk.work(2, lanes);
  const first = () => lanes[0]?.status();
  expect(first()).toMatchObject({ isFrozen: true });
  expect((await desk.causeway("withdrawals", "list")).code).toBe(1);

  await desk.causeway("wallets", "drain", WALLET, ...REASON);
  await desk.causeway("wallets", "retire", WALLET, "--leave-behind", ...REASON);
  await desk.work(2, lanes);
  const quiet = { walletStatus: "retired", isFrozen: false, blockedReason: undefined };
  expect(first()).toMatchObject(quiet);
  const listed = await desk.causeway("withdrawals", "list");
  expect(listed.code).toBe(0);
  expect(listed.text).toMatch(/^signing for 0x\w+ goes on$/);

  desk.chain.mine([desk.chain.payment(WALLET, destination(9), 40n * TOKEN)]);
  await desk.watch();
  await desk.work(2, lanes);
  expect(first()).toMatchObject(quiet);
  expect((await desk.causeway("withdrawals", "list")).code).toBe(0);
  expect((await desk.causeway("reconcile")).code).toBe(1);

  // Whoever opens it again meets its switch.
  await desk.causeway("wallets", "drain", WALLET, ...REASON);
  await desk.work(2, lanes);
  expect(first()?.blockedReason).toContain("leaked");
  expect((await desk.causeway("withdrawals", "list")).code).toBe(1);
});
