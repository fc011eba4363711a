/** A command line that is refused releases none of the wallets, whichever one its words were about. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { Desk, destination, TOKEN } from "../../recovery/desk.js";
import { addWallet, payByHand } from "../second-wallet.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet, of a refused release"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  await addWallet(desk, SECOND, 50n * TOKEN);
});
afterEach(() => desk.close());

const frozen = async () =>
  (await desk.causeway("withdrawals", "list")).text.split("FROZEN").length - 1;

it.each([
  ["--acknowledge without a reason", ["--acknowledge", "HASH"]],
  ["a reason too long", ["--acknowledge", "HASH", "--reason", "x".repeat(1_001)]],
])("releases neither wallet at %s", async (_what, words) => {
  await desk.causeway("withdrawals", "freeze", "--reason", "looked at");
  const hash = payByHand(desk, SECOND_KEY, 0n, destination(1));
  desk.chain.mine();
  await desk.watch();
  expect(await frozen()).toBe(2);
  const said = words.map((word) => (word === "HASH" ? hash : word));
  await expect(desk.causeway("withdrawals", "release", ...said)).rejects.toMatchObject({
    code: "USAGE",
  });
  expect(await frozen()).toBe(2);
});
