/**
 * A wallet whose key is lost, as docs/rotation.md has it: what got its nonce and no signature is taken back,
 * so that no key that turns up pays it, and the exchange bears what its customer is given meanwhile.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import type { Signer } from "../../../withdrawal-worker/signers/signer-port.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../recovery/desk.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet beside the lost key"));
const SECOND = privateKeyToAddress(SECOND_KEY);
const REASON = ["--reason", "the HSM is gone", "--operator", "ann"];

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
});
afterEach(() => desk.close());

/** Proposed by one person, carried out by another. */
async function adjust(key: string, debit: string, credit: string): Promise<void> {
  const sides = ["--key", key, "--debit", debit, "--credit", credit];
  const terms = ["ledger", "adjust", ...sides, "--amount-atoken", (4n * TOKEN).toString()];
  const { text } = await desk.causeway(...terms, ...REASON);
  const [number = ""] = text.split(" ");
  expect((await desk.causeway("ledger", "approve", number, "--operator", "ben")).code).toBe(0);
}

it("gives its customer the coins by two persons' word, and pays nothing when the key turns up", async () => {
  const wish = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  const { id } = await desk.request({ key: "w", ...wish });
  const { signer } = desk.rulesOf(KEY);
  const silent: Signer = {
    address: WALLET,
    sign: async (intents) => intents.map(() => ({ kind: "unanswered", reason: "no HSM" })),
    review: (payments) => payments.map(() => undefined),
    trouble: () => "no HSM",
  };
  await desk.makeLane(WALLET, { signer: silent, hasKey: () => true }).runRound(desk.signal);
  expect(await desk.read(id)).toMatchObject({ status: "slotted", wallet: WALLET });

  await desk.causeway("wallets", "drain", WALLET, ...REASON);
  await desk.causeway("withdrawals", "cancel", id, "--reason", "the key is lost");
  expect((await desk.read(id)).status).toBe("cancelling");
  await desk.causeway("wallets", "retire", WALLET, "--leave-behind", ...REASON);
  await adjust(`lost-key:${id}`, "expense:write_off", "liability:customer:alice");
  expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);

  desk.writeKeystore("wallets/second.json", SECOND);
  await desk.restart();
  desk.pay([SECOND, 50n * TOKEN]);
  await desk.watch();
  const again = await desk.request({ key: "again", ...wish });
  await desk.work(4, [desk.laneOf(KEY, false), desk.laneOf(SECOND_KEY)]);
  expect(await desk.read(again.id)).toMatchObject({ status: "settled", wallet: SECOND });
  expect((await desk.read(id)).status).toBe("cancelling");

  await desk.causeway("wallets", "drain", WALLET, ...REASON);
  await desk.work(4, [desk.makeLane(WALLET, { signer, hasKey: () => true })]);
  expect((await desk.read(id)).status).toBe("cancelled");
  expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
  await adjust(`found-key:${id}`, "liability:customer:alice", "expense:write_off");
  await desk.watch();
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect(await desk.breaks()).toBe("");
});
