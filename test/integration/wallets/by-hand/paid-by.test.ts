/**
 * `withdrawals release --paid-by` where it cannot be done as asked: the refusal says what to do instead, and
 * what it says ends the request with one payment.
 */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { toChecksumAddress } from "../../../../chain/address.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { bytesToHex, type Hash32 } from "../../../../chain/hex.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { signLegacy } from "../../../../chain/transaction.js";
import { operatorName } from "../../../../cli/commands/ledger-decisions.js";
import { NATIVE_ASSET, parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { freezeWithdrawals } from "../../../../ledger/withdrawals/slot-outcomes.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { acceptWithdrawals } from "../../../../ledger/withdrawals/withdrawals.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { ANY_REQUEST } from "../../../helpers/keys/signing.js";
import { policyOf } from "../../policy/terms.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../../recovery/desk.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of payments that are named"));
const SECOND = privateKeyToAddress(SECOND_KEY);
const REASON = ["--reason", "looked at the chain"];
const SAID = [...REASON, "--operator", "ann"];

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** Somebody with the key signs elsewhere. */
function signElsewhere(key: Uint8Array, nonce: bigint, to = destination(1)): Hash32 {
  const intent = { chainId: FAKE_CHAIN_ID, nonce, gasPriceAtoken: 90_000_000n };
  const rest = { gasLimit: 21_000n, to, valueAtoken: 4n * TOKEN, data: new Uint8Array(0) };
  return desk.chain.submit(bytesToHex(signLegacy({ ...intent, ...rest }, key)));
}

/** Somebody pays alice's wish by hand; the release has frozen what equals it. */
async function payByHand(): Promise<Hash32> {
  const hash = signElsewhere(KEY, 0n);
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

it("is kept with who said so and why, as is that a request was not paid, each time", async () => {
  const { id } = await desk.request(WISH);
  const other = (await desk.request({ ...WISH, key: "v" })).id;
  const hash = await payByHand();
  const notPaid = ["withdrawals", "release", other, "--not-paid"];
  await desk.causeway(...notPaid, ...SAID);
  await freezeWithdrawals(desk.workerDatabase, [{ id: other, reason: "looked at once more" }]);
  await desk.causeway(...notPaid, "--operator", "ben");
  expect((await desk.read(other)).status).toBe("accepted");
  await adopt(id, hash);
  // Nothing is done, and nothing is said of it.
  await expect(desk.causeway(...notPaid, ...SAID)).rejects.toMatchObject({ code: "NOT_FROZEN" });
  const { text } = await desk.causeway("ledger", "decisions");
  const kept = [
    `1 done release-withdrawal decision not-paid, withdrawalId ${other}; by ann: looked at the chain`,
    `2 done release-withdrawal decision not-paid, withdrawalId ${other}; by ben: no reason was given`,
    `3 done release-withdrawal hash ${hash}, decision paid-by, withdrawalId ${id}; by ` +
      `${operatorName(undefined)}: no reason was given`,
  ];
  expect(text).toBe(kept.join("\n"));
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

/** Alice's wish has a nonce of the first wallet, and reached no node; the second one has looked around. */
async function signByFirst(): Promise<WithdrawalId> {
  desk.writeKeystore("wallets/second.json", SECOND);
  await desk.restart();
  desk.pay([SECOND, 50n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.laneOf(SECOND_KEY).runRound(desk.signal);
  desk.chain.wireFault = (methods) =>
    methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
  const { id } = await desk.request(WISH);
  await expect(desk.lane().runRound(desk.signal)).rejects.toThrow();
  desk.chain.wireFault = () => undefined;
  expect(await desk.read(id)).toMatchObject({ status: "signed", wallet: WALLET });
  return id;
}

it("takes the payment of another wallet where the nonce of the first one was used otherwise", async () => {
  const id = await signByFirst();
  signElsewhere(KEY, 0n, destination(7));
  desk.chain.mine();
  await desk.watch();
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  const hash = signElsewhere(SECOND_KEY, 0n);
  desk.chain.mine();
  await desk.watch();
  const adopted = await adopt(id, hash);
  expect([adopted.code, adopted.text]).toEqual([0, expect.stringContaining("is its payment")]);
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  await desk.work(4, [desk.lane(), desk.laneOf(SECOND_KEY)]);
  expect(await desk.read(id)).toMatchObject({ status: "settled", wallet: SECOND, txHash: hash });
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
});

it("names the wallet whose nonce may still pay what another wallet has paid", async () => {
  const id = await signByFirst();
  await freezeWithdrawals(desk.workerDatabase, [{ id, reason: "looked at by a person" }]);
  const hash = signElsewhere(SECOND_KEY, 0n);
  desk.chain.mine();
  await desk.watch();
  const refused = await adopt(id, hash);
  expect([refused.code, refused.text]).toEqual([
    1,
    expect.stringContaining(`${id}: nonce 0 of ${toChecksumAddress(WALLET)} may still pay it`),
  ]);
  expect((await desk.read(id)).status).toBe("frozen");
  await bearPayment(id, hash);
});

it("is not paid again where another wallet's payment of it was acknowledged before it froze", async () => {
  const id = await signByFirst();
  signElsewhere(KEY, 0n, destination(7));
  const hash = signElsewhere(SECOND_KEY, 0n);
  desk.chain.mine();
  await desk.watch();
  await desk.causeway("withdrawals", "release", "--accept-foreign", ...REASON);
  const lanes = [desk.lane(), desk.laneOf(SECOND_KEY)];
  await desk.work(4, lanes);
  expect((await desk.read(id)).status).toBe("frozen");
  const looked = await desk.causeway("withdrawals", "release");
  expect([looked.code, looked.text]).toEqual([1, expect.stringContaining(`${id}: ${hash}`)]);
  await desk.work(4, lanes);
  expect((await desk.read(id)).status).toBe("frozen");
  expect((await adopt(id, hash)).code).toBe(0);
  await desk.causeway("withdrawals", "release");
  await desk.work(4, lanes);
  expect(await desk.read(id)).toMatchObject({ status: "settled", wallet: SECOND, txHash: hash });
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(4n * TOKEN);
});

/** As often as the second wallet's key is used elsewhere to pay the wish. */
async function paidElsewhere(times: number): Promise<readonly Hash32[]> {
  const hashes = Array.from({ length: times }, (_, nonce) =>
    signElsewhere(SECOND_KEY, BigInt(nonce)),
  );
  desk.chain.mine();
  await desk.watch();
  return hashes;
}

it("is not paid by its own free nonce where another wallet has paid it, however that was acknowledged", async () => {
  const id = await signByFirst();
  await freezeWithdrawals(desk.workerDatabase, [{ id, reason: "looked at by a person" }]);
  const [hash] = await paidElsewhere(1);
  if (hash === undefined) throw new Error("nothing was paid");
  for (const options of [[], ["--accept-foreign", ...REASON], [id], [id, "--not-paid"]]) {
    const { code, text } = await desk.causeway("withdrawals", "release", ...options);
    expect([options, code, text]).toEqual([
      options,
      1,
      expect.stringMatching(`${id}: nonce 0 of .* may still pay it.*accept-outflow ${hash}`),
    ]);
    await desk.work(4);
    expect((await desk.read(id)).status).toBe("frozen");
  }
  await bearPayment(id, hash);
});

it("is paid by its own free nonce where a person says so, shown all that is booked", async () => {
  const id = await signByFirst();
  await freezeWithdrawals(desk.workerDatabase, [{ id, reason: "looked at by a person" }]);
  const hashes = await paidElsewhere(3);
  for (const hash of hashes) {
    const named = await desk.causeway("withdrawals", "release", id);
    expect([named.code, named.text]).toEqual([
      1,
      expect.stringContaining(`accept-outflow ${hash}`),
    ]);
    await desk.causeway(
      "ledger",
      "accept-outflow",
      hash,
      "--account",
      "expense:write_off",
      ...REASON,
    );
  }
  const looked = await desk.causeway("withdrawals", "release", id);
  expect([looked.code, looked.text]).toEqual([1, expect.stringMatching(hashes.join(".*"))]);
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  const said = await desk.causeway("withdrawals", "release", id, "--not-paid");
  expect([said.code, said.text]).toEqual([0, expect.stringContaining("nonce 0 is still free")]);
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("settled");
  await desk.watch();
  expect(desk.paidAtoken(destination(1))).toBe(16n * TOKEN);
});
