/** Payments that persons have signed for, and that are to be signed more than once. */
import { describe, expect, it } from "@jest/globals";
import { activatePolicy } from "../../../../ledger/policy/policy-store.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { createKeyHolder } from "../../../../withdrawal-worker/signers/keystore-holder.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import {
  freshAddress,
  type House,
  houseForEachTest,
  TOKEN,
  WALLET_KEY,
} from "../../../helpers/exchange/house.js";
import { operatorBeside } from "../../../helpers/exchange/operator.js";
import { laneRules } from "../../../helpers/keys/signing.js";
import { askSigned, SIGNED, signedWith } from "../signed-requests.js";
import { signatureOf } from "../terms.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

const { release, sendForeign } = operatorBeside(() => house);

it("end without a second nonce where somebody else used the first: that one is for others", async () => {
  house.files.policy = SIGNED;
  const asked = await askSigned(house);
  const lane = house.lane();
  house.chain.wireFault = (methods) =>
    methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
  await expect(lane.runRound(house.signal)).rejects.toThrow();
  house.chain.wireFault = () => undefined;
  await sendForeign({ nonce: 0n });
  house.chain.mine();
  await house.pass(lane, { stepMs: 5_000 });
  expect((await house.read(asked.id)).status).toBe("frozen");
  expect(await release()).toBe(0);
  await lane.runRound(house.signal);
  const ended = await house.read(asked.id);
  expect(ended.status).toBe("rejected");
  expect(ended.reason).toContain("rule APPROVALS_USED");
  expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
  const slots = await house.database.query(`SELECT nonce::integer FROM nonce_slot`);
  expect(slots).toEqual([{ nonce: 0 }]);
  const next = await askSigned(house);
  await house.pass(lane);
  expect(await house.read(next.id)).toMatchObject({ status: "settled", nonce: 1n });
});

it("end where the policy changes before they are signed: for another nonce nobody could approve them", async () => {
  house.files.policy = SIGNED;
  await activatePolicy(house.database, () => house.files.policy);
  const holder = createKeyHolder(WALLET_KEY);
  const { priceCapAtoken: gasPriceCapAtoken, limitMax: gasLimitMax } = house.context().settings.gas;
  const changed = signedWith({ maximumUnits: 50n * TOKEN });
  const { signer } = laneRules({
    privateKey: WALLET_KEY,
    chainId: FAKE_CHAIN_ID,
    limits: { gasPriceCapAtoken, gasLimitMax },
    sql: house.database,
    files: house.files,
    holder: {
      ...holder,
      // A person edits the policy while hardware takes its time.
      async signTransaction(intent, options) {
        house.files.policy = changed;
        await activatePolicy(house.database, () => changed);
        return holder.signTransaction(intent, options);
      },
    },
  });
  const asked = [await askSigned(house), await askSigned(house)];
  const lane = house.laneWith({ signer });
  await house.pass(lane, { rounds: 4 });
  for (const { id } of asked) {
    const ended = await house.read(id);
    expect([ended.status, ended.hashes.length]).toEqual(["rejected", 1]);
    expect(ended.reason).toContain("APPROVALS_MISSING of the signer");
  }
  expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
  // The home remembers the nonces that it was about to sign for, of the one that it did not sign, too.
  const anew = asked.map(({ id: withdrawalId, customerId, asset, destination, amountUnits }, n) => {
    const terms = { withdrawalId, customerId, asset, destination, amountUnits };
    const approvals = [signatureOf(0, { id: withdrawalId, ...terms }, changed)];
    return { ...terms, approvals, fromNonce: BigInt(n + 2) };
  });
  const refusals = signer.review(anew).map((refusal) => refusal?.code);
  expect(refusals).toEqual(["APPROVALS_USED", "APPROVALS_USED"]);
  const next = await askSigned(house);
  await house.pass(lane);
  expect(await house.read(next.id)).toMatchObject({ status: "settled", nonce: 2n });
});

it("are paid and counted once where the pool refuses the price that was signed first", async () => {
  house.files.policy = signedWith({ signerDayMaxUnits: 3n * TOKEN });
  const to = freshAddress();
  const terms = { destination: to, destinationText: to };
  const asked = await askSigned(house, { ...terms, amountUnits: 2n * TOKEN });
  house.chain.minimumPriceAtoken = 40_000_000n;
  const lane = house.lane();
  await house.pass(lane, { rounds: 3 });
  const paid = await house.read(asked.id);
  expect(paid).toMatchObject({ status: "settled", nonce: 0n, txHash: paid.hashes[1] });
  expect(house.chain.balances.get(to)).toBe(2n * TOKEN);
  // What the day has left is a third TOKEN, and no more.
  const last = await askSigned(house, { ...terms, amountUnits: TOKEN });
  await house.pass(lane, { rounds: 3 });
  const beyond = await askSigned(house, { ...terms, amountUnits: 1n });
  await house.pass(lane, { rounds: 3 });
  expect((await house.read(last.id)).status).toBe("settled");
  const waiting = await house.read(beyond.id);
  expect([waiting.status, waiting.reason]).toEqual([
    "accepted",
    expect.stringContaining("within 24 hours"),
  ]);
  expect(house.chain.balances.get(to)).toBe(3n * TOKEN);
});

describe("a signer", () => {
  it("makes nothing dearer that was approved under a former policy, and pays it as it was signed", async () => {
    house.files.policy = SIGNED;
    const to = freshAddress();
    house.chain.unmined.add(to);
    const asked = await askSigned(house, { destination: to, destinationText: to });
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.files.policy = signedWith({ maximumUnits: 50n * TOKEN });
    await house.pass(lane, { rounds: 4, stepMs: 40_000 });
    const waiting = await house.read(asked.id);
    expect([waiting.status, waiting.hashes.length]).toEqual(["broadcast", 1]);
    house.chain.unmined.clear();
    await house.pass(lane, { rounds: 3 });
    expect(await statusOf(asked)).toBe("settled");
  });

  it("gives up together what was approved under a former policy and is too cheap by now", async () => {
    const approvals = [{ aboveUnits: TOKEN, needed: 1, signed: true }];
    house.files.policy = signedWith({ approvals });
    const lane = house.lane();
    const stuck: Withdrawal[] = [];
    for (let count = 0; count < 2; count += 1) {
      const to = freshAddress();
      house.chain.unmined.add(to);
      const terms = { destination: to, destinationText: to, amountUnits: 2n * TOKEN };
      stuck.push(await askSigned(house, terms));
    }
    const behind = await house.accept();
    await lane.runRound(house.signal);
    house.files.policy = signedWith({ approvals, maximumUnits: 50n * TOKEN });
    house.chain.gasPriceAtoken *= 2n;
    await house.pass(lane, { rounds: 4, stepMs: 300_000 });
    for (const { id } of stuck) {
      const ended = await house.read(id);
      // One payment, never a dearer one, and the transfer of nothing.
      expect([ended.status, ended.hashes.length]).toEqual(["failed", 2]);
    }
    expect(await statusOf(behind)).toBe("settled");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });
});
