/** Requests whose policy changed between their acceptance and their nonce or signature. */
import { describe, expect, it } from "@jest/globals";
import { activatePolicy } from "../../../../ledger/policy/policy-store.js";
import { rejudgePending } from "../../../../ledger/policy/stored-judgement.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { decideWithdrawal } from "../../../../ledger/policy/approvals.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import type { LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { laneRules } from "../../../helpers/keys/signing.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET_KEY,
} from "../../../helpers/exchange/house.js";
import { policyOf } from "../terms.js";
import { overwrite } from "./overwrite.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async ({ id }: Pick<Withdrawal, "id">) => (await house.read(id)).status;

/** A signer that says nothing to whatever it is asked for. */
function silentSigner(): LaneContext["signer"] {
  const { signer } = house.context();
  return {
    address: signer.address,
    trouble: () => undefined,
    review: (payments) => signer.review(payments),
    sign: async (intents) => intents.map(() => ({ kind: "unanswered", reason: "test" })),
  };
}

describe("what a stricter policy forbids of accepted requests", () => {
  const limitedTo = (units: bigint) =>
    policyOf({
      limits: [{ by: "customer", window: "day", maxUnits: units * TOKEN, maxCount: undefined }],
    });

  it("counts against none behind it, also while it is put off", async () => {
    const ask = (tokens: bigint) => house.accept({ amountUnits: tokens * TOKEN });
    const [large, small] = [await ask(60n), await ask(20n)];
    await house.database.query(
      `UPDATE withdrawal SET next_try_at = now() + interval '1 hour' WHERE id = $1`,
      [large.id],
    );
    const stricter = limitedTo(50n);
    house.files.policy = stricter;
    await rejudgePending(house.database, stricter);
    await house.pass(house.lane({ retryDelayMs: 3_600_000 }));
    expect([await statusOf(large), await statusOf(small)]).toEqual(["rejected", "settled"]);
    expect((await house.read(large.id)).reason).toContain("LIMIT_EXCEEDED");
  });

  it("is looked for behind a change alone: all that waits would be looked through each time", async () => {
    await rejudgePending(house.database, limitedTo(90n));
    const asked = await house.accept({ amountUnits: 60n * TOKEN });
    const stricter = limitedTo(50n);
    await activatePolicy(house.database, async () => stricter);
    await overwrite(house, `UPDATE policy_activation SET at = now() - interval '121 s'`, []);
    await rejudgePending(house.database, stricter);
    expect(await statusOf(asked)).toBe("accepted");
    await overwrite(house, `UPDATE policy_activation SET at = now() - interval '110 s'`, []);
    await rejudgePending(house.database, stricter);
    expect(await statusOf(asked)).toBe("rejected");
  });
});

describe("a policy that changed since a request was accepted", () => {
  it("ends what it forbids, later ones before earlier ones, and asks persons about the rest", async () => {
    const [first, second] = [await house.accept(), await house.accept()];
    const big = await house.accept({ amountUnits: 20n * TOKEN });
    house.files.policy = policyOf({
      maximumUnits: 10n * TOKEN,
      limits: [{ by: "customer", window: "day", maxUnits: undefined, maxCount: 1 }],
    });
    await house.pass(house.lane());
    expect(await Promise.all([first, second, big].map(statusOf))).toEqual([
      "settled",
      "rejected",
      "rejected",
    ]);
    expect((await house.read(second.id)).reason).toContain("LIMIT_EXCEEDED");
    expect((await house.read(big.id)).reason).toContain("ABOVE_MAXIMUM");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });

  it("counts nothing that it ends towards the limits of what was asked for behind that", async () => {
    const [large, dear] = [
      await house.accept({ amountUnits: 8n * TOKEN }),
      await house.accept({ amountUnits: 4n * TOKEN }),
    ];
    const small = [await house.accept(), await house.accept(), await house.accept()];
    house.files.policy = policyOf({
      maximumUnits: 5n * TOKEN,
      limits: [{ by: "customer", window: "day", maxUnits: 2n * TOKEN, maxCount: undefined }],
    });
    await house.pass(house.lane());
    expect(await Promise.all([large, dear, ...small].map(statusOf))).toEqual([
      "rejected",
      "rejected",
      "settled",
      "settled",
      "rejected",
    ]);
    expect(await house.balance("alice")).toEqual({ available: 98n * TOKEN, held: 0n });
  });

  it("counts ended requests behind a nonce where the signer counts the asset", async () => {
    const limits = [
      { by: "customer" as const, window: "day" as const, maxUnits: undefined, maxCount: 2 },
    ];
    const asked = await house.accept();
    await cancelWithdrawal(house.database, asked.id, "before it has a nonce");
    const lane = house.lane();
    const signed = await house.accept();
    await lane.runRound(house.signal);
    await cancelWithdrawal(house.database, signed.id, "its payment is signed");
    await house.pass(lane, { rounds: 3 });
    expect(await statusOf(signed)).toBe("cancelled");
    house.files.policy = policyOf({ limits });
    const second = await house.accept();
    await house.pass(lane, { rounds: 3 });
    expect(await statusOf(second)).toBe("settled");
    house.files.policy = policyOf({ limits, signerDayMaxUnits: 50n * TOKEN });
    expect(await house.request()).toMatchObject({ refusal: "LIMIT_EXCEEDED" });
    // Nobody else's share is used up by what is given back.
    house.files.policy = policyOf({ limits });
    expect(await house.request()).toMatchObject({ outcome: "accepted" });
  });

  it("counts nothing whose nonce the exchange gave up before its payment was signed", async () => {
    const { gas } = house.context().settings;
    const to = freshAddress();
    house.chain.gasOf.set(to, 450_000n);
    const asked = await house.accept({ destination: to, destinationText: to });
    await house.laneWith({ signer: silentSigner() }).runRound(house.signal);
    expect(await statusOf(asked)).toBe("slotted");
    await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL`);
    await house.pass(house.lane({ gas: { ...gas, limitMax: 100_000n } }), { rounds: 4 });
    expect(await statusOf(asked)).toBe("failed");
    house.files.policy = policyOf({
      limits: [{ by: "customer", window: "day", maxUnits: undefined, maxCount: 1 }],
      signerDayMaxUnits: 50n * TOKEN,
    });
    expect(await house.request()).toMatchObject({ outcome: "accepted" });
  });

  it("counts of signed payments that ended what others did, and nothing that the exchange gave up", async () => {
    const stall = { repriceAfterMs: 600_000, giveUpAfterMs: 4_000, alarmAfterMs: 600_000 };
    const lane = house.lane({ stall });
    const [unmined, failing] = [freshAddress(), freshAddress()];
    house.chain.unmined.add(unmined);
    house.chain.revertingOnChain.add(failing);
    const failed = await house.accept({ destination: failing, destinationText: failing });
    const waited = await house.accept({ destination: unmined, destinationText: unmined });
    await house.pass(lane, { rounds: 8 });
    expect([await statusOf(failed), await statusOf(waited)]).toEqual(["failed", "failed"]);
    house.files.policy = policyOf({
      limits: [{ by: "customer", window: "day", maxUnits: undefined, maxCount: 2 }],
      signerDayMaxUnits: 50n * TOKEN,
    });
    expect(await house.request()).toMatchObject({ outcome: "accepted" });
    expect(await house.request()).toMatchObject({ refusal: "LIMIT_EXCEEDED" });
    // As of a token's payment of which a person had to say that it paid nothing.
    await house.ledger.owner.query(
      `INSERT INTO operator_decision (kind, key, terms, reason, needs_second, status, proposed_by,
                                      decided_by, decided_at)
       VALUES ('transfer', $1, '{}', 'it paid nothing', false, 'done', 'ann', 'ann', now())`,
      [failed.id],
    );
    expect(await house.request()).toMatchObject({ outcome: "accepted" });
  });

  it("asks nobody again at the slot where as many persons are to agree as before", async () => {
    const approvals = [{ aboveUnits: 0n, needed: 1, signed: false }];
    house.files.policy = policyOf({ approvals });
    const asked = await house.accept({ requestedBy: "asker" });
    const said = { id: asked.id, keyId: "ann", decision: "approve", reason: "fine" } as const;
    const by = { policy: house.files.policy, chainId: FAKE_CHAIN_ID };
    expect(await decideWithdrawal(house.database, said, by)).toBe("done");
    house.files.policy = policyOf({ approvals, maximumUnits: 50n * TOKEN });
    await house.pass(house.lane());
    const paid = await house.read(asked.id);
    expect(paid.status).toBe("settled");
    expect(paid.history.map(({ status }) => status).slice(0, 3)).toEqual([
      "pending_approval",
      "accepted",
      "slotted",
    ]);
  });

  it("lets an approval count no more where more persons are to agree than before", async () => {
    const approvals = (needed: number) => [{ aboveUnits: 0n, needed, signed: false }];
    house.files.policy = policyOf({ approvals: approvals(1) });
    const asked = await house.accept({ requestedBy: "asker" });
    const approve = (keyId = "ann") =>
      decideWithdrawal(
        house.database,
        { id: asked.id, keyId, decision: "approve", reason: "fine" },
        { policy: house.files.policy, chainId: FAKE_CHAIN_ID },
      );
    expect(await approve()).toBe("done");
    house.files.policy = policyOf({ approvals: approvals(2) });
    const lane = house.lane();
    await house.pass(lane);
    expect(await statusOf(asked)).toBe("pending_approval");
    expect((await house.read(asked.id)).nonce).toBeUndefined();
    expect(await approve()).toBe("done");
    expect(await statusOf(asked)).toBe("pending_approval");
    expect(await approve("ben")).toBe("done");
    await house.pass(lane);
    expect(await statusOf(asked)).toBe("settled");
  });

  it("takes the nonce back from what the signer's file forbids by the time it is signed", async () => {
    const { signer } = laneRules({
      privateKey: WALLET_KEY,
      chainId: FAKE_CHAIN_ID,
      limits: { gasPriceCapAtoken: 1_000_000_000n, gasLimitMax: 1_000_000n },
      sql: house.database,
      files: { ...house.files, policy: policyOf({ maximumUnits: TOKEN }) },
    });
    const [big, small] = [await house.accept({ amountUnits: 2n * TOKEN }), await house.accept()];
    await house.pass(house.laneWith({ signer }), { rounds: 3 });
    const ended = await house.read(big.id);
    expect(ended).toMatchObject({ status: "rejected", nonce: 0n });
    expect(ended.reason).toContain("ABOVE_MAXIMUM of the signer");
    expect(ended.history.map(({ status }) => status)).toContain("cancelling");
    expect(await house.read(small.id)).toMatchObject({ status: "settled", nonce: 1n });
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });
});
