/**
 * `withdrawals release --paid-by` where it cannot be done as asked: the refusal says what to do instead, and
 * what it says ends the request with one payment.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { bytesToHex, type Hash32 } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import { NATIVE_ASSET, parseCustomerId } from "../../../ledger/books/accounts.js";
import type { WithdrawalId } from "../../../ledger/withdrawals/withdrawal-id.js";
import { acceptWithdrawals } from "../../../ledger/withdrawals/withdrawals.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { ANY_REQUEST } from "../../helpers/signing.js";
import { policyOf } from "../policy/terms.js";
import { Desk, destination, KEY, TOKEN } from "../recovery/desk.js";

const REASON = ["--reason", "looked at the chain"];
const SAID = [...REASON, "--operator", "ann"];

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** Somebody pays alice's wish by hand, with the key of a wallet; the release has frozen what equals it. */
async function payByHand(key: Uint8Array = KEY): Promise<Hash32> {
  const intent = { chainId: FAKE_CHAIN_ID, nonce: 0n, gasPriceAtoken: 90_000_000n };
  const to = destination(1);
  const rest = { gasLimit: 21_000n, to, valueAtoken: 4n * TOKEN, data: new Uint8Array(0) };
  const hash = desk.chain.submit(bytesToHex(signLegacy({ ...intent, ...rest }, key)));
  desk.chain.mine();
  await desk.watch();
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  return hash;
}

const WISH = { key: "w", customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };

const adopt = (id: WithdrawalId, hash: Hash32) =>
  desk.causeway("withdrawals", "release", id, "--paid-by", hash);

/** The steps of the refusals: the wish is taken back, and alice bears the payment. */
async function bearPayment(id: WithdrawalId, hash: Hash32, ...decided: string[]): Promise<void> {
  const cancelled = await desk.causeway("withdrawals", "cancel", id, "--reason", "paid by hand");
  expect(cancelled.code).toBe(0);
  await desk.causeway("withdrawals", "release", id, ...decided);
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("cancelled");
  const borne = ["ledger", "accept-outflow", hash, "--account", "liability:customer:alice"];
  expect((await desk.causeway(...borne, ...REASON)).code).toBe(0);
  await expectPaidOnce();
}

async function expectPaidOnce(): Promise<void> {
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
  expect(await desk.availableAtoken("alice")).toBe(6n * TOKEN);
  expect(await desk.breaks()).toBe("");
}

async function slots(): Promise<number> {
  return (await desk.database.query(`SELECT 1 FROM nonce_slot`)).length;
}

it("says that the kill switch is in the way, and goes on once it is lifted", async () => {
  const { id } = await desk.request(WISH);
  const hash = await payByHand();
  expect((await desk.read(id)).status).toBe("frozen");
  await desk.causeway("killswitch", "set", "stop-sign", ...SAID);
  await expect(adopt(id, hash)).rejects.toMatchObject({
    code: "SIGNING_STOPPED",
    message: expect.stringMatching(/stop-sign.*withdrawals freeze.*killswitch lift/),
  });
  expect([(await desk.read(id)).status, await slots()]).toEqual(["frozen", 0]);
  await desk.causeway("withdrawals", "freeze", ...REASON);
  await desk.causeway("killswitch", "lift", ...SAID);
  expect((await adopt(id, hash)).code).toBe(0);
  await desk.causeway("withdrawals", "release");
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("settled");
  await expectPaidOnce();
});

it("says that approvals are missing, and how the request ends without them", async () => {
  const policy = policyOf({ approvals: [{ aboveUnits: 0n, needed: 2, signed: false }] });
  const { amountAtoken: amountUnits, to } = WISH;
  const terms = { asset: NATIVE_ASSET, destination: to, destinationText: to, amountUnits };
  const wish = { idempotencyKey: "w", customerId: parseCustomerId("alice"), ...terms };
  const rules = { ...ANY_REQUEST, policy };
  const [asked] = await acceptWithdrawals(desk.workerDatabase, [wish], rules);
  if (asked?.outcome !== "accepted") throw new Error("refused");
  const { id } = asked.withdrawal;
  const hash = await payByHand();
  expect((await desk.read(id)).status).toBe("frozen");
  await expect(adopt(id, hash)).rejects.toMatchObject({
    code: "APPROVALS_MISSING",
    message: expect.stringMatching(/cancel .*--not-paid.*accept-outflow .*customer:alice/),
  });
  expect([(await desk.read(id)).status, await slots()]).toEqual(["frozen", 0]);
  await bearPayment(id, hash, "--not-paid");
});
